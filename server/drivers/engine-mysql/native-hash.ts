/** What MariaDB keeps in the place of a password. We compute it, so that no password reaches its log. */
import { createHash } from 'node:crypto';

/** The hash of `mysql_native_password`: slow it is not, but our passwords have 140 bits and more. */
export function nativeHash(password: string): string {
  const once = createHash('sha1').update(password).digest();
  return `*${createHash('sha1').update(once).digest('hex').toUpperCase()}`;
}

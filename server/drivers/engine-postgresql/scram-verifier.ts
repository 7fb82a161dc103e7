/** What PostgreSQL keeps in the place of a password, as it writes it (RFC 5803). */
import { scramKeys } from '../scram-keys.ts';

/** The password is ASCII. */
export async function scramVerifier(password: string): Promise<string> {
  const { iterations, ...keys } = await scramKeys(password);
  const [salt, storedKey, serverKey] = [keys.salt, keys.storedKey, keys.serverKey].map((bytes) =>
    bytes.toString('base64'),
  );
  return `SCRAM-SHA-256$${iterations}:${salt}$${storedKey}:${serverKey}`;
}

/** The session that a principal came by. */
import type { Principal } from '../../calls/principal.ts';
import { sessionCredentialId } from './authenticator.ts';

/** The token hash of the session a principal came by; undefined when it came otherwise. */
export function sessionHashOf(principal: Principal): string | undefined {
  const prefix = sessionCredentialId('');
  return principal.via === 'session' ? principal.credentialId.slice(prefix.length) : undefined;
}

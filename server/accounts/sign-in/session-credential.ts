/** The session of a principal. */
import type { Principal } from '../../calls/principal.ts';
import { sessionCredentialId } from './authenticator.ts';

/** The token hash of a principal's session; undefined for other credentials. */
export function sessionHashOf(principal: Principal): string | undefined {
  const prefix = sessionCredentialId('');
  return principal.via === 'session' ? principal.credentialId.slice(prefix.length) : undefined;
}

/** API schemas of logins of programs. */
import { SCOPES } from '../../calls/principal.ts';
import { namedObject, type Static, Type } from '../../platform/json/json-schema.ts';
import { CreatedAccessKey } from '../schema.ts';

const Scopes = Type.Array(Type.Enum([...SCOPES]), { minItems: 1, maxItems: SCOPES.length });
const Name = Type.String({ minLength: 1, maxLength: 64, description: 'Name of the key' });
const ExpiresIn = Type.Optional(
  Type.Integer({
    minimum: 1,
    maximum: 315_360_000,
    description: 'Lifetime of the key, seconds; default: no expiry',
  }),
);
const Code = Type.String({ minLength: 1, maxLength: 100 });
const RedirectUri = Type.String({
  maxLength: 60,
  description: '`http://127.0.0.1:PORT/callback` or `http://[::1]:PORT/callback`',
});
const UserCode = Type.String({
  minLength: 1,
  maxLength: 20,
  description: 'Short code; case and dashes do not matter',
});

export const ApprovalBody = namedObject('LoginApproval', {
  redirect_uri: RedirectUri,
  code_challenge: Type.String({
    pattern: '^[A-Za-z0-9_-]{43}$',
    'x-rule': 'must be the SHA-256 of the verifier in base64url',
  }),
  code_challenge_method: Type.Literal('S256'),
  name: Name,
  scopes: Scopes,
  expires_in: ExpiresIn,
});

export const IssuedCode = namedObject('LoginCode', {
  code: Type.String({ description: 'Works once, with the verifier and the redirect URI' }),
  expires_in: Type.Integer({ description: 'Seconds' }),
});
export type IssuedCode = Static<typeof IssuedCode>;

export const RedeemBody = namedObject('LoginCodeExchange', {
  code: Code,
  code_verifier: Type.String({
    pattern: '^[A-Za-z0-9._~-]{43,128}$',
    'x-rule': 'must be 43 to 128 characters from A-Z, a-z, 0-9, "-", ".", "_" and "~"',
  }),
  redirect_uri: RedirectUri,
});

export const IssuedKey = namedObject('LoginKey', {
  ...CreatedAccessKey.properties,
  account_id: Type.Integer({ description: 'Id of the account' }),
  username: Type.String({ description: 'User name of the account' }),
});
export type IssuedKey = Static<typeof IssuedKey>;

export const DeviceBody = namedObject('NewDeviceLogin', { name: Name, scopes: Scopes });

export const DeviceCodes = namedObject('DeviceCodes', {
  device_code: Type.String({ description: 'Secret that the program polls with' }),
  user_code: Type.String({ description: 'Short code to enter in the console', examples: ['BCDF-GHJK'] }),
  verification_uri: Type.String({ description: 'URL of the console page that takes the code' }),
  expires_in: Type.Integer({ description: 'Seconds' }),
  interval: Type.Integer({ description: 'Seconds between two polls' }),
});
export type DeviceCodes = Static<typeof DeviceCodes>;

export const UserCodeBody = namedObject('DeviceUserCode', { user_code: UserCode });

export const DeviceLogin = namedObject('DeviceLogin', {
  user_code: Type.String(),
  name: Type.String({ description: 'Name of the key, chosen by the program' }),
  scopes: Type.Array(Type.Enum([...SCOPES])),
  address: Type.String({ description: 'IP address of the program' }),
  created_at: Type.String({ description: 'UTC' }),
});
export type DeviceLogin = Static<typeof DeviceLogin>;

export const DecisionBody = namedObject('DeviceLoginDecision', {
  user_code: UserCode,
  approve: Type.Boolean(),
  expires_in: ExpiresIn,
});

export const PollBody = namedObject('DeviceCodePoll', { device_code: Code });

/** API schemas of accounts (contract §3). */
import { SCOPES } from '../calls/principal.ts';
import { namedObject, type Static, Type, textOrNull } from '../platform/json/json-schema.ts';
import {
  EMAIL_MAX_LENGTH,
  EMAIL_PATTERN,
  EMAIL_RULE,
  PASSWORD_MAX_LENGTH,
  PASSWORD_MIN_LENGTH,
  USERNAME_PATTERN,
  USERNAME_RULE,
} from './account-fields.ts';

const Time = (description: string) =>
  Type.String({ description: `${description}, UTC`, examples: ['2026-01-31 09:30:00'] });

const Username = Type.String({
  pattern: USERNAME_PATTERN,
  'x-rule': USERNAME_RULE,
  description: '3 to 64 characters from A-Z, a-z, 0-9, ".", "_" and "-"; unique, case-insensitive',
  examples: ['ada'],
});
const Email = Type.String({
  pattern: EMAIL_PATTERN,
  'x-rule': EMAIL_RULE,
  maxLength: EMAIL_MAX_LENGTH,
  description: 'Unique, case-insensitive',
  examples: ['ada@example.com'],
});
const Password = Type.String({
  minLength: PASSWORD_MIN_LENGTH,
  maxLength: PASSWORD_MAX_LENGTH,
  description: `${PASSWORD_MIN_LENGTH} to ${PASSWORD_MAX_LENGTH} characters of any kind`,
});
// Only compared, so any text of bounded length is accepted.
const GivenPassword = Type.String({ maxLength: 1024 });

export const RegisterBody = namedObject('NewAccount', {
  username: Username,
  email: Email,
  password: Password,
});

export const LoginBody = namedObject('Login', {
  username: Type.Optional(Type.String({ maxLength: 256, description: 'User name or e-mail address' })),
  email: Type.Optional(Type.String({ maxLength: 256 })),
  password: GivenPassword,
});

export const ProfileQuery = Type.Object({
  api_key: Type.Optional(
    Type.Boolean({
      default: true,
      description: 'false: leave out the key (null), and write no entry to the audit log',
    }),
  ),
});

export const SetupQuery = Type.Object({
  token: Type.Optional(Type.String({ maxLength: 256, description: 'Token of the set-up link' })),
});

export const SetupLink = namedObject('SetupLink', { url: Type.String() });

export const SetupBody = namedObject('Setup', {
  token: Type.String({ maxLength: 256, description: 'Token of the set-up link' }),
  username: Username,
  email: Email,
  password: Password,
});

const MailSubject = Type.Enum(['credits', 'alarms'], {
  description:
    '`credits`: mail before and when the credits run out; `alarms`: mail about alarms of the cloud (administrators only)',
});

const registered = {
  id: Type.Integer(),
  username: Type.String(),
  email: Type.String(),
  api_key: textOrNull("The account's key; null if the credential used may not read it"),
  plan: Type.String({ examples: ['free'] }),
  credits: Type.Number({ description: 'Balance in credits, including credits on hold' }),
  is_active: Type.Boolean({ description: 'false while suspended' }),
  created_at: Time('Time of registration'),
  last_login: textOrNull('Time of the last login with the password; null before the first'),
};

export const Registration = namedObject('Registration', registered);
export type Registration = Static<typeof Registration>;

export const Account = namedObject('Account', {
  ...registered,
  is_admin: Type.Boolean(),
  is_auditor: Type.Boolean({
    description:
      'Whether the account is an auditor, which can read what administrators can, except secrets, and change nothing',
  }),
  credits_held: Type.Number({ description: 'Part of the balance on hold for running machines' }),
  billing_state: Type.Enum(['ok', 'low', 'critical', 'grace', 'suspended'], {
    description:
      'low: credits last less than 7 days; critical: less than 24 hours; grace: no credits left, ' +
      'machines run until grace_ends_at; suspended: machines were stopped',
  }),
  credits_exhausted_at: textOrNull('When the credits ran out; null while credits are left'),
  grace_ends_at: textOrNull('When machines will be stopped; null unless in grace'),
  canonical_id: Type.String({
    description: 'Canonical id of the account for S3 grants, policies and owners: 64 hexadecimal digits',
  }),
  display_name: Type.String({ description: 'Shown to S3 clients beside canonical_id: the user name' }),
  email_confirmed: Type.Boolean({
    description: 'Whether the e-mail address was confirmed with a mailed link',
  }),
  mail_about: Type.Array(MailSubject, {
    description: 'Events that the account gets mail about, once its address is confirmed',
  }),
});
export type Account = Static<typeof Account>;

export const LoggedIn = namedObject('LoggedIn', {
  ...Account.properties,
  session_token: Type.String({
    description: 'Second secret of the session, for the header Cloudlet-Session; shown only now',
  }),
});

export const TicketBody = namedObject('NewTicket', {
  path: Type.String({
    maxLength: 8192,
    pattern: '^/api/[^?#]+(\\?[^#]*)?$',
    'x-rule': 'must be a path of this API, with its query',
    description: 'Path and query of a download or a WebSocket',
    examples: ['/api/storage/obj-01m853x8yxk9tkgjrzm8kmc1wt/download'],
  }),
});

export const Ticket = namedObject('Ticket', {
  ticket: Type.String(),
  url: Type.String({ description: 'Path and query that include the ticket' }),
  expires_at: Time('Expiry time of the ticket'),
});

export const RotateBody = namedObject('ApiKeyRotation', {
  overlap_seconds: Type.Optional(
    Type.Integer({
      minimum: 0,
      maximum: 2_592_000,
      default: 0,
      description: 'How long the old key stays valid; 0 ends it, and any older one, immediately',
    }),
  ),
});

export const RotatedKey = namedObject('RotatedApiKey', {
  ...Account.properties,
  previous_key_expires_at: textOrNull('End of the overlap; null: no overlap'),
});
export type RotatedKey = Static<typeof RotatedKey>;

export const UpdateBody = namedObject('AccountChange', {
  email: Type.Optional(Email),
  password: Type.Optional(Password),
  mail_about: Type.Optional(
    Type.Array(MailSubject, { maxItems: 2, description: 'Events to get mail about; needs no password' }),
  ),
  current_password: Type.Optional(
    Type.String({
      maxLength: 1024,
      description:
        'Required to change an existing password and, with an API key or in a session whose password was given ' +
        'over 15 minutes ago, to change the e-mail address',
    }),
  ),
});

export const ClosedAccount = namedObject('ClosedAccount', {
  id: Type.Integer(),
  username: Type.String(),
  closed_at: Time('Time of closing'),
  removed_at: Time('Time at which the account is removed, unless its owner signs in before'),
});
export type ClosedAccount = Static<typeof ClosedAccount>;

export const Empty = namedObject('Empty', {});

export const ResetLink = namedObject('ResetLink', {
  url: Type.String({
    description: 'Single-use URL for setting a new password; returned only in this response',
  }),
  expires_at: Time('End of the link'),
});
export type ResetLink = Static<typeof ResetLink>;

export const ResetRequestBody = namedObject('MailRequest', { email: Email });

export const MailedLink = namedObject('MailedLink', {
  mailed_to: Type.String(),
  expires_at: Time('End of the link'),
});
export type MailedLink = Static<typeof MailedLink>;

export const Confirmation = namedObject('EmailConfirmation', { mailed_to: Type.String() });

export const ConfirmEmailBody = namedObject('EmailConfirmationToken', {
  token: Type.String({ maxLength: 256, description: 'Token of the link' }),
});

export const ConfirmedEmail = namedObject('ConfirmedEmail', {
  account_id: Type.Integer(),
  username: Type.String(),
  email: Type.String(),
});
export type ConfirmedEmail = Static<typeof ConfirmedEmail>;

export const ResetPasswordBody = namedObject('PasswordReset', {
  token: Type.String({ maxLength: 256, description: 'Token of the reset link' }),
  password: Password,
});

export const ResetPassword = namedObject('ResetPassword', {
  account_id: Type.Integer(),
  username: Type.String(),
  sessions_ended: Type.Integer({ description: 'Number of sessions that the new password ended' }),
  keys_kept: Type.Integer({ description: 'Number of API keys and access keys that still work' }),
});
export type ResetPassword = Static<typeof ResetPassword>;

const ScopeName = Type.Enum([...SCOPES]);

const BucketAccess = namedObject('NewAccessKeyBucket', {
  name: Type.String({ minLength: 3, maxLength: 63 }),
  prefix: Type.Optional(
    Type.String({
      maxLength: 1024,
      description: 'Only objects whose names begin with this prefix; empty: all',
    }),
  ),
});

export const AccessKeyBody = namedObject('NewAccessKey', {
  name: Type.String({ minLength: 1, maxLength: 100 }),
  scopes: Type.Array(ScopeName, { minItems: 1, maxItems: SCOPES.length }),
  buckets: Type.Optional(
    Type.Array(BucketAccess, {
      minItems: 1,
      maxItems: 100,
      description: 'Limits the key to these buckets; default: all',
    }),
  ),
  expires_in: Type.Optional(
    Type.Integer({ minimum: 1, maximum: 315_360_000, description: 'Seconds from now; default: never' }),
  ),
  expires_at: Type.Optional(
    Type.String({
      maxLength: 40,
      description: 'YYYY-MM-DD HH:MM:SS, UTC, or RFC 3339; instead of expires_in',
    }),
  ),
});
export type AccessKeyBody = Static<typeof AccessKeyBody>;

const KeyBucket = namedObject('AccessKeyBucket', { name: Type.String(), prefix: Type.String() });

export const AccessKey = namedObject('AccessKey', {
  id: Type.String({ examples: ['key-01kd8vcz1p7m3s5t9w2x4y6z8a'] }),
  name: Type.String(),
  scopes: Type.Array(ScopeName),
  buckets: Type.Union([Type.Array(KeyBucket), Type.Null({ description: 'No limit' })]),
  access_key_id: Type.String({ description: 'S3 access key' }),
  created_at: Time('Time of creation'),
  expires_at: textOrNull('Expiry time; null: never'),
  last_used_at: textOrNull('Last use, accurate to seconds; null: never used'),
});
export type AccessKey = Static<typeof AccessKey>;

export const CreatedAccessKey = namedObject('CreatedAccessKey', {
  ...AccessKey.properties,
  api_key: Type.String({ description: 'Shown only once' }),
  secret_access_key: Type.String({ description: 'S3 secret; shown only once' }),
  s3_endpoint: Type.String({ description: 'URL for S3 clients, with path style' }),
});
export type CreatedAccessKey = Static<typeof CreatedAccessKey>;

export const Session = namedObject('Session', {
  id: Type.String({ examples: ['ses-01kd8vcz1p7m3s5t9w2x4y6z8a'] }),
  is_current: Type.Boolean({ description: 'Whether this request used this session' }),
  user_agent: Type.String({ description: 'User-Agent at login; empty: unknown' }),
  address: Type.String({ description: 'IP address of the login; empty: unknown' }),
  created_at: Time('Time of the login'),
  last_used_at: Time('Last use, accurate to seconds'),
  expires_at: Time('Expiry time if it is not used again'),
});
export type Session = Static<typeof Session>;

export const SessionPath = Type.Object({ id: Type.String({ $id: 'SessionId' }) });

export const EndedSession = namedObject('EndedSession', { id: Type.String() });
export const EndedSessions = namedObject('EndedSessions', {
  ended: Type.Integer({ description: 'Number of sessions ended' }),
});

export const ConfirmBody = namedObject('PasswordConfirmation', {
  current_password: Type.String({ maxLength: 1024 }),
});
export const ConfirmedPassword = namedObject('ConfirmedPassword', {
  confirmed_until: Time('Time until which the session is not asked for the password again'),
});
export type ConfirmedPassword = Static<typeof ConfirmedPassword>;

export const RevokedAccessKey = namedObject('RevokedAccessKey', { id: Type.String() });

export const AccessKeyPath = Type.Object({ id: Type.String() });

const { api_key: _, ...shown } = Account.properties;
export const AdminAccount = namedObject('AdminAccount', {
  ...shown,
  suspended_reason: textOrNull('Reason of the suspension; null if not suspended'),
  removed_at: textOrNull(
    'Time at which an account that its owner closed, or that an administrator removes, is removed; the owner can ' +
      'prevent it by signing in, and an administrator by keeping the account. null: not scheduled',
  ),
  storage_bytes: Type.Number({ description: 'Bytes of all object versions' }),
  expires_at: textOrNull('Time at which the account is suspended; null: it does not expire'),
  invitation_id: textOrNull('Invitation the account was created with; null: none'),
  spend_cap: Type.Union([Type.Number(), Type.Null()], {
    description: 'Spend cap set by an administrator, in credits per calendar month (UTC); null: no cap',
  }),
  must_change_password: Type.Boolean({
    description: 'Whether the user must set a new password at the next log-in',
  }),
  last_seen_at: textOrNull('Last use by a session or a key, accurate to seconds; null: never used'),
});
export type AdminAccount = Static<typeof AdminAccount>;

export const AdminAccountPath = Type.Object({
  id: Type.String({ $id: 'AccountId', description: 'Account id' }),
});

export const AdminCreateBody = namedObject('AdminNewAccount', {
  username: Username,
  email: Email,
  password: Type.Optional(Password),
  is_admin: Type.Optional(Type.Boolean({ default: false })),
});

/** Members that administrators can change, besides the terms of billing. */
export const ADMIN_CHANGES = {
  email: Type.Optional(Email),
  is_admin: Type.Optional(
    Type.Boolean({
      description: 'Whether the account is an administrator; the last administrator cannot be changed',
    }),
  ),
  is_auditor: Type.Optional(
    Type.Boolean({
      description:
        'Whether the account reads what administrators read, without secrets, and changes nothing but its own sign-in. ' +
        'Not together with is_admin',
    }),
  ),
  must_change_password: Type.Optional(
    Type.Boolean({ description: 'Whether the user must set another password at the next log-in' }),
  ),
  expires_at: Type.Optional(
    Type.Union([Type.String({ maxLength: 40 }), Type.Null()], {
      description:
        'Time at which the account is suspended, YYYY-MM-DD HH:MM:SS, UTC, or RFC 3339; null: never. A later time ' +
        'resumes an account that was suspended because it expired',
    }),
  ),
};

export const CreditsBody = namedObject('CreditAdjustment', {
  amount: Type.Number({
    minimum: -1e9,
    maximum: 1e9,
    description: 'Credits, at most 6 decimals; negative deducts',
  }),
  reason: Type.String({
    minLength: 1,
    maxLength: 500,
    description: 'Recorded in the ledger with the administrator',
  }),
  transfer_id: Type.Optional(
    Type.String({
      pattern: '^[A-Za-z0-9._:-]{1,64}$',
      'x-rule': 'must be 1 to 64 characters from A-Z, a-z, 0-9, ".", "_", ":" and "-"',
      description: 'Chosen by you; repeating it changes nothing and returns the same response',
    }),
  ),
});

export const SuspendBody = namedObject('Suspension', {
  reason: Type.String({ minLength: 1, maxLength: 500 }),
});

/** API schemas of invitations. */
import { namedObject, type Static, Type, textOrNull } from '../../platform/json/json-schema.ts';
import { RegisterBody } from '../schema.ts';

const { username: Username, email: Email, password: Password } = RegisterBody.properties;

/** Maximum people invited by one link or one file. */
export const MOST_INVITED = 1000;
const DAY_SECONDS = 24 * 3600;
export const DEFAULT_LIFE_SECONDS = 7 * DAY_SECONDS;

const terms = {
  plan: Type.Optional(Type.String({ maxLength: 64, default: 'free', description: 'Plan of the account' })),
  credits: Type.Optional(
    Type.Number({
      minimum: 0,
      maximum: 1e9,
      default: 0,
      description: 'Credits granted on top of the sign-up credits, at most 6 decimals',
    }),
  ),
  spend_cap: Type.Optional(
    Type.Number({
      minimum: 0,
      maximum: 1e9,
      description:
        'Spend cap of each account, in credits per calendar month (UTC), at most 6 decimals; the owner may lower it. ' +
        'Default: no cap',
    }),
  ),
  account_expires_at: Type.Optional(
    Type.String({
      maxLength: 40,
      description:
        'Time at which the account is suspended, YYYY-MM-DD HH:MM:SS, UTC, or RFC 3339; default: never',
    }),
  ),
};

const ExpiresIn = Type.Optional(
  Type.Integer({
    minimum: 60,
    maximum: 365 * DAY_SECONDS,
    default: DEFAULT_LIFE_SECONDS,
    description: 'Seconds until the link expires',
  }),
);

const Mailed = Type.Optional(
  Type.Boolean({
    default: false,
    description:
      'Mail the link to the e-mail address, which every invitation then needs, and do not return it. An account ' +
      'created with the link has a confirmed address',
  }),
);

export const InvitationBody = namedObject('NewInvitation', {
  label: Type.Optional(
    Type.String({
      maxLength: 200,
      description: 'Note, such as the name of the person; shown only to administrators',
    }),
  ),
  username: Type.Optional(Username),
  email: Type.Optional(Email),
  ...terms,
  max_uses: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: MOST_INVITED,
      default: 1,
      description: 'Number of accounts the link can create; above 1 only without username and email',
    }),
  ),
  expires_in: ExpiresIn,
  mail: Mailed,
});
export type InvitationBody = Static<typeof InvitationBody>;

export const RenewalBody = namedObject('RenewedInvitation', {
  label: Type.Optional(Type.String({ maxLength: 200, description: 'Another note; default: unchanged' })),
  email: Type.Optional(
    Type.String({ ...Email, description: 'Another e-mail address of the account; default: unchanged' }),
  ),
  expires_in: ExpiresIn,
  mail: Mailed,
});
export type RenewalBody = Static<typeof RenewalBody>;

export const InvitationFileBody = namedObject('NewInvitations', {
  csv: Type.String({
    maxLength: 1_000_000,
    description:
      'Table with a header row; its columns are `username`, `email`, `label`, `plan`, `credits`, `spend_cap` and ' +
      '`account_expires_at`. ' +
      `Each row is an invitation, at most ${MOST_INVITED}; an empty field takes the default of the request`,
    examples: ['username,email\nada,ada@example.org\n'],
  }),
  ...terms,
  expires_in: ExpiresIn,
  mail: Mailed,
});
export type InvitationFileBody = Static<typeof InvitationFileBody>;

export const Invitation = namedObject('Invitation', {
  id: Type.String({ examples: ['inv-01kd8vcz1p7m3s5t9w2x4y6z8a'] }),
  label: Type.String(),
  username: textOrNull('User name of the account; null: chosen when joining'),
  email: textOrNull('E-mail address of the account; null: chosen when joining'),
  plan: Type.String(),
  credits: Type.Number({ description: 'Credits on top of the sign-up credits' }),
  spend_cap: Type.Union([Type.Number(), Type.Null()], {
    description: 'Spend cap of each account, in credits per calendar month (UTC); null: no cap',
  }),
  account_expires_at: textOrNull('Time at which the account is suspended, UTC; null: never'),
  state: Type.Enum(['open', 'used', 'expired', 'revoked'], {
    description: 'open: can create accounts; used: has created `max_uses` accounts',
  }),
  max_uses: Type.Integer(),
  uses: Type.Integer({ description: 'Number of accounts created' }),
  created_at: Type.String({ description: 'UTC' }),
  created_by: Type.String({ description: 'The administrator, or the operator' }),
  expires_at: Type.String({ description: 'Expiry time of the link, UTC' }),
  revoked_at: textOrNull('Time of revocation, UTC; null: not revoked'),
  mailed: Type.Boolean({
    description: 'Whether the link was sent by e-mail instead of being returned here',
  }),
});
export type Invitation = Static<typeof Invitation>;

export const CreatedInvitation = namedObject('CreatedInvitation', {
  ...Invitation.properties,
  url: textOrNull(
    'The link, shown only in this response; anyone who has it can create the account. null: it is mailed',
  ),
});
export type CreatedInvitation = Static<typeof CreatedInvitation>;

export const CreatedInvitations = namedObject('CreatedInvitations', {
  invitations: Type.Array(CreatedInvitation),
});

export const InvitationPath = Type.Object({ id: Type.String({ $id: 'InvitationId' }) });

const Token = Type.String({ maxLength: 256, description: 'Token of the link' });

export const ShowInvitationBody = namedObject('InvitationToken', { token: Token });

export const ShownInvitation = namedObject('ShownInvitation', {
  username: textOrNull('User name of the account; null: choose one'),
  email: textOrNull('E-mail address of the account; null: choose one'),
  account_expires_at: textOrNull('Time at which the account is suspended, UTC; null: never'),
  expires_at: Type.String({ description: 'Expiry time of the link, UTC' }),
});
export type ShownInvitation = Static<typeof ShownInvitation>;

export const JoinBody = namedObject('Join', {
  token: Token,
  username: Type.Optional(Username),
  email: Type.Optional(Email),
  password: Password,
});

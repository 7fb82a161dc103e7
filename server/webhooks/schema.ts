/** API schemas of webhooks. */
import { Reason } from '../http/response.ts';
import { namedObject, type Static, Type, textOrNull } from '../platform/json/json-schema.ts';
import { ALL_AUDIT, ALL_EVENTS, EVENT_TYPES } from './events-store.ts';
import { MAX_PENDING } from './retention.ts';

const Url = Type.String({
  minLength: 1,
  maxLength: 2048,
  description: 'https or http, without user name and password',
  examples: ['https://example.com/cloudlet-events'],
});
const Events = Type.Array(Type.Enum([ALL_EVENTS, ALL_AUDIT, ...EVENT_TYPES]), {
  minItems: 1,
  maxItems: EVENT_TYPES.length + 2,
  description:
    'Event types to send; `*`: all, including future ones, but not audit entries; `audit.*`: all audit entries',
});
const Description = Type.String({ maxLength: 200 });
const Secret = Type.String({
  description: 'Standard Webhooks secret: `whsec_` and the key in base64',
  examples: ['whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oDTS4bC5/fEXA='],
});

export const NewWebhook = namedObject('NewWebhook', {
  url: Url,
  events: Type.Optional(Events),
  description: Type.Optional(Description),
});
export type NewWebhook = Static<typeof NewWebhook>;

export const WebhookChange = namedObject('WebhookChange', {
  url: Type.Optional(Url),
  events: Type.Optional(Events),
  description: Type.Optional(Description),
  enabled: Type.Optional(
    Type.Boolean({ description: 'false: pending deliveries fail, and can be retried later with `recover`' }),
  ),
});
export type WebhookChange = Static<typeof WebhookChange>;

const webhookMembers = {
  id: Type.String({ description: 'whk-…' }),
  url: Type.String(),
  events: Type.Array(Type.String()),
  description: Type.String(),
  enabled: Type.Boolean(),
  audit_of: Type.Union([Type.Enum(['account', 'all']), Type.Null()], {
    description:
      'Audit entries that the webhook sends: `account`: entries of your account; `all`: entries of all accounts, while ' +
      'you are an administrator, if the webhook was created with all rights; null: none',
  }),
  disabled_reason: Type.Union([Reason, Type.Null()], {
    description: 'Code `owner`, `gone` (410 response) or `failing` (for 5 days)',
  }),
  failing_since: textOrNull('First failed attempt since the last success; null: none'),
  pending_deliveries: Type.Integer({
    description: `Pending deliveries; beyond ${MAX_PENDING} the oldest fail`,
  }),
  created_at: Type.String(),
};

export const Webhook = namedObject('Webhook', webhookMembers);
export type Webhook = Static<typeof Webhook>;

export const CreatedWebhook = namedObject('CreatedWebhook', { ...webhookMembers, secret: Secret });
export type CreatedWebhook = Static<typeof CreatedWebhook>;

export const WebhookSecret = namedObject('WebhookSecret', {
  id: Type.String(),
  secret: Secret,
  previous_secret: textOrNull('Also used for signing until previous_expires_at'),
  previous_expires_at: textOrNull('null: no previous secret'),
});
export type WebhookSecret = Static<typeof WebhookSecret>;

const DAY_SECONDS = 86_400;

export const SecretRotation = namedObject('WebhookSecretRotation', {
  overlap_seconds: Type.Optional(
    Type.Integer({
      minimum: 0,
      maximum: DAY_SECONDS,
      default: DAY_SECONDS,
      description: 'How long the previous secret also signs; 0 if the secret was leaked',
    }),
  ),
});

export const DeletedWebhook = namedObject('DeletedWebhook', { id: Type.String() });

const Attempt = namedObject('DeliveryAttempt', {
  at: Type.String(),
  status: Type.Union([Type.Integer(), Type.Null()], { description: 'null: no response' }),
  duration_ms: Type.Integer(),
  response: textOrNull('First 1 KiB of the response; of earlier attempts the first 100 characters'),
  error: textOrNull('Reason if there was no response'),
});

const DeliveryState = Type.Enum(['pending', 'delivered', 'failed']);

export const Delivery = namedObject('WebhookDelivery', {
  id: Type.String({ description: 'dlv-…' }),
  event_id: Type.String({ description: 'evt-…; sent as the header webhook-id, the same for each attempt' }),
  type: Type.String(),
  payload: Type.Unknown({
    description: 'Request body: type, timestamp and data; null: an audit entry that the key may not read',
  }),
  state: DeliveryState,
  reason: textOrNull(
    'Why the delivery failed, if not because of the last attempt, such as a disabled webhook; otherwise null',
  ),
  created_at: Type.String(),
  next_attempt_at: textOrNull('null: none scheduled'),
  attempts: Type.Array(Attempt, { description: 'Oldest first' }),
});
export type Delivery = Static<typeof Delivery>;

/** The query of the list of deliveries. */
export const DeliveryFilter = { state: Type.Optional(DeliveryState) };

export const Recovery = namedObject('WebhookRecovery', {
  since: Type.String({ description: 'YYYY-MM-DD HH:MM:SS, UTC, or RFC 3339' }),
});
export const Recovered = namedObject('RecoveredDeliveries', {
  recovered: Type.Integer({ description: 'Deliveries being retried' }),
  remaining: Type.Integer({
    description: 'Failed deliveries not queued because the queue is full; call again',
  }),
});
export type Recovered = Static<typeof Recovered>;

export const WebhookPath = Type.Object({ id: Type.String({ $id: 'WebhookId' }) });
export const DeliveryPath = Type.Object({
  ...WebhookPath.properties,
  delivery_id: Type.String(),
});

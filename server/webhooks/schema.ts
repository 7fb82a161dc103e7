/** What webhooks look like from outside. */
import { Reason } from '../http/response.ts';
import { namedObject, type Static, Type } from '../platform/json-schema.ts';
import { ALL_EVENTS, EVENT_TYPES } from './event-types.ts';

const Nullable = (description: string) => Type.Union([Type.String(), Type.Null()], { description });

const Url = Type.String({
  minLength: 1,
  maxLength: 2048,
  description: 'https or http, without name and password',
  examples: ['https://example.com/cloudlet-events'],
});
const Events = Type.Array(Type.Enum([ALL_EVENTS, ...EVENT_TYPES]), {
  minItems: 1,
  maxItems: EVENT_TYPES.length + 1,
  description: 'What is sent there; `*` for everything, also what is added later',
});
const Description = Type.String({ maxLength: 200 });
const Secret = Type.String({
  description: 'Of Standard Webhooks: `whsec_` and the base64 of the key',
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
    Type.Boolean({ description: 'false gives up what is not delivered yet; recover sends it later' }),
  ),
});
export type WebhookChange = Static<typeof WebhookChange>;

const webhookMembers = {
  id: Type.String({ description: 'whk-…' }),
  url: Type.String(),
  events: Type.Array(Type.String()),
  description: Type.String(),
  enabled: Type.Boolean(),
  disabled_reason: Type.Union([Reason, Type.Null()], {
    description: 'Code `owner`, `gone` (it answered 410) or `failing` (for 5 days)',
  }),
  failing_since: Nullable('The first attempt that failed since one succeeded; null: none did'),
  created_at: Type.String(),
};

export const Webhook = namedObject('Webhook', webhookMembers);
export type Webhook = Static<typeof Webhook>;

export const CreatedWebhook = namedObject('CreatedWebhook', { ...webhookMembers, secret: Secret });
export type CreatedWebhook = Static<typeof CreatedWebhook>;

export const WebhookSecret = namedObject('WebhookSecret', {
  id: Type.String(),
  secret: Secret,
  previous_secret: Nullable('Signs too, until previous_expires_at'),
  previous_expires_at: Nullable('null: there is none'),
});
export type WebhookSecret = Static<typeof WebhookSecret>;

const DAY_SECONDS = 86_400;

export const SecretRotation = namedObject('WebhookSecretRotation', {
  overlap_seconds: Type.Optional(
    Type.Integer({
      minimum: 0,
      maximum: DAY_SECONDS,
      default: DAY_SECONDS,
      description: 'How long the previous secret also signs; 0 when it was leaked',
    }),
  ),
});

export const DeletedWebhook = namedObject('DeletedWebhook', { id: Type.String() });

const Attempt = namedObject('DeliveryAttempt', {
  at: Type.String(),
  status: Type.Union([Type.Integer(), Type.Null()], { description: 'null: there was no response' }),
  duration_ms: Type.Integer(),
  response: Nullable('The first 1 KiB of the response'),
  error: Nullable('Why there was no response'),
});

const DeliveryState = Type.Enum(['pending', 'delivered', 'failed']);

export const Delivery = namedObject('WebhookDelivery', {
  id: Type.String({ description: 'dlv-…' }),
  event_id: Type.String({ description: 'evt-…; the header webhook-id, the same at each attempt' }),
  type: Type.String(),
  payload: Type.Unknown({ description: 'What is sent: type, timestamp and data' }),
  state: DeliveryState,
  reason: Nullable('Why it failed, beyond what its last attempt says'),
  created_at: Type.String(),
  next_attempt_at: Nullable('null: there will be none'),
  attempts: Type.Array(Attempt, { description: 'Oldest first' }),
});
export type Delivery = Static<typeof Delivery>;

/** Which deliveries are listed. */
export const DeliveryFilter = { state: Type.Optional(DeliveryState) };

export const Recovery = namedObject('WebhookRecovery', {
  since: Type.String({ description: 'YYYY-MM-DD HH:MM:SS, UTC, or RFC 3339' }),
});
export const Recovered = namedObject('RecoveredDeliveries', {
  recovered: Type.Integer({ description: 'Deliveries that are tried again' }),
});
export type Recovered = Static<typeof Recovered>;

export const WebhookPath = Type.Object({ id: Type.String({ $id: 'WebhookId' }) });
export const DeliveryPath = Type.Object({
  ...WebhookPath.properties,
  delivery_id: Type.String(),
});

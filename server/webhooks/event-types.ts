/** The event types that a webhook can subscribe to. */
export const EVENT_TYPES = [
  'credits.low',
  'credits.exhausted',
  'credits.restored',
  'database.created',
  'database.deleted',
  'database.failed',
  'database.read_only',
  'database.resumed',
  'database.suspended',
  'recovery_point.completed',
  'recovery_point.created',
  'recovery_point.damaged',
  'recovery_point.deleted',
  'recovery_point.failed',
  'recovery_point.verified',
  'vm.started',
  'vm.stopped',
  'vm.failed',
  'vm.deleted',
  'webhook.test',
] as const;
export type EventType = (typeof EVENT_TYPES)[number];

/** Matches all types, including future ones. */
export const ALL_EVENTS = '*';

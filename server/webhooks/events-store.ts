/** Events: written by other domains in the very commit of the change they report. */
import type { Statement } from '../metadata/metadata.ts';
import { newId } from '../platform/ids.ts';

/** The event types that a webhook can subscribe to. */
export const EVENT_TYPES = [
  'account.password_reset',
  'account.reset_link_created',
  'audit.done',
  'audit.failed',
  'audit.refused',
  'billing.spend_cap_lifted',
  'billing.spend_cap_reached',
  'billing.spend_warning',
  'bucket.objects_expired',
  'credits.low',
  'credits.exhausted',
  'credits.restored',
  'database.created',
  'database.deleted',
  'database.failed',
  'database.read_only',
  'database.resumed',
  'database.suspended',
  'database.tunnel_opened',
  'database.tunnel_closed',
  'recovery.alarm_cleared',
  'recovery.alarm_raised',
  'recovery_point.completed',
  'recovery_point.created',
  'recovery_point.damaged',
  'recovery_point.deleted',
  'recovery_point.drilled',
  'recovery_point.drill_failed',
  'recovery_point.drill_skipped',
  'recovery_point.failed',
  'recovery_point.verified',
  'vm.started',
  'vm.stopped',
  'vm.failed',
  'vm.deleted',
  'vm.changed',
  'vm.port_changed',
  'vm.ssh_key_lent',
  'vm.tunnel_opened',
  'vm.tunnel_closed',
  'webhook.test',
] as const;
export type EventType = (typeof EVENT_TYPES)[number];

/** Matches all types, including future ones, but not audit entries: there are too many of them. */
export const ALL_EVENTS = '*';
/** Matches all audit entries. */
export const ALL_AUDIT = 'audit.*';

/** Whether a subscription to `events` includes this type. */
export function hearsType(events: readonly string[], type: string): boolean {
  return events.includes(type) || events.includes(type.startsWith('audit.') ? ALL_AUDIT : ALL_EVENTS);
}

export interface NewEvent {
  readonly accountId: number;
  readonly type: EventType;
  /** Small JSON data, sent unchanged to every subscribed webhook. */
  readonly data: Readonly<Record<string, unknown>>;
  /** Time of the event, ms since 1970. */
  readonly at: number;
}

/** An event with its id, and the body that is signed and sent each time. */
export interface WrittenEvent {
  readonly eventId: string;
  readonly accountId: number;
  readonly type: EventType;
  readonly body: string;
  readonly at: number;
}

/** Assigns the event its `evt-` id. */
export function writeEvent({ accountId, type, data, at }: NewEvent): WrittenEvent {
  const eventId = newId('evt', { now: () => at });
  const body = JSON.stringify({ type, timestamp: new Date(at).toISOString(), data });
  return { eventId, accountId, type, body, at };
}

/**
 * Statements that add an event to a commit: one INSERT, which does nothing while the account has no webhook.
 * The event is sent once the commit is on disk, and never if it is rejected.
 */
export function eventStatements(event: NewEvent): Statement[] {
  const { eventId, accountId, type, body, at } = writeEvent(event);
  return [
    {
      sql: `INSERT INTO webhook_events (event_id, account_id, type, body, at)
            SELECT ?, ?, ?, ?, ? WHERE EXISTS (SELECT 1 FROM webhooks WHERE account_id = ?)`,
      params: [eventId, accountId, type, body, at, accountId],
    },
  ];
}

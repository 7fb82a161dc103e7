/**
 * Delivers events to webhooks. All state is in the database: an event without deliveries gets them, a pending
 * delivery that is due gets an attempt, and its result is stored before the next one begins. A kill between
 * an attempt and its commit repeats the attempt under the same id: at-least-once delivery. One attempt at a
 * time per webhook, so that events arrive in order while none fails; a failed one waits for its retry and
 * blocks nothing. Attempts to many webhooks run in parallel, see SendingLoop.
 */
import { BACKGROUND, type Changes } from '../metadata/change.ts';
import type { Statement } from '../metadata/metadata.ts';
import type { Clock } from '../platform/clock.ts';
import { newId } from '../platform/ids.ts';
import type { Sealer } from '../platform/master-key.ts';
import type { Outbound } from '../platform/outbound.ts';
import { retryDelayMs } from '../resources/retry-schedule.ts';
import { isDue, SendingLoop } from '../resources/sending-loop.ts';
import { accountOfEntry, HEARS, isAudit } from './audit-events.ts';
import type { DeliveryStore, OutgoingRow, PendingEventRow } from './deliveries-store.ts';
import { type AttemptResult, attemptDelivery } from './delivery-attempt.ts';
import { hearsType } from './events-store.ts';
import { MAX_PENDING, type Retention } from './retention.ts';
import { openSecret } from './signature.ts';
import type { ListenerRow, WebhookStore } from './store.ts';

export interface DispatcherDeps {
  readonly changes: Changes;
  readonly webhookStore: WebhookStore;
  readonly deliveryStore: DeliveryStore;
  readonly clock: Clock;
  readonly sealer: Sealer;
  readonly outbound: Outbound;
  readonly retention: Pick<Retention, 'added'>;
  /** Whether this node of a cluster delivers; `isBusy`: attempts are in progress. */
  readonly mayBegin: (isBusy: boolean) => Promise<boolean>;
  /** Default: MAX_PENDING. */
  readonly maxPending?: number;
  readonly onError: (what: string, error: unknown) => void;
}

const EVENT_BATCH = 100;
/** Maximum pause of a webhook's other deliveries after a response with Retry-After. */
const MAX_REST_MS = 3_600_000;
const FAILING_MS = 5 * 24 * 3_600_000;
/** Stored attempts of one delivery, which may be replayed any number of times. */
const KEPT_ATTEMPTS = 10;
/** Maximum characters stored of responses before the last one. */
const KEPT_OF_EARLIER = 100;
const GONE = 410;

const NOT_ADMIN = 'entries of other accounts go to administrators only';
const DISABLED = 'the webhook was disabled';

export class Dispatcher extends SendingLoop {
  readonly #deps: DispatcherDeps;

  constructor(deps: DispatcherDeps) {
    super('webhook delivery', deps);
    this.#deps = deps;
  }

  /** Creates the deliveries of new events, each event exactly once; false: there were none. */
  protected override async prepare(): Promise<boolean> {
    const { changes, deliveryStore, retention } = this.#deps;
    const added = await changes.run(BACKGROUND, async (change) => {
      const events = await deliveryStore.pendingEvents(EVENT_BATCH);
      const { statements, counts } = await this.#deliveriesOf(events);
      // A webhook may have been removed.
      change.addAll(statements, 'retry');
      return events.length > 0 ? counts : null;
    });
    if (added === null) return false;
    for (const [webhook, count] of added) await retention.added(webhook, count);
    return true;
  }

  /** With the number of deliveries per webhook. */
  async #deliveriesOf(events: readonly PendingEventRow[]) {
    const { webhookStore, deliveryStore, clock, maxPending = MAX_PENDING } = this.#deps;
    const listeners = new Map<number, ListenerRow[]>();
    const counts = new Map<number, number>();
    const statements: Statement[] = [];
    const at = clock.now();
    for (const event of events) {
      const found = listeners.get(event.account_id) ?? (await webhookStore.listeners(event.account_id));
      listeners.set(event.account_id, found);
      const wanting = found.filter((one) => hears(one, event));
      const isWanted = wanting.length > 0;
      statements.push(isWanted ? deliveryStore.resolveEvent(event.id) : deliveryStore.dropEvent(event.id));
      for (const { id: webhook, is_enabled } of wanting) {
        const failed = is_enabled === 1 ? null : DISABLED;
        const deliveryId = newId('dlv', clock);
        statements.push(deliveryStore.insertDelivery({ deliveryId, webhook, event: event.id, failed, at }));
        counts.set(webhook, (counts.get(webhook) ?? 0) + 1);
      }
    }
    const reason = `more than ${maxPending} deliveries are pending, and this is one of the oldest`;
    for (const webhook of counts.keys()) {
      statements.push(deliveryStore.giveUpBeyond(webhook, maxPending, reason));
    }
    return { statements, counts };
  }

  protected override nextOfEach() {
    return this.#deps.deliveryStore.nextOfEach();
  }

  protected override async attempt(webhook: number, signal: AbortSignal): Promise<number> {
    const { deliveryStore, clock } = this.#deps;
    const row = await deliveryStore.nextOf(webhook);
    if (row === undefined || !isDue(row.next_at ?? 0, clock.now())) return 0;
    return await this.#send(row, signal);
  }

  async #send(row: OutgoingRow, signal: AbortSignal): Promise<number> {
    const { changes, deliveryStore, clock, retention } = this.#deps;
    if (row.account_closed === 1) {
      await changes.store([deliveryStore.giveUpOn(row.webhook, 'the account was closed')]);
      return 0;
    }
    if (!mayHear(row, row)) {
      const failed = { state: 'failed', reason: NOT_ADMIN, next_at: null } as const;
      await changes.store([deliveryStore.resolve(row, failed)], 'skip');
      return 0;
    }
    const result = await attemptDelivery(this.#deps, {
      url: row.url,
      eventId: row.event_id,
      body: row.body,
      signal,
      secrets: this.#secretsOf(row, clock.now()),
    });
    // The delivery may have been replayed, given up or removed: the current row counts.
    await changes.store(this.#outcome(row, result), 'skip');
    // Tests create deliveries without an event for all webhooks.
    await retention.added(row.webhook, 1);
    return isSuccess(result) ? 0 : Math.min(result.retryAfterMs ?? 0, MAX_REST_MS);
  }

  #secretsOf(row: OutgoingRow, now: number): string[] {
    const { sealer } = this.#deps;
    const secrets = [openSecret(sealer, row.webhook_id, row.sealed_secret)];
    if (row.sealed_old_secret !== null && (row.old_secret_until ?? 0) > now) {
      secrets.push(openSecret(sealer, row.webhook_id, row.sealed_old_secret));
    }
    return secrets;
  }

  #outcome(row: OutgoingRow, result: AttemptResult): Statement[] {
    const { webhookStore, deliveryStore, clock } = this.#deps;
    const { at, status, durationMs, response, error } = result;
    const attempt = [
      deliveryStore.shortenResponses(row.id, KEPT_OF_EARLIER),
      deliveryStore.insertAttempt({
        delivery: row.id,
        at,
        status,
        duration_ms: durationMs,
        response,
        error,
      }),
      deliveryStore.deleteOldAttempts(row.id, KEPT_ATTEMPTS),
    ];
    if (isSuccess(result)) {
      const delivered = { state: 'delivered', reason: null, next_at: null } as const;
      return [deliveryStore.resolve(row, delivered), ...attempt, webhookStore.noteSuccess(row.webhook)];
    }
    const now = clock.now();
    const over = whyOver(row, { status, now });
    const delay = over ? null : retryDelayMs({ tries: row.tries + 1, retryAfterMs: result.retryAfterMs });
    const after =
      delay === null
        ? ({ state: 'failed', reason: over === null ? null : DISABLED, next_at: null } as const)
        : ({ state: 'pending', reason: null, next_at: now + delay } as const);
    return [
      ...[deliveryStore.resolve(row, after), ...attempt, webhookStore.noteFailure(row.webhook, at)],
      ...(over === null
        ? []
        : [webhookStore.disable(row.webhook, over), deliveryStore.giveUpOn(row.webhook, DISABLED)]),
    ];
  }
}

function isSuccess({ status }: AttemptResult): boolean {
  return status !== null && status >= 200 && status < 300;
}

function hears(listener: ListenerRow, event: PendingEventRow): boolean {
  return hearsType(JSON.parse(listener.events), event.type) && mayHear(listener, event);
}

/** Administrators receive all audit entries, but only while they are administrators. */
function mayHear(
  { hears_audit, is_all }: Pick<ListenerRow, 'hears_audit' | 'is_all'>,
  { account_id, type, body }: Pick<PendingEventRow, 'account_id' | 'type' | 'body'>,
): boolean {
  if (!isAudit(type) || accountOfEntry(body) === account_id) return true;
  return hears_audit === HEARS.all && is_all === 1;
}

/** Why the webhook is disabled after this result, or null. */
function whyOver(
  { failing_since }: OutgoingRow,
  { status, now }: { readonly status: number | null; readonly now: number },
): { readonly code: string; readonly message: string } | null {
  if (status === GONE) return { code: 'gone', message: 'The URL responded with 410 Gone' };
  if (failing_since === null || now - failing_since < FAILING_MS) return null;
  return { code: 'failing', message: 'All attempts in 5 days failed' };
}

/** Creates, finds, changes and deletes webhooks. */
import type { Call, Principal } from '../calls/principal.ts';
import { type Change, type Changes, turnAt } from '../metadata/change.ts';
import { Listed, listRows } from '../metadata/list.ts';
import { type Clock, formatTime, formatTimeOrNull } from '../platform/clock.ts';
import { Counts } from '../platform/concurrency.ts';
import { AppError, assertFields, type FieldProblem } from '../platform/errors.ts';
import { isId, newId } from '../platform/ids.ts';
import type { Sealer } from '../platform/master-key.ts';
import { type Outbound, OutboundRefused } from '../platform/outbound.ts';
import { HEARS, hearsFor, MAX_HEARING_ALL } from './audit-events.ts';
import type { DeliveryStore } from './deliveries-store.ts';
import { ALL_EVENTS } from './events-store.ts';
import type { CreatedWebhook, NewWebhook, Webhook, WebhookChange, WebhookSecret } from './schema.ts';
import { newWebhookSecret, openSecret, sealSecret } from './signature.ts';
import type { WebhookRow, WebhookStore } from './store.ts';

export const MAX_WEBHOOKS = 20;
/** Maximum URLs of an account checked at the same time; further ones are first checked when used. */
const MAX_CHECKS = 4;
const BY_OWNER = { code: 'owner', message: 'The webhook was disabled by its owner' };

interface WebhooksDeps {
  readonly changes: Changes;
  readonly webhookStore: WebhookStore;
  readonly deliveryStore: DeliveryStore;
  readonly clock: Clock;
  readonly sealer: Sealer;
  readonly outbound: Pick<Outbound, 'assertAllowed'>;
  /** Called when the webhooks that want audit entries may have changed. */
  readonly onHearing: () => Promise<void>;
}

export class Webhooks {
  readonly #deps: WebhooksDeps;
  /** Account → its URLs that are being checked. */
  readonly #checks = new Counts<number>();

  constructor(deps: WebhooksDeps) {
    this.#deps = deps;
  }

  /** Throws `invalid_request`, `too_many_webhooks`, `scope_required`. */
  async create(call: Call, input: NewWebhook): Promise<CreatedWebhook> {
    const { changes, webhookStore, clock, sealer } = this.#deps;
    assertWebhookFields(input);
    await this.#assertReachable(call.principal, input.url);
    const events = [...new Set(input.events ?? [ALL_EVENTS])];
    const webhookId = newId('whk', clock);
    const secret = newWebhookSecret();
    const row = {
      webhook_id: webhookId,
      account_id: call.principal.accountId,
      url: input.url,
      description: input.description ?? '',
      events: JSON.stringify(events),
      hears_audit: hearsFor(call.principal, events),
      sealed_secret: sealSecret(sealer, webhookId, secret),
      created_at: clock.now(),
    };
    const isNew = { is_enabled: 1, disabled_code: null, disabled_message: null } as const;
    const fresh = { ...isNew, failing_since: null, pending: 0 };
    return changes.run(call, (change) => {
      change.add(turnAt('accounts', row.account_id));
      change.expect(webhookStore.insert(row, MAX_WEBHOOKS), tooManyWebhooks);
      this.#hear(change, row);
      return { ...present({ ...row, ...fresh }), secret };
    });
  }

  /** The caller's webhook. Throws `webhook_not_found`, also when it is someone else's. */
  async findFor(principal: Principal, webhookId: string): Promise<WebhookRow> {
    const row = isId('whk', webhookId) ? await this.#deps.webhookStore.find(webhookId) : undefined;
    if (row?.account_id !== principal.accountId) throw webhookNotFound();
    return row;
  }

  async describe(principal: Principal, webhookId: string): Promise<Webhook> {
    return present(await this.findFor(principal, webhookId));
  }

  /** At most `limit`, oldest first, after row id `after`. `id` is that row id, for the cursor only. */
  async *list(
    principal: Principal,
    after: number,
    limit: number,
  ): AsyncGenerator<Listed<WebhookRow, Webhook>> {
    const { webhookStore } = this.#deps;
    const rows = listRows({ after, limit }, (last, size) =>
      webhookStore.list(principal.accountId, last, size),
    );
    for await (const row of rows) yield new Listed(row, present(row));
  }

  /**
   * Missing fields do not change. Throws `invalid_request`, `webhook_not_found`,
   * `scope_required`, `too_many_webhooks`.
   */
  async change(call: Call, webhookId: string, wanted: WebhookChange): Promise<Webhook> {
    const { changes, webhookStore, deliveryStore } = this.#deps;
    assertWebhookFields(wanted);
    await this.findFor(call.principal, webhookId);
    if (wanted.url !== undefined) await this.#assertReachable(call.principal, wanted.url);
    return changes.run(call, async (change) => {
      const before = await this.findFor(call.principal, webhookId);
      const after = changed(before, wanted, call.principal);
      change.expect(webhookStore.update(before, after), 'retry');
      this.#hear(change, after);
      if (after.is_enabled === 1) return present(after);
      change.add(deliveryStore.giveUpOn(before.id, BY_OWNER.message));
      return present({ ...after, pending: 0 });
    });
  }

  /** Also deletes the log of its deliveries. Throws `webhook_not_found`. */
  async remove(call: Call, webhookId: string): Promise<{ readonly id: string }> {
    const { id } = await this.findFor(call.principal, webhookId);
    return this.#deps.changes.run(call, (change) => {
      change.expect(this.#deps.webhookStore.delete(id), webhookNotFound);
      change.after(() => void this.#deps.onHearing());
      return { id: webhookId };
    });
  }

  /** Throws `webhook_not_found`. */
  async secret(principal: Principal, webhookId: string): Promise<WebhookSecret> {
    const { sealer, clock } = this.#deps;
    const row = await this.findFor(principal, webhookId);
    const until = (row.old_secret_until ?? 0) > clock.now() ? row.old_secret_until : null;
    const previous = until === null ? null : row.sealed_old_secret;
    return {
      id: webhookId,
      secret: openSecret(sealer, webhookId, row.sealed_secret),
      previous_secret: previous && openSecret(sealer, webhookId, previous),
      previous_expires_at: formatTimeOrNull(until),
    };
  }

  /** Creates a new secret; the previous one also signs for `overlapMs`. Throws `webhook_not_found`. */
  rotateSecret(call: Call, webhookId: string, overlapMs: number): Promise<WebhookSecret> {
    const { changes, webhookStore, sealer, clock } = this.#deps;
    return changes.run(call, async (change) => {
      const row = await this.findFor(call.principal, webhookId);
      const secret = newWebhookSecret();
      const until = clock.now() + overlapMs;
      change.expect(webhookStore.replaceSecret(row, sealSecret(sealer, webhookId, secret), until), 'retry');
      return {
        id: webhookId,
        secret,
        previous_secret: overlapMs === 0 ? null : openSecret(sealer, webhookId, row.sealed_secret),
        previous_expires_at: overlapMs === 0 ? null : formatTime(until),
      };
    });
  }

  #hear(change: Change, row: Pick<WebhookRow, 'account_id' | 'hears_audit'>): void {
    const { webhookStore, onHearing } = this.#deps;
    if (row.hears_audit === HEARS.all) {
      change.addAll(webhookStore.expectRoomToHearAll(row.account_id, MAX_HEARING_ALL), tooManyHearAll);
    }
    change.after(() => void onHearing());
  }

  /** Throws `invalid_request` if the URL can never be reached. Deliveries check it again. */
  async #assertReachable({ accountId }: Principal, url: string): Promise<void> {
    // Names that do not resolve take long, so concurrent checks are limited.
    if (this.#checks.of(accountId) >= MAX_CHECKS) return;
    const done = this.#checks.add(accountId);
    try {
      await this.#deps.outbound.assertAllowed(url);
    } catch (error) {
      if (!(error instanceof OutboundRefused)) throw error;
      throw new AppError('invalid_request', `url: ${error.message}`, {
        fields: [{ field: 'url', message: error.message }],
        hint: 'The operator can allow more networks with CLOUDLET_FETCH_ALLOW',
      });
    } finally {
      done();
    }
  }
}

export function webhookNotFound(): AppError {
  return new AppError('webhook_not_found', 'There is no such webhook');
}

function tooManyWebhooks(): AppError {
  return new AppError('too_many_webhooks', `An account can have at most ${MAX_WEBHOOKS} webhooks`, {
    hint: 'Delete an unused webhook',
  });
}

function tooManyHearAll(): AppError {
  const most = `Webhooks of at most ${MAX_HEARING_ALL} administrators can receive all audit events`;
  return new AppError('too_many_webhooks', most, {
    hint: 'Use an existing webhook of one of these administrators',
  });
}

/** A changed URL, or enabling it again, resets the earlier failures. */
function changed(before: WebhookRow, wanted: WebhookChange, principal: Principal): WebhookRow {
  const { url = before.url, description = before.description, enabled = before.is_enabled === 1 } = wanted;
  const events = wanted.events ? JSON.stringify([...new Set(wanted.events)]) : before.events;
  // A caller that changes where entries go needs the right to read them.
  const isOnlyNamed = wanted.url === undefined && wanted.events === undefined && wanted.enabled !== true;
  const isSwitched = enabled !== (before.is_enabled === 1);
  const reason = enabled ? { code: null, message: null } : BY_OWNER;
  return {
    ...before,
    url,
    description,
    events,
    hears_audit: isOnlyNamed ? before.hears_audit : hearsFor(principal, JSON.parse(events)),
    is_enabled: Number(enabled),
    disabled_code: isSwitched ? reason.code : before.disabled_code,
    disabled_message: isSwitched ? reason.message : before.disabled_message,
    failing_since: url !== before.url || (isSwitched && enabled) ? null : before.failing_since,
  };
}

const AUDIT_OF: Readonly<Record<number, 'account' | 'all'>> = { [HEARS.own]: 'account', [HEARS.all]: 'all' };

function present(
  row: Omit<WebhookRow, 'id' | 'sealed_secret' | 'sealed_old_secret' | 'old_secret_until'>,
): Webhook {
  return {
    id: row.webhook_id,
    url: row.url,
    events: JSON.parse(row.events) as string[],
    description: row.description,
    audit_of: AUDIT_OF[row.hears_audit] ?? null,
    enabled: row.is_enabled === 1,
    disabled_reason:
      row.disabled_code === null ? null : { code: row.disabled_code, message: row.disabled_message ?? '' },
    failing_since: formatTimeOrNull(row.failing_since),
    pending_deliveries: row.pending,
    created_at: formatTime(row.created_at),
  };
}

interface GivenFields {
  readonly url?: string | undefined;
  readonly description?: string | undefined;
}

/** Throws `invalid_request` naming every invalid field. */
export function assertWebhookFields({ url, description }: GivenFields): void {
  const problems: FieldProblem[] = [];
  const note = (field: string, message: string | undefined) => {
    if (message !== undefined) problems.push({ field, message });
  };
  if (url !== undefined) note('url', urlProblem(url));
  if (description !== undefined) note('description', descriptionProblem(description));
  assertFields(problems);
}

/** http or https, without name and password, and without a fragment, which is never sent. */
function urlProblem(text: string): string | undefined {
  const url = URL.parse(text);
  if (url === null) return 'must be an absolute URL';
  if (url.protocol !== 'http:' && url.protocol !== 'https:') return 'must begin with https:// or http://';
  if (url.username !== '' || url.password !== '') {
    return 'must not contain a user name and password; the signature authenticates the sender';
  }
  if (text.includes('#')) return 'must not have a fragment';
  if (/[\p{Cc}\s]/u.test(text)) return 'must not contain spaces or control characters';
  return undefined;
}

function descriptionProblem(text: string): string | undefined {
  const isPlain = text.isWellFormed() && !/\p{Cc}/u.test(text);
  return isPlain ? undefined : 'must not contain control characters';
}

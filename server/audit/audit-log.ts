/** Shows the audit log: an owner sees the entries of its account, administrators and auditors all. */
import type { AuditEntry } from '../calls/audit.ts';
import { type Principal, permits } from '../calls/principal.ts';
import { formatTime } from '../platform/clock.ts';
import { ScanTurns } from '../platform/concurrency.ts';
import { AppError } from '../platform/errors.ts';
import type { AuditRow, AuditStore } from './store.ts';

/** Empty texts and 0: no filter. */
export interface AuditFilter {
  /** null: of every account. */
  readonly accountId: number | null;
  readonly actor: string;
  readonly action: string;
  readonly target: string;
  readonly outcome: string;
  readonly from: number;
  readonly to: number;
}

/** Administrators and auditors may name another account, or `all`; the operator has no account. */
export function accountAsked(principal: Principal, asked: string | undefined): number | null {
  const { accountId } = principal;
  if (asked === undefined) return accountId === 0 ? null : accountId;
  if (asked === String(accountId)) return accountId;
  if (!permits(principal, 'admin:read')) {
    throw new AppError(
      'admin_required',
      "Entries of other accounts need an administrator's or an auditor's key",
    );
  }
  if (asked === 'all') return null;
  if (/^(?:0|[1-9]\d{0,14})$/.test(asked)) return Number(asked);
  throw new AppError('account_not_found', 'account_id is the id of an account, or `all`');
}

const STEP = 500;
/** Readers of the whole log wait for each other. */
const EVERY_ACCOUNT = 0;

export class AuditLog {
  readonly #store: AuditStore;
  readonly #turns = new ScanTurns();

  constructor(store: AuditStore) {
    this.#store = store;
  }

  /** Newest first; `before`: an id, or 0 for the first page. */
  async *list(filter: AuditFilter, { before, limit }: { before: number; limit: number }) {
    let left = limit;
    for await (const row of this.#rows(filter.accountId, before === 0 ? Number.MAX_SAFE_INTEGER : before)) {
      if (!fits(row, filter)) continue;
      yield describe(row);
      if (--left === 0) return;
    }
  }

  async *#rows(accountId: number | null, before: number): AsyncGenerator<AuditRow> {
    const store = this.#store;
    if (accountId === null) {
      yield* this.#pages(EVERY_ACCOUNT, before, (last) => store.between(0, last, STEP));
      return;
    }
    const { unindexedFrom } = await store.order();
    if (unindexedFrom === null) {
      yield* this.#pages(accountId, before, (last) => store.ofAccount(accountId, last, STEP));
      return;
    }
    const unindexed = (last: number) => store.between(unindexedFrom, last, STEP);
    for await (const row of this.#pages(accountId, before, unindexed))
      if (Number(row.account_id) === accountId) yield row;
    const indexed = Math.min(before, unindexedFrom + 1);
    yield* this.#pages(accountId, indexed, (last) => store.sealedOfAccount(accountId, last, STEP));
  }

  async *#pages(
    accountId: number,
    before: number,
    read: (before: number) => Promise<AuditRow[]>,
  ): AsyncGenerator<AuditRow> {
    for (let last = before; ; ) {
      const from = last;
      const rows = await this.#turns.read(accountId, () => read(from));
      yield* rows;
      if (rows.length < STEP) return;
      last = Number(rows.at(-1)?.id);
    }
  }
}

/** An actor is found by its id, or by its name at that time. */
function fits(row: AuditRow, { actor, action, target, outcome, from, to }: AuditFilter): boolean {
  if (actor !== '' && row.actor !== actor && String(row.actor_id) !== actor) return false;
  if (action !== '' && row.action !== action) return false;
  if (target !== '' && row.target !== target) return false;
  if (outcome !== '' && row.outcome !== outcome) return false;
  return row.at >= from && (to === 0 || row.at < to);
}

function describe(row: AuditRow) {
  const { id, account_id, actor_id, request_id, at, times } = row;
  const entry = { ...row, accountId: account_id, actorId: actor_id, requestId: request_id };
  return { id, ...describeEntry(entry, at, times) };
}

/** An entry as the API and webhooks show it. */
export function describeEntry(
  entry: Omit<AuditEntry, 'outcome'> & { outcome: string },
  at: number,
  times: number,
) {
  const { accountId, actorId, actor, via, credential, address, agent, action } = entry;
  const { target, outcome, status, code, requestId, detail } = entry;
  return {
    at: formatTime(at),
    account_id: accountId === 0 ? null : accountId,
    actor_id: actorId === 0 ? null : actorId,
    actor,
    via,
    credential,
    address,
    user_agent: agent,
    action,
    target,
    outcome,
    status,
    code,
    request_id: requestId,
    detail: detail === '' ? null : JSON.parse(detail),
    times,
  };
}

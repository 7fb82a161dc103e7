/** Shows the audit log: to an owner what concerns its account, to administrators all. */
import type { Principal } from '../calls/principal.ts';
import { formatTime } from '../platform/clock.ts';
import { AppError } from '../platform/errors.ts';
import type { AuditFilter, AuditRow, AuditStore } from './store.ts';

/** Administrators may name another account, or `all`; the operator has none of its own. */
export function accountAsked(principal: Principal, asked: string | undefined): number | null {
  const { accountId, isAdmin, scopes } = principal;
  if (asked === undefined) return accountId === 0 ? null : accountId;
  if (asked === String(accountId)) return accountId;
  if (!isAdmin || !scopes.includes('*')) {
    throw new AppError('admin_required', "Entries of other accounts need an administrator's key");
  }
  if (asked === 'all') return null;
  if (/^(?:0|[1-9]\d{0,14})$/.test(asked)) return Number(asked);
  throw new AppError('account_not_found', 'account_id is the id of an account, or `all`');
}

const STEP = 500;

export class AuditLog {
  readonly #store: AuditStore;

  constructor(store: AuditStore) {
    this.#store = store;
  }

  /** Newest first; `before`: an id, or 0 for the first page. */
  async *list(filter: AuditFilter, { before, limit }: { before: number; limit: number }) {
    let last = before === 0 ? Number.MAX_SAFE_INTEGER : before;
    for (let left = limit; left > 0; ) {
      const rows = await this.#store.list(filter, last, Math.min(left, STEP));
      for (const row of rows) yield describe(row);
      if (rows.length < Math.min(left, STEP)) return;
      left -= rows.length;
      last = Number(rows.at(-1)?.id);
    }
  }
}

function describe(row: AuditRow) {
  const { id, at, account_id, actor_id, actor, via, credential, address, agent, action } = row;
  const { target, outcome, status, code, request_id, detail, times } = row;
  return {
    id,
    at: formatTime(at),
    account_id: account_id === 0 ? null : account_id,
    actor_id: actor_id === 0 ? null : actor_id,
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
    request_id,
    detail: detail === '' ? null : JSON.parse(detail),
    times,
  };
}

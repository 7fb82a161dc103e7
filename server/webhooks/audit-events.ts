/**
 * Events of audit entries, which are stored in the commit of the entry. An owner receives those of its
 * account; an administrator those of all accounts, by webhooks created with all rights.
 */
import type { AuditEvent } from '../calls/audit.ts';
import { type Principal, permits } from '../calls/principal.ts';
import type { Statement } from '../metadata/metadata.ts';
import { AppError } from '../platform/errors.ts';
import { ALL_AUDIT, type EventType, eventStatements, hearsType } from './events-store.ts';
import type { AuditListenerRow, WebhookStore } from './store.ts';

/** Values of the column `hears_audit`. */
export const HEARS = { nothing: 0, own: 1, all: 2 } as const;
export type Hears = (typeof HEARS)[keyof typeof HEARS];
/** Maximum accounts that receive all entries, because each gets its own event per entry. */
export const MAX_HEARING_ALL = 10;

interface Hearer {
  readonly accountId: number;
  readonly events: readonly string[];
  readonly hearsAll: boolean;
}

type Make = (event: AuditEvent) => readonly Statement[];

export interface AuditEventsDeps {
  readonly webhookStore: Pick<WebhookStore, 'auditListeners'>;
  /**
   * Sets the function that creates the statements; null while no webhook wants entries, which then cost
   * nothing more.
   */
  readonly announceBy: (make: Make | null) => void;
}

export class AuditEvents {
  readonly #deps: AuditEventsDeps;
  #hearers: readonly Hearer[] = [];

  constructor(deps: AuditEventsDeps) {
    this.#deps = deps;
  }

  /** Reloads which webhooks want entries: they change at other nodes too. */
  async refresh(): Promise<void> {
    const { webhookStore, announceBy } = this.#deps;
    this.#hearers = (await webhookStore.auditListeners()).map(hearerOf);
    announceBy(this.#hearers.length === 0 ? null : (event) => this.#statements(event));
  }

  /** One event for each account that receives it, however many webhooks it has. */
  #statements({ accountId, outcome, at, data }: AuditEvent): Statement[] {
    const type: EventType = `audit.${outcome}`;
    const hearing = new Set<number>();
    for (const { accountId: hearer, events, hearsAll } of this.#hearers) {
      if ((hearsAll || hearer === accountId) && hearsType(events, type)) hearing.add(hearer);
    }
    return [...hearing].flatMap((hearer) => eventStatements({ accountId: hearer, type, data, at }));
  }
}

function hearerOf({ account_id, events, hears_audit, is_all }: AuditListenerRow): Hearer {
  return {
    accountId: account_id,
    events: JSON.parse(events) as string[],
    hearsAll: hears_audit === HEARS.all && is_all === 1,
  };
}

/** Whether this subscription includes audit entries. */
function wantsAudit(events: readonly string[]): boolean {
  return events.some((type) => isAudit(type));
}

/** Whether this type is of audit entries. */
export function isAudit(type: string): boolean {
  return type.startsWith(ALL_AUDIT.slice(0, -1));
}

/** Which entries a webhook of this caller receives. Throws `scope_required`. */
export function hearsFor(principal: Principal, events: readonly string[]): Hears {
  if (!wantsAudit(events)) return HEARS.nothing;
  if (permits(principal, 'admin:read')) return HEARS.all;
  if (permits(principal, 'account:read')) return HEARS.own;
  throw new AppError(
    'scope_required',
    'Audit events also need the scope account:read, as the audit log does',
  );
}

/** The account that the entry of an audit event concerns; null: the cloud's. */
export function accountOfEntry(body: string): number | null {
  return (JSON.parse(body) as { data: { account_id: number | null } }).data.account_id;
}

/** Whether the caller may see the content of this event. */
export function maySee(principal: Principal, { type, body }: { type: string; body: string }): boolean {
  if (!isAudit(type)) return true;
  return permits(principal, accountOfEntry(body) === principal.accountId ? 'account:read' : 'admin:read');
}

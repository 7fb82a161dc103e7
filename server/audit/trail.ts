/**
 * Writes the audit log. Entries of a commit are part of it; others wait in memory for up to a
 * second. Repeated refusals or actions must not fill the disk or displace older entries: a limited
 * number is stored per sender, and the rest is only counted.
 */
import type { AuditEntry, AuditEvent, AuditTrail } from '../calls/audit.ts';
import type { Changes } from '../metadata/change.ts';
import type { Statement } from '../metadata/metadata.ts';
import type { Clock } from '../platform/clock.ts';
import { sourceOf } from '../platform/host/caller-networks.ts';
import { describeEntry } from './audit-log.ts';
import type { AuditStore } from './store.ts';

export interface TrailDeps {
  readonly changes: Changes;
  readonly store: AuditStore;
  readonly clock: Clock;
  /** See ALLOWANCES. */
  readonly allowances?: typeof ALLOWANCES;
}

/** A burst of entries, then this many per minute. */
const ALLOWANCES = {
  /** Events about the account itself: limited per operation, so that a flood does not hide others. */
  committed: { burst: 1000, perMinute: 20 },
  /** Reads and writes of objects, per account that owns the bucket: they must not hide other entries. */
  data: { burst: 1000, perMinute: 60 },
  /** Entries stored without a commit, like the following kinds. */
  account: { burst: 300, perMinute: 30 },
  /** One address or network, for requests without an account. */
  address: { burst: 20, perMinute: 2 },
  /** All requests without an account. */
  strangers: { burst: 500, perMinute: 60 },
};
type Allowance = (typeof ALLOWANCES)['account'];

/** How often the counts of further entries are stored. */
const COUNTED_MS = 10 * 60_000;
/** Maximum kinds counted separately, and maximum waiting entries if nothing can be stored. */
const MAX_COUNTED = 1000;
const MAX_WAITING = 10_000;
const MAX_SENDERS = 20_000;
const PER_COMMIT = 200;
const MINUTE_MS = 60_000;

interface Waiting {
  readonly entry: AuditEntry;
  readonly at: number;
  times: number;
}

interface Budget {
  left: number;
  at: number;
}

export class Trail implements AuditTrail {
  readonly #deps: TrailDeps;
  #waiting: Waiting[] = [];
  #counted = new Map<string, Waiting>();
  #countedSince: number;
  #announce: ((event: AuditEvent) => readonly Statement[]) | null = null;
  readonly #budgets = new Map<string, Budget>();

  constructor(deps: TrailDeps) {
    this.#deps = deps;
    this.#countedSince = deps.clock.monotonic();
  }

  /** Statements that each stored entry brings along; null: none. */
  announceBy(make: ((event: AuditEvent) => readonly Statement[]) | null): void {
    this.#announce = make;
  }

  statements(entry: AuditEntry, allowance?: 'data'): readonly Statement[] {
    const { clock, allowances = ALLOWANCES } = this.#deps;
    const { accountId, actorId, action } = entry;
    const at = clock.now();
    const isKept =
      allowance === 'data'
        ? this.#mayKeepData(entry)
        : // Operators and administrators act on other accounts; such entries are always stored.
          accountId !== actorId || this.#take(`account ${actorId} ${action}`, allowances.committed);
    const waiting = { entry, at, times: 1 };
    if (isKept) return this.#store(waiting);
    this.#count(waiting);
    return [];
  }

  async write(entry: AuditEntry): Promise<void> {
    const statements = this.statements(entry);
    if (statements.length > 0) await this.#deps.changes.store(statements);
  }

  note(entry: AuditEntry, allowance?: 'data'): void {
    const waiting = { entry, at: this.#deps.clock.now(), times: 1 };
    const mayKeep = () => (allowance === 'data' ? this.#mayKeepData(entry) : this.#mayKeep(entry));
    if (this.#waiting.length < MAX_WAITING && mayKeep()) this.#waiting.push(waiting);
    else this.#count(waiting);
  }

  #store({ entry, at, times }: Waiting): Statement[] {
    const row = this.#deps.store.insert(entry, at, times);
    if (this.#announce === null) return [row];
    const { accountId, outcome } = entry;
    return [row, ...this.#announce({ accountId, outcome, at, data: describeEntry(entry, at, times) })];
  }

  #mayKeepData({ accountId }: AuditEntry): boolean {
    return this.#take(`data ${accountId}`, (this.#deps.allowances ?? ALLOWANCES).data);
  }

  #mayKeep({ actorId, via, address }: AuditEntry): boolean {
    const { account, address: ofAddress, strangers } = this.#deps.allowances ?? ALLOWANCES;
    if (actorId !== 0 || via === 'control') return this.#take(`account ${actorId}`, account);
    // The sender's own allowance first, so that it cannot exhaust the shared one.
    return this.#take(`address ${sourceOf(address)}`, ofAddress) && this.#take('strangers', strangers);
  }

  #take(sender: string, { burst, perMinute }: Allowance): boolean {
    const now = this.#deps.clock.monotonic();
    const known = this.#budgets.get(sender) ?? { left: burst, at: now };
    const left = Math.min(burst, known.left + ((now - known.at) * perMinute) / MINUTE_MS);
    known.left = left < 1 ? left : left - 1;
    known.at = now;
    this.#budgets.delete(sender);
    this.#budgets.set(sender, known);
    if (this.#budgets.size > MAX_SENDERS) {
      const oldest = this.#budgets.keys().find((name) => name !== 'strangers');
      if (oldest !== undefined) this.#budgets.delete(oldest);
    }
    return left >= 1;
  }

  /** The row contains the first entry of its kind, without fields that differ, and the count. */
  #count({ entry, at }: Waiting): void {
    const { actorId, actor, accountId, via, address, action, code } = entry;
    const sender = actorId === 0 ? sourceOf(address) : String(actorId);
    const name = `${sender} ${accountId} ${action} ${code}`;
    const isFull = this.#counted.size >= MAX_COUNTED && !this.#counted.has(name);
    const key = isFull ? `others ${action} ${code}` : name;
    const known = this.#counted.get(key);
    if (known !== undefined) {
      known.times++;
      return;
    }
    if (this.#counted.size >= 2 * MAX_COUNTED) return;
    const common = { ...entry, credential: '', agent: '', target: '', detail: '', requestId: '' };
    const whose = isFull ? { accountId: 0, actorId: 0, actor: '', address: '' } : {};
    this.#counted.set(key, {
      entry: { ...common, actor, via, ...whose },
      at,
      times: 1,
    });
  }

  /** Stores waiting entries; `all`: the counts too. */
  async flush({ all = false } = {}): Promise<void> {
    const { changes, clock } = this.#deps;
    if (all || clock.monotonic() - this.#countedSince >= COUNTED_MS) {
      this.#countedSince = clock.monotonic();
      this.#waiting.push(...this.#counted.values());
      this.#counted = new Map();
    }
    while (this.#waiting.length > 0) {
      const some = this.#waiting.slice(0, PER_COMMIT);
      await changes.store(some.flatMap((one) => this.#store(one)));
      this.#waiting.splice(0, some.length);
    }
  }
}

/**
 * Samples databases: active ones every few seconds, the others in rotation. Stores their size for owner and
 * billing, and makes a database read-only while it exceeds its size limit.
 */
import type { Metadata, Statement } from '../../metadata/metadata.ts';
import {
  FINE_STEP,
  type Figures,
  type SamplesStore,
  type SampleTable,
} from '../../metadata/samples-store.ts';
import type { Clock } from '../../platform/clock.ts';
import { eachOf } from '../../platform/concurrency.ts';
import type { DiskShares } from '../../resources/disk-shares.ts';
import { AT_ONCE, Readings } from '../../resources/readings.ts';
import type { EngineName, Measured } from '../engine.ts';
import type { Engines } from '../engines.ts';
import type { DatabaseCount, DatabaseRow, DatabaseStore } from '../store.ts';
import type { DatabaseBilling } from './egress.ts';
import type { Lifecycle } from './lifecycle.ts';
import { type DatabaseTurns, isOpen, openStateOf } from './states.ts';

/** Aggregation of the samples. Counters are the engine's, which may reset. */
export const DATABASE_SAMPLES = {
  name: 'database_samples',
  owner: 'database',
  owners: 'databases',
  figures: {
    size_bytes: 'newest',
    connections: 'mean',
    statements: 'newest',
    rows_returned: 'newest',
    rows_written: 'newest',
  },
} as const satisfies SampleTable<string>;

type DatabaseFigure = keyof typeof DATABASE_SAMPLES.figures;
export type DatabaseFigures = Figures<DatabaseFigure>;
export type DatabaseSamplesStore = SamplesStore<DatabaseFigure>;

export interface SamplerDeps {
  readonly metadata: Metadata;
  readonly clock: Clock;
  readonly store: DatabaseStore;
  readonly samples: DatabaseSamplesStore;
  readonly engines: Engines;
  readonly lifecycle: Pick<Lifecycle, 'inEngine' | 'setDesired'>;
  readonly turns: Pick<DatabaseTurns, 'withRow'>;
  readonly billing: Pick<DatabaseBilling, 'resized'>;
  readonly diskShares?: Pick<DiskShares, 'over'> | undefined;
  readonly onError: (databaseId: string, what: string, error: unknown) => void;
  /** Timeout of a single measurement, ms. */
  readonly timeoutMs?: number;
}

/** Totals of an engine over all its databases since Cloudlet started. */
export interface EngineWork {
  statements: number;
  /** Values at the last sample. */
  connections: number;
}

/** Every inactive database is measured once in this time. */
const ROUND_SECONDS = 300;
const NOBODY: ReadonlySet<number> = new Set();

export class Sampler {
  readonly #deps: SamplerDeps;
  readonly #readings: Readings<DatabaseFigure>;
  /** Active at the last tick; measured once more to include later changes. */
  #active: ReadonlySet<string> = new Set();
  /** Row id of the last database measured in the rotation. */
  #turn = 0;
  #counts: readonly DatabaseCount[] = [];
  readonly #statements = new Map<string, number>();
  readonly #startedAt: number;
  /** Accounts whose databases may not grow, as of the last tick. */
  #over = NOBODY;
  readonly #work = new Map<EngineName, EngineWork>();

  constructor(deps: SamplerDeps) {
    this.#deps = deps;
    this.#readings = new Readings(deps);
    this.#startedAt = deps.clock.now();
  }

  /** Call it every FINE_STEP seconds. */
  async tick(): Promise<void> {
    const { clock, store } = this.#deps;
    this.#counts = await store.counts();
    const at = clock.now();
    const active = this.#takeActive();
    for (const work of this.#work.values()) work.connections = 0;
    const rows = await this.#due(active);
    const grown: DatabaseRow[] = [];
    await this.#readings.round(rows, at, async (row) => {
      const measured = await this.measure(row);
      if (measured === null) return [];
      this.#note(row, measured);
      grown.push({ ...row, size_bytes: measured.sizeBytes });
      return this.#statementsOf(row, measured, active.has(row.database_id) ? at : null);
    });
    try {
      this.#over = (await this.#deps.diskShares?.over()) ?? NOBODY;
    } finally {
      // Size limits apply even while the shares are unknown.
      const wrong = grown.filter((row) => this.#isInWrongState(row));
      await eachOf(wrong, AT_ONCE, (row) => this.#hold(row.database_id));
    }
  }

  /** The engine's current figures; null on failure or timeout. */
  async measure(row: DatabaseRow): Promise<Measured | null> {
    const { engines, lifecycle } = this.#deps;
    return this.#readings.take(row.database_id, () =>
      engines.get(row.engine).measure(lifecycle.inEngine(row)),
    );
  }

  /** Number of databases by engine and state, as of the last tick. */
  counts(): readonly DatabaseCount[] {
    return this.#counts;
  }

  /** Work done, by engine. */
  work(): ReadonlyMap<EngineName, Readonly<EngineWork>> {
    return this.#work;
  }

  #takeActive(): ReadonlySet<string> {
    const used = new Set([...this.#deps.engines.all()].flatMap((engine) => engine.takeActive()));
    const active = used.union(this.#active);
    this.#active = used;
    return active;
  }

  /** Active databases, and as many others as needed to measure all in one round. */
  async #due(active: ReadonlySet<string>): Promise<DatabaseRow[]> {
    const { store } = this.#deps;
    const found = await Promise.all([...active].map((id) => store.find(id)));
    const inUse = found.filter((row) => row !== undefined).filter(isOpen);
    const total = this.#counts.reduce((sum, { count }) => sum + count, 0);
    const limit = Math.ceil((total * FINE_STEP) / ROUND_SECONDS);
    if (limit === 0) return inUse;
    const inTurn = await store.listOpen({ after: this.#turn, limit });
    this.#turn = inTurn.length < limit ? 0 : (inTurn.at(-1)?.id ?? 0);
    return [...inUse, ...inTurn.filter(({ database_id }) => !active.has(database_id))];
  }

  #statementsOf(row: DatabaseRow, measured: Measured, sampledAt: number | null): Statement[] {
    const { store, samples, billing } = this.#deps;
    const { sizeBytes } = measured;
    const isChanged = sizeBytes !== row.size_bytes;
    return [
      ...(isChanged ? [store.setSize(row.id, sizeBytes), ...billing.resized(row, sizeBytes)] : []),
      ...(sampledAt === null ? [] : [samples.insert(row.id, { at: sampledAt, ...figuresOf(measured) })]),
    ];
  }

  #note({ database_id: id, engine, created_at }: DatabaseRow, { statements, connections }: Measured): void {
    const work = this.#work.get(engine) ?? { statements: 0, connections: 0 };
    this.#work.set(engine, work);
    work.connections += connections ?? 0;
    if (statements === null) return;
    const before = this.#statements.get(id);
    this.#statements.set(id, statements);
    // Counts from before the first sample are not ours. A counter that fell was reset.
    const since = before ?? (created_at < this.#startedAt ? statements : 0);
    work.statements += statements >= since ? statements - since : statements;
  }

  /** Makes it read-only or writable again according to its size, in turn with other changes. */
  async #hold(databaseId: string): Promise<void> {
    const { lifecycle, turns, onError } = this.#deps;
    const held = turns.withRow(databaseId, async (row) => {
      if (this.#isInWrongState(row)) await lifecycle.setDesired(row, this.#openStateOf(row));
    });
    await held.catch((error: unknown) => onError(databaseId, 'enforcing its size limit failed', error));
  }

  /** A suspended database remains suspended: its size is checked when it resumes. */
  #isInWrongState(row: DatabaseRow): boolean {
    if (!isOpen(row)) return false;
    const { state, reason_code } = this.#openStateOf(row);
    return state !== row.state || (state === 'read_only' && reason_code !== row.reason_code);
  }

  #openStateOf(row: DatabaseRow) {
    return openStateOf(row, this.#over.has(row.account_id));
  }
}

export function figuresOf(measured: Measured): DatabaseFigures {
  return {
    size_bytes: measured.sizeBytes,
    connections: measured.connections,
    statements: measured.statements,
    rows_returned: measured.rowsReturned,
    rows_written: measured.rowsWritten,
  };
}

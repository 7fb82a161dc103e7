/** Databases with missing or damaged data: an alarm names them until they are repaired. */

import { basename } from 'node:path';
import type { Reads } from '../../metadata/metadata.ts';
import type { Alarms } from '../../platform/alarms.ts';
import { isAppError } from '../../platform/errors.ts';
import { plural } from '../../platform/plural.ts';
import type { OpenedFile, Snapshot, Source } from '../../recovery/points/sources.ts';
import type { Engine } from '../engine.ts';
import type { Engines } from '../engines.ts';
import type { DatabaseStore } from '../store.ts';

const ALARM = 'damaged_databases';
const FIX =
  'Restore the folder, or load the last dump (`POST /api/databases/{id}/load`); an earlier recovery point ' +
  'may contain a dump (GET /api/disaster-recovery/points lists the points). To read the rest of a damaged database, ' +
  'remove the file `seal` in its folder, if it exists';
const SHOWN = 5;

export class DataFaults {
  readonly #alarms: Pick<Alarms, 'raise' | 'clear'>;
  /** Faults that engines reported, by database id. */
  readonly #found = new Map<string, string>();
  /** Faults found by tenants' statements, by database id. */
  readonly #met = new Map<string, string>();
  /** Ids of databases missing from their engine. */
  #absent: readonly string[] = [];
  /** Faults found by the last complete read. */
  #unread: ReadonlyMap<string, string> = new Map();

  constructor(alarms: Pick<Alarms, 'raise' | 'clear'>) {
    this.#alarms = alarms;
  }

  /** Sets the fault of a database, for the operator; null: clears it. */
  note(databaseId: string, what: string | null): void {
    if (what === null && !this.#found.has(databaseId)) return;
    if (what === null) this.#found.delete(databaseId);
    else this.#found.set(databaseId, what);
    this.#tell();
  }

  /** Replaces the faults of the last complete read. */
  noteUnread(found: ReadonlyMap<string, string>): void {
    this.#unread = found;
    this.#met.clear();
    this.#tell();
  }

  /** Records damage found by a tenant's statement; the next complete read without damage clears it. */
  noteMet(databaseId: string, what: string): void {
    this.#met.set(databaseId, what);
    this.#tell();
  }

  /** The whole database was replaced. */
  noteReplaced(databaseId: string): void {
    if (this.#met.delete(databaseId)) this.#tell();
  }

  /** The kind of fault of a database; null: none is known. */
  of(databaseId: string): 'data_damaged' | 'data_missing' | null {
    const what = this.all().get(databaseId);
    if (what === undefined) return null;
    return /\bmissing\b/.test(what) ? 'data_missing' : 'data_damaged';
  }

  /** All faults, by database id. */
  all(): ReadonlyMap<string, string> {
    const absent = this.#absent.map((id) => [id, 'missing from its engine'] as const);
    return new Map([...this.#met, ...this.#unread, ...absent, ...this.#found]);
  }

  /** Checks that engines have the databases of the rows, and forgets deleted ones; called at intervals. */
  async check({ store, engines }: { store: DatabaseStore; engines: Engines }): Promise<void> {
    const absent: string[] = [];
    for (const engine of engines.all()) absent.push(...(await absentIn(engine, store)));
    this.#absent = absent;
    for (const known of [this.#found, this.#met])
      for (const id of known.keys()) if (!(await isKept(store, id))) known.delete(id);
    this.#tell();
  }

  #tell(): void {
    const all = [...this.all()];
    if (all.length === 0) {
      this.#alarms.clear(ALARM);
      return;
    }
    const named = all.slice(0, SHOWN).map(([id, what]) => `${id}: ${what}`);
    const more = all.length > SHOWN ? ' and more' : '';
    this.#alarms.raise(
      ALARM,
      `The data of ${plural(all.length, 'database')} is missing or damaged (${named.join('; ')}${more})`,
      FIX,
    );
  }
}

async function absentIn(engine: Engine, store: DatabaseStore): Promise<string[]> {
  // Rows are read first, so that databases created concurrently are not reported.
  const rows = await store.expectedIn(engine.name);
  if (rows.length === 0) return [];
  // An unavailable engine raises its own alarm.
  const names = await engine.list().catch(() => null);
  if (names === null) return [];
  const known = new Set(names);
  const absent: string[] = [];
  for (const { id, name } of rows) if (!known.has(name) && (await isKept(store, id))) absent.push(id);
  return absent;
}

/** False for a database deleted concurrently, which is not a loss. */
async function isKept(store: DatabaseStore, databaseId: string): Promise<boolean> {
  const row = await store.find(databaseId);
  return row !== undefined && row.state !== 'deleting' && row.is_dropped === 0;
}

/** Reads every database and last dump at intervals, so that damage is found while a copy exists. */
export interface DataCheckDeps {
  /** The source that recovery points read. */
  readonly source: Source;
  readonly reads: Reads;
  readonly faults: DataFaults;
}

/** Messages of PostgreSQL and MariaDB about damaged pages; other failures are not damage. */
const DAMAGE = /invalid page in block|could not read block|is corrupt|checksum/i;

export class DataCheck {
  readonly #deps: DataCheckDeps;

  constructor(deps: DataCheckDeps) {
    this.#deps = deps;
  }

  /** Faults by database id. */
  damage(): ReadonlyMap<string, string> {
    return this.#deps.faults.all();
  }

  /** Reads all databases sequentially; resolves with their number. Throws the reason of `signal`. */
  async run(signal: AbortSignal): Promise<number> {
    const { source, reads, faults } = this.#deps;
    const unread = new Map<string, string>();
    let count = 0;
    for await (const file of source.files({ reads } as Snapshot, signal)) {
      signal.throwIfAborted();
      const problem = await damageOf(file as unknown as OpenedFile);
      if (problem !== null) unread.set(basename(file.path), problem);
      count++;
    }
    faults.noteUnread(unread);
    return count;
  }
}

/** null: everything was readable, or it cannot be checked now. */
async function damageOf(file: OpenedFile): Promise<string | null> {
  try {
    for await (const _ of (await file.open()) ?? []);
    return null;
  } catch (error) {
    const { message } = error as Error;
    return isAppError(error, 'data_damaged') || DAMAGE.test(message) ? message : null;
  }
}

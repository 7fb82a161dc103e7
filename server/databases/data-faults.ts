/** Databases whose stored data is gone or damaged: an alarm names them until they are whole again. */

import { basename } from 'node:path';
import type { Reads } from '../metadata/metadata.ts';
import type { Alarms } from '../platform/alarms.ts';
import { isAppError } from '../platform/errors.ts';
import { plural } from '../platform/plural.ts';
import type { OpenedFile, Snapshot, Source } from '../recovery/sources.ts';
import type { Engine } from './engine.ts';
import type { Engines } from './engines.ts';
import type { DatabaseStore } from './store.ts';

const ALARM = 'damaged_databases';
const FIX =
  'Put the folder back, or load its last dump (`POST /api/databases/{id}/load`); a recovery point may have ' +
  'one from before, which GET /api/disaster-recovery/points lists. What is left of a damaged one is had by ' +
  'removing the file `seal` in its folder, where there is one';
const SHOWN = 5;

export class DataFaults {
  readonly #alarms: Pick<Alarms, 'raise' | 'clear'>;
  /** What engines found, by the database's id. */
  readonly #found = new Map<string, string>();
  /** Ids of those that their engine does not have. */
  #absent: readonly string[] = [];
  /** What could not be read when all were read last. */
  #unread: ReadonlyMap<string, string> = new Map();

  constructor(alarms: Pick<Alarms, 'raise' | 'clear'>) {
    this.#alarms = alarms;
  }

  /** What is wrong with its data, for the operator; null: nothing any more. */
  note(databaseId: string, what: string | null): void {
    if (what === null && !this.#found.has(databaseId)) return;
    if (what === null) this.#found.delete(databaseId);
    else this.#found.set(databaseId, what);
    this.#tell();
  }

  /** Takes what a reading of all found in the place of what the one before found. */
  noteUnread(found: ReadonlyMap<string, string>): void {
    this.#unread = found;
    this.#tell();
  }

  /** Those of which something is wrong, with what it is. */
  all(): ReadonlyMap<string, string> {
    const absent = this.#absent.map((id) => [id, 'its engine does not have it any more'] as const);
    return new Map([...this.#unread, ...absent, ...this.#found]);
  }

  /** Asks engines whether they have what rows say, and forgets what is deleted; called from time to time. */
  async look({ store, engines }: { store: DatabaseStore; engines: Engines }): Promise<void> {
    const absent: string[] = [];
    for (const engine of engines.all()) absent.push(...(await absentIn(engine, store)));
    this.#absent = absent;
    for (const id of this.#found.keys()) if (!(await isKept(store, id))) this.#found.delete(id);
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
      `The data of ${plural(all.length, 'database')} is gone or damaged (${named.join('; ')}${more})`,
      FIX,
    );
  }
}

async function absentIn(engine: Engine, store: DatabaseStore): Promise<string[]> {
  // Rows first: what is made meanwhile is no surprise.
  const rows = await store.expectedIn(engine.name);
  if (rows.length === 0) return [];
  // An engine that is away says so itself.
  const names = await engine.list().catch(() => null);
  if (names === null) return [];
  const known = new Set(names);
  const absent: string[] = [];
  for (const { id, name } of rows) if (!known.has(name) && (await isKept(store, id))) absent.push(id);
  return absent;
}

/** Deleted meanwhile it is no loss. */
async function isKept(store: DatabaseStore, databaseId: string): Promise<boolean> {
  const row = await store.find(databaseId);
  return row !== undefined && row.state !== 'deleting' && row.is_dropped === 0;
}

/** Reads every database and every last dump now and then, so that damage is told while a copy exists. */
export interface DataCheckDeps {
  /** As recovery points read them. */
  readonly source: Source;
  readonly reads: Reads;
  readonly faults: DataFaults;
}

/** How PostgreSQL and MariaDB say that a page is not what they wrote; other failures are no damage. */
const DAMAGE = /invalid page in block|could not read block|is corrupt|checksum/i;

export class DataCheck {
  readonly #deps: DataCheckDeps;

  constructor(deps: DataCheckDeps) {
    this.#deps = deps;
  }

  /** By the database's id, what is wrong with it. */
  damage(): ReadonlyMap<string, string> {
    return this.#deps.faults.all();
  }

  /** Reads all, one after the other; resolves to how many were read. Throws the reason of `signal`. */
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

/** null: all of it could be read, or nobody can tell now. */
async function damageOf(file: OpenedFile): Promise<string | null> {
  try {
    for await (const _ of (await file.open()) ?? []);
    return null;
  } catch (error) {
    const { message } = error as Error;
    return isAppError(error, 'data_damaged') || DAMAGE.test(message) ? message : null;
  }
}

/** The engines of this cloud, by name. */

import { type Alarms, SEE_LOG } from '../platform/alarms.ts';
import { AppError } from '../platform/errors.ts';
import {
  DEFAULT_ENGINE,
  type Engine,
  type EngineDatabase,
  type EngineName,
  type Readiness,
  type Trouble,
} from './engine.ts';
import type { EngineDescription } from './engine-description.ts';
import type { Lifecycle } from './life/lifecycle.ts';
import { ACCESS } from './life/states.ts';
import type { DatabaseCount, DatabaseStore } from './store.ts';

const ALARM = 'database_engine_unavailable';

export type NamedReadiness = Readiness & { readonly engine: EngineName };

/** Readiness of an engine that this version of Cloudlet does not support. */
const MISSING: Readiness = {
  available: false,
  version: null,
  source: 'managed',
  reason: 'This version of Cloudlet does not support this engine',
  fix: `Use ${DEFAULT_ENGINE}`,
};

export class Engines {
  readonly #engines: ReadonlyMap<EngineName, Engine>;
  /** The readiness that was read last. */
  #readiness: ReadonlyMap<EngineName, Readiness> = new Map();
  readonly #abouts: ReadonlyMap<EngineName, EngineDescription>;

  /** `abouts`: descriptions of all engines, in the order of the list. */
  constructor(engines: readonly Engine[], abouts: readonly EngineDescription[]) {
    this.#engines = new Map(engines.map((engine) => [engine.name, engine]));
    this.#abouts = new Map(abouts.map((about) => [about.name, about]));
  }

  /** Readiness of every engine. */
  async readiness(): Promise<NamedReadiness[]> {
    const all = await Promise.all(
      [...this.#abouts.keys()].map(async (engine) => ({
        engine,
        ...((await this.#engines.get(engine)?.readiness()) ?? MISSING),
      })),
    );
    this.#readiness = new Map(all.map((one) => [one.engine, one]));
    return all;
  }

  /**
   * Why a database cannot be used; null: no reason is known. If an engine does not report single databases,
   * all of its databases are unusable while the engine is unavailable.
   */
  trouble(name: EngineName, database: EngineDatabase): Trouble | null {
    const engine = this.get(name);
    if (engine.trouble !== undefined) return engine.trouble(database);
    const known = this.#readiness.get(name);
    if (known === undefined || known.available) return null;
    return { code: 'engine_unavailable', message: unavailable(name, known).message };
  }

  /** Throws `engine_unavailable` for an engine of a later version of Cloudlet. */
  about(name: EngineName): EngineDescription {
    const about = this.#abouts.get(name);
    if (about === undefined) throw unavailable(name, MISSING);
    return about;
  }

  /** Descriptions of all engines, in the order of the list. */
  descriptions(): readonly EngineDescription[] {
    return [...this.#abouts.values()];
  }

  all(): Iterable<Engine> {
    return this.#engines.values();
  }

  /** Throws `engine_unavailable` if this cloud does not have the engine. */
  get(name: EngineName): Engine {
    const engine = this.#engines.get(name);
    if (engine === undefined) throw unavailable(name, MISSING);
    return engine;
  }
}

export function unavailable(name: EngineName, { reason, fix }: Readiness): AppError {
  const detail = `The database engine ${name} is not available on this host: ${reason ?? 'it is not running'}`;
  return new AppError('engine_unavailable', detail, fix === null ? {} : { hint: fix });
}

interface EngineWatchDeps {
  readonly engines: Pick<Engines, 'readiness'>;
  readonly alarms: Pick<Alarms, 'raise' | 'clear'>;
  readonly counts: () => PromiseLike<readonly DatabaseCount[]> | readonly DatabaseCount[];
}

/**
 * Raises an alarm while databases are unusable because of their engine; called at intervals. New
 * databases that wait for the installation of an engine do not count.
 */
export async function watchEngines({ engines, alarms, counts }: EngineWatchDeps): Promise<void> {
  const readiness = await engines.readiness();
  const rows = (await counts()).filter(({ state }) => state !== 'deleting');
  const problems = readiness
    .filter(({ available }) => !available)
    .map(({ engine, reason, fix, preparing }) => {
      const count = rows
        .filter((row) => row.engine === engine && (preparing === undefined || row.state !== 'creating'))
        .reduce((sum, row) => sum + row.count, 0);
      return {
        count,
        text: `${count} databases of ${engine} are unavailable: ${reason}`,
        fix: fix ?? SEE_LOG,
      };
    })
    .filter(({ count }) => count > 0);
  if (problems.length === 0) alarms.clear(ALARM);
  else {
    const all = (of: 'text' | 'fix') => [...new Set(problems.map((problem) => problem[of]))].join('. ');
    alarms.raise(ALARM, all('text'), all('fix'));
  }
}

export interface MovesDeps {
  readonly store: Pick<DatabaseStore, 'listIn'>;
  readonly engines: Pick<Engines, 'all'>;
  readonly lifecycle: Pick<Lifecycle, 'inEngine'>;
}

/**
 * Moves databases from the layout of an earlier version of Cloudlet; at intervals. Does nothing for an engine
 * without databases to move. Rejects with the last error.
 */
export async function moveDatabases({ store, engines, lifecycle }: MovesDeps): Promise<void> {
  let failure: unknown = null;
  for (const engine of engines.all()) {
    if (engine.moveIn === undefined) continue;
    const rows = await store.listIn(engine.name);
    const all = rows.map((row) => ({ database: lifecycle.inEngine(row), access: ACCESS[row.state] }));
    await engine.moveIn(all).catch((error: unknown) => {
      failure = error;
    });
  }
  if (failure !== null) throw failure;
}

/** The format that load() takes. */
export function usualFormat({ dumpFormats }: Engine): string {
  return dumpFormats[0] ?? '';
}

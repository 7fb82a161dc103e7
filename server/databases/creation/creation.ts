/**
 * Creates databases: a row in state `creating`, then the database in the engine, empty or as a copy, then the
 * commit that makes it ready and stores the response.
 *
 * An interrupted creation is undone: nobody got a response, and the name is free again. If the creation
 * waited for the account's first server (first-start.ts), it continues: the caller got the state `creating`.
 */

import { setTimeout as sleep } from 'node:timers/promises';
import type { AccountResources } from '../../calls/account-resources.ts';
import type { Call, Principal } from '../../calls/principal.ts';
import { BACKGROUND, type Change, type Changes } from '../../metadata/change.ts';
import { CommitOutcomeUnknown } from '../../metadata/metadata.ts';
import type { Clock } from '../../platform/clock.ts';
import { invalidField, isAppError } from '../../platform/errors.ts';
import { newId, randomName } from '../../platform/ids.ts';
import { type DatabaseViews, MIB } from '../database-view.ts';
import { DEFAULT_ENGINE, type Engine, type EngineName } from '../engine.ts';
import { type Engines, unavailable } from '../engines.ts';
import type { DatabaseBilling } from '../life/egress.ts';
import { databaseExists, type Lifecycle } from '../life/lifecycle.ts';
import type { OwnedDatabases } from '../life/owned-databases.ts';
import { assertReadable, type DatabaseTurns } from '../life/states.ts';
import type { DatabasePoints } from '../points/database-points.ts';
import { type Past, pastOf } from '../points/moments.ts';
import type { Database, NewDatabase } from '../schema.ts';
import { type DatabaseSecrets, hashPassword } from '../secrets.ts';
import type { DatabaseRow, DatabaseStore } from '../store.ts';
import { FirstStart, isTold, noteDelay } from './first-start.ts';

const DEFAULT_REGION = 'us-east-1';
const DEFAULT_SIZE_MB = 1024;

export interface CreationDeps {
  readonly store: DatabaseStore;
  readonly owned: OwnedDatabases;
  readonly changes: Changes;
  readonly engines: Engines;
  readonly lifecycle: Lifecycle;
  readonly turns: DatabaseTurns;
  readonly secrets: DatabaseSecrets;
  readonly views: DatabaseViews;
  readonly points: DatabasePoints;
  readonly billing: DatabaseBilling;
  readonly clock: Clock;
  /** Throws `out_of_space` if that many more bytes cannot be stored. */
  readonly assertSpace: (bytes: number) => void;
  /** Largest size_limit_mb. */
  readonly maxSizeMb: number;
  /** See FirstStartDeps. */
  readonly tellMs?: number | undefined;
}

interface Plan {
  readonly input: NewDatabase;
  readonly engineName: EngineName;
  readonly version: string | null;
  readonly sizeLimitBytes: number;
  readonly password: string;
}

interface Making {
  readonly engine: Engine;
  readonly source: DatabaseRow | undefined;
  readonly past: Past | undefined;
  readonly password: string;
}

export class Creation {
  readonly #deps: CreationDeps;

  constructor(deps: CreationDeps) {
    this.#deps = deps;
  }

  /**
   * Resolves when a driver got a response, or when starting the account's first server takes long;
   * continues when the client disconnects. Throws `invalid_request`, `database_exists`,
   * `insufficient_credits`, `quota_exceeded`, `engine_unavailable`, for a copy `database_not_found`
   * and `database_not_ready`, for a copy from a recovery point the errors of DatabasePoints.load(),
   * and the engine's errors (`out_of_space`). Leaves nothing behind on failure.
   */
  async create(call: Call, input: NewDatabase): Promise<Database> {
    const past = input.from && pastOf(input.from);
    const source = await this.#sourceOf(call.principal, input, past);
    return this.#create(call, input, { source, past });
  }

  /** Databases of an account in a recovery point, created again in another account with new passwords. */
  get resources(): AccountResources {
    return {
      list: async (reads, accountId) => {
        const rows = await this.#deps.points.listIn(reads, accountId);
        return rows.map(({ database_id: id, name, size_bytes: sizeBytes }) => {
          return { kind: 'database', id, name, sizeBytes };
        });
      },
      restore: async (call, { pointId, accountId, resource: { id } }) => {
        const found = await this.#deps.points.rowIn(pointId, accountId, id);
        const { name, engine, region } = found;
        // Queued as work of the account that receives the restored databases.
        const source = { ...found, account_id: call.principal.accountId };
        const input = { name, engine, region };
        const { database_id } = await this.#create(call, input, { source, past: { pointId } });
        return { id: database_id, lacks: [] };
      },
    };
  }

  async #create(
    call: Call,
    input: NewDatabase,
    { source, past }: { readonly source: DatabaseRow | undefined; readonly past: Past | undefined },
  ): Promise<Database> {
    const { billing, engines, secrets, clock, turns } = this.#deps;
    const { principal } = call;
    const sizeLimitBytes = this.#sizeLimit(input, source);
    await billing.assertCredit(principal.accountId);
    const engineName = (source?.engine ?? input.engine ?? DEFAULT_ENGINE) as EngineName;
    const engine = engines.get(engineName);
    // A new database waits for an engine that the host is still preparing; its version is not known yet.
    const isComing = source === undefined && (await engine.readiness()).preparing !== undefined;
    const version = isComing ? null : await assertAvailable(engine);
    const plan = { input, engineName, version, sizeLimitBytes, password: secrets.newPassword() };
    const databaseId = newId('db', clock);
    const { promise: response, resolve, reject } = Promise.withResolvers<Database>();
    void turns
      .run(databaseId, async () => {
        const creating = await this.#insert(principal, databaseId, plan);
        const { password } = plan;
        const tell = source === undefined && engine.startsServers === true;
        const start = new FirstStart(this.#deps, creating, {
          password,
          asked: tell ? { call, isComing, resolve } : null,
        });
        try {
          resolve(await this.#make(call, start, { engine, source, past, password }));
        } catch (error) {
          const row = await start.settled().catch(() => creating);
          // The database may be stored as ready: the row decides at the next start.
          if (error instanceof CommitOutcomeUnknown) throw error;
          if (isTold(row) && !isAppError(error, 'database_not_ready'))
            await noteDelay(this.#deps, row, error);
          else await this.abandon(row).catch(() => {});
          throw error;
        }
      })
      .catch(reject);
    return response;
  }

  /** Continues a creation after its response. Throws the reason why it is not done yet. */
  async resume(row: DatabaseRow): Promise<void> {
    const { engines, secrets, turns } = this.#deps;
    const password = secrets.unseal(row.database_id, row.sealed_password);
    try {
      const engine = engines.get(row.engine);
      await turns.during([row.database_id], (signal) => this.#provide(engine, row, { password, signal }));
      await this.#open(row, await readyFrom(engine, row, 0));
    } catch (error) {
      if (isAppError(error, 'database_not_ready')) await this.abandon(row);
      else if (!(error instanceof CommitOutcomeUnknown)) await noteDelay(this.#deps, row, error);
      throw error;
    }
  }

  /** Removes all data of a failed or interrupted creation. */
  async abandon(row: DatabaseRow): Promise<void> {
    const { engines, changes, store } = this.#deps;
    const disowned = await this.disown(row);
    await engines.get(row.engine).drop(row.engine_database);
    await changes.run(BACKGROUND, (change) => change.add(store.delete(disowned)));
  }

  /** Frees the name and the quota; the first half of abandon(), without the engine. */
  disown(row: DatabaseRow): Promise<DatabaseRow> {
    const { lifecycle, billing } = this.#deps;
    const also = (change: Change) => change.addAll(billing.abandoned(row));
    return lifecycle.commit(row, { state: 'deleting' }, { also });
  }

  async #sourceOf(
    principal: Principal,
    { from, engine }: NewDatabase,
    past: Past | undefined,
  ): Promise<DatabaseRow | undefined> {
    if (from === undefined) return undefined;
    const { owned, points } = this.#deps;
    const { database_id: id } = from;
    // A recovery point also has databases that were deleted or damaged later.
    const source =
      past === undefined ? await owned.findLive(principal, id) : await owned.findAny(principal, id);
    if (past === undefined) assertReadable(source);
    else await points.assertIn(source, past);
    if (engine === undefined || engine === source.engine) return source;
    throw invalidField('engine', `must be ${source.engine}, the engine of the source database`);
  }

  #sizeLimit({ size_limit_mb: wanted }: NewDatabase, source: DatabaseRow | undefined): number {
    const { maxSizeMb, assertSpace } = this.#deps;
    assertSpace(source?.size_bytes ?? 0);
    if (wanted === undefined) {
      return source?.size_limit_bytes ?? Math.min(DEFAULT_SIZE_MB, maxSizeMb) * MIB;
    }
    if (wanted > maxSizeMb) throw invalidField('size_limit_mb', `must be at most ${maxSizeMb} on this cloud`);
    const needed = Math.ceil((source?.size_bytes ?? 0) / MIB);
    if (wanted < needed) {
      throw invalidField('size_limit_mb', `must be at least ${needed}, the limit of the source database`);
    }
    return wanted * MIB;
  }

  async #insert(principal: Principal, databaseId: string, plan: Plan): Promise<DatabaseRow> {
    const { changes, store, secrets, billing, clock } = this.#deps;
    const now = clock.now();
    const nameInEngine = randomName(16);
    const row = {
      database_id: databaseId,
      account_id: principal.accountId,
      name: plan.input.name,
      engine: plan.engineName,
      version: plan.version,
      region: plan.input.region ?? DEFAULT_REGION,
      state: 'creating' as const,
      reason_code: null,
      reason_message: null,
      generation: 0,
      applied: -1,
      engine_database: `d_${nameInEngine}`,
      username: `u_${nameInEngine}`,
      sealed_password: secrets.seal(databaseId, plan.password),
      sealed_next_password: null,
      password_hash: hashPassword(plan.password),
      size_limit_bytes: plan.sizeLimitBytes,
      size_bytes: 0,
      is_protected: 0,
      created_at: now,
      state_changed_at: now,
      deletes_at: null,
      keep_left_ms: null,
      is_dropped: 0,
      kept_dump_bytes: null,
    };
    await changes.run(BACKGROUND, async (change) => {
      change.add(store.insert(row), (reason) =>
        reason === 'unique' ? databaseExists(row.name) : new Error(`refused (${reason})`),
      );
      change.addAll(await billing.created(row), 'retry');
    });
    const stored = await store.find(databaseId);
    if (stored === undefined) throw new Error('a new database has no row');
    return stored;
  }

  async #make(call: Call, start: FirstStart, { engine, source, past, password }: Making): Promise<Database> {
    const { views, turns } = this.#deps;
    const { creating } = start;
    let sizeBytes = 0;
    if (source === undefined) {
      await turns.during([creating.database_id], (signal) =>
        this.#provide(engine, creating, { password, signal, onReserved: () => start.begin() }),
      );
    } else {
      await engine.prepare();
      await engine.provision(this.#deps.lifecycle.inEngine(creating), password);
      sizeBytes = await this.#fill(engine, creating, { source, past });
    }
    const row = await start.settled();
    const ready = await readyFrom(engine, row, sizeBytes);
    const response = await views.present({ ...row, ...ready }, password);
    // The caller already got a response, with the state `creating`.
    await this.#open(row, ready, isTold(row) ? undefined : { call, response });
    return response;
  }

  /** Creates an empty database, and sends it one query as its user. */
  #provide(
    engine: Engine,
    row: DatabaseRow,
    {
      password,
      signal,
      onReserved,
    }: { readonly password: string; readonly signal: AbortSignal; readonly onReserved?: () => void },
  ): Promise<void> {
    const database = this.#deps.lifecycle.inEngine(row);
    const work = async () => {
      await engine.reserve?.(database);
      onReserved?.();
      await whenPrepared(engine, signal);
      await engine.prepare();
      await engine.provision(database, password);
      await engine.tables(database, signal);
    };
    const { promise: interrupted, reject } = Promise.withResolvers<never>();
    const leave = () => reject(signal.reason);
    signal.addEventListener('abort', leave, { once: true });
    return Promise.race([work(), interrupted]).finally(() => signal.removeEventListener('abort', leave));
  }

  async #open(
    row: DatabaseRow,
    ready: Awaited<ReturnType<typeof readyFrom>>,
    recorded?: { readonly call: Call; readonly response: unknown },
  ): Promise<void> {
    const { lifecycle, store, billing } = this.#deps;
    const also = (change: Change) => {
      change.add(store.setSize(row.id, ready.size_bytes));
      change.addAll(billing.opened(row, ready.size_bytes));
    };
    await lifecycle.commit(row, ready, { also, recorded });
  }

  /** Copies the source into the new database; resolves with its size in bytes. */
  #fill(
    engine: Engine,
    creating: DatabaseRow,
    { source, past }: { readonly source: DatabaseRow; readonly past: Past | undefined },
  ): Promise<number> {
    const { lifecycle, turns, store, points } = this.#deps;
    const target = lifecycle.inEngine(creating);
    if (past !== undefined) {
      return turns.during([creating.database_id], async (signal) => {
        await points.load(source, past, { engine, database: target, signal });
        return (await engine.measure(target)).sizeBytes;
      });
    }
    return turns.during([source.database_id, creating.database_id], async (signal) => {
      try {
        await engine.fork(lifecycle.inEngine(source), target, signal);
      } catch (error) {
        // Deleting or suspending the source ends its sessions, which engines report in many ways.
        assertReadable((await store.find(source.database_id)) ?? { ...source, state: 'deleting' });
        throw error;
      }
      return (await engine.measure(target)).sizeBytes;
    });
  }
}

async function readyFrom(engine: Engine, { generation, version }: DatabaseRow, sizeBytes: number) {
  const applied = generation + 1;
  const known = version ?? (await engine.readiness()).version;
  const reason = { reason_code: null, reason_message: null };
  return { state: 'ready', version: known, applied, size_bytes: sizeBytes, ...reason } as const;
}

/**
 * Throws `engine_unavailable` unless the engine can accept a database now. Resolves with the
 * version of the new database.
 */
export async function assertAvailable(engine: Engine): Promise<string | null> {
  const readiness = await engine.readiness();
  if (!readiness.available) throw unavailable(engine.name, readiness);
  return readiness.version;
}

const LOOK_MS = 500;

/** Resolves when the host has finished preparing the engine. The engine itself reports a failure. */
async function whenPrepared(engine: Engine, signal: AbortSignal): Promise<void> {
  while ((await engine.readiness()).preparing !== undefined) await sleep(LOOK_MS, undefined, { signal });
}

/** Databases: made, found, changed and removed by their owner. What engines do meanwhile is lifecycle.ts. */
import type { Call, Principal } from '../accounts/principal.ts';
import type { Clock } from '../clock.ts';
import { AppError, invalidField } from '../errors.ts';
import { isId, newId, randomName } from '../ids.ts';
import { type Change, type Changes, UNASKED } from '../metadata/change.ts';
import { CommitOutcomeUnknown } from '../metadata/metadata.ts';
import { type DatabaseAnswers, MIB } from './database-answer.ts';
import type { DatabaseBilling } from './database-billing.ts';
import type { DatabaseSecrets } from './database-secrets.ts';
import type { EngineName } from './engine.ts';
import { DEFAULT_ENGINE, type Engines } from './engines.ts';
import { type Lifecycle, writeConflict } from './lifecycle.ts';
import type { Credentials, Database, DatabaseChange, NewDatabase } from './schema.ts';
import { requireReadable } from './states.ts';
import type { DatabaseRow, DatabaseStore } from './store.ts';

const DEFAULT_REGION = 'us-east-1';
const DEFAULT_SIZE_MB = 1024;
const LIST_STEP = 1000;

export interface DatabasesDeps {
  readonly store: DatabaseStore;
  readonly changes: Changes;
  readonly engines: Engines;
  readonly lifecycle: Lifecycle;
  readonly secrets: DatabaseSecrets;
  readonly answers: DatabaseAnswers;
  readonly billing: DatabaseBilling;
  readonly clock: Clock;
  /** Largest size_limit_mb. */
  readonly maxSizeMb: number;
}

interface Page {
  /** A row id. */
  readonly after: number;
  readonly limit: number;
}

export class Databases {
  readonly #deps: DatabasesDeps;

  constructor(deps: DatabasesDeps) {
    this.#deps = deps;
  }

  /**
   * Resolves when a driver can connect. Throws `invalid_request`, `database_exists`, `insufficient_credits`,
   * `quota_exceeded`, `engine_unavailable`, and what the engine says (`out_of_space`); nothing is left then.
   */
  async create(call: Call, input: NewDatabase): Promise<Database> {
    const { billing, engines, lifecycle, secrets } = this.#deps;
    const { accountId } = call.principal;
    const sizeLimitBytes = this.#sizeLimit(input.size_limit_mb);
    await billing.require(accountId);
    const { engine, version } = await engines.require((input.engine ?? DEFAULT_ENGINE) as EngineName);
    const password = secrets.newPassword();
    const creating = await this.#insert(call.principal, { input, version, sizeLimitBytes, password });
    return lifecycle.alone(creating.database_id, async () => {
      try {
        await engine.prepare();
        await engine.provision(lifecycle.inEngine(creating), password);
        return await this.#open(call, creating, password);
      } catch (error) {
        // It may be stored as ready: the row decides, at the next start.
        if (error instanceof CommitOutcomeUnknown) throw error;
        await lifecycle.abandon(creating).catch(() => {});
        throw error;
      }
    });
  }

  /** The caller's database. Throws `database_not_found`, also when it is someone else's. */
  async find(principal: Principal, databaseId: string): Promise<DatabaseRow> {
    const row = isId('db', databaseId) ? await this.#deps.store.find(databaseId) : undefined;
    if (row?.account_id === principal.accountId && !isGone(row)) return row;
    throw new AppError('database_not_found', 'You have no such database');
  }

  async describe(principal: Principal, databaseId: string): Promise<Database> {
    return this.#deps.answers.present(await this.find(principal, databaseId));
  }

  /** At most `limit`, oldest first; `kept`: the deleted ones that can be had back. */
  async *list(principal: Principal, kept: boolean, { after, limit }: Page): AsyncGenerator<ListedDatabase> {
    const { store, answers } = this.#deps;
    let last = after;
    let left = limit;
    while (left > 0) {
      const step = Math.min(left, LIST_STEP);
      const rows = await store.listOf(principal.accountId, kept, { after: last, limit: step });
      for (const row of rows) yield new ListedDatabase(row.id, await answers.present(row));
      left -= rows.length;
      const end = rows.at(-1);
      if (rows.length < LIST_STEP || !end) return;
      last = end.id;
    }
  }

  /** Throws `database_exists`, `invalid_request`, `write_conflict`. */
  async change(principal: Principal, databaseId: string, change: DatabaseChange): Promise<Database> {
    const { lifecycle, answers, billing } = this.#deps;
    const sizeLimitBytes =
      change.size_limit_mb === undefined ? undefined : this.#sizeLimit(change.size_limit_mb);
    return lifecycle.alone(databaseId, async () => {
      const row = await this.findLive(principal, databaseId);
      const wanted = {
        name: change.name ?? row.name,
        size_limit_bytes: sizeLimitBytes ?? row.size_limit_bytes,
        is_protected: Number(change.delete_protection ?? row.is_protected === 1),
      };
      const refused = (reason: string) => (reason === 'unique' ? exists(wanted.name) : writeConflict());
      const also = (change: Change) => change.addAll(billing.renamed({ ...row, ...wanted }));
      const changed = await lifecycle.commit(row, wanted, { refused, also });
      return answers.present(await lifecycle.apply(changed));
    });
  }

  /** With the password. Throws `database_not_ready`. */
  async credentials(principal: Principal, databaseId: string): Promise<Credentials> {
    const row = await this.findLive(principal, databaseId);
    requireReadable(row);
    return this.#credentialsOf(row, this.#deps.secrets.unseal(databaseId, row.sealed_password));
  }

  /** Another password; the old one and its sessions end. Throws `database_not_ready`. */
  async rotate(call: Call, databaseId: string): Promise<Credentials> {
    const { lifecycle, secrets } = this.#deps;
    return lifecycle.alone(databaseId, async () => {
      const row = await this.findLive(call.principal, databaseId);
      requireReadable(row);
      const password = secrets.newPassword();
      const next = { sealed_next_password: secrets.seal(databaseId, password) };
      const answer = await this.#credentialsOf(row, password);
      await lifecycle.wish(row, next, { call, answer });
      return answer;
    });
  }

  /** Ends its sessions and removes it. Throws `delete_protected`. */
  async remove(principal: Principal, databaseId: string): Promise<Database> {
    const { lifecycle, answers, billing } = this.#deps;
    const deleted = await lifecycle.alone(databaseId, async () => {
      const row = await this.findLive(principal, databaseId);
      if (row.state === 'creating') throw new AppError('database_not_ready', 'It is still being made');
      if (row.is_protected === 1) throw isProtected(row);
      const also = (change: Change) => change.addAll(billing.deleted(row));
      return lifecycle.commit(row, { state: 'deleting' }, { also });
    });
    const answer = await answers.present(deleted);
    // What fails now is done later: the row says so.
    await lifecycle.settle(databaseId);
    return answer;
  }

  /** The same, unless it was deleted. */
  async findLive(principal: Principal, databaseId: string): Promise<DatabaseRow> {
    const row = await this.find(principal, databaseId);
    if (row.state === 'deleting') throw new AppError('database_not_found', 'You have no such database');
    return row;
  }

  async #credentialsOf(row: DatabaseRow, password: string): Promise<Credentials> {
    const { engines, lifecycle, answers } = this.#deps;
    const { ca } = await engines.get(row.engine).endpoint(lifecycle.inEngine(row));
    return { connection: await answers.connection(row, password), ca };
  }

  #sizeLimit(megabytes: number | undefined): number {
    const { maxSizeMb } = this.#deps;
    if (megabytes === undefined) return Math.min(DEFAULT_SIZE_MB, maxSizeMb) * MIB;
    if (megabytes > maxSizeMb) throw invalidField('size_limit_mb', `must be at most ${maxSizeMb} here`);
    return megabytes * MIB;
  }

  async #insert(
    principal: Principal,
    wish: {
      readonly input: NewDatabase;
      readonly version: string | null;
      readonly sizeLimitBytes: number;
      readonly password: string;
    },
  ): Promise<DatabaseRow> {
    const { changes, store, secrets, billing, clock } = this.#deps;
    const { input, version, sizeLimitBytes, password } = wish;
    const now = clock.now();
    const databaseId = newId('db', clock);
    const nameInEngine = randomName(16);
    const row = {
      database_id: databaseId,
      account_id: principal.accountId,
      name: input.name,
      engine: (input.engine ?? DEFAULT_ENGINE) as EngineName,
      version,
      region: input.region ?? DEFAULT_REGION,
      state: 'creating' as const,
      reason_code: null,
      reason_message: null,
      generation: 0,
      applied: -1,
      engine_database: `d_${nameInEngine}`,
      username: `u_${nameInEngine}`,
      sealed_password: secrets.seal(databaseId, password),
      sealed_next_password: null,
      size_limit_bytes: sizeLimitBytes,
      size_bytes: 0,
      is_protected: 0,
      created_at: now,
      state_changed_at: now,
      deletes_at: null,
      is_dropped: 0,
      kept_dump_bytes: null,
    };
    await changes.run(UNASKED, async (change) => {
      change.add(store.insert(row), (reason) =>
        reason === 'unique' ? exists(row.name) : new Error(`refused (${reason})`),
      );
      change.addAll(await billing.created(row), 'retry');
    });
    const stored = await store.find(databaseId);
    if (stored === undefined) throw new Error('a new database is gone');
    return stored;
  }

  /** The commit that makes it the caller's, with their answer. */
  async #open(call: Call, creating: DatabaseRow, password: string): Promise<Database> {
    const { changes, store, answers, billing } = this.#deps;
    const generation = creating.generation + 1;
    const row: DatabaseRow = { ...creating, state: 'ready', generation, applied: generation };
    const answer = await answers.present(row, password);
    return changes.run(call, (change) => {
      change.expect(store.update(row), writeConflict);
      change.addAll(billing.opened(row, 0));
      return answer;
    });
  }
}

/** A database with its place in the list. */
class ListedDatabase {
  readonly id: number;
  readonly database: Database;

  constructor(id: number, database: Database) {
    this.id = id;
    this.database = database;
  }

  toJSON(): Database {
    return this.database;
  }
}

/** Its creation failed: nobody was ever told of it. */
function isGone({ state, deletes_at }: DatabaseRow): boolean {
  return state === 'deleting' && deletes_at === null;
}

function exists(name: string): AppError {
  return new AppError('database_exists', `You already have a database named ${name}`);
}

function isProtected({ name }: DatabaseRow): AppError {
  return new AppError('delete_protected', `The database ${name} is protected against deletion`, {
    hint: 'Set delete_protection to false first',
  });
}

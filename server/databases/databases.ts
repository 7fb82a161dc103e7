/** Finds and changes databases for their owner. Their engines are handled in lifecycle.ts. */
import type { Call, Principal } from '../calls/principal.ts';
import { type Change, inFirstCommit } from '../metadata/change.ts';
import { Listed, listRows, type Page } from '../metadata/list.ts';
import { AppError, invalidField } from '../platform/errors.ts';
import { writeConflict } from '../resources/row-change.ts';
import { type DatabaseViews, HIDDEN, MIB } from './database-view.ts';
import type { Engines } from './engines.ts';
import type { DatabaseBilling } from './life/egress.ts';
import { databaseExists, type Lifecycle } from './life/lifecycle.ts';
import type { OwnedDatabases } from './life/owned-databases.ts';
import { assertReadable, type DatabaseTurns, isOpen, isOpening, openStateOf } from './life/states.ts';
import type { Credentials, Database, DatabaseChange } from './schema.ts';
import { type DatabaseSecrets, hashPassword } from './secrets.ts';
import type { DatabaseRow, DatabaseStore } from './store.ts';

export interface DatabasesDeps {
  readonly store: DatabaseStore;
  readonly owned: OwnedDatabases;
  readonly engines: Engines;
  readonly lifecycle: Lifecycle;
  readonly turns: DatabaseTurns;
  readonly secrets: DatabaseSecrets;
  readonly views: DatabaseViews;
  readonly billing: Pick<DatabaseBilling, 'renamed'>;
  readonly onError: (databaseId: string, what: string, error: unknown) => void;
  /** Largest size_limit_mb. */
  readonly maxSizeMb: number;
}

type ListedDatabase = Listed<DatabaseRow, Database>;

export class Databases {
  readonly #deps: DatabasesDeps;

  constructor(deps: DatabasesDeps) {
    this.#deps = deps;
  }

  async describe(principal: Principal, databaseId: string): Promise<Database> {
    const { owned, views } = this.#deps;
    return views.present(await owned.findLive(principal, databaseId));
  }

  /** At most `limit`, oldest first; `kept`: deleted databases that can be undeleted. */
  async *list(principal: Principal, kept: boolean, page: Page): AsyncGenerator<ListedDatabase> {
    const { store, views } = this.#deps;
    const { accountId } = principal;
    const rows = listRows(page, (after, limit) => store.listOf(accountId, kept, { after, limit }));
    for await (const row of rows) yield new Listed(row, await views.present(row));
  }

  /**
   * Changes name, limit or protection. The row changes immediately, the engine when it is available; access
   * never exceeds what the engine grants. Throws `database_exists`, `invalid_request`, `write_conflict`.
   */
  async change(call: Call, databaseId: string, change: DatabaseChange): Promise<Database> {
    const { owned, lifecycle, turns, views, billing } = this.#deps;
    const sizeLimitBytes = this.#sizeLimit(change.size_limit_mb);
    return turns.run(databaseId, async () => {
      const row = await owned.findLive(call.principal, databaseId);
      const wanted = {
        name: change.name ?? row.name,
        size_limit_bytes: sizeLimitBytes ?? row.size_limit_bytes,
        is_protected: Number(change.delete_protection ?? row.is_protected === 1),
      };
      const moved = sizeLimitBytes === undefined ? {} : stateWithLimit(row, sizeLimitBytes);
      const refused = (reason: string) =>
        reason === 'unique' ? databaseExists(wanted.name) : writeConflict('database');
      const also = (change: Change) => change.addAll(billing.renamed({ ...row, ...wanted }));
      if (isOpening(row, moved)) {
        const opening = await inFirstCommit(call.entry)((first) =>
          lifecycle.commit(row, wanted, { refused, also, recorded: { call: first, response: undefined } }),
        );
        return this.#open(call, opening, moved);
      }
      const response = await views.present({ ...row, ...wanted, ...moved });
      const isApplied = row.applied === row.generation && wanted.size_limit_bytes === row.size_limit_bytes;
      const applied = isApplied ? row.generation + 1 : row.applied;
      const how = { refused, also, recorded: { call, response } };
      const changed = await lifecycle.commit(row, { ...wanted, ...moved, applied }, how);
      if (!isApplied) await this.#applySoon(changed);
      return response;
    });
  }

  /**
   * Includes the password, unless it is hidden. Throws `database_not_ready`, and `invalid_request` if there
   * is no TLS.
   */
  async credentials(
    principal: Principal,
    databaseId: string,
    { isVerified = false, isHidden = false }: Shown = {},
  ): Promise<Credentials> {
    const { owned, lifecycle } = this.#deps;
    const row = await owned.findLive(principal, databaseId);
    assertReadable(row);
    const password = isHidden ? undefined : lifecycle.passwordOf(row);
    return this.#credentialsOf(row, password, isVerified);
  }

  /**
   * Sets a new password and ends sessions of the old one. Throws `database_not_ready`, and
   * `engine_unavailable` if the engine can apply it only later.
   */
  async rotate(call: Call, databaseId: string): Promise<Credentials> {
    const { owned, lifecycle, turns, secrets } = this.#deps;
    return turns.run(databaseId, async () => {
      const row = await owned.findLive(call.principal, databaseId);
      assertReadable(row);
      const password = secrets.newPassword();
      const next = {
        sealed_next_password: secrets.seal(databaseId, password),
        password_hash: hashPassword(password),
      };
      const response = await this.#credentialsOf(row, password);
      // After a kill the next run of Cloudlet sets the password in the engine.
      const wished = await inFirstCommit(call.entry)((first) =>
        lifecycle.commit(row, next, { recorded: { call: first, response: undefined } }),
      );
      try {
        await lifecycle.apply(wished, { recorded: { call, response } });
      } catch (error) {
        throw isAway(error) ? rotatedLater(error) : error;
      }
      return response;
    });
  }

  /**
   * Restarts the server that the account has for databases of this engine: sessions end and open transactions
   * are rolled back. Throws `invalid_request` for an operator's server.
   */
  async restart(call: Call, databaseId: string): Promise<Database> {
    const { owned, engines, lifecycle, turns, views } = this.#deps;
    return turns.run(databaseId, async () => {
      const row = await owned.findLive(call.principal, databaseId);
      assertReadable(row);
      const engine = engines.get(row.engine);
      if (engine.restart === undefined) {
        throw new AppError(
          'invalid_request',
          `The ${row.engine} server belongs to the operator and cannot be restarted`,
          {
            hint: 'Rotate the password to end all sessions of the database',
          },
        );
      }
      await engine.restart(lifecycle.inEngine(row));
      const response = await views.present(row);
      await lifecycle.apply(row, { recorded: { call, response } });
      return response;
    });
  }

  /**
   * The row becomes open once the engine confirms; if the engine is unavailable, returns the row unchanged.
   */
  async #open(call: Call, row: DatabaseRow, wanted: Partial<DatabaseRow>): Promise<Database> {
    const { lifecycle, views, onError } = this.#deps;
    const response = await views.present({ ...row, ...wanted });
    try {
      await lifecycle.apply(row, { wanted, recorded: { call, response } });
      return response;
    } catch (error) {
      onError(row.database_id, 'applying the change in the engine failed', error);
      const kept = await views.present(row);
      await lifecycle.commit(row, {}, { recorded: { call, response: kept } });
      return kept;
    }
  }

  async #applySoon(row: DatabaseRow): Promise<void> {
    const { lifecycle, onError } = this.#deps;
    try {
      await lifecycle.apply(row);
    } catch (error) {
      onError(row.database_id, 'applying the change in the engine failed', error);
    }
  }

  async #credentialsOf(
    row: DatabaseRow,
    password: string | undefined,
    isVerified = false,
  ): Promise<Credentials> {
    const { engines, lifecycle, views } = this.#deps;
    const usual = await engines.get(row.engine).endpoint(lifecycle.inEngine(row));
    const endpoint = isVerified ? (usual.verified ?? usual) : usual;
    if (isVerified && !endpoint.tls)
      throw invalidField('tls', `this ${row.engine} database does not offer TLS`);
    const { ca } = endpoint;
    const connection = await views.connection(row, password, endpoint);
    const { uri, tls } = connection;
    const target = { uri, password: password ?? HIDDEN, tls, hasCa: ca !== null };
    const about = engines.about(row.engine);
    return { connection, snippets: about.snippets(target), frameworks: about.frameworks(target), ca };
  }

  #sizeLimit(megabytes: number | undefined): number | undefined {
    const { maxSizeMb } = this.#deps;
    if (megabytes === undefined) return undefined;
    if (megabytes > maxSizeMb)
      throw invalidField('size_limit_mb', `must be at most ${maxSizeMb} on this cloud`);
    return megabytes * MIB;
  }
}

interface Shown {
  /** For connections with TLS that drivers verify. */
  readonly isVerified?: boolean;
  /** `***` stands for the password. */
  readonly isHidden?: boolean;
}

/** A new limit sets the state by size immediately, without the margin that reopening needs. */
function stateWithLimit(row: DatabaseRow, sizeLimitBytes: number): Partial<DatabaseRow> {
  if (!isOpen(row)) return {};
  return openStateOf({ state: 'ready', size_bytes: row.size_bytes, size_limit_bytes: sizeLimitBytes });
}

function isAway(error: unknown): error is AppError {
  return error instanceof AppError && error.code === 'engine_unavailable';
}

function rotatedLater({ message }: AppError): AppError {
  return new AppError(
    'engine_unavailable',
    `${message}. The password is changed once the engine is available`,
    {
      hint: 'Read the new password with GET …/credentials; connections fail until the engine is available',
    },
  );
}

/** The public view of a database's row. */
import { formatTime, formatTimeOrNull } from '../platform/clock.ts';
import { reasonOf } from '../resources/row-change.ts';
import type { Endpoint } from './engine.ts';
import type { EngineDescription } from './engine-description.ts';
import type { Engines } from './engines.ts';
import type { DataFaults } from './life/data-faults.ts';
import type { DatabaseBilling } from './life/egress.ts';
import type { Lifecycle } from './life/lifecycle.ts';
import { isOpen } from './life/states.ts';
import type { Connection, Database } from './schema.ts';
import type { DatabaseRow } from './store.ts';

export const MIB = 2 ** 20;
export const HIDDEN = '***';
const UNKNOWN: Endpoint = { host: '', port: 0, tls: false, ca: null, uri: () => '' };
const WAY_OUT =
  'copy what can still be read, then load the last dump (POST /api/databases/{id}/load) or restore an earlier state';
const STILL = '. Reading and deleting (DELETE, TRUNCATE, DROP) still work, and writes resume automatically';
const DAMAGE_REASONS = {
  data_damaged: { code: 'data_damaged', message: `Data of the database is damaged: ${WAY_OUT}` },
  data_missing: { code: 'data_missing', message: `Data of the database is missing: ${WAY_OUT}` },
} as const;

export interface DatabaseViewsDeps {
  readonly engines: Engines;
  readonly billing: Pick<DatabaseBilling, 'pricePerHour'>;
  readonly lifecycle: Pick<Lifecycle, 'inEngine'>;
  /** False: the engines are on another node of the cluster, which does not respond now. */
  readonly isHere?: boolean | undefined;
  /** undefined: damage is not tracked. */
  readonly faults?: Pick<DataFaults, 'of'> | undefined;
}

export class DatabaseViews {
  readonly #deps: DatabaseViewsDeps;

  constructor(deps: DatabaseViewsDeps) {
    this.#deps = deps;
  }

  /** `password`: included if given. */
  async present(row: DatabaseRow, password?: string): Promise<Database> {
    const { billing } = this.#deps;
    return {
      database_id: row.database_id,
      name: row.name,
      engine: row.engine,
      version: row.version,
      ...this.#stateOf(row),
      region: row.region,
      size_bytes: row.size_bytes,
      size_limit_mb: Math.floor(row.size_limit_bytes / MIB),
      delete_protection: row.is_protected === 1,
      price_per_hour: billing.pricePerHour(row.plan, row),
      connection: await this.connection(row, password),
      created_at: formatTime(row.created_at),
      deletes_at: formatTimeOrNull(row.deletes_at),
      kept_bytes: row.state === 'deleting' ? row.kept_dump_bytes : null,
    };
  }

  /**
   * An open database that is known to be damaged, or whose server does not start, is shown as `error`; one
   * that waits for the host's disk as `read_only`.
   */
  #stateOf(row: DatabaseRow): Pick<Database, 'state' | 'state_reason'> {
    const { engines, faults, lifecycle } = this.#deps;
    const { state } = row;
    if (!isOpen(row)) return { state, state_reason: reasonOf(row) };
    const fault = faults?.of(row.database_id) ?? null;
    if (fault !== null) return { state: 'error', state_reason: DAMAGE_REASONS[fault] };
    const trouble = engines.trouble(row.engine, lifecycle.inEngine(row));
    if (trouble === null) return { state, state_reason: reasonOf(row) };
    const { code, message: what } = trouble;
    if (code === 'host_disk_full')
      return { state: 'read_only', state_reason: { code, message: what + STILL } };
    const message = `${what}; the operator has an alarm, and Cloudlet retries automatically`;
    return { state: 'error', state_reason: { code, message } };
  }

  /**
   * Where a driver connects, even while the engine is unavailable; default: the engine's usual
   * endpoint. Empty if only the node with the engines knows it, or if the database has no server yet.
   */
  async connection(row: DatabaseRow, password?: string, given?: Endpoint): Promise<Connection> {
    const { engines, lifecycle } = this.#deps;
    const engine = engines.get(row.engine);
    const about = engines.about(row.engine);
    const usual = () => engine.endpoint(lifecycle.inEngine(row));
    // A database of a recovery point has no server until its turn comes.
    const isKnown = this.#deps.isHere !== false && isOpen(row);
    const endpoint = given ?? (await (isKnown ? usual() : usual().catch(() => UNKNOWN)));
    const uri = endpoint.uri(password ?? HIDDEN);
    const isPrivate = about.traits.transport === 'http' || engine.connect !== undefined;
    return {
      uri,
      private_uri: isPrivate && uri !== '' ? privateUri(row, about, { endpoint, uri }) : null,
      host: endpoint.host,
      port: endpoint.port,
      database: row.engine_database,
      username: row.username,
      ...(password === undefined ? {} : { password }),
      tls: endpoint.tls,
    };
  }
}

/**
 * The URI for machines of the account. It has no TLS: the server's certificate is for other names,
 * and the network is private.
 */
function privateUri(
  row: DatabaseRow,
  about: EngineDescription,
  { endpoint: { host, port }, uri }: { readonly endpoint: Endpoint; readonly uri: string },
): string {
  const name = `${row.name}.db.internal`;
  if (about.traits.transport === 'http') return uri.replace(/^\w+:\/\/[^/]+/, `http://${name}`);
  const shownHost = host.includes(':') ? `[${host}]` : host;
  return uri
    .replace(`@${shownHost}:${port}/`, `@${name}:${about.port}/`)
    .replace('sslmode=verify-full&sslrootcert=ca.pem', 'sslmode=require')
    .replace('tlsCAFile=ca.pem', 'tlsInsecure=true');
}

/** The process of PostgreSQL: its settings and who may log in. */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { AppError } from '../../../../platform/errors.ts';
import { writeDurableFile } from '../../../../platform/files.ts';
import { SLOW_MS } from '../../../managed-server/accounts/tenant-logs.ts';
import { programsOrThrow } from '../../../managed-server/database-server.ts';
import { makeServerSecret } from '../../../managed-server/links/server-secret.ts';
import { CERT_FILE, KEY_FILE, type ServerTls } from '../../../managed-server/links/server-tls.ts';
import type { ServerFolders, ServerKind, ServerKindDeps } from '../../../managed-server/managed-server.ts';
import { type DataMaking, giveData, templateName } from '../../../managed-server/programs/data-template.ts';
import { makeFolder, pathInData, RUN } from '../../../managed-server/server-data.ts';
import { hadPort } from '../../../server-port.ts';
import {
  type findPrograms,
  type PostgresqlPrograms,
  speaksTls,
  trustedExtensions,
} from '../postgresql-programs.ts';
import { ADMIN, LOCAL } from '../postgresql-store.ts';
import { DATA, dataMajor, makeData, RECIPE, settleUpgrade, writeNew } from './data-directory.ts';

/** In the server's home. */
const HBA = 'pg_hba.conf';
/** Databases that are locked out, in a file beside the data. */
const SHUT = 'shut';
const MEMORY_MB = 512;
/**
 * Unauthenticated clients use connections, too: those of the proxy and of the routes past it
 * (server-proxy/), and our own.
 */
const MORE_CONNECTIONS = 400;
/** Data segment of one process: tenants may set work_mem. */
const PROCESS_MB = 384;
const TEMP_FILE_MB = 512;
export const MAX_WAL_MB = 64;

/** The server that all accounts shared: its log has larger pieces, and its users are elsewhere. */
const FOR_US_ALONE = { listen_addresses: '', min_wal_size: '32MB' };

/** Maximum log waiting to be archived; above it, the oldest part is dropped and archiving starts anew. */
export const KEPT_LOG_MB = 128;
const KEEPS_LOG = {
  wal_level: 'replica',
  max_wal_senders: 2,
  max_replication_slots: 2,
  max_slot_wal_keep_size: `${KEPT_LOG_MB}MB`,
};
/** The server needs these to start while it has a slot, which is then dropped. */
const KEEPS_NO_MORE = { ...KEEPS_LOG, max_slot_wal_keep_size: '1MB' };

const NO_NETWORK = { listen_addresses: '' };

/** Collects only if loaded at the server's start. */
const STATISTICS = 'pg_stat_statements';
const STATISTICS_SETTINGS = { shared_preload_libraries: STATISTICS, [`${STATISTICS}.max`]: 1000 };

export class PostgresqlServer implements ServerKind {
  readonly name = 'postgresql';
  readonly title = 'PostgreSQL';
  readonly memoryMb = MEMORY_MB;
  /** Ends sessions and rolls back their transactions. */
  readonly stop = { signal: 'SIGINT', graceMs: 30_000 } as const;
  readonly firstPort: number;
  readonly ping: () => Promise<void>;
  readonly probe: () => Promise<unknown>;
  readonly #deps: ServerKindDeps;
  readonly #find: typeof findPrograms;
  #programs: PostgresqlPrograms | null = null;

  constructor(deps: ServerKindDeps, find: typeof findPrograms) {
    this.#deps = deps;
    this.#find = find;
    this.firstPort = deps.firstPort;
    this.ping = deps.greet;
    this.probe = deps.probe;
  }

  async initialise(folders: ServerFolders, closing: AbortSignal): Promise<void> {
    const { uid, passwordOf, template, processes } = this.#deps;
    await settleUpgrade(folders);
    const made = dataMajor(folders);
    const programs = programsOrThrow(this.title, await this.#find(made));
    this.#programs = programs;
    if (made !== null && made !== programs.major) {
      throw new AppError(
        'engine_unavailable',
        `the data directory is PostgreSQL ${made}, but the programs are PostgreSQL ${programs.major}`,
        {
          hint: `install PostgreSQL ${made} again`,
        },
      );
    }
    makeServerSecret(folders);
    makeFolder(join(folders.home, RUN), uid);
    writeNew(join(folders.home, HBA), hba(this.#deps.tls?.isRequired ?? false));
    writeShut(folders, shutOut(folders));
    this.#deps.tls?.install(folders.home, uid);
    await this.#checkUser();
    if (made !== null) return;
    if (hadPort(folders.keeper)) throw dataGone(folders);
    const make = (making: DataMaking) => makeData({ ...making, processes }, programs);
    const name = templateName(programs.version, RECIPE);
    await giveData(template, name, { making: { folders, uid, passwordOf }, make, closing });
  }

  program({ seen, home }: ServerFolders, port: number) {
    const programs = this.#programs;
    if (programs === null) throw new Error('not initialised');
    const { bin, env, readOnly, major } = programs;
    const settings = Object.entries({
      ...settingsOf({ seen, port, connections: this.#deps.connections ?? 0 }),
      ...tlsSettings(seen, this.#canTls(bin) ? this.#deps.tls : null),
      ...(trustedExtensions(bin, major).includes(STATISTICS) ? STATISTICS_SETTINGS : {}),
      ...(this.#deps.template === null ? FOR_US_ALONE : {}),
      ...(this.#deps.keepsLog ? KEEPS_LOG : hasSlot(home) ? KEEPS_NO_MORE : {}),
      ...(this.#deps.processes.isPrivate ? NO_NETWORK : {}),
    }).flatMap(([name, value]) => ['-c', `${name}=${value}`]);
    return {
      command: '/usr/bin/prlimit',
      args: [
        `--data=${PROCESS_MB * 2 ** 20}`,
        '--',
        join(bin, 'postgres'),
        '-D',
        join(seen, DATA),
        ...settings,
      ],
      env: { ...env, TZ: 'UTC', LANG: 'C.UTF-8' },
      readOnly,
    };
  }

  /** A PostgreSQL without TLS support does not start with it. */
  #canTls(bin: string): boolean {
    return this.#deps.tls?.isRequired || speaksTls(bin);
  }

  /** Throws `engine_unavailable` where every process is root. */
  async #checkUser(): Promise<void> {
    if (!(await this.#deps.processes.isRootSeen())) return;
    throw new AppError(
      'engine_unavailable',
      'PostgreSQL refuses to run as root, and Cloudlet cannot use another user on this host',
      {
        hint: 'Run Cloudlet as an ordinary user, or let root change users (CAP_SETUID, CAP_SETGID, CAP_CHOWN)',
      },
    );
  }
}

/** A server with a stored port had data: no new data is created. */
function dataGone({ home }: ServerFolders): AppError {
  return new AppError('engine_unavailable', 'the data directory of PostgreSQL is missing', {
    hint: `restore ${pathInData(home)}/data in Cloudlet's data directory; a disk may not be mounted`,
  });
}

/** Sets whether a database is locked out over the network; returns whether that changed. */
export function noteShutOut(folders: Omit<ServerFolders, 'seen'>, database: string, isOut: boolean): boolean {
  const before = shutOut(folders);
  if (before.includes(database) === isOut) return false;
  const now = isOut ? [...before, database] : before.filter((name) => name !== database);
  writeDurableFile(join(folders.keeper, SHUT), now.join('\n'), 0o600);
  writeShut(folders, now);
  return true;
}

/** An empty file would not be read. */
function writeShut({ home }: Pick<ServerFolders, 'home'>, databases: readonly string[]): void {
  writeNew(join(home, SHUT), ['template0', ...databases, ''].join('\n'));
}

function shutOut({ keeper }: Pick<ServerFolders, 'keeper'>): readonly string[] {
  const path = join(keeper, SHUT);
  return existsSync(path) ? readFileSync(path, 'utf8').split('\n').filter(Boolean) : [];
}

function hasSlot(home: string): boolean {
  const slots = join(home, DATA, 'pg_replslot');
  return existsSync(slots) && readdirSync(slots).length > 0;
}

/** pg_hba.conf. Folder permissions keep tenants from the socket. */
function hba(isTlsRequired: boolean): string {
  return [
    'local all all scram-sha-256',
    `local replication ${ADMIN} scram-sha-256`,
    `host all ${ADMIN} all reject`,
    `host all +${LOCAL} all reject`,
    `host @${SHUT} all all reject`,
    // Users connect through the proxy, or through rules of the host, from its loopback.
    `${isTlsRequired ? 'hostssl' : 'host'} all all 127.0.0.0/8 scram-sha-256`,
    '',
  ].join('\n');
}

interface Settings {
  readonly seen: string;
  readonly port: number;
  readonly connections: number;
}

function settingsOf({ seen, port, connections }: Settings): Readonly<Record<string, string | number>> {
  return {
    listen_addresses: '127.0.0.1',
    port,
    // Relative to its data, because the path must be short.
    unix_socket_directories: `../${RUN}`,
    unix_socket_permissions: '0777',
    hba_file: join(seen, HBA),
    max_connections: connections + MORE_CONNECTIONS,
    superuser_reserved_connections: 5,
    password_encryption: 'scram-sha-256',
    authentication_timeout: '5s',
    shared_buffers: '16MB',
    temp_file_limit: `${TEMP_FILE_MB}MB`,
    max_wal_size: `${MAX_WAL_MB}MB`,
    min_wal_size: '4MB',
    // Otherwise a server that once wrote much would keep that space forever, uncharged.
    wal_recycle: 'off',
    wal_level: 'minimal',
    max_wal_senders: 0,
    max_worker_processes: 4,
    max_logical_replication_workers: 0,
    // Their shared memory would count towards the total limit.
    max_parallel_workers_per_gather: 0,
    jit: 'off',
    // A tenant may turn it on, and its library is not on every host: then it would fail statements.
    jit_provider: 'none',
    idle_in_transaction_session_timeout: '10min',
    client_connection_check_interval: '10s',
    tcp_keepalives_idle: 60,
    tcp_keepalives_interval: 15,
    // Readable by its account; excludes failed statements, which may contain a password.
    log_min_messages: 'error',
    log_line_prefix: '%m [%p] %q%u@%d %e ',
    log_min_error_statement: 'panic',
    log_min_duration_statement: SLOW_MS,
    log_checkpoints: 'off',
    log_timezone: 'UTC',
    timezone: 'UTC',
  };
}

function tlsSettings(seen: string, tls: ServerTls | null): Readonly<Record<string, string>> {
  if (tls === null) return {};
  return {
    ssl: 'on',
    ssl_cert_file: join(seen, CERT_FILE),
    ssl_key_file: join(seen, KEY_FILE),
  };
}

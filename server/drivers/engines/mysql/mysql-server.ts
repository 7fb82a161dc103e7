/** The process of MariaDB: its settings and its first data. */
import * as fs from 'node:fs';
import { join } from 'node:path';
import { AppError } from '../../../platform/errors.ts';
import { syncFolder } from '../../../platform/files.ts';
import { removeTree } from '../../host-process/foreign-files.ts';
import { programsOrThrow } from '../../managed-server/database-server.ts';
import { makeServerSecret } from '../../managed-server/links/server-secret.ts';
import { CERT_FILE, KEY_FILE, type ServerTls } from '../../managed-server/links/server-tls.ts';
import type { ServerFolders, ServerKind, ServerKindDeps } from '../../managed-server/managed-server.ts';
import { type DataMaking, giveData, templateName } from '../../managed-server/programs/data-template.ts';
import {
  dataSeries,
  keepSeries,
  makeFolder,
  pathInData,
  processName,
  RUN,
  runMaker,
} from '../../managed-server/server-data.ts';
import { hadPort } from '../../server-port.ts';
import { nativeHash } from './dialects.ts';
import { findPrograms, type MysqlPrograms } from './mysql-programs.ts';
import { ADMIN } from './mysql-store.ts';

export const SOCKET = 'mysqld.sock';
/** In the server's home. */
export const DATA = 'data';
/** Folders of tenants' databases. */
const TENANTS = /^[dt]_/;
/** An empty folder for `secure_file_priv`; nobody has the FILE privilege. */
const NOTHING = 'none';
const MEMORY_MB = 512;
/** Connections beyond the tenants': unauthenticated ones (server-proxy/), and ours. */
const MORE_CONNECTIONS = 400;
/** The file with temporary tables of all sessions; grows by 64 MiB. */
const TEMPORARY_TABLES = 'ibtmp1:12M:autoextend:max:2G';
/** The first tables of a server, without its help and its schema `sys`. */
const SYSTEM_TABLES = ['mysql_system_tables.sql', 'mysql_system_tables_data.sql'];

/** The server that all accounts shared has no users any more. */
const FOR_US_ALONE = ['--skip-networking'];
/** Separate undo files, which can shrink. */
const OWN_UNDO = ['--innodb-undo-tablespaces=2', '--innodb-undo-log-truncate=ON'];

export class MysqlServer implements ServerKind {
  readonly name = 'mysql';
  readonly title = 'MariaDB';
  readonly memoryMb = MEMORY_MB;
  readonly stop = { signal: 'SIGTERM', graceMs: 30_000 } as const;
  readonly firstPort: number;
  readonly ping: () => Promise<void>;
  readonly probe: () => Promise<unknown>;
  readonly #deps: ServerKindDeps;
  #programs: MysqlPrograms | null = null;

  constructor(deps: ServerKindDeps) {
    this.#deps = deps;
    this.firstPort = deps.firstPort;
    this.ping = deps.greet;
    this.probe = deps.probe;
  }

  async initialise(folders: ServerFolders, closing: AbortSignal): Promise<void> {
    const { template, passwordOf, uid, tls } = this.#deps;
    const programs = programsOrThrow(this.title, await findPrograms(dataSeries(folders)));
    this.#programs = programs;
    makeServerSecret(folders);
    tls?.install(folders.home, uid);
    for (const name of [RUN, NOTHING]) makeFolder(join(folders.home, name), uid);
    if (dataSeries(folders) !== null) return;
    assertNobodysData(folders);
    await removeTree(join(folders.home, DATA));
    const make = (making: DataMaking) => this.#makeData(making, programs);
    const name = templateName(programs.version, [
      ...makingWords(programs, ''),
      firstStatements(programs, ''),
    ]);
    await giveData(template, name, { making: { folders, uid, passwordOf }, make, closing });
    keepSeries(folders, programs.series);
  }

  program({ seen }: ServerFolders, port: number) {
    const programs = this.#programs;
    if (programs === null) throw new Error('not initialised');
    return {
      command: programs.server,
      args: [
        ...commonWords(programs, join(seen, DATA)),
        ...settingsOf({ seen, port, connections: this.#deps.connections ?? 0, tls: this.#deps.tls }),
        ...(this.#deps.template === null ? FOR_US_ALONE : OWN_UNDO),
        ...(this.#deps.processes.isPrivate ? FOR_US_ALONE : []),
      ],
      env: { ...programs.env, TZ: 'UTC' },
      readOnly: programs.readOnly,
    };
  }

  /** Created under another name first, so that incomplete data is never used. */
  async #makeData({ folders, uid, passwordOf }: DataMaking, programs: MysqlPrograms): Promise<void> {
    const { home, seen } = folders;
    const { processes } = this.#deps;
    const fresh = join(home, `${DATA}.new`);
    await removeTree(fresh);
    await removeTree(join(home, DATA));
    makeFolder(fresh, uid);
    await runMaker(
      processes,
      {
        name: processName('mysql-bootstrap', home),
        command: programs.server,
        args: makingWords(programs, join(seen, `${DATA}.new`)),
        env: { ...programs.env, TZ: 'UTC' },
        uid,
        folder: home,
        readOnly: programs.readOnly,
        memoryMb: MEMORY_MB,
      },
      firstStatements(programs, passwordOf(ADMIN)),
    );
    fs.renameSync(fresh, join(home, DATA));
    syncFolder(home);
    keepSeries(folders, programs.series);
  }
}

function makingWords(programs: MysqlPrograms, data: string): string[] {
  return [
    ...commonWords(programs, data),
    ...OWN_UNDO,
    ...['--bootstrap', '--silent-startup', '--log-warnings=0'],
  ];
}

/** One statement per line. The initial users of a server are removed. */
function firstStatements({ share }: MysqlPrograms, password: string): string {
  const hash = nativeHash(password);
  const administrator = JSON.stringify({
    access: 'ALL',
    plugin: 'mysql_native_password',
    authentication_string: hash,
  }).replace('"ALL"', '18446744073709551615');
  return [
    'CREATE DATABASE mysql;',
    'USE mysql;',
    'SET @auth_root_socket = NULL;',
    ...SYSTEM_TABLES.map((name) => fs.readFileSync(join(share, name), 'utf8')),
    "DELETE FROM global_priv WHERE User <> 'mariadb.sys';",
    'DELETE FROM proxies_priv;',
    `INSERT INTO global_priv VALUES ('localhost', '${ADMIN}', '${administrator}');`,
    '',
  ].join('\n');
}

/** Throws `engine_unavailable` if tenants have, or had, data there. */
function assertNobodysData({ home, keeper }: ServerFolders): void {
  const data = join(home, DATA);
  const isUsed = fs.existsSync(data) && fs.readdirSync(data).some((name) => TENANTS.test(name));
  if (!isUsed && !hadPort(keeper)) return;
  const what = isUsed
    ? 'the version of the data directory of MariaDB is unknown'
    : 'the data directory of MariaDB is missing';
  throw new AppError('engine_unavailable', what, {
    hint: isUsed
      ? `write the version of the MariaDB that created the data, such as 10.11, to ${pathInData(keeper)}/series`
      : `restore ${pathInData(home)}/data in Cloudlet's data directory; a disk may not be mounted`,
  });
}

/** Folder of one database. */
export function databaseFolder({ home }: Pick<ServerFolders, 'home'>, database: string): string {
  return join(home, DATA, database);
}

function commonWords({ share }: MysqlPrograms, data: string): string[] {
  return [
    '--no-defaults',
    `--datadir=${data}`,
    `--lc-messages-dir=${share}`,
    `--character-sets-dir=${join(share, 'charsets')}`,
    '--plugin-dir=/nonexistent',
    '--innodb-buffer-pool-size=64M',
    '--innodb-log-file-size=16M',
    // Required by the server for root.
    ...(process.getuid?.() === 0 ? ['--user=root'] : []),
  ];
}

interface Settings {
  readonly seen: string;
  readonly port: number;
  readonly connections: number;
  readonly tls: ServerTls | null;
}

function tlsWords({ seen, tls }: Pick<Settings, 'seen' | 'tls'>): string[] {
  if (tls === null) return [];
  return [
    `--ssl-cert=${join(seen, CERT_FILE)}`,
    `--ssl-key=${join(seen, KEY_FILE)}`,
    '--tls-version=TLSv1.2,TLSv1.3',
    ...(tls.isRequired ? ['--require-secure-transport=ON'] : []),
  ];
}

function settingsOf(at: Settings) {
  return [
    ...tlsWords(at),
    // Users connect through the proxy, or through rules of the host.
    '--bind-address=127.0.0.1',
    `--port=${at.port}`,
    // Relative to its data, because the path must be short.
    `--socket=../${RUN}/${SOCKET}`,
    '--pid-file=pid',
    // Counted, like everything in its home.
    `--tmpdir=${join(at.seen, RUN)}`,
    `--secure-file-priv=${join(at.seen, NOTHING)}`,
    '--skip-name-resolve',
    '--local-infile=0',
    '--skip-symbolic-links',
    '--event-scheduler=ON',
    '--enforce-storage-engine=InnoDB',
    '--performance-schema=OFF',
    '--userstat=ON',
    '--character-set-server=utf8mb4',
    '--collation-server=utf8mb4_general_ci',
    '--default-time-zone=+00:00',
    `--max-connections=${at.connections + MORE_CONNECTIONS}`,
    '--connect-timeout=5',
    // A locked table does not delay a dump or our changes longer.
    '--lock-wait-timeout=30',
    '--max-allowed-packet=64M',
    '--key-buffer-size=1M',
    '--aria-pagecache-buffer-size=8M',
    `--innodb-temp-data-file-path=${TEMPORARY_TABLES}`,
    // The maximum that a session may set.
    ...['sort-buffer-size', 'join-buffer-size', 'read-rnd-buffer-size', 'read-buffer-size'].map(
      (name) => `--maximum-${name}=16M`,
    ),
    '--maximum-tmp-table-size=32M',
    '--maximum-max-heap-table-size=32M',
    '--max-session-mem-used=256M',
    '--maximum-max-session-mem-used=256M',
    // Refused logins and interrupted sessions, for its account.
    '--log-warnings=2',
  ];
}

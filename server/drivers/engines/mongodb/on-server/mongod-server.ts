/**
 * A `mongod` as a managed server. It was never run with a real one, because none is available: its
 * options follow MongoDB's manual, and the tests use a stand-in.
 */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { AppError } from '../../../../platform/errors.ts';
import { removeTree } from '../../../host-process/foreign-files.ts';
import { makeServerSecret } from '../../../managed-server/links/server-secret.ts';
import type { ServerFolders, ServerKind } from '../../../managed-server/managed-server.ts';
import { dataSeries, keepSeries, makeFolder } from '../../../managed-server/server-data.ts';
import { hasListener } from '../../../server-port.ts';
import type { Mongod } from './mongod-program.ts';

/** In the server's home. */
const DATA = 'data';
/** Present in the data of every version. */
const MARK = 'WiredTiger';
const MEMORY_MB = 2048;
/** The minimum; other memory is for connections and queries. */
const CACHE_GB = '0.25';
const MAX_CONNECTIONS = '2000';

export interface MongodServerDeps {
  readonly uid: number | null;
  readonly firstPort: number;
  /** Throws `engine_unavailable`. */
  readonly program: () => Promise<Mongod>;
  /** Rejects until the administrator can log in. For new data, the administrator is created first. */
  readonly greet: (isNew: boolean) => Promise<void>;
  /** See ServerKind. */
  readonly probe: () => Promise<unknown>;
}

export class MongodServer implements ServerKind {
  readonly name = 'mongodb';
  readonly title = 'MongoDB';
  readonly memoryMb = MEMORY_MB;
  readonly instead = 'set CLOUDLET_MONGODB_SERVER=built-in if that server has no databases';
  readonly stop = { signal: 'SIGTERM', graceMs: 60_000 } as const;
  readonly firstPort: number;
  readonly #deps: MongodServerDeps;
  #mongod: Mongod | null = null;

  constructor(deps: MongodServerDeps) {
    this.#deps = deps;
    this.firstPort = deps.firstPort;
  }

  async initialise(folders: ServerFolders): Promise<void> {
    this.#mongod = await this.#deps.program();
    makeServerSecret(folders);
    const data = join(folders.home, DATA);
    if (dataSeries(folders) === null) {
      // Without an administrator it is empty; one created by an earlier attempt is removed with it.
      await removeTree(data);
      makeFolder(data, this.#deps.uid);
    } else if (!existsSync(join(data, MARK))) {
      throw new AppError('engine_unavailable', `the MongoDB data directory ${data} is empty`, {
        hint: 'restore its data; the server is not started, because it would create an empty data directory',
      });
    }
  }

  program({ seen }: ServerFolders, port: number) {
    const mongod = this.#mongod;
    if (mongod === null) throw new Error('not initialised');
    const { command, readOnly } = mongod;
    return { command, args: mongodWords(join(seen, DATA), port), env: { LC_ALL: 'C', TZ: 'UTC' }, readOnly };
  }

  probe(): Promise<unknown> {
    return this.#deps.probe();
  }

  async ping(folders: ServerFolders, port: number): Promise<void> {
    // The driver would wait for seconds before reporting that nobody listens.
    if (!(await hasListener(port))) throw new Error(`no program listens on port ${port} yet`);
    const isNew = dataSeries(folders) === null;
    await this.#deps.greet(isNew);
    if (!isNew) return;
    const { series } = this.#mongod ?? (await this.#deps.program());
    keepSeries(folders, series);
  }
}

/** Listens only on loopback, requires log-in, and disables server-side JavaScript. */
export function mongodWords(data: string, port: number): string[] {
  return [
    '--dbpath',
    data,
    '--port',
    String(port),
    '--bind_ip',
    '127.0.0.1',
    '--nounixsocket',
    '--auth',
    '--noscripting',
    '--setParameter',
    'authenticationMechanisms=SCRAM-SHA-256',
    '--wiredTigerCacheSizeGB',
    CACHE_GB,
    '--maxConns',
    MAX_CONNECTIONS,
    '--setParameter',
    'diagnosticDataCollectionEnabled=false',
  ];
}

/** Finds MariaDB's programs: those fetched by the set-up, else those of this host. */
import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { patienceMs } from '../../../platform/host/host-facts.ts';
import {
  compareVersions,
  type NoPrograms,
  unpackedPrograms,
  whyNoPrograms,
} from '../../managed-server/programs/unpacked-programs.ts';

const run = promisify(execFile);
const NAME = 'mariadb';
const ASK_MS = 10_000;
/** Distributions differ. */
const SERVERS = ['usr/sbin/mariadbd', 'usr/libexec/mariadbd', 'usr/bin/mariadbd'];
const SHARES = ['usr/share/mysql', 'usr/share/mariadb'];
/** Oldest version whose client may load an untrusted dump (`--sandbox`). */
const OLDEST = '10.11.8';

/** Debian's folders of authentication plugins for clients. */
const PLUGINS = ['x86_64', 'aarch64'].map((arch) => `usr/lib/${arch}-linux-gnu/libmariadb3/plugin`);

export interface MysqlClientPrograms {
  /** `10.11.19`. */
  readonly version: string;
  readonly client: string;
  readonly dump: string;
  /** Null: the clients know the folder themselves. */
  readonly plugins: string | null;
  readonly env: Readonly<Record<string, string>>;
  /** Paths that its processes must see, besides the system's folders. */
  readonly readOnly: readonly string[];
}

export interface MysqlPrograms extends MysqlClientPrograms {
  /** `10.11`: data of one series does not fit another. */
  readonly series: string;
  readonly server: string;
  /** Folder of messages, character sets and initial tables. */
  readonly share: string;
}

/** Checks again each time: packages come and go while we run. `series`: of the existing data; null: any. */
export async function findPrograms(
  series: string | null,
  folder?: string,
): Promise<MysqlPrograms | NoPrograms> {
  const fits = (found: MysqlPrograms) => series === null || found.series === series;
  for await (const clients of allClients(folder)) {
    const [found] = withServer(clients).filter(fits);
    if (found !== undefined) return found;
  }
  return whyNone(series);
}

/** For an operator's server: the newest clients. */
export async function findClients(folder?: string): Promise<MysqlClientPrograms | NoPrograms> {
  for await (const clients of allClients(folder)) return clients;
  const { reason, fix } = whyNoPrograms(NAME);
  return { reason, fix: `${fix}; or install MariaDB's clients: apt-get install mariadb-client` };
}

/** The set-up's own come first. */
async function* allClients(folder?: string): AsyncGenerator<MysqlClientPrograms & { readonly root: string }> {
  const isNew = ({ version }: MysqlClientPrograms) => compareVersions(version, OLDEST) >= 0;
  for (const { version, root, env } of unpackedPrograms(NAME, folder))
    yield* clientsIn(root, { version, env, readOnly: [root] }).filter(isNew);
  yield* (await hostClients()).filter(isNew);
}

async function hostClients() {
  const [found] = clientsIn('/', { version: '', env: {}, readOnly: [] });
  if (found === undefined) return [];
  try {
    const { stdout } = await run(found.client, ['--version'], {
      timeout: patienceMs(ASK_MS),
      env: { LANG: 'C' },
    });
    const version = / (\d+(?:\.\d+)+)-MariaDB/.exec(stdout)?.[1];
    return version === undefined ? [] : [{ ...found, version }];
  } catch {
    return [];
  }
}

const inRoot = (root: string, paths: readonly string[]) =>
  paths.map((path) => join(root, path)).find(existsSync);

/** Empty if a part is missing. */
function clientsIn(root: string, how: Pick<MysqlClientPrograms, 'version' | 'env' | 'readOnly'>) {
  const client = inRoot(root, ['usr/bin/mariadb']);
  const dump = inRoot(root, ['usr/bin/mariadb-dump']);
  if (!client || !dump) return [];
  const plugins = root === '/' ? null : (inRoot(root, PLUGINS) ?? null);
  return [{ root, client, dump, plugins, ...how }];
}

/** Empty if no server is installed beside them. */
function withServer({ root, ...clients }: MysqlClientPrograms & { readonly root: string }): MysqlPrograms[] {
  const server = inRoot(root, SERVERS);
  const share = inRoot(
    root,
    SHARES.filter((path) => existsSync(join(root, path, 'mysql_system_tables.sql'))),
  );
  if (!server || !share) return [];
  return [{ ...clients, series: clients.version.split('.').slice(0, 2).join('.'), server, share }];
}

function whyNone(series: string | null): NoPrograms {
  if (series !== null) {
    return {
      reason: `the data was created by MariaDB ${series}, which is no longer installed`,
      fix: `install MariaDB ${series} again, or copy build/programs from the Cloudlet that created the data`,
    };
  }
  const why = whyNoPrograms(NAME);
  if (why.preparing !== undefined) return why;
  const { reason, fix } = why;
  return { reason, fix: `${fix}; or install MariaDB ${OLDEST} or newer: apt-get install mariadb-server` };
}

/** Finds the programs of MariaDB: those that the set-up fetched, else those of this host. */
import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import {
  compareVersions,
  type NoPrograms,
  unpackedPrograms,
  whyNoPrograms,
} from '../managed-server/unpacked-programs.ts';

const run = promisify(execFile);
const NAME = 'mariadb';
const ASK_MS = 10_000;
/** Distributions differ. */
const SERVERS = ['usr/sbin/mariadbd', 'usr/libexec/mariadbd', 'usr/bin/mariadbd'];
const SHARES = ['usr/share/mysql', 'usr/share/mariadb'];
/** The first whose client may be given a stranger's dump (`--sandbox`). */
const OLDEST = '10.11.8';

export interface MysqlPrograms {
  /** `10.11.19`. */
  readonly version: string;
  /** `10.11`: data of one are not for another. */
  readonly series: string;
  readonly server: string;
  readonly client: string;
  readonly dump: string;
  /** Of messages, character sets and the tables that a server begins with. */
  readonly share: string;
  readonly env: Readonly<Record<string, string>>;
  /** What a process must see to run them, besides the system's folders. */
  readonly readOnly: readonly string[];
}

/** Asks again each time: packages come and go while we run. `series`: of the data there are; null: any. */
export async function findPrograms(
  series: string | null,
  folder?: string,
): Promise<MysqlPrograms | NoPrograms> {
  const ours = unpackedPrograms(NAME, folder).flatMap(({ version, root, env }) =>
    layout(root, version).map((found) => ({ ...found, env, readOnly: [root] })),
  );
  const fits = (found: MysqlPrograms) =>
    (series === null || found.series === series) && compareVersions(found.version, OLDEST) >= 0;
  return ours.find(fits) ?? (await hostPrograms()).find(fits) ?? whyNone(series);
}

async function hostPrograms(): Promise<MysqlPrograms[]> {
  const [found] = layout('/', '');
  if (found === undefined) return [];
  try {
    const { stdout } = await run(found.server, ['--version'], { timeout: ASK_MS, env: { LANG: 'C' } });
    const version = /Ver (\d+(?:\.\d+)+)-MariaDB/.exec(stdout)?.[1];
    return version === undefined ? [] : layout('/', version);
  } catch {
    return [];
  }
}

/** Empty when something of it is missing. */
function layout(root: string, version: string): MysqlPrograms[] {
  const first = (paths: readonly string[]) => paths.map((path) => join(root, path)).find(existsSync);
  const server = first(SERVERS);
  const share = first(SHARES.filter((path) => existsSync(join(root, path, 'mysql_system_tables.sql'))));
  const client = first(['usr/bin/mariadb']);
  const dump = first(['usr/bin/mariadb-dump']);
  if (!server || !share || !client || !dump) return [];
  const series = version.split('.').slice(0, 2).join('.');
  return [{ version, series, server, client, dump, share, env: {}, readOnly: [] }];
}

function whyNone(series: string | null): NoPrograms {
  if (series !== null) {
    return {
      reason: `its data are of MariaDB ${series}, whose programs are no longer here`,
      fix: `install MariaDB ${series} again, or copy build/programs of the Cloudlet that made them`,
    };
  }
  const { reason, fix } = whyNoPrograms(NAME);
  return { reason, fix: `${fix}; or install MariaDB ${OLDEST} or newer: apt-get install mariadb-server` };
}

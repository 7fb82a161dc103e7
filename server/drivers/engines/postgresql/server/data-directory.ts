/** The data of our PostgreSQL server: creation and upgrade to another major version. */
import * as fs from 'node:fs';
import { join } from 'node:path';
import { systemClock } from '../../../../platform/clock.ts';
import { syncFolder, writeDurableFile } from '../../../../platform/files.ts';
import { removeName, removeTree } from '../../../host-process/foreign-files.ts';
import type { ForeignProgram } from '../../../host-process/foreign-program.ts';
import type { HostProcesses } from '../../../host-process/host-processes.ts';
import type { ServerFolders } from '../../../managed-server/managed-server.ts';
import { giveTree } from '../../../managed-server/processes/server-owner.ts';
import type { DataMaking } from '../../../managed-server/programs/data-template.ts';
import { processName, runMaker } from '../../../managed-server/server-data.ts';
import { scramVerifier } from '../../../scram-keys.ts';
import type { PostgresqlPrograms } from '../postgresql-programs.ts';
import { ADMIN } from '../postgresql-store.ts';

/** In the server's home. */
export const DATA = 'data';
/** Incomplete files, never used as data. */
const MADE = `${DATA}.new`;
/** Complete files of the new version, about to replace the old ones. */
const WHOLE = `${DATA}.upgraded`;
/** Files of the previous version, kept for a while. */
const OLD = `${DATA}.old`;
const PASSWORD_FILE = 'password';
/** File in the keeper: statistics must be gathered, because an upgrade drops them. */
const ANALYSE = 'analyse';
/** How initial data is created. */
export const RECIPE: readonly string[] = [
  ...['--auth=scram-sha-256', '--data-checksums', '--encoding=UTF8', '--locale=C.UTF-8'],
  // Each server keeps several segments.
  '--wal-segsize=1',
];
const MEMORY_MB = 2048;
const KEEP_DAYS = 7;
const DAY_MS = 86_400_000;

export interface ClusterMaking extends DataMaking {
  readonly processes: HostProcesses;
}

/** Major version of the data; null: no data. */
export function dataMajor({ home }: Pick<ServerFolders, 'home'>): number | null {
  try {
    return Number.parseInt(fs.readFileSync(join(home, DATA, 'PG_VERSION'), 'latin1'), 10);
  } catch {
    return null;
  }
}

/** Created under another name first, so that incomplete data is never used. */
export async function makeData(making: ClusterMaking, programs: PostgresqlPrograms): Promise<void> {
  const { home } = making.folders;
  await makeBeside(making, programs);
  fs.renameSync(join(home, MADE), join(home, DATA));
  syncFolder(home);
}

async function makeBeside(making: ClusterMaking, programs: PostgresqlPrograms): Promise<void> {
  const { processes, passwordOf, folders } = making;
  const { home, seen } = folders;
  const uid = await makerUser(making);
  await removeTree(join(home, MADE));
  writeNew(join(home, PASSWORD_FILE), `${await scramVerifier(passwordOf(ADMIN))}\n`);
  const words = [
    ...['-D', join(seen, MADE), '--username', ADMIN, '--pwfile', join(seen, PASSWORD_FILE)],
    ...RECIPE,
  ];
  if (uid !== making.uid) await giveTree(home, uid);
  const what = { uid, folder: home, readOnly: programs.readOnly, memoryMb: MEMORY_MB };
  await runMaker(processes, {
    ...what,
    name: processName('postgresql-initdb', home),
    command: join(programs.bin, 'initdb'),
    args: words,
    env: { ...programs.env, TZ: 'UTC' },
  }).finally(() => removeName(join(home, PASSWORD_FILE)));
  if (uid !== making.uid) await giveTree(home, making.uid);
}

/**
 * Copies data of a cleanly stopped server into new data of another version, which then replaces it;
 * the old data is kept for KEEP_DAYS. If it fails, nothing has changed.
 */
export async function upgradeData(
  making: ClusterMaking,
  { from, to }: { readonly from: PostgresqlPrograms; readonly to: PostgresqlPrograms },
): Promise<void> {
  const { processes, passwordOf, folders } = making;
  const { home, seen, keeper } = folders;
  await makeBeside(making, to);
  const uid = await makerUser(making);
  if (uid !== making.uid) await giveTree(home, uid);
  const program: Omit<ForeignProgram, 'network'> = {
    name: processName('postgresql-upgrade', home),
    command: join(to.bin, 'pg_upgrade'),
    args: [
      ...['--old-bindir', from.bin, '--new-bindir', to.bin, '--username', ADMIN],
      ...['--old-datadir', join(seen, DATA), '--new-datadir', join(seen, MADE), '--socketdir', seen],
    ],
    env: { ...joined(to.env, from.env), PGPASSWORD: passwordOf(ADMIN), TZ: 'UTC', LANG: 'C.UTF-8' },
    uid,
    folder: home,
    readOnly: [...new Set([...to.readOnly, ...from.readOnly])],
    memoryMb: MEMORY_MB,
  };
  await runMaker(processes, program).finally(async () => {
    if (uid !== making.uid) await giveTree(home, making.uid);
  });
  await removeTree(join(home, OLD));
  fs.renameSync(join(home, MADE), join(home, WHOLE));
  writeDurableFile(join(keeper, ANALYSE), '', 0o600);
  syncFolder(home);
  fs.renameSync(join(home, DATA), join(home, OLD));
  await settleUpgrade(folders);
}

/** Finishes an upgrade that a crash interrupted, and removes old data when due. */
export async function settleUpgrade(
  { home }: Pick<ServerFolders, 'home'>,
  now = systemClock.now(),
): Promise<void> {
  const [data, whole, old] = [DATA, WHOLE, OLD].map((name) => join(home, name)) as [string, string, string];
  if (!fs.existsSync(data) && fs.existsSync(whole) && fs.existsSync(old)) {
    fs.renameSync(whole, data);
    syncFolder(home);
  }
  // The rename was the last change of the old directory.
  const renamedMs = fs.statSync(old, { throwIfNoEntry: false })?.ctimeMs;
  if (renamedMs !== undefined && renamedMs < now - KEEP_DAYS * DAY_MS) await removeTree(old);
}

/** Whether statistics must be gathered: true once after an upgrade. */
export function takeAnalysis({ keeper }: Pick<ServerFolders, 'keeper'>): boolean {
  const path = join(keeper, ANALYSE);
  if (!fs.existsSync(path)) return false;
  fs.rmSync(path);
  return true;
}

/** Libraries of both versions, because all programs share one environment. */
function joined(
  one: Readonly<Record<string, string>>,
  other: Readonly<Record<string, string>>,
): Record<string, string> {
  const paths = [one.LD_LIBRARY_PATH, other.LD_LIBRARY_PATH].filter((path) => path !== undefined);
  return paths.length === 0 ? { ...one } : { ...one, LD_LIBRARY_PATH: paths.join(':') };
}

/** initdb needs its user's name. Without a namespace that provides one, `nobody` runs it. */
async function makerUser({ uid, processes }: ClusterMaking): Promise<number | null> {
  if (uid === null || (await processes.isolation()).hasView) return uid;
  const nobody = /^nobody:[^:]*:(\d+):/m.exec(fs.readFileSync('/etc/passwd', 'latin1'))?.[1];
  return nobody === undefined ? uid : Number(nobody);
}

/** The folder is not ours: anything with that name, even a link, is removed first. */
export function writeNew(path: string, content: string): void {
  removeName(path);
  fs.writeFileSync(path, content, { flag: 'wx', mode: 0o644 });
  // Whatever the umask.
  fs.chmodSync(path, 0o644);
}

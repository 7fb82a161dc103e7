/** The data directory of `cloudlet dev`: temporary and removed at the end, unless named or kept. */
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { type Config, inheritedEnvironment, loadConfig } from '../config/config.ts';
import { lockDirectory } from '../drivers/directory-lock.ts';
import { livingClouds } from '../drivers/host-network/cloud-claim.ts';
import { systemClock } from '../platform/clock.ts';
import { holdsCloud } from '../platform/data-directory.ts';
import { writeDurableFile } from '../platform/files.ts';

/** Names of temporary directories: with the process id, and six more characters. */
const NAME = /^cloudlet-dev-(\d+)-\w{6}$/;
const KEY_FILE = 'dev.key';
/** A young directory may belong to a process in another container that has not locked it yet. */
const YOUNG_MS = 60_000;
/** User ids and networks of development clouds, different from the defaults of other clouds. */
const FIRST_UID = 620_000_000;
const USERS_EACH = 1_100_000;
const UID_RANGES = 17;
const NETWORKS = 31 * 64;
/** Settings that also apply to `cloudlet dev`. Others could lead to the data of another cloud. */
const KEPT_SETTINGS = ['CLOUDLET_LOG_LEVEL', 'CLOUDLET_LOG_FORMAT', 'CLOUDLET_VM_ACCEL'];

export interface DevDirectory {
  readonly path: string;
  /** True: it is removed at the end. */
  readonly isTemporary: boolean;
}

/** `named`: the value of --data-dir. */
export function openDevDirectory(named: string | undefined, isKept: boolean): DevDirectory {
  if (named !== undefined) return { path: resolve(named), isTemporary: false };
  const name = isKept ? 'cloudlet-kept-' : `cloudlet-dev-${process.pid}-`;
  return { path: mkdtempSync(join(tmpdir(), name)), isTemporary: !isKept };
}

/**
 * The key from an earlier `cloudlet dev` for this cloud; undefined: there is no cloud yet. Throws
 * for another cloud: its administrator would get our key, which is public.
 */
export function earlierKey(dataDir: string): string | undefined {
  if (!holdsCloud(dataDir)) return undefined;
  try {
    return readFileSync(join(dataDir, KEY_FILE), 'utf8');
  } catch {
    throw new Error(
      `cloudlet dev did not create the cloud in ${dataDir}, and would replace its administrator's key: choose an ` +
        'empty directory, and start from a recovery point of that cloud with --from',
    );
  }
}

/** Call once the cloud runs: marks the directory as created by cloudlet dev. */
export function keepKey(dataDir: string, key: string): void {
  writeDurableFile(join(dataDir, KEY_FILE), key, 0o600);
}

/** The settings of a cloud on `dataDir`, on free ports of loopback, whose administrator has this key. */
export async function devConfig(dataDir: string, adminKey: string): Promise<Config> {
  const inherited = inheritedEnvironment();
  const given = KEPT_SETTINGS.filter((name) => inherited[name] !== undefined);
  const [postgresql, mysql, mongodb] = await freePorts(3);
  const uidBase = freeUidBase();
  const network = process.pid % NETWORKS;
  return loadConfig({
    CLOUDLET_LOG_LEVEL: 'error',
    ...Object.fromEntries(given.map((name) => [name, inherited[name]])),
    CLOUDLET_DATA_DIR: dataDir,
    CLOUDLET_PORT: '0',
    CLOUDLET_DATA_PORT: '0',
    CLOUDLET_ADMIN_KEY: adminKey,
    CLOUDLET_POSTGRESQL_PORT: String(postgresql),
    CLOUDLET_MYSQL_PORT: String(mysql),
    CLOUDLET_MONGODB_PORT: String(mongodb),
    CLOUDLET_PUBLISHED_PORTS: 'off',
    CLOUDLET_VM_POOL: `127.${96 + (network >> 6)}.${(network & 63) * 4}.0/22`,
    CLOUDLET_VM_UID_BASE: String(uidBase),
    CLOUDLET_DATABASE_UID_BASE: String(uidBase + USERS_EACH),
  });
}

/**
 * The first range of user ids that no running cloud of this host has. Clouds begin the search at
 * different ranges.
 */
function freeUidBase(): number {
  const taken = new Set(livingClouds()?.map((cloud) => cloud.uidBase));
  const ranges = Array.from(
    { length: UID_RANGES },
    (_, i) => FIRST_UID + ((process.pid + i) % UID_RANGES) * 2 * USERS_EACH,
  );
  const [first = FIRST_UID] = ranges;
  return ranges.find((base) => !taken.has(base)) ?? first;
}

async function freePorts(count: number): Promise<number[]> {
  const servers = await Promise.all(
    Array.from({ length: count }, async () => {
      const server = createServer();
      await new Promise<void>((listening, failed) =>
        server.once('error', failed).listen(0, '127.0.0.1', listening),
      );
      return server;
    }),
  );
  const ports = servers.map((server) => (server.address() as { port: number }).port);
  await Promise.all(servers.map((server) => new Promise((closed) => server.close(closed))));
  return ports;
}

/**
 * Removes temporary directories of killed `cloudlet dev` processes. Returns those with running
 * processes: machines outlive the process of their cloud.
 */
export function sweepDevDirectories(): string[] {
  const left = readdirSync(tmpdir())
    .filter((name) => isAbandoned(name))
    .map((name) => join(tmpdir(), name))
    .filter((path) => {
      const found = statSync(path, { throwIfNoEntry: false });
      const isOld = found !== undefined && systemClock.now() - found.mtimeMs > YOUNG_MS;
      return isOld && found.isDirectory() && found.uid === process.getuid?.();
    });
  if (left.length === 0) return [];
  const commands = runningCommands();
  const isUsed = (path: string) => isLocked(path) || commands.some((command) => command.includes(path));
  for (const path of left) if (!isUsed(path)) rmSync(path, { recursive: true, force: true });
  return left.filter(isUsed);
}

/** A cloud in another container has no process here, but a lock. */
function isLocked(path: string): boolean {
  try {
    lockDirectory(path).release();
    return false;
  } catch {
    return true;
  }
}

/** The name contains the pid of the process that made it. */
function isAbandoned(name: string): boolean {
  const [, pid] = NAME.exec(name) ?? [];
  return pid !== undefined && !existsSync(`/proc/${pid}`);
}

/** The command line of each process that can be read. */
function runningCommands(): string[] {
  return readdirSync('/proc').flatMap((pid) => {
    try {
      return /^\d+$/.test(pid) ? [readFileSync(`/proc/${pid}/cmdline`, 'utf8')] : [];
    } catch {
      return [];
    }
  });
}

/** Tables of direct routes on this host, and which belong to ended clouds. */
import { createHash } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { isCode } from '../../platform/files.ts';
import { commentIn, type LivingCloud, livingClouds, ownerOf } from '../host-network/cloud-claim.ts';
import { nft } from '../host-network/host-tool.ts';
import { filesOf, listenersAt } from '../server-port.ts';

export const TABLE_PREFIX = 'cloudlet_databases_';
/** `cloudlet_databases_cld_…_<token>` */
const NAMED = /^cloudlet_databases_.+_([0-9a-f]+)$/;
/** Until November 2026: a hash of the data directory's path, wrong after moving it. */
const BY_PATH = /^cloudlet_databases_([0-9a-f]{12})$/;
const LOCK = 'lock';
const KEY = 'master.key';

export interface RouteTable {
  readonly name: string;
  readonly isAlive: boolean;
  /** The comment of the cloud that placed it; null: an earlier version left none. */
  readonly owner: string | null;
  /** Public ports that it redirects. */
  readonly ports: readonly number[];
  /**
   * The route's cloud no longer runs, and its data directory is gone or belongs to another cloud: it will not
   * return.
   */
  readonly isAbandoned: boolean;
  /** The reason for the verdict, for people. */
  readonly why: string;
}

/**
 * All tables of direct routes of this host. `isBrief`: without owner and ports of living clouds,
 * which need a process each. Rejects with HostToolError.
 */
export async function routeTables({ isBrief = false } = {}): Promise<readonly RouteTable[]> {
  const listed = await nft('list tables ip\n');
  const names = [...listed.matchAll(/^table ip (cloudlet_databases_\S+)$/gm)].map(([, name = '']) => name);
  const living = livingClouds();
  return Promise.all(
    names.map(async (name) => {
      const known = BY_PATH.test(name) ? null : judge(name, living);
      if (isBrief && known?.isAlive === true)
        return { name, owner: null, ports: [], ...known, isAbandoned: false };
      const owner = commentIn(await nft(`list chain ip ${name} others\n`).catch(() => ''));
      const ports = await portsOf(name);
      const verdict = known ?? judgeByPath(name, ports);
      return { name, owner, ports, ...verdict, isAbandoned: !verdict.isAlive && isGone(owner) };
    }),
  );
}

/**
 * Tables of ended clouds that conflict with ours: of this cloud, of one that no longer exists, or
 * redirecting one of our ports. While a killed cloud is down, connections are still redirected to
 * its servers.
 */
export function tablesInTheWay(
  tables: readonly RouteTable[],
  { cloudId, ports }: { readonly cloudId: string; readonly ports: ReadonlySet<number> },
): readonly RouteTable[] {
  const isOwn = (owner: string | null) => owner !== null && ownerOf(owner)?.cloudId === cloudId;
  return tables.filter((table) => {
    const isInTheWay = table.isAbandoned || isOwn(table.owner) || table.ports.some((port) => ports.has(port));
    return !table.isAlive && isInTheWay;
  });
}

/** Removes the table; no error if missing. */
export function removalOf(table: string): string {
  return `table ip ${table}\ndelete table ip ${table}\n`;
}

type Verdict = Pick<RouteTable, 'isAlive' | 'why'>;

function judge(name: string, living: readonly LivingCloud[] | null): Verdict {
  const token = NAMED.exec(name)?.[1];
  if (token === undefined || living === null)
    return { isAlive: true, why: 'the cloud of the rules is unknown' };
  const isAlive = living.some((cloud) => cloud.token === token);
  return { isAlive, why: isAlive ? 'its cloud runs' : 'its cloud no longer runs' };
}

/**
 * The cloud of an older version holds no claim, but it listens at each port that its table redirects, and has
 * its data directory locked.
 */
function judgeByPath(name: string, ports: readonly number[]): Verdict {
  const hash = BY_PATH.exec(name)?.[1] ?? '';
  for (const port of ports) {
    const pids = listenersAt(port);
    if (pids === null) return { isAlive: true, why: `the cloud of port ${port} is unknown` };
    const isAlive = pids.some((pid) => pid !== process.pid && isCloud(pid, hash));
    if (isAlive) return { isAlive, why: `its cloud listens on port ${port}` };
  }
  return { isAlive: false, why: 'no cloud listens on its ports' };
}

/** An older version does not say where its directory is. */
function isGone(owner: string | null): boolean {
  if (owner === null) return true;
  const of = ownerOf(owner);
  if (of === null) return false;
  try {
    return JSON.parse(readFileSync(join(of.dataDir, 'cloud.json'), 'utf8')).cloud_id !== of.cloudId;
  } catch (error) {
    return isCode(error, 'ENOENT');
  }
}

async function portsOf(table: string): Promise<number[]> {
  const listed = await nft(`list set ip ${table} ports\n`).catch(() => '');
  const elements = /elements = \{([^}]*)\}/.exec(listed)?.[1] ?? '';
  return [...elements.matchAll(/\d+/g)].map(([port]) => Number(port));
}

function isCloud(pid: number, hash: string): boolean {
  const locks = filesOf(pid).filter((path) => basename(path) === LOCK);
  return locks.some((path) => hashOf(dirname(path)) === hash || existsSync(join(dirname(path), KEY)));
}

function hashOf(dataDir: string): string {
  return createHash('sha256').update(dataDir).digest('hex').slice(0, 12);
}

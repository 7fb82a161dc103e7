/**
 * Rules and bridges that are named by the users of guests. They remain after the cloud that added them ends,
 * as guests do; they are unused once no cloud with these users and no process of these users runs.
 */
import { readdirSync } from 'node:fs';
import { userOf } from '../host-process/process-identity.ts';
import { commentIn, type LivingCloud, livingClouds } from './cloud-claim.ts';
import { ip, nft } from './host-tool.ts';

export interface GuardsOf {
  /** First user id of our own guests. */
  readonly uidBase: number;
  readonly uidCount: number;
  /** Our guests are on a bridge. */
  readonly hasBridge: boolean;
}

/** Tables and bridge of guests with the same user ids. */
export interface GuardSet {
  readonly uidBase: number;
  /** With families: `inet cloudlet_1700000000`. */
  readonly tables: readonly string[];
  readonly bridge: string | null;
  /** Which cloud placed them. */
  readonly owner: string;
  readonly isNeeded: boolean;
}

const TABLES = /^table ((?:inet|bridge) (cloudlet_|clbr)(\d+))$/gm;

/** All of this host with an owner, which older versions omit. Rejects with HostToolError. */
export async function guardSets(own: GuardsOf): Promise<readonly GuardSet[]> {
  return withOwners(await foundSets(own));
}

type FoundSet = Omit<GuardSet, 'owner'>;

/** Each owner is queried from nftables, with one process. */
async function withOwners(sets: readonly FoundSet[]): Promise<readonly GuardSet[]> {
  const owned: GuardSet[] = [];
  for (const set of sets) {
    const owner = commentIn(await nft(`list table ${set.tables[0]}\n`).catch(() => ''));
    if (owner !== null) owned.push({ ...set, owner });
  }
  return owned;
}

async function foundSets(own: GuardsOf): Promise<readonly FoundSet[]> {
  const listed = [...(await nft('list tables\n')).matchAll(TABLES)];
  const living = livingClouds();
  const sets: FoundSet[] = [];
  for (const kind of ['cloudlet_', 'clbr']) {
    const bases = new Set(listed.filter(([, , of]) => of === kind).map(([, , , base]) => Number(base)));
    for (const uidBase of bases) {
      const isOwn = uidBase === own.uidBase && (kind === 'cloudlet_' || own.hasBridge);
      const tables = [`inet ${kind}${uidBase}`, ...(kind === 'clbr' ? [`bridge clbr${uidBase}`] : [])];
      // A cloud that has its guests elsewhere now has no use for the bridge that it had.
      const isForUs = kind === 'clbr' && uidBase === own.uidBase && !own.hasBridge;
      const hasCloud = living === null || living.some((cloud) => isUser(cloud, uidBase) && !isForUs);
      const isNeeded = isOwn || hasCloud || hasProcesses(uidBase, own.uidCount);
      const bridge = kind === 'clbr' ? `clbr${uidBase}` : null;
      sets.push({ uidBase, tables, bridge, isNeeded });
    }
  }
  return sets;
}

/** Removes guards of ended clouds. Never rejects. */
export async function removeLeftGuards({
  warn,
  ...own
}: GuardsOf & { readonly warn: (text: string) => void }): Promise<void> {
  if (process.getuid?.() !== 0) return;
  const left = await foundSets(own).catch(() => []);
  for (const { tables, bridge, owner } of await withOwners(left.filter(({ isNeeded }) => !isNeeded))) {
    warn(`nftables: removing ${tables.join(', ')}: ${owner} no longer runs, nor do its machines`);
    const lines = tables.map((table) => `table ${table}\ndelete table ${table}\n`);
    // Devices first: without rules nothing on a bridge is kept apart.
    if (bridge !== null) await removeBridge(bridge).catch(() => undefined);
    await nft(lines.join('')).catch(() => undefined);
  }
}

async function removeBridge(bridge: string): Promise<void> {
  const links: unknown = JSON.parse((await ip(['-j', 'link', 'show', 'master', bridge])) || '[]');
  for (const { ifname } of links as { ifname?: string }[])
    if (/^clt\d+$/.test(String(ifname))) await ip(['link', 'delete', 'dev', String(ifname)]);
  await ip(['link', 'delete', 'dev', bridge]);
}

function isUser(cloud: LivingCloud, uidBase: number): boolean {
  return cloud.uidBase === uidBase;
}

function hasProcesses(first: number, count: number): boolean {
  const pids = readdirSync('/proc').filter((name) => /^\d+$/.test(name));
  return pids.some((pid) => {
    const uid = userOf(pid);
    return uid !== null && uid >= first && uid < first + count;
  });
}

/** The part of `cloudlet doctor` that shows leftovers of other and killed clouds on this host. */
import type { Config } from '../../config/config.ts';
import { guardSets } from '../../drivers/host-network/left-guards.ts';
import { orphans } from '../../drivers/host-process/orphans.ts';
import { UIDS } from '../../drivers/qemu/guests/guest-folders.ts';
import { routeTables } from '../../drivers/server-proxy/left-routes.ts';
import type { Finding } from '../../platform/finding.ts';

const subject = 'other clouds';

/** A warning for everything that a start removes. Only root can see the rules. */
export async function checkLeftovers(config: Config): Promise<Finding[]> {
  const found = [...(process.getuid?.() === 0 ? await checkRules(config) : []), ...checkProcesses()];
  return found.length > 0
    ? found
    : [{ level: 'ok', subject, detail: 'other clouds left nothing on this host' }];
}

async function checkRules({ vmUidBase, vmNetwork, dataDir }: Config): Promise<Finding[]> {
  const own = { uidBase: vmUidBase, uidCount: UIDS.count, hasBridge: vmNetwork === 'bridge' };
  const [routes, guards] = await Promise.all([routeTables().catch(() => []), guardSets(own).catch(() => [])]);
  const tables = [
    ...routes.map(({ name, isAlive, owner }) => ({ table: `ip ${name}`, isAlive, owner })),
    ...guards.flatMap((set) =>
      set.tables.map((table) => ({ table, isAlive: set.isNeeded, owner: set.owner })),
    ),
  ];
  const dead = tables.filter(({ isAlive }) => !isAlive).map(({ table }) => table);
  const isOther = (owner: string | null) => owner?.endsWith(`, ${dataDir}`) !== true;
  const living = tables.filter(({ isAlive, owner }) => isAlive && isOther(owner));
  const shown = living.map(({ table, owner }) => `${table} (${owner ?? 'an earlier version'})`);
  const left: Finding = {
    level: 'warn',
    subject,
    detail: `stopped clouds left nftables rules, which can redirect connections: ${dead.join(', ')}`,
    fix: `start Cloudlet, or ${dead.map((table) => `nft delete table ${table}`).join(' && ')}`,
  };
  const there: Finding = { level: 'ok', subject, detail: `nftables rules in use: ${shown.join(', ')}` };
  return [...(dead.length === 0 ? [] : [left]), ...(shown.length === 0 ? [] : [there])];
}

function checkProcesses(): Finding[] {
  const left = orphans();
  if (left.length === 0) return [];
  const each = left.map(({ folder, process: { pid } }) => `${pid} (${folder})`).join(', ');
  const detail = `processes of removed clouds still run: ${each}`;
  const fix = `start Cloudlet, or kill -9 ${left.map(({ process: { pid } }) => pid).join(' ')}`;
  return [{ level: 'warn', subject, detail, fix }];
}

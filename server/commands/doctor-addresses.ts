/** The part of `cloudlet doctor` about the addresses of virtual machines: who answers at their ports. */
import type { Config } from '../config/config.ts';
import { HostToolError, nft } from '../drivers/host-network/host-tool.ts';
import { INSTALL_NFT } from '../drivers/host-network/outbound-guard.ts';
import { basesIn, LIST, tableOf } from '../drivers/loopback-ingress/address-guard.ts';
import { isUnclaimed, NEUTRAL, refusal } from '../drivers/loopback-ingress/host-addresses.ts';
import type { Finding } from './doctor.ts';

const subject = 'VM addresses';
/** Every machine's ports; 2222 leads to SSH too. */
const PORTS = [22, 80, 443, 2222, 8080];
const NEEDS = 'opening them requires root, or a lower net.ipv4.ip_unprivileged_port_start';
const LED = 'whose rules redirect these connections to the machines';

export async function checkVmAddresses({ vmNetwork, vmPool }: Config): Promise<Finding[]> {
  // There the machines' own systems answer.
  if (vmNetwork === 'bridge') return [];
  const rules = await rulesOf(vmPool);
  if ('fix' in rules) return [await checkPortsHere(rules.fix)];
  const left: string[] = [];
  for (const base of rules.bases) if (await isUnclaimed(base)) left.push(tableOf(base));
  if (left.length === 0) {
    const detail =
      'nftables redirects connections to the machines, even where other programs listen on all addresses';
    return [{ level: 'ok', subject, detail }];
  }
  const rest = 'those addresses are unreachable until Cloudlet runs again';
  const detail = `a killed Cloudlet left nftables rules behind (${left.join(', ')}): ${rest}`;
  const fix = `start Cloudlet, or ${left.map((table) => `nft delete table ${table}`).join(' && ')}`;
  return [{ level: 'warn', subject, detail, fix }];
}

/** First addresses of the blocks that have rules, or what to do so that there can be some. */
async function rulesOf(network: string): Promise<{ bases: string[] } | { fix: string }> {
  if (!network.startsWith('127.'))
    return {
      fix: 'make those programs listen on specific addresses, or do not change CLOUDLET_VM_POOL',
    };
  if (process.getuid?.() !== 0) return { fix: `run Cloudlet as root with nftables, ${LED}` };
  try {
    return { bases: basesIn(await nft(LIST), network) };
  } catch (error) {
    const isMissing = error instanceof HostToolError && error.isMissing;
    const mend = isMissing ? INSTALL_NFT : "give Cloudlet CAP_NET_ADMIN and the kernel's nf_tables";
    return { fix: `${mend}, ${LED}` };
  }
}

/** Without rules a machine listens at its ports itself, and may not have all. */
async function checkPortsHere(fix: string): Promise<Finding> {
  const refusals = await Promise.all(PORTS.map((port) => refusal({ address: NEUTRAL, port })));
  const those = (code: string) => PORTS.filter((_, index) => refusals[index] === code);
  const [closed, taken] = [those('EACCES'), those('EADDRINUSE')];
  if (closed.length === 0 && taken.length === 0)
    return { level: 'ok', subject, detail: `machines are reachable on ports ${PORTS.join(', ')}` };
  const parts = [
    ...(closed.length === 0 ? [] : [`ports ${closed.join(', ')} of machines are closed (${NEEDS})`]),
    ...(taken.length === 0 ? [] : [`other programs on this host use ports ${taken.join(', ')} of machines`]),
  ];
  const ssh = [22, 2222].find((port) => refusals[PORTS.indexOf(port)] === undefined);
  const detail = `${parts.join('; ')}; ${ssh === undefined ? 'SSH is not reachable' : `SSH is reachable on port ${ssh}`}`;
  return { level: 'warn', subject, detail, fix };
}

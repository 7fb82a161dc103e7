/**
 * The part of `cloudlet doctor` that checks the network of virtual machines, and which programs
 * listen at the ports of their addresses.
 */
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import type { Config } from '../../config/config.ts';
import { isPublishedAt, publishedAt } from '../../config/published-address.ts';
import { bridgeOf } from '../../drivers/host-network/guest-bridge.ts';
import { HostToolError, nft } from '../../drivers/host-network/host-tool.ts';
import {
  FORWARDING,
  isOn,
  keepsIpv6,
  QUIET_FIX,
  wayToTurnOn,
} from '../../drivers/host-network/kernel-settings.ts';
import { INSTALL_NFT } from '../../drivers/host-network/outbound-guard.ts';
import { basesIn, LIST, LOOPBACK, tableOf } from '../../drivers/loopback-ingress/address-guard.ts';
import { isUnclaimed, NEUTRAL, refusal } from '../../drivers/loopback-ingress/host-addresses.ts';
import type { Finding } from '../../platform/finding.ts';
import { patienceMs } from '../../platform/host/host-facts.ts';
import { hostPath } from '../../platform/host/host-programs.ts';
import type { NoOtherUsers } from '../../platform/host/other-users.ts';

const run = promisify(execFile);
const ASK_MS = 5000;

export async function checkVmNetwork(
  { vmNetwork, vmOutbound, vmUidBase }: Config,
  noUsers: NoOtherUsers | null,
): Promise<Finding[]> {
  const isBridge = vmNetwork === 'bridge';
  const subject = 'VM network';
  const isOpen = isBridge || vmOutbound === 'on';
  const setting = isBridge ? 'CLOUDLET_VM_NETWORK=loopback' : 'CLOUDLET_VM_OUTBOUND=off';
  const refuse = (problem: string, mend: string): Finding[] => {
    if (isOpen) {
      const detail = `${problem}: virtual machines cannot start`;
      return [{ level: 'warn', subject, detail, fix: `${mend}, or set ${setting}` }];
    }
    const detail = `${problem}: a compromised QEMU process could reach this host's ports`;
    return [{ level: 'warn', subject, detail, fix: mend }];
  };
  if (noUsers !== null) return refuse(noUsers.problem, noUsers.fix);
  const version = await versionOf('nft', '--version');
  if (version === undefined) return refuse('nftables is not installed', 'apt-get install nftables');
  if ((await answerOf('nft', 'list', 'tables')) === undefined)
    return refuse(
      'nft is not permitted to change rules',
      "give Cloudlet CAP_NET_ADMIN and the kernel's nf_tables",
    );
  if (isBridge && (await versionOf('ip', '-V')) === undefined)
    return refuse('iproute2 is not installed', 'apt-get install iproute2');
  if (isBridge && (await versionOf('perl', '-v')) === undefined)
    return refuse('perl is not installed', 'apt-get install perl-base');
  const mustForward = isBridge && vmOutbound === 'on';
  if (isBridge && keepsIpv6())
    return refuse(
      "IPv6 cannot be disabled on the machines' network interfaces: /proc/sys is read-only",
      QUIET_FIX,
    );
  if (mustForward && !isOn(FORWARDING))
    return refuse('IP forwarding is off on this host', wayToTurnOn(FORWARDING));
  const ruleset = mustForward ? await answerOf('nft', '-j', 'list', 'ruleset') : undefined;
  const drop = ruleset === undefined ? null : forwardDrop(ruleset, bridgeOf(vmUidBase));
  if (drop !== null) {
    const detail = `firewall rules of this host (${drop.chain}) drop outbound packets of virtual machines`;
    return [{ level: 'warn', subject, detail, fix: drop.fix }];
  }
  return [{ level: 'ok', subject, detail: `${vmNetwork}, outbound ${vmOutbound}, ${version}` }];
}

/**
 * Whether visitors of machines' published ports send the console's cookie there, and could lose
 * their session.
 */
export function checkPublishedPorts(config: Config): Finding[] {
  const subject = 'Published ports';
  if (config.publishedPorts === 'off') return [{ level: 'ok', subject, detail: 'off' }];
  const { listen, shown } = publishedAt(config);
  const where = `${config.publishedPorts} at ${shown ?? listen}`;
  if (!isPublishedAt(config)) return [{ level: 'ok', subject, detail: `${where}, apart from the console` }];
  return [
    {
      level: 'warn',
      subject,
      detail: `${where}, the console's host: a machine's web page can sign its visitors out of the console, but not in`,
      fix: 'set CLOUDLET_PUBLISHED_HOST to another name or address of this host, or CLOUDLET_PUBLISHED_PORTS=off',
    },
  ];
}

async function versionOf(program: string, word: string): Promise<string | undefined> {
  return (await answerOf(program, word))?.trim().split('\n', 1)[0];
}

/** Output of the program; undefined: it is missing or fails. */
async function answerOf(program: string, ...words: string[]): Promise<string | undefined> {
  try {
    return (await run(program, words, { timeout: patienceMs(ASK_MS), env: { LANG: 'C', PATH: hostPath() } }))
      .stdout;
  } catch {
    return undefined;
  }
}

interface Chain {
  readonly table: string;
  readonly family: string;
  readonly name: string;
  readonly hook?: string;
  readonly policy?: string;
}

interface Rule {
  readonly table: string;
  readonly expr: unknown;
}

/**
 * The fix for the first chain, not of Cloudlet, that drops forwarded packets; null: none does, or a
 * rule in its table accepts the bridge. `ruleset`: output of `nft -j list ruleset`.
 */
export function forwardDrop(ruleset: string, bridge: string): { chain: string; fix: string } | null {
  const { nftables } = JSON.parse(ruleset) as { nftables: readonly { chain?: Chain; rule?: Rule }[] };
  const chains = nftables.flatMap(({ chain }) => (chain === undefined ? [] : [chain]));
  const dropping = chains.find(
    ({ table, hook, policy }) => hook === 'forward' && policy === 'drop' && !table.startsWith('cloudlet'),
  );
  if (dropping === undefined) return null;
  const { family, table, name } = dropping;
  const accepts = ({ table: of, expr }: Rule) =>
    of === table && JSON.stringify(expr).includes(`"${bridge}"`) && JSON.stringify(expr).includes('"accept"');
  if (nftables.some(({ rule }) => rule !== undefined && accepts(rule))) return null;
  const beside = (other: string) => chains.some((chain) => chain.table === table && chain.name === other);
  // Docker leaves this chain to users and recreates its own.
  const chain = beside('DOCKER-USER') ? 'DOCKER-USER' : name;
  const allow = (side: string) => `nft insert rule ${family} ${table} ${chain} ${side} ${bridge} accept`;
  const fix = beside('ufw-user-forward')
    ? `ufw route allow in on ${bridge} && ufw route allow out on ${bridge}`
    : `${allow('iifname')} && ${allow('oifname')}`;
  return { chain: `${family} ${table} ${name}`, fix };
}

const subject = 'VM addresses';
/** Every machine's ports; 2222 leads to SSH too. */
const PORTS = [22, 80, 443, 2222, 8080];
const NEEDS = 'opening them requires root, or a lower net.ipv4.ip_unprivileged_port_start';
const LED = 'to redirect these connections to the machines';

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
  const rest = 'the addresses of machines are unreachable until Cloudlet runs again';
  const detail = `a killed Cloudlet left nftables rules behind (${left.join(', ')}): ${rest}`;
  const fix = `start Cloudlet, or ${left.map((table) => `nft delete table ${table}`).join(' && ')}`;
  return [{ level: 'warn', subject, detail, fix }];
}

/** First addresses of the blocks with rules, or how to get rules. */
async function rulesOf(network: string): Promise<{ bases: string[] } | { fix: string }> {
  if (!network.startsWith('127.'))
    return {
      fix: 'make those programs listen on specific addresses, or leave CLOUDLET_VM_POOL at its default',
    };
  if (process.getuid?.() !== 0) return { fix: `run Cloudlet as root with nftables, ${LED}` };
  try {
    return { bases: basesIn(await nft(LIST), LOOPBACK) };
  } catch (error) {
    const isMissing = error instanceof HostToolError && error.isMissing;
    const mend = isMissing ? INSTALL_NFT : "give Cloudlet CAP_NET_ADMIN and the kernel's nf_tables";
    return { fix: `${mend}, ${LED}` };
  }
}

/** Without rules a machine listens at its ports itself, and may not get all. */
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

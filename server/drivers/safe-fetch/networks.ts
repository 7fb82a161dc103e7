/**
 * Which addresses a request for an untrusted URL may reach: those of the public Internet except
 * this host's own, and explicitly allowed ones.
 */
import { BlockList, isIP } from 'node:net';
import { networkInterfaces } from 'node:os';

/** RFC 6890 and its successors: all addresses outside the public Internet. */
const PRIVATE_V4 = [
  '0.0.0.0/8',
  '10.0.0.0/8',
  '100.64.0.0/10',
  '127.0.0.0/8',
  '169.254.0.0/16',
  '172.16.0.0/12',
  '192.0.0.0/24',
  '192.0.2.0/24',
  '192.88.99.0/24',
  '192.168.0.0/16',
  '198.18.0.0/15',
  '198.51.100.0/24',
  '203.0.113.0/24',
  '224.0.0.0/4',
  '240.0.0.0/4',
];
/** The public Internet in IPv6; the rest (mapped, NAT64, local, …) is never reached. */
const PUBLIC_V6 = ['2000::/3'];
/** Within that: tunnels that hold other addresses (Teredo, 6to4), special uses and documentation. */
const SPECIAL_V6 = ['2001::/23', '2001:db8::/32', '2002::/16', '3fff::/20'];

/** Throws an Error that names the invalid entry. */
export function networkList(networks: readonly string[]): BlockList {
  const list = new BlockList();
  for (const network of networks) {
    const { address, prefix, family } = parseNetwork(network);
    list.addSubnet(address, prefix, family);
  }
  return list;
}

function parseNetwork(text: string): { address: string; prefix: number; family: 'ipv4' | 'ipv6' } {
  const [, address = '', length = ''] = /^([0-9a-fA-F.:]+)\/(\d{1,3})$/.exec(text) ?? [];
  const version = isIP(address);
  const prefix = Number(length);
  if (version === 0 || length === '' || prefix > (version === 4 ? 32 : 128)) {
    throw new Error(`"${text}" is not a network like 10.0.0.0/8`);
  }
  return { address, prefix, family: version === 4 ? 'ipv4' : 'ipv6' };
}

const privateV4 = networkList(PRIVATE_V4);
const publicV6 = networkList(PUBLIC_V6);
const specialV6 = networkList(SPECIAL_V6);

/** Whether `address` (text of an IP address) is in one of the networks. */
export function isIn(list: BlockList, address: string): boolean {
  const version = isIP(address);
  return version !== 0 && list.check(address, version === 4 ? 'ipv4' : 'ipv6');
}

/**
 * Whether `address` (text of an IP address) may be connected to; `allowed` takes precedence over
 * all rules. A service on a public address of this host may be behind a firewall that does not
 * block us, or may trust this host.
 */
export function mayReach(address: string, allowed: BlockList): boolean {
  if (isIP(address) === 0 || address.includes('%')) return false;
  return isIn(allowed, address) || (isPublic(address) && !isIn(hostAddresses(), address));
}

function isPublic(address: string): boolean {
  if (isIP(address) === 4) return !isIn(privateV4, address);
  return isIn(publicV6, address) && !isIn(specialV6, address);
}

/** Read each time: addresses come and go. */
function hostAddresses(): BlockList {
  const list = new BlockList();
  for (const { address } of Object.values(networkInterfaces()).flatMap((own) => own ?? [])) {
    list.addAddress(address, isIP(address) === 4 ? 'ipv4' : 'ipv6');
  }
  return list;
}

/** The caller's address and protocol, where proxies that are trusted say them. */
import type { IncomingMessage } from 'node:http';
import { BlockList, isIP } from 'node:net';

/** The networks as a list: addresses, or `address/bits`. What is neither is left out. */
export function blockListOf(networks: readonly string[]): BlockList {
  const list = new BlockList();
  for (const network of networks) {
    const [address = '', prefix] = network.trim().split('/');
    const family = isIP(address) === 6 ? 'ipv6' : 'ipv4';
    if (isIP(address) === 0) continue;
    if (prefix === undefined) list.addAddress(address, family);
    else if (/^\d+$/.test(prefix)) list.addSubnet(address, Number(prefix), family);
  }
  return list;
}

export class TrustedProxies {
  readonly #proxies: BlockList;

  constructor(networks: readonly string[]) {
    this.#proxies = blockListOf(networks);
  }

  /** The client's address: the last in X-Forwarded-For that is no trusted proxy's, else the peer's. */
  addressOf({ socket, headers }: Pick<IncomingMessage, 'socket' | 'headers'>): string {
    let address = socket.remoteAddress ?? '';
    const forwarded = String(headers['x-forwarded-for'] ?? '').split(',');
    while (this.#isProxy(address)) {
      const before = forwarded.pop()?.trim() ?? '';
      if (isIP(before) === 0) return address;
      address = before;
    }
    return address;
  }

  /** Whether the client spoke TLS, to us or to a trusted proxy. */
  isSecure({ socket, headers }: Pick<IncomingMessage, 'socket' | 'headers'>): boolean {
    if ('encrypted' in socket) return true;
    if (!this.#isProxy(socket.remoteAddress ?? '')) return false;
    return (
      String(headers['x-forwarded-proto'] ?? '')
        .trim()
        .toLowerCase() === 'https'
    );
  }

  #isProxy(address: string): boolean {
    const plain = address.replace(/^::ffff:(?=\d+\.)/i, '');
    const family = isIP(plain);
    return family !== 0 && this.#proxies.check(plain, family === 6 ? 'ipv6' : 'ipv4');
  }
}

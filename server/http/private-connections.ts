/** Connections that nobody else reads: those within this host, and those that a proxy received encrypted. */
import type { IncomingMessage } from 'node:http';
import { isIP } from 'node:net';
import { blockListOf } from './client-address.ts';
import { isLoopback } from './origins.ts';

/** `trustedProxies`: addresses and networks whose X-Forwarded-Proto is believed. */
export function privacyCheck(trustedProxies: readonly string[]): (request: IncomingMessage) => boolean {
  const proxies = blockListOf(trustedProxies);
  return ({ socket, headers }) => {
    const address = (socket.remoteAddress ?? '').replace(/^::ffff:(?=\d+\.)/, '').replace(/%.*$/, '');
    const family = isIP(address);
    const isProxy = family !== 0 && proxies.check(address, family === 6 ? 'ipv6' : 'ipv4');
    // The proxy itself may be on this host, and its clients elsewhere.
    if (isProxy) return /^https$/i.test(String(headers['x-forwarded-proto'] ?? '').trim());
    return isLoopback(address);
  };
}

/**
 * Which `Host` a request may name. A cloud that listens on loopback only trusts that nobody else reaches it,
 * and a page elsewhere can make a browser do so: its own name is made to lead to 127.0.0.1 (DNS rebinding).
 * Such a request still carries that name.
 */
import type { IncomingMessage, Server } from 'node:http';
import { type AddressInfo, isIP } from 'node:net';
import { AppError } from '../platform/errors.ts';

/** Throws `bad_http` without one `Host`, `misdirected_request` for one that is not ours. */
export type HostCheck = (request: IncomingMessage) => void;

/** `names`: hosts that pass besides `localhost` and addresses. Other than loopback, every host passes. */
export function hostCheck(server: Server, names: readonly string[]): HostCheck {
  const known = new Set(['localhost', ...names.map((name) => name.toLowerCase())]);
  let isLocal = false;
  server.on('listening', () => {
    // A unix socket has a path for an address; only the operator opens it.
    const { address = '' } = server.address() as Partial<AddressInfo>;
    isLocal = isLoopback(address);
  });
  return (request) => {
    const count = hostsIn(request.rawHeaders);
    if (count > 1) throw new AppError('bad_http', 'There is more than one Host header');
    if (count === 0) {
      if (request.httpVersion !== '1.1') return;
      throw new AppError('bad_http', 'The Host header is missing');
    }
    if (isLocal && !isOurs(request.headers.host ?? '', known)) throw misdirected();
  };
}

/** True for an IP address that only this machine reaches. */
export function isLoopback(address: string): boolean {
  return /^(127\.|::1$|::ffff:127\.)/.test(address);
}

/** The host of an address as in CLOUDLET_PUBLIC_URL, without its port; nothing for an empty one. */
export function hostsOf(...urls: readonly string[]): string[] {
  return urls.filter((url) => url !== '').map((url) => new URL(url).hostname);
}

function hostsIn(rawHeaders: readonly string[]): number {
  let count = 0;
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i] as string;
    if (name.length === 4 && name.toLowerCase() === 'host') count++;
  }
  return count;
}

function isOurs(host: string, known: ReadonlySet<string>): boolean {
  const [, bracketed, plain = ''] = /^(?:\[([^\]]*)\]|([^:[\]]+?)\.?)(?::\d*)?$/.exec(host) ?? [];
  if (bracketed !== undefined) return isIP(bracketed) === 6;
  const name = plain.toLowerCase();
  return known.has(name) || name.endsWith('.localhost') || isIP(name) === 4;
}

function misdirected(): AppError {
  return new AppError('misdirected_request', 'This cloud listens on loopback and has no such host name', {
    hint:
      'Call it as localhost or by its address. A proxy in front of it needs CLOUDLET_PUBLIC_URL, and ' +
      'CLOUDLET_DATA_URL for the data origin, to name the hosts that users call',
  });
}

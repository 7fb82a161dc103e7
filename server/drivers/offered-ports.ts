/**
 * The TCP ports of this host for users, reported to other cluster nodes, and the entry for connections that
 * those pass on.
 */
import { readlinkSync } from 'node:fs';
import type { Socket } from 'node:net';
import { hostBootId } from '../platform/host/host-boot.ts';
import type { ToldPorts } from '../platform/membership.ts';
import { rangesOf } from '../platform/port-ranges.ts';

export interface OfferedPort {
  /** A name that the nodes know; see server-proxy/login-watch.ts. */
  readonly protocol: string;
  /** Addresses of this host on which it listens; `*`: all. */
  readonly addresses: readonly string[];
  /** Serves a client from that address, which may have sent bytes already. */
  take(client: Socket, address: string): void;
}

export class OfferedPorts {
  readonly #offers = new Map<number, OfferedPort>();

  offer(port: number, offered: OfferedPort): void {
    this.#offers.set(port, offered);
  }

  withdraw(port: number): void {
    this.#offers.delete(port);
  }

  has(port: number): boolean {
    return this.#offers.has(port);
  }

  /** Serves a client that another node has passed on; false: nothing listens at the port. */
  take(port: number, client: Socket, address: string): boolean {
    const offered = this.#offers.get(port);
    offered?.take(client, address);
    return offered !== undefined;
  }

  told(): ToldPorts {
    const all = [...this.#offers];
    const kinds = Map.groupBy(all, ([, { protocol }]) => protocol);
    return {
      place: networkPlace(),
      addresses: [...new Set(all.flatMap(([, { addresses }]) => addresses))],
      of: Object.fromEntries([...kinds].map(([kind, of]) => [kind, rangesOf(of.map(([port]) => port))])),
    };
  }
}

/** The same for processes that cannot listen at one address and port both. */
export function networkPlace(): string {
  try {
    return `${hostBootId()} ${readlinkSync('/proc/self/ns/net')}`;
  } catch {
    return '';
  }
}

/**
 * The TCP ports of this host for users, reported to other cluster nodes, and the entry for connections that
 * those pass on.
 */
import { readlinkSync } from 'node:fs';
import type { Socket } from 'node:net';
import type { Clock } from '../platform/clock.ts';
import { hostBootId } from '../platform/host/host-facts.ts';
import type { Membership, NodeView, ToldPorts } from '../platform/membership.ts';
import { portsIn, rangesOf } from '../platform/port-ranges.ts';

export interface OfferedPort {
  /** A name that the nodes know; see server-proxy/login-watch.ts. */
  readonly protocol: string;
  /** Addresses of this host on which the port is open; `*`: all. */
  readonly addresses: readonly string[];
  /** Serves a client with this address, which may have sent bytes already. */
  take(client: Socket, address: string): void;
}

/**
 * Share of a node's report. Database ports are consecutive, so this is enough for a thousand
 * published ports.
 */
const MAX_BYTES = 8192;
/** Two heartbeats, if messages between nodes are lost, plus transmission time. */
const WAIT_MS = 3000;
/** A front node with an older heartbeat may have ended without leaving. */
const SILENT_MS = 3000;
const ALARM = 'ports_not_told';

export interface OfferedPortsDeps {
  readonly membership: Pick<Membership, 'nodes' | 'onNews' | 'hurry'>;
  readonly clock: Pick<Clock, 'now'>;
  readonly alarms: { raise(code: string, detail: string, fix: string): void; clear(code: string): void };
}

export class OfferedPorts {
  readonly #deps: OfferedPortsDeps;
  readonly #offers = new Map<number, OfferedPort>();
  /** Front nodes that did not confirm a version in time, by their run. */
  readonly #late = new Map<string, number>();
  #version = 0;
  #seen: number | null = null;

  constructor(deps: OfferedPortsDeps) {
    this.#deps = deps;
  }

  offer(port: number, offered: OfferedPort): void {
    this.#offers.set(port, offered);
    // Higher than the versions of an earlier run of this host.
    this.#version = Math.max(this.#version + 1, this.#deps.clock.now());
    this.#deps.membership.hurry();
  }

  withdraw(port: number): void {
    this.#offers.delete(port);
  }

  has(port: number): boolean {
    return this.#offers.has(port);
  }

  /**
   * Resolves once all live front nodes have opened the current ports. A front that takes longer
   * than 3 s is not awaited again until it has caught up. Never rejects.
   */
  async everywhere(): Promise<void> {
    const version = this.#version;
    const { onNews } = this.#deps.membership;
    if (this.#lacking(version).length === 0) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    const giveUp = setTimeout(() => {
      for (const { runId } of this.#lacking(version)) this.#late.set(runId, version);
      resolve();
    }, WAIT_MS);
    const stop = onNews.call(this.#deps.membership, () => {
      if (this.#lacking(version).length === 0) resolve();
    });
    await promise;
    clearTimeout(giveUp);
    stop();
  }

  /** Fronts to wait for. Those of an earlier version of Cloudlet do not report their ports. */
  #lacking(version: number): readonly NodeView[] {
    return this.#deps.membership.nodes().filter(({ isHost, state, beatAgeMs, runId, portsSeen }) => {
      if (isHost || state !== 'up' || beatAgeMs > SILENT_MS) return false;
      return portsSeen !== null && portsSeen < version && portsSeen >= (this.#late.get(runId) ?? 0);
    });
  }

  /** Serves a client forwarded by another node; false: nothing listens at the port. */
  take(port: number, client: Socket, address: string): boolean {
    const offered = this.#offers.get(port);
    offered?.take(client, address);
    return offered !== undefined;
  }

  told(): ToldPorts {
    const all = [...this.#offers];
    const kinds = Map.groupBy(all, ([, { protocol }]) => protocol);
    const of = Object.fromEntries([...kinds].map(([kind, of]) => [kind, rangesOf(of.map(([port]) => port))]));
    const addresses = [...new Set(all.flatMap(([, { addresses }]) => addresses))];
    return { place: networkPlace(), addresses, of: this.#bounded(of), version: this.#version };
  }

  /** At a front: the host's version whose ports this node has; null: none yet. */
  get seen(): number | null {
    return this.#seen;
  }

  /** At a front: this node has opened the host's ports of that version, except those that it cannot open. */
  saw(version: number | undefined): void {
    if (version === undefined || version === this.#seen) return;
    this.#seen = version;
    this.#deps.membership.hurry();
  }

  /** Ranges as far as they fit; those of databases come first. */
  #bounded(of: ToldPorts['of']): ToldPorts['of'] {
    const kinds = Object.entries(of).sort(([a], [b]) => Number(a === 'tcp') - Number(b === 'tcp'));
    let left = MAX_BYTES;
    const missing: number[] = [];
    const told = kinds.map(([kind, ranges]) => {
      const end = ranges.length <= left ? ranges.length : ranges.lastIndexOf(',', left) + 1;
      missing.push(...portsIn(ranges.slice(end)));
      left -= end;
      return [kind, ranges.slice(0, end)];
    });
    this.#report(missing);
    return Object.fromEntries(told);
  }

  #report(missing: readonly number[]): void {
    const { alarms } = this.#deps;
    const [port] = missing;
    if (port === undefined) {
      alarms.clear(ALARM);
      return;
    }
    alarms.raise(
      ALARM,
      `${missing.length} ports of databases or machines, such as ${port}, are open only at the host node: ` +
        'the complete port list is too long for front nodes',
      'Choose a smaller range in CLOUDLET_PUBLISHED_PORTS, so that the ports are adjacent, or publish fewer',
    );
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

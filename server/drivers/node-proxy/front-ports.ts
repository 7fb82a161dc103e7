/**
 * A front node opens the ports of the host node to which users of databases and machines connect,
 * and forwards their connections: bytes unchanged, with the client's address. Unauthenticated
 * connections, each account's port and all ports together have limits as at the host, which checks
 * them again.
 */
import type { Clock } from '../../platform/clock.ts';
import type { ToldPorts } from '../../platform/membership.ts';
import { portsIn } from '../../platform/port-ranges.ts';
import { networkPlace } from '../offered-ports.ts';
import { PROTOCOLS, type Protocol } from '../server-proxy/login-watch.ts';
import type { Dial } from '../server-proxy/passage.ts';
import { ProxyListeners } from '../server-proxy/proxy-listeners.ts';
import type { Listener } from '../server-proxy/server-proxy.ts';

export interface FrontPortsDeps {
  /** The host's ports, as of its last heartbeat; null: unknown, and nothing changes. */
  readonly told: () => ToldPorts | null;
  /** This node has opened the host's ports of that version, except those that it cannot open. */
  readonly matched: (version: number | undefined) => void;
  /** Connects to that port of the host for a client. Rejects while the host is away. */
  readonly dial: Dial;
  /** Addresses of this node to listen at; `*`: all. */
  readonly addressesOf: (protocol: Protocol) => readonly string[];
  /** The refusal of a login; null: the protocol has none. */
  readonly refusalOf: (protocol: Protocol, text: string) => Buffer | null;
  readonly clock: Pick<Clock, 'monotonic'>;
  readonly alarms: { raise(code: string, detail: string, fix: string): void; clear(code: string): void };
}

/** The host forgets its ports on restart, and reports them again one by one. */
const KEEP_MS = 60_000;
/** Wait before another attempt to open a port. */
const RETRY_MS = 5000;
const ALARM = 'front_ports_taken';
const AWAY = 'the node with the databases does not answer; try again in a few seconds';
const EVERYWHERE: readonly string[] = ['*', '0.0.0.0', '::'];

interface Opened {
  /** Time of the host's last report, ms of `now`. */
  toldAt: number;
  /** Why the port is closed; null: it is open. */
  problem: string | null;
  triedAt: number;
}

export class FrontPorts {
  readonly #deps: FrontPortsDeps;
  readonly #listeners: ProxyListeners;
  readonly #ports = new Map<number, Opened>();
  readonly #place = networkPlace();
  #turn: Promise<void> = Promise.resolve();
  #isBusy = false;
  /** The host may have reported new ports in the meantime. */
  #isStale = false;

  constructor(deps: FrontPortsDeps) {
    this.#deps = deps;
    this.#listeners = new ProxyListeners({
      wanted: () => {},
      dial: deps.dial,
      refusalOf: ({ protocol }) => deps.refusalOf(protocol, AWAY),
    });
  }

  /** Ends its connections. */
  async close(): Promise<void> {
    await this.#turn;
    await this.#listeners.close();
  }

  /** Call when the host may have reported new ports, and every second or so. */
  heard(): void {
    this.#isStale = true;
    if (this.#isBusy) return;
    this.#isBusy = true;
    this.#turn = this.#matchAll().finally(() => {
      this.#isBusy = false;
    });
  }

  async #matchAll(): Promise<void> {
    while (this.#isStale) {
      this.#isStale = false;
      await this.match(this.#deps.clock.monotonic());
    }
  }

  /** Updates the listeners to the host's report. Never rejects. */
  async match(now: number): Promise<void> {
    const told = this.#deps.told();
    if (told === null) return;
    for (const [protocol, port] of allOf(told)) {
      const addresses = this.#freeOf(told, protocol);
      if (addresses.length > 0) await this.#keep({ name: `${port}`, port, protocol, addresses }, now);
    }
    for (const [port, { toldAt }] of this.#ports) {
      if (now - toldAt < KEEP_MS) continue;
      this.#ports.delete(port);
      await this.#listeners.shut(`${port}`);
    }
    this.#report();
    this.#deps.matched(told.version);
  }

  /** Addresses where neither listener blocks the other. */
  #freeOf({ place, addresses: taken }: ToldPorts, protocol: Protocol): readonly string[] {
    const own = this.#deps.addressesOf(protocol);
    if (place !== this.#place) return own;
    if (taken.some((each) => EVERYWHERE.includes(each))) return [];
    return own.filter((each) => !EVERYWHERE.includes(each) && !taken.includes(each));
  }

  async #keep(listener: Listener, now: number): Promise<void> {
    const { port } = listener;
    const known = this.#ports.get(port) ?? { toldAt: now, problem: '', triedAt: Number.NEGATIVE_INFINITY };
    this.#ports.set(port, known);
    known.toldAt = now;
    if (known.problem === null || now - known.triedAt < RETRY_MS) return;
    known.triedAt = now;
    try {
      await this.#listeners.open(listener);
      this.#listeners.lead(listener.name, port);
      known.problem = null;
    } catch (error) {
      known.problem = (error as NodeJS.ErrnoException).code ?? String(error);
    }
  }

  #report(): void {
    const closed = [...this.#ports].filter(([, { problem }]) => problem !== null);
    const [[port, { problem = null } = {}] = []] = closed;
    if (port === undefined) {
      this.#deps.alarms.clear(ALARM);
      return;
    }
    this.#deps.alarms.raise(
      ALARM,
      `${closed.length} ports of databases or machines cannot be opened at this node, such as ${port} (${problem})`,
      'Stop the program that uses it on this host; Cloudlet retries every 5 s. Users reach it at other nodes',
    );
  }
}

function allOf({ of }: ToldPorts): [Protocol, number][] {
  return Object.entries(of).flatMap(([protocol, ranges]) => {
    if (!(protocol in PROTOCOLS)) return [];
    return portsIn(ranges).map((port): [Protocol, number] => [protocol as Protocol, port]);
  });
}

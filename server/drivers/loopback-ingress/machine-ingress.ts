/** The address of a running machine: listeners, connections, and transferred bytes. */
import { connect, createServer, type Server, type Socket } from 'node:net';
import type { GuestEndpoint } from '../../compute/hypervisor.ts';
import {
  type Exposure,
  type IngressPort,
  type IngressTraffic,
  NOT_RUNNING,
  type PortState,
} from '../../compute/ingress.ts';
import type { Clock } from '../../platform/clock.ts';
import { ClientConnection, SSH_PORT } from './client-connection.ts';
import { seekTalk, type Talk } from './guest-seeker.ts';
import { closed, listenAt } from './host-addresses.ts';
import { reset } from './relay.ts';

/** The files that this process may open. */
export interface Descriptors {
  /** Reserves that many descriptors. False: the limit would be exceeded. */
  take(more: number): boolean;
}

export interface MachineFrontDeps {
  readonly clock: Clock;
  readonly exposure: Exposure;
  readonly timings: IngressTimings;
  readonly descriptors: Descriptors;
  /** Actual ports to listen on; missing ports are used directly. */
  readonly listenPorts: (ports: readonly number[]) => Promise<ReadonlyMap<number, number>>;
}

interface Listener extends IngressPort {
  server: Server | null;
  /** Why the port is closed. */
  reason: string;
}

const MAX_CONNECTIONS = 256;
const KEEPALIVE_MS = 60_000;
/** Alternative port of SSH, because port 22 needs a privilege. */
const SSH_UNPRIVILEGED = 2222;
/** The client's end, and ours to the guest. */
const PER_CLIENT = 2;

/** The ports of an address, as its callers see them. */
export function ingressPorts(guestPorts: readonly number[]): IngressPort[] {
  const ports = guestPorts.map((port) => ({ port, guestPort: port }));
  if (guestPorts.includes(SSH_UNPRIVILEGED)) return ports;
  return [...ports, { port: SSH_UNPRIVILEGED, guestPort: SSH_PORT }];
}

export class MachineIngress {
  readonly #deps: MachineFrontDeps;
  readonly #listeners: readonly Listener[];
  readonly #clients = new Set<Socket>();
  /** Connections of dial(). */
  readonly #dialed = new Set<Socket>();
  readonly #counts = {
    onIn: (bytes: number) => {
      this.#inBytes += bytes;
    },
    onOut: (bytes: number) => {
      this.#outBytes += bytes;
    },
  };
  #inBytes = 0;
  #outBytes = 0;
  #opening: Promise<Listener[]> | null = null;
  #run: IngressRun | null = null;
  #isClosed = false;

  constructor(deps: MachineFrontDeps) {
    this.#deps = deps;
    const closedYet = { server: null, reason: NOT_RUNNING };
    this.#listeners = ingressPorts(deps.exposure.guestPorts).map((port) => ({ ...port, ...closedYet }));
  }

  /** Listens on every available port. Resolves with ports that are closed for a new reason. */
  async open(): Promise<PortState[]> {
    this.#opening ??= this.#openClosed().finally(() => {
      this.#opening = null;
    });
    return (await this.#opening).map(stateOf);
  }

  /** Repeated calls change nothing. */
  begin(): void {
    if (this.#run !== null || this.#isClosed) return;
    const { clock, timings, exposure } = this.#deps;
    const { endpointOf, onSignOfLife } = exposure;
    this.#run = new IngressRun({ clock, timings, endpointOf, onSignOfLife });
    this.#run.start();
  }

  /** See Ingress.dial(). */
  async dial(guestPort: number, endpoint: GuestEndpoint): Promise<Socket | null> {
    const socket = (await this.#run?.reach(guestPort, endpoint)) ?? null;
    if (socket === null) return null;
    this.#dialed.add(socket);
    socket.once('close', () => {
      this.#dialed.delete(socket);
      this.#inBytes += socket.bytesWritten;
      this.#outBytes += socket.bytesRead;
    });
    return socket;
  }

  ports(): PortState[] {
    return this.#listeners.map(stateOf);
  }

  traffic(): IngressTraffic {
    let [inBytes, outBytes] = [this.#inBytes, this.#outBytes];
    for (const { bytesWritten, bytesRead } of this.#dialed) {
      inBytes += bytesWritten;
      outBytes += bytesRead;
    }
    return { inBytes, outBytes, connections: this.#clients.size + this.#dialed.size };
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#run?.stop();
    for (const client of this.#clients) reset(client);
    // Opening finishes first; then all listeners are closed.
    await this.#opening;
    await Promise.all(this.#listeners.map(({ server }) => server && closed(server)));
  }

  async #openClosed(): Promise<Listener[]> {
    const shut = this.#listeners.filter(({ server }) => server === null);
    const before = shut.map(({ reason }) => reason);
    const listenPorts = await this.#deps.listenPorts(shut.map(({ port }) => port));
    await Promise.all(
      shut.map((listener) => this.#open(listener, listenPorts.get(listener.port) ?? listener.port)),
    );
    return shut.filter(({ server, reason }, index) => server === null && reason !== before[index]);
  }

  async #open(listener: Listener, port: number): Promise<void> {
    const { exposure, descriptors } = this.#deps;
    if (!descriptors.take(1)) {
      listener.reason = 'this cloud has too many open files';
      return;
    }
    const server = createServer({
      allowHalfOpen: true,
      noDelay: true,
      keepAlive: true,
      keepAliveInitialDelay: KEEPALIVE_MS,
    });
    server.on('connection', (client) => this.#accept(client, listener));
    const error = await listenAt(server, { address: exposure.address, port });
    if (error === null) listener.server = server;
    else listener.reason = reasonOf(error);
  }

  #accept(client: Socket, { port, guestPort }: IngressPort): void {
    // `close` follows every error; without a listener, an error would end the process.
    client.on('error', () => undefined);
    const run = this.#run;
    const isFull = this.#clients.size >= MAX_CONNECTIONS || !this.#deps.descriptors.take(PER_CLIENT);
    if (this.#isClosed || run === null || isFull) {
      client.destroy();
      return;
    }
    this.#clients.add(client);
    client.once('close', () => this.#clients.delete(client));
    const { timings } = this.#deps;
    new ClientConnection({ client, run, port, guestPort, timings, counts: this.#counts }).start();
  }
}

function stateOf({ port, guestPort, server, reason }: Listener): PortState {
  return { port, guestPort, reason: server === null ? reason : null };
}

function reasonOf(error: NodeJS.ErrnoException): string {
  switch (error.code) {
    case 'EACCES':
      return (
        'ports below 1024 need root, CAP_NET_BIND_SERVICE or a lower net.ipv4.ip_unprivileged_port_start; ' +
        'responses on this port are not from the machine'
      );
    case 'EADDRINUSE':
      return 'another program of this host listens on this port; redirecting around it requires root and nftables';
    case 'EADDRNOTAVAIL':
      return 'this host does not have the address';
    default:
      return error.code ?? error.message;
  }
}

/** One run of a guest as its address sees it: whether it responds, and on which ports it has answered. */
export interface IngressRunDeps {
  readonly clock: Clock;
  readonly endpointOf: (guestPort: number) => GuestEndpoint | null;
  readonly onSignOfLife: () => void;
  readonly timings: IngressTimings;
}

/** All in ms. */
export interface IngressTimings {
  /** Between two tries to find a guest that answers. */
  readonly retryMs: number;
  /** How long a client waits for a guest that does not answer yet. */
  readonly waitMs: number;
  /** How long a connection waits for a first sign of life before the guest is dialed without one. */
  readonly holdMs: number;
  /** A guest that closes without a byte this early was not listening yet. */
  readonly atOnceMs: number;
  /** Time for a client that gets "not running" to send its request and disconnect. */
  readonly lingerMs: number;
}

/** How long a guest may take to end a closed connection. */
const PART_MS = 5000;

type Waiter = (talk: Talk | null) => void;

export class IngressRun {
  readonly #deps: IngressRunDeps;
  readonly #end = new AbortController();
  readonly #probe = new AbortController();
  readonly #answered = new Set<number>();
  readonly #waiters = new Set<Waiter>();
  readonly #lifeListeners = new Set<() => void>();
  #isAlive = false;

  constructor(deps: IngressRunDeps) {
    this.#deps = deps;
  }

  /** Waits for the guest's banner or any other output. */
  start(): void {
    if (this.#deps.endpointOf(SSH_PORT) === null) {
      this.#probe.abort();
      return;
    }
    void seekTalk(this.#seek(SSH_PORT, this.#probe.signal)).then((talk) => {
      if (talk !== null) this.answered(SSH_PORT);
      this.#handOver(talk);
    });
  }

  stop(): void {
    this.#end.abort();
    this.#probe.abort();
  }

  get isAlive(): boolean {
    return this.#isAlive;
  }

  /** Aborts when the run has ended. */
  get signal(): AbortSignal {
    return this.#end.signal;
  }

  hasAnswered(guestPort: number): boolean {
    return this.#answered.has(guestPort);
  }

  /** Call it at a guest's first byte on a connection. */
  answered(guestPort: number): void {
    this.#answered.add(guestPort);
    if (this.#isAlive || this.#end.signal.aborted) return;
    this.#isAlive = true;
    for (const listener of this.#lifeListeners) listener();
    this.#lifeListeners.clear();
    this.#deps.onSignOfLife();
    if (guestPort !== SSH_PORT) this.#probe.abort();
  }

  /** Resolves at the first sign of life, after `ms`, when the signal aborts, or when no probe is running. */
  life(ms: number, signal: AbortSignal): Promise<void> {
    if (this.#isAlive || signal.aborted || this.#probe.signal.aborted) return Promise.resolve();
    return new Promise((resolve) => {
      const done = () => {
        clearTimeout(timer);
        this.#lifeListeners.delete(done);
        signal.removeEventListener('abort', done);
        resolve();
      };
      const timer = setTimeout(done, ms).unref();
      this.#lifeListeners.add(done);
      signal.addEventListener('abort', done);
    });
  }

  /** A connection to the guest's port; null when it has no endpoint. */
  dial(guestPort: number): Socket | null {
    const endpoint = this.#deps.endpointOf(guestPort);
    return endpoint === null ? null : open(endpoint);
  }

  /**
   * A connection on which the guest has answered; null when the signal aborts first. While this run's own
   * probe is in progress nothing else connects: the first in the queue gets the probe's connection.
   */
  async talk(guestPort: number, signal: AbortSignal): Promise<Talk | null> {
    if (this.#deps.endpointOf(guestPort) === null) return null;
    if (guestPort === SSH_PORT && !this.#probe.signal.aborted) {
      const given = await this.#wait(signal);
      if (given !== null || signal.aborted) return given;
    }
    const talk = await seekTalk(this.#seek(guestPort, signal));
    if (talk !== null) this.answered(guestPort);
    return talk;
  }

  /**
   * A connection that ends with this run: on port 22 one on which the guest has spoken; null: nothing listens
   * there, or SSH does not answer in time.
   */
  async reach(guestPort: number, endpoint: GuestEndpoint): Promise<Socket | null> {
    const patience = AbortSignal.timeout(this.#deps.timings.waitMs);
    const signal = AbortSignal.any([this.#end.signal, patience]);
    const socket = guestPort === SSH_PORT ? await this.#spoken(signal) : await connected(endpoint, signal);
    if (socket === null) return null;
    const cut = () => reset(socket);
    this.#end.signal.addEventListener('abort', cut);
    socket.once('close', () => this.#end.signal.removeEventListener('abort', cut));
    if (this.#end.signal.aborted) cut();
    return socket;
  }

  async #spoken(signal: AbortSignal): Promise<Socket | null> {
    const talk = await this.talk(SSH_PORT, signal);
    talk?.socket.unshift(talk.first);
    return talk?.socket ?? null;
  }

  #wait(signal: AbortSignal): Promise<Talk | null> {
    return new Promise((resolve) => {
      const waiter = (talk: Talk | null) => {
        this.#waiters.delete(waiter);
        signal.removeEventListener('abort', leave);
        resolve(talk);
      };
      const leave = () => waiter(null);
      this.#waiters.add(waiter);
      signal.addEventListener('abort', leave);
    });
  }

  #handOver(talk: Talk | null): void {
    this.#probe.abort();
    let unclaimed = talk;
    for (const waiter of [...this.#waiters]) {
      waiter(unclaimed);
      unclaimed = null;
    }
    // No client waits: the guest's server gets an orderly end, not a reset.
    if (unclaimed !== null) part(unclaimed.socket);
  }

  #seek(guestPort: number, signal: AbortSignal) {
    const { clock, timings, endpointOf } = this.#deps;
    const dial = () => open(endpointOf(guestPort) ?? NOWHERE);
    const isKnown = this.#answered.has(guestPort);
    return { clock, intervalMs: timings.retryMs, isKnown, signal, dial };
  }
}

function part(socket: Socket): void {
  const cut = setTimeout(() => socket.destroy(), PART_MS).unref();
  socket.once('close', () => clearTimeout(cut));
  socket.once('end', () => socket.destroySoon());
  socket.resume().end();
}

/** Refuses immediately. */
const NOWHERE: GuestEndpoint = { host: '127.0.0.1', port: 1 };

/** null: it was refused, or the signal aborted first. */
function connected(endpoint: GuestEndpoint, signal: AbortSignal): Promise<Socket | null> {
  const socket = open(endpoint);
  return new Promise((resolve) => {
    const give = () => socket.destroy();
    const settle = (result: Socket | null) => {
      signal.removeEventListener('abort', give);
      resolve(result);
    };
    socket.once('connect', () => settle(socket)).once('close', () => settle(null));
    if (signal.aborted) give();
    else signal.addEventListener('abort', give);
  });
}

function open({ host, port }: GuestEndpoint): Socket {
  const keepAlive = { keepAlive: true, keepAliveInitialDelay: KEEPALIVE_MS };
  const socket = connect({ host, port, noDelay: true, allowHalfOpen: true, ...keepAlive });
  // Each user of the socket waits for `close`, which follows; without a listener an error ends the process.
  socket.on('error', () => undefined);
  return socket;
}

/** The address of one machine while it runs: its listeners, its connections, and what passed through them. */
import { createServer, type Server, type Socket } from 'node:net';
import {
  type Exposure,
  type IngressPort,
  type IngressTraffic,
  NOT_RUNNING,
  type PortState,
} from '../../compute/ingress.ts';
import type { Clock } from '../../platform/clock.ts';
import { ClientConnection } from './client-connection.ts';
import { closed, listenAt } from './host-addresses.ts';
import { IngressRun, type IngressTimings, SSH_PORT } from './ingress-run.ts';
import { reset } from './relay.ts';

/** The files that this process may open. */
export interface Descriptors {
  /** Whether so many more can be opened; they count as open then. */
  take(more: number): boolean;
}

export interface MachineFrontDeps {
  readonly clock: Clock;
  readonly exposure: Exposure;
  readonly timings: IngressTimings;
  readonly descriptors: Descriptors;
  /** Where to listen for ports of the address; one that is missing is listened on itself. */
  readonly doors: (ports: readonly number[]) => Promise<ReadonlyMap<number, number>>;
}

interface Door extends IngressPort {
  server: Server | null;
  /** Why it is closed. */
  reason: string;
}

const MAX_CONNECTIONS = 256;
const KEEPALIVE_MS = 60_000;
/** Where SSH answers as well, because port 22 needs a privilege that Cloudlet may not have. */
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
  readonly #doors: readonly Door[];
  readonly #clients = new Set<Socket>();
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
  #opening: Promise<Door[]> | null = null;
  #run: IngressRun | null = null;
  #isClosed = false;

  constructor(deps: MachineFrontDeps) {
    this.#deps = deps;
    const closedYet = { server: null, reason: NOT_RUNNING };
    this.#doors = ingressPorts(deps.exposure.guestPorts).map((port) => ({ ...port, ...closedYet }));
  }

  /** Listens on every port it can have. Resolves with those that are closed for a new reason. */
  async open(): Promise<PortState[]> {
    this.#opening ??= this.#openClosed().finally(() => {
      this.#opening = null;
    });
    return (await this.#opening).map(stateOf);
  }

  /** Saying it again changes nothing. */
  begin(): void {
    if (this.#run !== null || this.#isClosed) return;
    const { clock, timings, exposure } = this.#deps;
    const { endpointOf, onSignOfLife } = exposure;
    this.#run = new IngressRun({ clock, timings, endpointOf, onSignOfLife });
    this.#run.start();
  }

  ports(): PortState[] {
    return this.#doors.map(stateOf);
  }

  traffic(): IngressTraffic {
    return { inBytes: this.#inBytes, outBytes: this.#outBytes, connections: this.#clients.size };
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#run?.stop();
    for (const client of this.#clients) reset(client);
    // What is being opened is closed then.
    await this.#opening;
    await Promise.all(this.#doors.map(({ server }) => server && closed(server)));
  }

  async #openClosed(): Promise<Door[]> {
    const shut = this.#doors.filter(({ server }) => server === null);
    const before = shut.map(({ reason }) => reason);
    const places = await this.#deps.doors(shut.map(({ port }) => port));
    await Promise.all(shut.map((door) => this.#open(door, places.get(door.port) ?? door.port)));
    return shut.filter(({ server, reason }, index) => server === null && reason !== before[index]);
  }

  async #open(door: Door, port: number): Promise<void> {
    const { exposure, descriptors } = this.#deps;
    if (!descriptors.take(1)) {
      door.reason = 'this cloud has too many files open';
      return;
    }
    const server = createServer({
      allowHalfOpen: true,
      noDelay: true,
      keepAlive: true,
      keepAliveInitialDelay: KEEPALIVE_MS,
    });
    server.on('connection', (client) => this.#accept(client, door));
    const error = await listenAt(server, { address: exposure.address, port });
    if (error === null) door.server = server;
    else door.reason = reasonOf(error);
  }

  #accept(client: Socket, { port, guestPort }: IngressPort): void {
    // An error is always followed by `close`; without a listener it would end the process.
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

function stateOf({ port, guestPort, server, reason }: Door): PortState {
  return { port, guestPort, reason: server === null ? reason : null };
}

function reasonOf(error: NodeJS.ErrnoException): string {
  switch (error.code) {
    case 'EACCES':
      return (
        'ports below 1024 need root, CAP_NET_BIND_SERVICE or a lower net.ipv4.ip_unprivileged_port_start; ' +
        'what answers there is not the machine'
      );
    case 'EADDRINUSE':
      return 'another program of this host listens there, and answers; only root with nftables can lead past it';
    case 'EADDRNOTAVAIL':
      return 'this host does not have the address';
    default:
      return error.code ?? error.message;
  }
}

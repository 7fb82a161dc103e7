/** The address of one machine: its listeners, its connections, and what passed through them. */
import { createServer, type Server, type Socket } from 'node:net';
import type { Clock } from '../../clock.ts';
import type { Exposure, FrontPort, FrontTraffic, RefusedPort } from '../../compute/front.ts';
import { ClientConnection } from './client-connection.ts';
import { type FrontTimings, GuestRun, SSH_PORT } from './guest-run.ts';
import { NOT_RUNNING, refuse } from './not-running.ts';
import { reset } from './relay.ts';

export interface MachineFrontDeps {
  readonly clock: Clock;
  readonly exposure: Exposure;
  readonly timings: FrontTimings;
}

const MAX_CONNECTIONS = 256;
const KEEPALIVE_MS = 60_000;
/** SSH answers here too where its own port cannot be had. */
const SSH_INSTEAD: FrontPort = { port: 2222, guestPort: SSH_PORT };

export class MachineFront {
  readonly #deps: MachineFrontDeps;
  readonly #servers: Server[] = [];
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
  #run: GuestRun | null = null;
  #isClosed = false;

  constructor(deps: MachineFrontDeps) {
    this.#deps = deps;
  }

  /** Listens on every port it can have. */
  async open(): Promise<RefusedPort[]> {
    const { ports } = this.#deps.exposure;
    const refused = (await Promise.all(ports.map((port) => this.#listen(port)))).filter(
      (one) => one !== null,
    );
    const isSshRefused = ports.some(
      ({ port, guestPort }) => guestPort === SSH_PORT && refused.some((one) => one.port === port),
    );
    if (!isSshRefused || ports.some(({ port }) => port === SSH_INSTEAD.port)) return refused;
    const instead = await this.#listen(SSH_INSTEAD);
    return instead === null ? refused : [...refused, instead];
  }

  setRunning(running: boolean): void {
    if (running === (this.#run !== null) || this.#isClosed) return;
    if (!running) {
      this.#run?.stop();
      this.#run = null;
      return;
    }
    const { clock, timings, exposure } = this.#deps;
    const { endpointOf, onSignOfLife } = exposure;
    this.#run = new GuestRun({ clock, timings, endpointOf, onSignOfLife });
    this.#run.start();
  }

  traffic(): FrontTraffic {
    return { inBytes: this.#inBytes, outBytes: this.#outBytes, connections: this.#clients.size };
  }

  async close(): Promise<void> {
    this.setRunning(false);
    this.#isClosed = true;
    for (const client of this.#clients) reset(client);
    await Promise.all(this.#servers.map(closed));
  }

  #listen(port: FrontPort): Promise<RefusedPort | null> {
    const server = createServer({
      allowHalfOpen: true,
      noDelay: true,
      keepAlive: true,
      keepAliveInitialDelay: KEEPALIVE_MS,
    });
    server.on('connection', (client) => this.#accept(client, port));
    return new Promise((resolve) => {
      const fail = (error: NodeJS.ErrnoException) => resolve({ port: port.port, reason: reasonOf(error) });
      server.once('error', fail);
      server.listen({ host: this.#deps.exposure.address, port: port.port, exclusive: true }, () => {
        server.off('error', fail);
        // Of accepting a later connection, as when no file descriptor is left: that client is not served.
        server.on('error', () => undefined);
        this.#servers.push(server);
        if (this.#isClosed) server.close();
        resolve(null);
      });
    });
  }

  #accept(client: Socket, { port, guestPort }: FrontPort): void {
    // An error is always followed by `close`; without a listener it would end the process.
    client.on('error', () => undefined);
    if (this.#isClosed || this.#clients.size >= MAX_CONNECTIONS) {
      client.destroy();
      return;
    }
    this.#clients.add(client);
    client.once('close', () => this.#clients.delete(client));
    const { timings } = this.#deps;
    const run = this.#run;
    if (run === null) {
      refuse(client, { port, message: NOT_RUNNING, sent: Buffer.alloc(0), lingerMs: timings.lingerMs });
      return;
    }
    new ClientConnection({ client, run, port, guestPort, timings, counts: this.#counts }).start();
  }
}

function closed(server: Server): Promise<void> {
  return new Promise((resolve) => {
    server.close(() => resolve());
  });
}

function reasonOf(error: NodeJS.ErrnoException): string {
  switch (error.code) {
    case 'EACCES':
      return 'ports below 1024 need root, CAP_NET_BIND_SERVICE or a lower net.ipv4.ip_unprivileged_port_start';
    case 'EADDRINUSE':
      return 'another program of this host listens there, and it is the one that answers';
    case 'EADDRNOTAVAIL':
      return 'this host does not have the address';
    default:
      return error.code ?? error.message;
  }
}

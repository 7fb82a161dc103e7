/** TCP ports of this host that lead to machines. */
import { createServer, type Server, type Socket } from 'node:net';
import type { ForVisitor, PublicListeners } from '../../compute/ports/published-ports.ts';
import { sourceOf } from '../../platform/host/caller-networks.ts';
import { closed, listenAt, refusal } from '../loopback-ingress/host-addresses.ts';
import { relay, reset } from '../loopback-ingress/relay.ts';
import type { OfferedPorts } from '../offered-ports.ts';

interface Listener {
  readonly server: Server;
  readonly clients: Set<Socket>;
}

/** Per port: above the limit of one account, so that the first visitor cannot keep others out. */
const MAX_CONNECTIONS = 640;
const KEEPALIVE_MS = 60_000;
/** Bytes of machines are counted where they connect. */
const UNCOUNTED = { onIn: () => {}, onOut: () => {} };

export class TcpListeners implements PublicListeners {
  /** See publishedAt(). */
  readonly #host: string;
  readonly #listeners = new Map<number, Listener>();
  /** Other nodes forward connections; undefined: there are no other nodes. */
  readonly #ports: OfferedPorts | undefined;

  constructor({ host, ports }: { readonly host: string; readonly ports?: OfferedPorts | undefined }) {
    this.#host = host;
    this.#ports = ports;
  }

  async open(port: number, dial: ForVisitor): Promise<string | null> {
    const clients = new Set<Socket>();
    const server = createServer({
      allowHalfOpen: true,
      pauseOnConnect: true,
      noDelay: true,
      keepAlive: true,
      keepAliveInitialDelay: KEEPALIVE_MS,
    });
    server.maxConnections = MAX_CONNECTIONS;
    const take = (client: Socket, address = client.remoteAddress ?? '') => {
      clients.add(client);
      // `close` follows every error; without a listener, an error would end the process.
      client.on('error', () => undefined).once('close', () => clients.delete(client));
      if (clients.size > MAX_CONNECTIONS) reset(client);
      else void join(client, dial(sourceOf(address)));
    };
    server.on('connection', (client) => take(client));
    const error = await listenAt(server, { address: this.#host, port });
    if (error !== null) return reasonOf(error);
    this.#listeners.set(port, { server, clients });
    this.#ports?.offer(port, { protocol: 'tcp', addresses: [this.#host], take });
    return null;
  }

  async isFree(port: number): Promise<boolean> {
    return !this.#listeners.has(port) && (await refusal({ address: this.#host, port })) === undefined;
  }

  async close(port: number): Promise<void> {
    const listener = this.#listeners.get(port);
    this.#listeners.delete(port);
    this.#ports?.withdraw(port);
    if (listener === undefined) return;
    const ended = closed(listener.server);
    for (const client of listener.clients) reset(client);
    await ended;
  }
}

/** A client that leaves early also ends the guest's side. */
async function join(client: Socket, dialed: ReturnType<ForVisitor>): Promise<void> {
  const guest = await dialed;
  if (guest === null) reset(client);
  else if (client.destroyed) reset(guest);
  else relay(client, guest, UNCOUNTED);
}

function reasonOf({ code, message }: NodeJS.ErrnoException): string {
  if (code === 'EADDRINUSE') return 'another program of this host listens on this port';
  if (code === 'EACCES') return 'Cloudlet is not permitted to listen on this port of the host';
  return code ?? message;
}

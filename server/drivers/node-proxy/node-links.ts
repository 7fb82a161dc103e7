/** Persistent HTTP connections to other nodes of the cluster. Forward limits their number. */
import { type ClientRequest, Agent as HttpAgent, request as httpRequest } from 'node:http';
import { Agent as HttpsAgent, request as httpsRequest } from 'node:https';
import type { Socket } from 'node:net';

/** A request to another node, without its body. */
interface Head {
  readonly method: string;
  readonly path: string;
  /** Alternating names and values. */
  readonly headers: readonly string[];
  readonly isUpgrade: boolean;
  /** On a connection of its own. */
  readonly isFresh?: boolean;
  /** Each direction of the upgraded connection ends separately. */
  readonly isHalfOpen?: boolean;
}

const CONNECT_MS = 3000;
/** Shorter than the idle timeout of a node, which could otherwise close a connection during a request. */
const IDLE_MS = 30_000;

export class NodeLinks {
  readonly #agents = {
    http: new HttpAgent({ keepAlive: true, timeout: IDLE_MS }),
    https: new HttpsAgent({ keepAlive: true, timeout: IDLE_MS }),
  };

  /** Begins a request to the node at `url`. Fails within seconds if unreachable. */
  request(url: string, head: Head): ClientRequest {
    const { method, path, headers, isUpgrade, isFresh = false, isHalfOpen = false } = head;
    const { protocol, hostname, port } = new URL(url);
    const isTls = protocol === 'https:';
    const begin = isTls ? httpsRequest : httpRequest;
    const options = {
      hostname: hostname.replace(/^\[|\]$/g, ''),
      port: port === '' ? undefined : Number(port),
      method,
      path,
      headers: [...headers],
      setHost: false,
      // Node passes it on to net.connect().
      allowHalfOpen: isHalfOpen,
      agent: isUpgrade || isFresh ? false : this.#agents[isTls ? 'https' : 'http'],
    };
    const upstream = begin(options);
    upstream.once('socket', (socket) => limitConnecting(upstream, socket));
    return upstream;
  }

  close(): void {
    for (const agent of Object.values(this.#agents)) agent.destroy();
  }
}

function limitConnecting(upstream: ClientRequest, socket: Socket): void {
  if (!socket.connecting) return;
  const limit = setTimeout(() => upstream.destroy(new Error('the node does not answer')), CONNECT_MS);
  socket.once('connect', () => clearTimeout(limit)).once('close', () => clearTimeout(limit));
}

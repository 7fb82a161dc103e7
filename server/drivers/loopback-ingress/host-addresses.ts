/** Finds addresses of this host that are free for machines of this cloud. */
import { createSocket, type Socket } from 'node:dgram';
import { createServer, type Server } from 'node:net';

/** A UDP port on a block's first address, which no machine has: its holder has the block. */
const CLAIM_PORT = 22_022;

/** `unknown`: the host does not support claims. */
type Claim = Socket | 'unknown' | 'taken';

export class HostAddresses {
  readonly #claims = new Map<string, Promise<Claim>>();

  /** Ingress.claim. */
  async claim(base: string): Promise<boolean> {
    const claim = this.#claims.get(base) ?? hold({ address: base, port: CLAIM_PORT });
    this.#claims.set(base, claim);
    const isOurs = (await claim) !== 'taken';
    // The other cloud may end.
    if (!isOurs) this.#claims.delete(base);
    return isOurs;
  }

  /** Ingress.isFree, based on this host's ports. */
  async isFree(address: string, ports: readonly number[]): Promise<boolean> {
    for (const port of ports) {
      const code = await refusal({ address, port });
      if (code === 'EADDRNOTAVAIL') return false;
      if (code === 'EADDRINUSE' && (await refusal({ address: NEUTRAL, port })) !== 'EADDRINUSE') return false;
    }
    return true;
  }

  /** Releases every claim. */
  async close(): Promise<void> {
    const claims = await Promise.all(this.#claims.values());
    this.#claims.clear();
    for (const claim of claims) if (typeof claim !== 'string') claim.close();
  }
}

/** Whether no cloud on this host has claimed the block. */
export async function isUnclaimed(base: string): Promise<boolean> {
  const claim = await hold({ address: base, port: CLAIM_PORT });
  if (typeof claim === 'string') return false;
  claim.close();
  return true;
}

function hold({ address, port }: Endpoint): Promise<Claim> {
  const socket = createSocket('udp4');
  return new Promise((resolve) => {
    socket.once('error', ({ code }: NodeJS.ErrnoException) => {
      socket.close();
      resolve(code === 'EADDRINUSE' ? 'taken' : 'unknown');
    });
    socket.bind({ address, port, exclusive: true }, () => {
      socket.removeAllListeners('error').on('error', () => undefined);
      resolve(socket);
    });
  });
}

interface Endpoint {
  readonly address: string;
  readonly port: number;
}

/**
 * An address of every host that no machine has. A port that is unavailable here is taken at every address of
 * the host.
 */
export const NEUTRAL = '127.1.0.0';

/** Resolves with null once the server listens, else with the error. No later error ends the process. */
export function listenAt(server: Server, { address, port }: Endpoint): Promise<NodeJS.ErrnoException | null> {
  return new Promise((resolve) => {
    // Also an error of accepting a later connection, such as no free file descriptor: that client is not
    // served.
    server.on('error', resolve);
    server.listen({ host: address, port, exclusive: true }, () => resolve(null));
  });
}

export function closed(server: Server): Promise<void> {
  return new Promise((resolve) => {
    server.close(() => resolve());
  });
}

/** Error code of listening there; undefined: possible. */
export async function refusal(endpoint: Endpoint): Promise<string | undefined> {
  const server = createServer();
  const error = await listenAt(server, endpoint);
  if (error === null) await closed(server);
  return error?.code;
}

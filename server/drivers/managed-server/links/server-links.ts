/** Options of connections to a database server of any engine. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { ConnectionOptions } from 'node:tls';

/** How long to wait for a server that should answer. */
const COMING_MS = 10_000;
const POLL_MS = 50;

export interface Administrator {
  readonly user: string;
  /** The database to connect to. */
  readonly database: string;
  readonly password: () => string;
}

/** Address of the server. */
export type ServerEndpoint =
  /** Folder of the socket, and the port in its name, if any. */
  | { readonly socket: () => { readonly folder: string; readonly port: number } }
  | { readonly host: string; readonly port: number; readonly tls: () => ConnectionOptions | null };

export interface LinksDeps {
  readonly administrator: Administrator;
  readonly endpoint: ServerEndpoint;
  /** Secret from which the passwords of our roles are derived. Throws if it does not exist yet. */
  readonly secret: () => Buffer;
  /** Whether the server should be up; callers that come too early then wait a little. */
  readonly isUp: () => boolean;
}

/** Retries a connection after one of these errors while the server should answer. */
export async function patiently<T>(
  connect: () => Promise<T>,
  { isUp, early }: { readonly isUp: () => boolean; readonly early: readonly string[] },
): Promise<T> {
  for (let waited = 0; ; waited += POLL_MS) {
    try {
      return await connect();
    } catch (error) {
      const isComing = early.includes(String((error as NodeJS.ErrnoException).code));
      if (!isComing || !isUp() || waited > COMING_MS) throw error;
      await sleep(POLL_MS);
    }
  }
}

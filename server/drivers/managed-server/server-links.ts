/** What connections to a database server are made with, whichever engine it is of. */
import type { ConnectionOptions } from 'node:tls';

export interface Administrator {
  readonly user: string;
  /** To which it connects. */
  readonly database: string;
  readonly password: () => string;
}

/** Where the server is. */
export type ServerPlace =
  /** Its folder, and the port in its name where it has one. */
  | { readonly socket: () => { readonly folder: string; readonly port: number } }
  | { readonly host: string; readonly port: number; readonly tls: () => ConnectionOptions | null };

export interface LinksDeps {
  readonly administrator: Administrator;
  readonly place: ServerPlace;
  /** From which all passwords of our own roles come. Throws when there is none yet. */
  readonly secret: () => Buffer;
  /** Whether it should answer; then who comes too early waits a little. */
  readonly isUp: () => boolean;
}

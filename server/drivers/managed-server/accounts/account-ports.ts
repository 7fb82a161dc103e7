/** Ports of accounts' servers: each keeps its own. */
import * as fs from 'node:fs';
import { join } from 'node:path';
import { freePort, keepPort, keptPort } from '../../server-port.ts';
import type { Moving } from '../shared-server.ts';

export class AccountPorts {
  readonly #folder: string;
  readonly #firstPort: number;
  readonly #warn: (text: string) => void;

  /** `folder`: contains one port file per account. */
  constructor(folder: string, firstPort: number, warn: (text: string) => void) {
    this.#folder = folder;
    this.#firstPort = firstPort;
    this.#warn = warn;
  }

  /** Ports by account. */
  all(): ReadonlyMap<number, number> {
    const names = fs.existsSync(this.#folder) ? fs.readdirSync(this.#folder) : [];
    const ports = new Map<number, number>();
    for (const name of names) {
      const port = keptPort(join(this.#folder, name));
      if (/^\d+$/.test(name) && port !== null) ports.set(Number(name), port);
    }
    return ports;
  }

  /** Accounts with unreadable ports get new ones, which are returned. */
  mend(): ReadonlyMap<number, number> {
    const known = this.all();
    const taken = new Set(known.values());
    const mended = new Map<number, number>();
    for (const name of fs.existsSync(this.#folder) ? fs.readdirSync(this.#folder) : []) {
      const accountId = Number(name);
      if (!/^\d+$/.test(name) || known.has(accountId)) continue;
      let port = this.#firstPort;
      while (taken.has(port)) port++;
      taken.add(port);
      this.#keep(accountId, port);
      mended.set(accountId, port);
    }
    return mended;
  }

  /** The account's port, or the first free port that no other account has. */
  async choose(accountId: number): Promise<number> {
    const ports = this.all();
    const taken = new Set(ports.values());
    let port = ports.get(accountId) ?? (await freePort(this.#firstPort));
    while (!ports.has(accountId) && taken.has(port)) port = await freePort(port + 1);
    this.#keep(accountId, port);
    return port;
  }

  /** The account with most of these databases gets the port that they shared. */
  giveShared(port: number | null, all: readonly Moving[]): void {
    if (port === null || all.length === 0 || this.all().size > 0) return;
    const counts = Map.groupBy(all, ({ database }) => database.accountId);
    const [[first] = [0]] = [...counts].sort(([, one], [, other]) => other.length - one.length);
    this.#keep(first, port);
    if (counts.size > 1)
      this.#warn(
        `each account now has its own port for databases, and only account ${first} keeps ${port}; ` +
          'GET /api/databases/{id}/credentials shows each owner the new address',
      );
  }

  #keep(accountId: number, port: number): void {
    const folder = join(this.#folder, String(accountId));
    fs.mkdirSync(folder, { recursive: true, mode: 0o700 });
    keepPort(folder, port);
  }
}

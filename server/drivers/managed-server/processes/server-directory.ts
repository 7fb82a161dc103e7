/**
 * The servers of all accounts of one engine, each with its folder and its users' port. They are
 * created with the first database of an account, and found by account or database.
 */
import * as fs from 'node:fs';
import { join } from 'node:path';
import { SEE_LOG } from '../../../platform/alarms.ts';
import type { AppError } from '../../../platform/errors.ts';
import { newPort } from '../../server-port.ts';
import { AccountAlarms } from '../accounts/account-alarms.ts';
import type { AccountKind, AccountOptions } from '../accounts/account-kind.ts';
import { AccountPorts } from '../accounts/account-ports.ts';
import { AccountServer } from '../accounts/account-server.ts';
import type { ClientPrograms } from '../programs/client-programs.ts';
import type { DataTemplate } from '../programs/data-template.ts';
import type { Moving } from '../shared-server.ts';

const ACCOUNTS = 'accounts';
const LOOPBACK = '127.0.0.1';

export interface ServerDirectoryDeps {
  readonly kind: AccountKind;
  readonly options: AccountOptions;
  /** Shared by all servers. */
  readonly template: DataTemplate;
  readonly clients: ClientPrograms;
  /** See AccountServerDeps. */
  readonly beforeSleep: (accountId: number) => Promise<void>;
}

export class ServerDirectory {
  readonly #deps: ServerDirectoryDeps;
  readonly #alarms: AccountAlarms;
  readonly #ports: AccountPorts;
  readonly #servers = new Map<number, AccountServer>();
  /** Accounts by the names of their databases. */
  readonly #accounts = new Map<string, number>();
  /** The last creation in progress. */
  #making: Promise<unknown> = Promise.resolve();

  /** Finds all servers with folders; starts none. */
  constructor(deps: ServerDirectoryDeps) {
    const { kind, options } = deps;
    this.#deps = deps;
    this.#alarms = new AccountAlarms(options.alarms);
    this.#ports = new AccountPorts(join(options.folder, ACCOUNTS), options.firstPort, options.warn);
    for (const [accountId, port] of this.#ports.mend()) {
      const { detail, fix } = newPort('its databases', port);
      this.#alarms.of(accountId).raise(`${kind.name}_port_changed`, detail, fix);
    }
    for (const [accountId, port] of this.#ports.all()) {
      const server = this.#make(accountId, port);
      for (const database of server.names) this.#accounts.set(database, accountId);
    }
  }

  /** Servers by account: a live view. */
  get byAccount(): ReadonlyMap<number, AccountServer> {
    return this.#servers;
  }

  all(): readonly AccountServer[] {
    return [...this.#servers.values()];
  }

  /** The server that has that database. */
  with(database: string): AccountServer | undefined {
    return this.#servers.get(this.#accounts.get(database) ?? -1);
  }

  /** Records which server has a database. */
  note(database: string, accountId: number): void {
    this.#accounts.set(database, accountId);
  }

  /**
   * Removes a database that was dropped from that server; a server without databases is removed,
   * with its folder and port.
   */
  forget(database: string, server: AccountServer): Promise<void> {
    this.#accounts.delete(database);
    // In turn with made(): the folder of a new server must not be removed with the old one.
    const forgotten = this.#making.then(async () => {
      if (server.names.length > 0 || this.#servers.get(server.accountId) !== server) return;
      this.#servers.delete(server.accountId);
      await server.close();
      fs.rmSync(this.#folderOf(server.accountId), { recursive: true, force: true });
    });
    this.#making = forgotten.catch(() => {});
    return forgotten;
  }

  /** Whether an account has data. */
  hasData(accountId: number): boolean {
    return fs.existsSync(join(this.#folderOf(accountId), 'home', 'data'));
  }

  /** The account with most databases keeps the port that all shared in earlier versions. */
  giveShared(port: number | null, all: readonly Moving[]): void {
    this.#ports.giveShared(port, all);
  }

  /** Listens for users; returns whether it did not before. Raises an alarm on failure. Never rejects. */
  async open(server: AccountServer): Promise<boolean> {
    const alarms = this.#alarms.of(server.accountId);
    const code = `${this.#deps.kind.name}_port_taken`;
    try {
      const isNew = await server.open();
      alarms.clear(code);
      return isNew;
    } catch (error) {
      const { message, hint = SEE_LOG } = error as AppError;
      alarms.raise(code, message, hint);
      return false;
    }
  }

  /**
   * The account's server, listening; it is created if there is none. One after the other: each must
   * see the port of the previous one. Rejects if its port is taken.
   */
  made(accountId: number): Promise<AccountServer> {
    const making = this.#making.then(async () => {
      const there = this.#servers.get(accountId);
      if (there !== undefined) {
        await there.open();
        return there;
      }
      const server = this.#make(accountId, await this.#ports.choose(accountId));
      await server.open();
      return server;
    });
    this.#making = making.catch(() => {});
    return making;
  }

  #make(accountId: number, port: number): AccountServer {
    const { kind, options, template, clients } = this.#deps;
    const { warn, uidOf, servers, tls = null, keepsLogs: keepsLog = false } = options;
    const { proxy, slots, idleMs, clock, connections } = servers;
    const addresses = tls?.listen ?? [LOOPBACK];
    const folder = this.#folderOf(accountId);
    const onEnd = () => server.ended();
    const beforeSleep = () => this.#deps.beforeSleep(accountId);
    const uid = uidOf(accountId);
    const account = { accountId, port, uid, connections, template, keepsLog, clients, onEnd };
    const alarms = this.#alarms.of(accountId);
    const engine = kind.make({ ...options, folder, alarms, account });
    const server = new AccountServer({
      accountId,
      folder,
      engine,
      proxy,
      listener: { name: `${kind.name}:${accountId}`, addresses, port, protocol: kind.protocol },
      takeSlot: (signal) => slots.take(accountId, signal),
      refusal: (text) => kind.refusal(text),
      idleMs,
      connections,
      clock,
      beforeSleep,
      warn,
      deletesWhileHeld: kind.deletesWhileHeld,
    });
    this.#servers.set(accountId, server);
    return server;
  }

  #folderOf(accountId: number): string {
    return join(this.#deps.options.folder, ACCOUNTS, String(accountId));
  }
}

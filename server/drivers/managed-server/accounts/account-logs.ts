/** The logs of the servers of all accounts, for continuous archiving. */
import type { Dump, EngineDatabase } from '../../../databases/engine.ts';
import type {
  LogServer,
  ServerCopy,
  ServerLogs,
  ServerTrial,
} from '../../../databases/points/server-logs.ts';
import type { ScratchServers } from '../scratch-servers.ts';
import type { AccountServer } from './account-server.ts';

export interface AccountLogsDeps {
  readonly servers: ReadonlyMap<number, AccountServer>;
  readonly scratch: ScratchServers;
}

export class AccountLogs implements ServerLogs {
  readonly #deps: AccountLogsDeps;
  #beforeSleep: (server: LogServer) => Promise<void> = async () => {};

  constructor(deps: AccountLogsDeps) {
    this.#deps = deps;
  }

  running(): readonly LogServer[] {
    return [...this.#deps.servers.values()].flatMap((server) => (server.isUp ? logOf(server) : []));
  }

  async using<T>(accountId: number, work: (server: LogServer) => Promise<T>): Promise<T> {
    const server = this.#deps.servers.get(accountId);
    const [log] = server === undefined ? [] : logOf(server);
    if (server === undefined || log === undefined) throw new Error('the account has no server with a log');
    return server.using(() => work(log));
  }

  onSleep(work: (server: LogServer) => Promise<void>): void {
    this.#beforeSleep = work;
  }

  /** See AccountServerDeps. */
  async beforeSleep(accountId: number): Promise<void> {
    const server = this.#deps.servers.get(accountId);
    for (const log of server === undefined ? [] : logOf(server)) await this.#beforeSleep(log);
  }

  accounts(): ReadonlyMap<number, number> {
    return new Map([...this.#deps.servers].map(([accountId, { limitBytes }]) => [accountId, limitBytes]));
  }

  dumpAt(
    copy: ServerCopy,
    of: { readonly database: EngineDatabase; readonly at: number; readonly signal: AbortSignal },
  ): Promise<Dump> {
    return this.#deps.scratch.dumpAt(copy, of);
  }

  tryToEnd(copy: ServerCopy, signal: AbortSignal): Promise<ServerTrial> {
    return this.#deps.scratch.tryToEnd(copy, signal);
  }
}

function logOf({ accountId, engine: { ownLog } }: AccountServer): LogServer[] {
  if (ownLog === undefined) return [];
  return [
    {
      accountId,
      state: () => ownLog.state(),
      begin: (line) => ownLog.begin(line),
      read: (from, to) => ownLog.read(from, to),
      release: (to) => ownLog.release(to),
      copy: (signal) => ownLog.copy(signal),
    },
  ];
}

/**
 * Copies of accounts' servers that run while a database is dumped from them: with the account's
 * user, in its slots, unreachable for others. Each has a folder, which is removed afterwards, or
 * after a kill by the next start.
 */
import * as fs from 'node:fs';
import { join } from 'node:path';
import type { Dump, EngineDatabase } from '../../databases/engine.ts';
import type { ServerCopy, ServerTrial } from '../../databases/points/server-logs.ts';
import { hostDiskFull } from '../../platform/errors.ts';
import { randomName } from '../../platform/ids.ts';
import { removeTree } from '../host-process/foreign-files.ts';
import type { HostProcesses } from '../host-process/host-processes.ts';
import type { AccountKind, AccountOptions } from './accounts/account-kind.ts';
import type { OwnServer } from './database-server.ts';
import { processName } from './server-data.ts';
import type { AccountEngine } from './sql-engine.ts';

export interface ScratchDeps {
  /** Name of the engine: `postgresql`. */
  readonly name: string;
  /** Cloudlet's folder for these servers. */
  readonly folder: string;
  readonly format: string;
  readonly processes: Pick<HostProcesses, 'adopt'>;
  readonly uidOf: (accountId: number) => number | null;
  /** Waits for a process slot of the account; the result releases it. */
  readonly takeSlot: (accountId: number) => Promise<() => void>;
  /** The server in that folder as of `at`, ms, or of the end of its log (null), running and recovered. */
  readonly recover: (
    copy: ServerCopy,
    how: { readonly folder: string; readonly at: number | null; readonly signal: AbortSignal },
  ) => Promise<AccountEngine>;
}

const MEMORY_MB = 512;

/** Scratch servers of an engine. They raise no alarms, because errors go to the caller. */
export function scratchServers(
  kind: AccountKind,
  options: AccountOptions,
  shared: Pick<OwnServer, 'template' | 'clients'>,
): ScratchServers {
  const { folder, processes, uidOf, servers, isDiskLow } = options;
  const alarms = { raise: () => {}, clear: () => {} };
  return new ScratchServers({
    name: kind.name,
    folder: join(folder, 'scratch'),
    format: kind.dumpFormats[0] ?? '',
    processes,
    uidOf,
    takeSlot: (accountId) => servers.slots.take(accountId),
    recover: async (copy, { folder: at, ...how }) => {
      if (kind.recover === undefined || isDiskLow()) throw hostDiskFull();
      const { accountId } = copy;
      const { connections } = servers;
      const own = { accountId, port: 0, uid: uidOf(accountId), connections, keepsLog: true };
      const account = { ...shared, ...own, onEnd: () => {} };
      return kind.recover({ ...options, folder: at, alarms, account, tls: null }, copy, how);
    },
  });
}

export class ScratchServers {
  readonly #deps: ScratchDeps;
  readonly #closing = new AbortController();
  readonly #running = new Set<Promise<void>>();

  constructor(deps: ScratchDeps) {
    this.#deps = deps;
  }

  /** See ServerLogs. The server stops with the stream. */
  async dumpAt(
    copy: ServerCopy,
    {
      database,
      at,
      signal,
    }: { readonly database: EngineDatabase; readonly at: number; readonly signal: AbortSignal },
  ): Promise<Dump> {
    const { promise: dump, resolve: began, reject } = Promise.withResolvers<Dump>();
    const either = AbortSignal.any([signal, this.#closing.signal]);
    const run = this.#with(copy, { at, signal: either }, async (engine) => {
      const made = await engine.dump(database, this.#deps.format, { signal: either });
      const isRead = new Promise<void>((resolve) => made.stream.once('close', () => resolve()));
      began(made);
      await isRead;
    }).catch(reject);
    this.#running.add(run);
    void run.finally(() => this.#running.delete(run));
    return dump;
  }

  /** See ServerLogs. */
  tryToEnd(copy: ServerCopy, signal: AbortSignal): Promise<ServerTrial> {
    const either = AbortSignal.any([signal, this.#closing.signal]);
    const run = this.#with(copy, { at: null, signal: either }, async (engine) => {
      const names = await engine.list();
      let [tables, rows] = [0, 0];
      for (const name of names) {
        const database = databaseOf(name, copy.accountId);
        const counts = [...(await engine.counts(database)).values()];
        tables += counts.length;
        rows += counts.reduce((sum, count) => sum + Number(count), 0);
        const { stream } = await engine.dump(database, this.#deps.format, { signal: either });
        for await (const _bytes of stream);
      }
      return { databases: names.length, tables, rows, to: engine.replayedTo ?? 0n };
    });
    const ended = run.then(
      () => {},
      () => {},
    );
    this.#running.add(ended);
    void ended.finally(() => this.#running.delete(ended));
    return run;
  }

  /** Removes leftovers of a killed Cloudlet. */
  async sweep(): Promise<void> {
    const { folder: root, name, processes, uidOf } = this.#deps;
    for (const left of fs.existsSync(root) ? fs.readdirSync(root) : []) {
      const folder = join(root, left);
      const uid = uidOf(Number.parseInt(left, 10));
      const keeper = join(folder, 'keeper');
      const program = { name: processName(name, folder), memoryMb: MEMORY_MB, uid };
      const running = fs.existsSync(keeper) ? await processes.adopt(program, keeper) : null;
      await running?.end({ graceMs: 0 });
      await removeTree(folder);
    }
  }

  async close(): Promise<void> {
    this.#closing.abort(new Error('Cloudlet stops'));
    await Promise.all(this.#running);
  }

  async #with<T>(
    copy: ServerCopy,
    how: { readonly at: number | null; readonly signal: AbortSignal },
    work: (engine: AccountEngine) => Promise<T>,
  ): Promise<T> {
    const { folder: root, takeSlot, recover } = this.#deps;
    how.signal.throwIfAborted();
    const leave = await takeSlot(copy.accountId);
    const folder = join(root, `${copy.accountId}-${randomName(8)}`);
    fs.mkdirSync(folder, { recursive: true, mode: 0o711 });
    let engine: AccountEngine | null = null;
    try {
      engine = await recover(copy, { ...how, folder });
      return await work(engine);
    } finally {
      await engine?.server.stop('at_once');
      await engine?.close();
      await removeTree(folder);
      leave();
    }
  }
}

const ANY_LIMITS = { connections: 1, statementMs: 0 };

/** A database of a scratch server, which only Cloudlet uses. */
function databaseOf(name: string, accountId: number): EngineDatabase {
  const username = name.replace(/^d_/, 'u_');
  const sizeLimitBytes = Number.MAX_SAFE_INTEGER;
  return {
    databaseId: '',
    number: 0,
    accountId,
    database: name,
    username,
    sizeLimitBytes,
    limits: ANY_LIMITS,
  };
}

/** An engine with a separate server for a test, and the functions that the engine suite needs. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Engine, EngineDatabase } from '../databases/engine.ts';
import { ChildSlots } from '../drivers/engine-children/child-slots.ts';
import { HostProcesses } from '../drivers/host-process/host-processes.ts';
import type { AccountOptions } from '../drivers/managed-server/accounts/account-kind.ts';
import { AccountServers } from '../drivers/managed-server/accounts/account-servers.ts';
import { ServerTls } from '../drivers/managed-server/links/server-tls.ts';
import { ServerProxy } from '../drivers/server-proxy/server-proxy.ts';
import { systemClock } from '../platform/clock.ts';
import type { EngineFixture, NotesClient } from './engine.conformance.ts';
import { noUsers, testClaim, testUidBase } from './own-ground.ts';

export interface ServerFixture<E extends Engine> {
  readonly engine: E;
  readonly folder: string;
  readonly alarms: Map<string, string>;
  /** Set by tests. */
  readonly disk: { isLow: boolean };
  readonly slots: ChildSlots;
  /** A new engine on the same folder, as in a new start of Cloudlet. */
  reopen(): E;
  /** The newest. */
  reopened(): E;
  options(): AccountOptions;
  close(): Promise<void>;
}

/** Far from the ids of servers, which are at the beginning. */
const SLOTS = 8;
const ACCOUNT_UIDS = 1000;

/** `name`: of the engine. */
export function serverFixture<E extends Engine>(
  name: string,
  {
    firstPort,
    idleMs = 60_000,
    connections = 100,
  }: { readonly firstPort: number; readonly idleMs?: number; readonly connections?: number },
  make: (options: AccountOptions) => E,
): ServerFixture<E> {
  const folder = mkdtempSync(join(tmpdir(), `cloudlet-${name}-`));
  const alarms = new Map<string, string>();
  const disk = { isLow: false };
  const slots = new ChildSlots(SLOTS);
  const hasUsers = noUsers === null;
  const engines: E[] = [];
  const proxy = new ServerProxy({
    wanted: (listener) => {
      const engine = engines.at(-1);
      if (engine instanceof AccountServers) engine.wanted(listener);
    },
    warn: () => {},
    claim: testClaim(),
  });
  const options = (): AccountOptions => {
    const group = `cloudlet-${name}-test`;
    return {
      folder,
      processes: new HostProcesses({ clock: systemClock, group, hasUsers, ground: folder }),
      uidBase: hasUsers ? testUidBase() : null,
      tls: new ServerTls({ host: '', certFile: '', keyFile: '', folder, clock: systemClock }),
      alarms: {
        raise: (code, detail) => alarms.set(code, detail),
        clear: (code) => alarms.delete(code),
      },
      isDiskLow: () => disk.isLow,
      warn: () => {},
      firstPort,
      servers: {
        proxy,
        slots,
        idleMs,
        connections,
        clock: systemClock,
        diskLevel: () => (disk.isLow ? 'out' : 'ample'),
      },
      uidOf: (accountId) => (hasUsers ? testUidBase() + ACCOUNT_UIDS + accountId : null),
    };
  };
  const reopen = () => {
    const engine = make(options());
    engines.push(engine);
    return engine;
  };
  const reopened = () => engines.at(-1) ?? reopen();
  const close = async () => {
    for (const engine of engines.reverse()) await engine.close();
    await proxy.close();
    rmSync(folder, { recursive: true });
  };
  return { engine: reopen(), folder, alarms, disk, slots, reopen, reopened, options, close };
}

/** The process of the server of an account; null: it is not running. */
export function pidOf(engine: AccountServers, accountId = 1): number | null {
  return engine.serverOf(accountId)?.engine.server.pid ?? null;
}

/** `crash`, `close`: of the server; clients are closed first. */
export function engineFixture<E extends Engine>({
  engine,
  close,
  notesIn,
  ...rest
}: Pick<ServerFixture<E>, 'engine' | 'close'> &
  Pick<EngineFixture, 'crash' | 'statements'> & {
    /** A client as in programs: a pool, which reconnects after a session was ended. */
    readonly notesIn: (engine: E, database: EngineDatabase, password: string) => Promise<NotesClient>;
  }): EngineFixture {
  const clients: NotesClient[] = [];
  return {
    engine,
    holdsSize: false,
    connect: async (database, password) => {
      // It may still be in transit.
      await engine.prepare();
      const client = await notesIn(engine, database, password);
      clients.push(client);
      return client;
    },
    close: async () => {
      for (const client of clients) await client.close();
      await close();
    },
    ...rest,
  };
}

/** A server of PostgreSQL as an operator has one: started by hand, with roles and settings of its own. */
import { chownSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Client } from 'pg';
import { findPrograms } from '../drivers/engine-postgresql/postgresql-programs.ts';
import { HostProcesses } from '../drivers/host-process/host-processes.ts';
import type { RunningProcess } from '../drivers/host-process/running-process.ts';
import { runMaker } from '../drivers/managed-server/server-data.ts';
import { freePort } from '../drivers/managed-server/server-port.ts';
import { systemClock } from '../platform/clock.ts';
import { eventually } from './eventually.ts';
import { noUsers, testUidBase } from './own-ground.ts';

const MEMORY_MB = 512;
/** Away from those of the engine under test. */
const USER = 500;
const PASSWORD = 'of-the-operator';

export interface OperatorServer {
  readonly port: number;
  url(user: string, password: string): string;
  /** As its superuser. */
  run(sql: string): Promise<Record<string, unknown>[]>;
  /** Ends it with SIGKILL and starts it again. */
  crash(): Promise<void>;
  stop(): Promise<void>;
  start(): Promise<void>;
  close(): Promise<void>;
}

/** Makes its data; how its programs are run from there on. */
async function newHome() {
  const programs = await findPrograms(null);
  if (!('bin' in programs)) throw new Error(programs.reason);
  const hasUsers = noUsers === null;
  const uid = hasUsers ? testUidBase() + USER : null;
  const folder = mkdtempSync(join(tmpdir(), 'cloudlet-operator-'));
  const home = join(folder, 'home');
  mkdirSync(home);
  writeFileSync(join(home, 'password'), PASSWORD);
  if (uid !== null) chownSync(home, uid, uid);
  const processes = new HostProcesses({ clock: systemClock, group: 'cloudlet-operator-test', hasUsers });
  const seen = await processes.pathOf(home);
  const env = { ...programs.env, TZ: 'UTC', LANG: 'C.UTF-8' };
  const common = { uid, folder: home, memoryMb: MEMORY_MB, readOnly: programs.readOnly, env };
  const words = ['-D', join(seen, 'data'), '-U', 'postgres', '--pwfile', join(seen, 'password')];
  await runMaker(processes, {
    ...common,
    name: `operator-initdb-${process.pid}`,
    command: join(programs.bin, 'initdb'),
    args: [...words, '--auth=scram-sha-256', '--encoding=UTF8', '--locale=C.UTF-8', '--no-sync'],
  });
  const serve = (options: readonly string[]) =>
    processes.start(
      {
        ...common,
        name: `operator-server-${process.pid}`,
        command: join(programs.bin, 'postgres'),
        args: ['-D', join(seen, 'data'), ...options.flatMap((option) => ['-c', option])],
        network: 'host',
      },
      { stdio: ['ignore', 'ignore', 'ignore'] },
    );
  return { folder, serve };
}

export async function operatorPostgresql(): Promise<OperatorServer> {
  const { folder, serve } = await newHome();
  const port = await freePort(40_000 + (process.pid % 10_000));
  let running: RunningProcess | null = null;
  const url = (user: string, password: string) =>
    `postgresql://${user}:${encodeURIComponent(password)}@127.0.0.1:${port}/postgres`;
  const run = async (sql: string) => {
    const client = new Client({ connectionString: url('postgres', PASSWORD) });
    client.on('error', () => {});
    await client.connect();
    return client
      .query(sql)
      .then(({ rows }) => rows)
      .finally(() => client.end());
  };
  const answers = () =>
    run('SELECT 1').then(
      () => true,
      () => false,
    );
  const start = async () => {
    // Just-in-time compilation needs libLLVM, which not every host has.
    const options = ['jit=off', 'listen_addresses=127.0.0.1', 'unix_socket_directories='];
    running = await serve([`port=${port}`, ...options]);
    await eventually(answers);
  };
  const end = async (graceMs: number) => running?.end({ signal: 'SIGINT', graceMs });
  await start();
  return {
    port,
    url,
    run,
    start,
    crash: async () => {
      await end(0);
      await start();
    },
    stop: async () => {
      await end(10_000);
    },
    close: async () => {
      await end(0);
      rmSync(folder, { recursive: true });
    },
  };
}

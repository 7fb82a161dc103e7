/** An operator's database server: started by hand, with its own users and settings. */
import { chownSync, mkdirSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freePort } from '../../test/harness/free-port.ts';
import type { ForeignProgram } from '../drivers/host-process/foreign-program.ts';
import { HostProcesses } from '../drivers/host-process/host-processes.ts';
import type { RunningProcess } from '../drivers/host-process/running-process.ts';
import { runMaker } from '../drivers/managed-server/server-data.ts';
import { systemClock } from '../platform/clock.ts';
import { eventually } from './eventually.ts';
import { noUsers, testUidBase } from './own-ground.ts';

const MEMORY_MB = 768;
/**
 * Above the ports of guests, whose connections the rules of a cloud on this host cut, including those to a
 * server to which the cloud was connected before it created the rules.
 */
const USER = 1_090_000;

export interface OperatorServer {
  readonly port: number;
  url(user: string, password: string): string;
  /** Runs as its administrator. */
  run(sql: string): Promise<Record<string, unknown>[]>;
  /** Ends it with SIGKILL and starts it again. */
  crash(): Promise<void>;
  stop(): Promise<void>;
  start(): Promise<void>;
  close(): Promise<void>;
}

type Program = Pick<ForeignProgram, 'command' | 'args' | 'env' | 'readOnly'>;

export interface OperatorServerKind {
  readonly name: string;
  readonly stop: NodeJS.Signals;
  /** Creates its data in `home`, which is `seen` in its own view. */
  readonly maker: (home: string, seen: string) => Program & { readonly input?: string };
  readonly server: (seen: string, port: number) => Program;
  readonly url: (port: number, user: string, password: string) => string;
  readonly run: (port: number, sql: string) => Promise<Record<string, unknown>[]>;
}

export async function operatorServer(kind: OperatorServerKind): Promise<OperatorServer> {
  const hasUsers = noUsers === null;
  const uid = hasUsers ? testUidBase() + USER : null;
  const folder = mkdtempSync(join(tmpdir(), 'cloudlet-operator-'));
  const home = join(folder, 'home');
  mkdirSync(home);
  const processes = new HostProcesses({ clock: systemClock, group: 'cloudlet-operator-test', hasUsers });
  const seen = await processes.pathOf(home);
  const common = { uid, folder: home, memoryMb: MEMORY_MB };
  const { input, ...maker } = kind.maker(home, seen);
  if (uid !== null) for (const name of ['', ...readdirSync(home)]) chownSync(join(home, name), uid, uid);
  await runMaker(processes, { ...common, ...maker, name: `operator-maker-${process.pid}` }, input);
  const port = await freePort();
  let running: RunningProcess | null = null;
  const run = (sql: string) => kind.run(port, sql);
  const start = async () => {
    const program = { ...common, ...kind.server(seen, port), name: `operator-${kind.name}-${process.pid}` };
    running = await processes.start(
      { ...program, network: 'host' },
      { stdio: ['ignore', 'ignore', 'ignore'] },
    );
    await eventually(() =>
      run('SELECT 1').then(
        () => true,
        () => false,
      ),
    );
  };
  const end = async (graceMs: number) => running?.end({ signal: kind.stop, graceMs });
  await start().catch(async (error) => {
    await end(0);
    throw error;
  });
  return {
    port,
    url: (user, password) => kind.url(port, user, encodeURIComponent(password)),
    run,
    start,
    crash: async () => {
      await end(0);
      await start();
    },
    stop: async () => {
      await end(0);
    },
    close: async () => {
      await end(0);
      rmSync(folder, { recursive: true });
    },
  };
}

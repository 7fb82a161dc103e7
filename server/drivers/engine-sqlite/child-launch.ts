/** Starts the process that opens a tenant's file. */
import type { ChildProcess } from 'node:child_process';
import type { Socket } from 'node:net';
import { startProgram } from '../../child-process.ts';

/** Node's own share of memory, and few threads: a child serves one tenant. */
const NODE_OPTIONS = [
  '--max-old-space-size=64',
  '--max-semi-space-size=1',
  '--v8-pool-size=1',
  '--no-warnings',
];

export interface LaunchedChild {
  readonly pid: number;
  readonly socket: Socket;
  /** Resolves when it is gone. Never rejects. */
  readonly ended: Promise<void>;
  /** What it said on its way, for the log. */
  readonly said: () => string;
  kill(): void;
}

export interface LaunchOptions {
  /** Its working directory, and all it sees of this host. */
  readonly folder: string;
  /** Path of the child's code. */
  readonly entry: string;
}

export async function launchChild({ folder, entry }: LaunchOptions): Promise<LaunchedChild> {
  const child: ChildProcess = await startProgram(process.execPath, [...NODE_OPTIONS, entry], {
    cwd: folder,
    env: { SQLITE_TMPDIR: '.', UV_THREADPOOL_SIZE: '2' },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let said = '';
  child.stderr?.on('data', (piece: Buffer) => {
    said = (said + piece.toString()).slice(-2000);
  });
  return {
    pid: child.pid ?? 0,
    socket: child.stdout as Socket,
    ended: new Promise((resolve) => child.once('exit', () => resolve())),
    said: () => said,
    kill: () => child.kill('SIGKILL'),
  };
}

/** Where children run: which code, as whom, and with how much of the host. */
import { execFile } from 'node:child_process';
import type { Socket } from 'node:net';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import type { Clock } from '../../platform/clock.ts';
import type { UserRange } from '../../platform/other-users.ts';
import { HostProcesses } from '../host-process/host-processes.ts';

const run = promisify(execFile);
const WRITER = fileURLToPath(new URL('./child-code.ts', import.meta.url));
const SERVER = join(import.meta.dirname, '../..');

/** Options of Node itself; SQLite's memory is besides. Few threads: a child serves one tenant. */
const NODE_OPTIONS = ['--v8-pool-size=1', '--no-warnings'];
/** In its own folder, where it needs any; SQLite would look for another. */
const ENV = { SQLITE_TMPDIR: '.', UV_THREADPOOL_SIZE: '2' };
/** What a child may take in all. */
export const CHILD_MEMORY_MB = 384;
/** V8 sets so much aside for code, whatever it is told. */
const RESERVED_MB = 512;
const MAX_THREADS = 64;
const SAID_CHARACTERS = 2000;

export interface LaunchedChild {
  readonly pid: number;
  readonly socket: Socket;
  /** Resolves when it is gone. Never rejects. */
  readonly ended: Promise<unknown>;
  /** The last of what it said, for the log. */
  readonly said: () => string;
  kill(): void;
}

/** Which children they are. */
export interface ChildProgram {
  /** Lower case letters: names of processes begin with it. */
  readonly name: string;
  /** Where their code begins, absolute. */
  readonly entry: string;
  /** Most memory of its JavaScript objects. */
  readonly heapMb: number;
  /** Most memory of objects that were just made; more is faster where each command makes many. */
  readonly youngMb: number;
  /** From npm, which that code needs. */
  readonly packages: readonly string[];
}

export interface ChildHostOptions {
  readonly clock: Clock;
  readonly program: ChildProgram;
  /** Ours, for the code that children run; written anew. */
  readonly codeFolder: string;
  /** Directory of ours, in which all is. */
  readonly ground: string;
  readonly users: UserRange | null;
}

export class ChildHost {
  readonly #options: ChildHostOptions;
  readonly #processes: HostProcesses;

  constructor(options: ChildHostOptions) {
    const { clock, ground, users } = options;
    this.#options = options;
    const hasUsers = users !== null;
    this.#processes = new HostProcesses({ clock, group: 'cloudlet-databases', hasUsers, ground });
  }

  async prepare(): Promise<void> {
    // Stripping types is experimental, which Node would say on the operator's terminal.
    const { codeFolder, program } = this.#options;
    const what = [codeFolder, program.entry, ...program.packages];
    const words = ['--disable-warning=ExperimentalWarning', WRITER, ...what];
    await Promise.all([run(process.execPath, words), this.#processes.way()]);
  }

  /** How far children are kept from the host, for humans; empty: as far as can be. */
  async problem(): Promise<string> {
    return (await this.#processes.way()).problem;
  }

  /** The user of a database; null: ours. */
  uidOf(number: number): number | null {
    const { users } = this.#options;
    return users === null ? null : users.first + (number % users.count);
  }

  /** Starts the child of a database in that folder, which is its user's. `name`: that no other has now. */
  async launch(folder: string, { name, number }: { name: string; number: number }): Promise<LaunchedChild> {
    const { codeFolder, program } = this.#options;
    const entry = relative(SERVER, program.entry).replace(/\.ts$/, '.mjs');
    const running = await this.#processes.start(
      {
        name: `${program.name}-${name.replace(/[^a-z0-9]/g, '-')}`,
        command: process.execPath,
        args: [...memoryOptions(program), ...NODE_OPTIONS, join(codeFolder, entry)],
        env: ENV,
        uid: this.uidOf(number),
        folder,
        readOnly: [dirname(process.execPath), codeFolder],
        network: 'none',
        memoryMb: CHILD_MEMORY_MB,
        reservedMb: RESERVED_MB,
        maxProcesses: MAX_THREADS,
        temporaryMb: 1,
      },
      { stdio: ['ignore', 'pipe', 'pipe'] },
    );
    let said = '';
    running.child?.stderr?.on('data', (piece: Buffer) => {
      said = (said + piece.toString()).slice(-SAID_CHARACTERS);
    });
    return {
      pid: running.pid,
      // Standard output is a socket that goes both ways, as all that Node makes.
      socket: running.child?.stdout as Socket,
      ended: running.ended,
      said: () => said,
      kill: () => void running.end({ graceMs: 0 }).catch(() => {}),
    };
  }
}

function memoryOptions({ heapMb, youngMb }: ChildProgram): string[] {
  return [`--max-old-space-size=${heapMb}`, `--max-semi-space-size=${youngMb}`];
}

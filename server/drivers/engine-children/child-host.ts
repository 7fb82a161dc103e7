/** Launches children: their code, user and resource limits. */
import { execFile } from 'node:child_process';
import type { Socket } from 'node:net';
import { dirname, join, relative } from 'node:path';
import { promisify } from 'node:util';
import type { Clock } from '../../platform/clock.ts';
import { findHostProgram } from '../../platform/host/host-programs.ts';
import type { UserRange } from '../../platform/host/other-users.ts';
import { COPIED_FROM, programFile } from '../../platform/program-files.ts';
import { HostProcesses } from '../host-process/host-processes.ts';
import { WITH_US } from '../host-process/keeper-shells.ts';
import { canMoveViews, moveView, needsMover } from '../host-process/moved-view.ts';
import { type ProcessorTimes, processorTimes } from '../host-process/process-identity.ts';
import type { ProcessorOrder } from '../host-process/processor-order.ts';
import { findFilter } from '../host-process/system-calls.ts';

const run = promisify(execFile);
const WRITER = programFile('drivers/engine-children/child-code');

/** Options of Node, without SQLite's memory. Few threads, because a process serves one tenant. */
const NODE_OPTIONS = ['--v8-pool-size=1', '--no-warnings'];
/** SQLite's temporary files stay in the child's own folder. */
const ENV = { SQLITE_TMPDIR: '.', UV_THREADPOOL_SIZE: '2' };
/** Memory limit of a child in total. */
export const CHILD_MEMORY_MB = 384;
/** Address space that V8 always reserves for code. */
const RESERVED_MB = 512;
const MAX_THREADS = 64;
const SAID_CHARACTERS = 2000;
/** Descriptor of a process's mover. */
const MOVER = 4;

export interface LaunchedChild {
  readonly pid: number;
  readonly socket: Socket;
  /** The path of its folder as the process sees it. */
  readonly at: string;
  /** Resolves when it has exited. Never rejects. */
  readonly ended: Promise<unknown>;
  /** The end of its output, for the log. */
  readonly said: () => string;
  times(): ProcessorTimes;
  /** Lowers the priority of a process that computes for long. */
  yields(order: ProcessorOrder): void;
  /**
   * Gives the process the user's folder in place of its first folder; the process must still change to it.
   */
  moveTo(folder: string): Promise<LaunchedChild>;
  kill(): void;
}

/** Program of the children. */
export interface ChildProgram {
  /** Lower case letters: prefix of process names. */
  readonly name: string;
  /** Entry file, absolute path. */
  readonly entry: string;
  /** Limit of the JavaScript heap. */
  readonly heapMb: number;
  /** Limit of the young generation; larger is faster for commands that create many objects. */
  readonly youngMb: number;
  /** npm packages that the code needs. */
  readonly packages: readonly string[];
}

export interface ChildHostOptions {
  readonly clock: Clock;
  readonly program: ChildProgram;
  /** Folder for the code that children run; rewritten at each start. */
  readonly codeFolder: string;
  /** Directory of Cloudlet that contains all folders. */
  readonly ground: string;
  readonly users: UserRange | null;
  /** Control group of the processes; default: of all clouds on this host. */
  readonly group?: string | undefined;
}

export class ChildHost {
  readonly #options: ChildHostOptions;
  readonly #processes: HostProcesses;

  constructor(options: ChildHostOptions) {
    const { clock, ground, users, group = 'cloudlet-databases' } = options;
    this.#options = options;
    const hasUsers = users !== null;
    this.#processes = new HostProcesses({ clock, group, hasUsers, ground });
  }

  async prepare(): Promise<void> {
    // Type stripping prints an experimental warning, which must not reach the operator's terminal.
    const { codeFolder, program } = this.#options;
    const what = [codeFolder, program.entry, ...program.packages];
    const node = [process.execPath, '--disable-warning=ExperimentalWarning', WRITER, ...what];
    const setpriv = findHostProgram('setpriv');
    // A drill's folder is removed as soon as the drill is killed.
    const [first = '', ...words] = setpriv === null ? node : [setpriv, ...WITH_US, ...node];
    await Promise.all([run(first, words), this.#processes.isolation()]);
  }

  /** Missing isolation of children from the host, for people; empty: complete. */
  async problem(): Promise<string> {
    const [isolation, filter] = await Promise.all([this.#processes.isolation(), findFilter()]);
    return [isolation.problem, filter.problem].filter((problem) => problem !== '').join('; ');
  }

  /** User id of a database; null: Cloudlet's own. */
  uidOf(number: number): number | null {
    const { users } = this.#options;
    return users === null ? null : users.first + (number % users.count);
  }

  /** Whether a process can be started before its folder is known. */
  async canMove(): Promise<boolean> {
    return canMoveViews(await this.#processes.isolation());
  }

  /**
   * Starts the child of a database in that folder, which its user owns. `name`: unique among
   * running children. `uid`: see uidOf(). `isLast`: with low priority until yields('usual').
   * `isSpare`: for moveTo().
   */
  async launch(
    folder: string,
    {
      name,
      uid,
      isLast = false,
      isSpare = false,
    }: { name: string; uid: number | null; isLast?: boolean; isSpare?: boolean },
  ): Promise<LaunchedChild> {
    const { codeFolder, ground, program } = this.#options;
    const entry = relative(COPIED_FROM, program.entry).replace(/\.[jt]s$/, '.mjs');
    const isolation = await this.#processes.isolation();
    const isMovable = isSpare && needsMover(isolation);
    const running = await this.#processes.start(
      {
        name: `${program.name}-${name.replace(/[^a-z0-9]/g, '-')}`,
        command: process.execPath,
        args: [...memoryOptions(program), ...NODE_OPTIONS, join(codeFolder, entry)],
        env: ENV,
        uid,
        folder,
        readOnly: [dirname(process.execPath), codeFolder],
        network: 'none',
        memoryMb: CHILD_MEMORY_MB,
        reservedMb: RESERVED_MB,
        maxProcesses: MAX_THREADS,
        temporaryMb: 1,
      },
      { stdio: ['ignore', 'pipe', 'pipe'], isLast, isMovable },
    );
    const mover = isMovable ? (running.child?.stdio[MOVER] as Socket) : null;
    mover?.unref();
    let said = '';
    let order: ProcessorOrder = isLast ? 'last' : 'usual';
    running.child?.stderr?.on('data', (piece: Buffer) => {
      said = (said + piece.toString()).slice(-SAID_CHARACTERS);
    });
    const launched: LaunchedChild = {
      pid: running.pid,
      at: await this.#processes.pathOf(folder),
      // Standard output is a bidirectional socket, as always in Node.
      socket: running.child?.stdout as Socket,
      ended: running.ended,
      said: () => said,
      times: () => processorTimes(running.pid),
      yields: (to) => {
        this.#processes.yields(running, { from: order, to });
        order = to;
      },
      moveTo: async (to) => ({
        ...launched,
        at: await moveView(running.identity, { isolation, folder: to, ground, mover }),
      }),
      kill: () => void running.end({ graceMs: 0 }).catch(() => {}),
    };
    return launched;
  }
}

function memoryOptions({ heapMb, youngMb }: ChildProgram): string[] {
  return [`--max-old-space-size=${heapMb}`, `--max-semi-space-size=${youngMb}`];
}

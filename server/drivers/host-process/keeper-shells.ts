/**
 * The shells that start foreign processes, wait for their end, and record how they ended; and the scripts
 * that they run. Forking takes longer the more memory Cloudlet has, and closing descriptors takes a shell
 * some time, so a shell that has already done both is kept ready.
 */
import type { ChildProcess, StdioOptions } from 'node:child_process';
import { realpathSync } from 'node:fs';
import type { Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { AppError } from '../../platform/errors.ts';
import { patienceMs } from '../../platform/host/host-facts.ts';
import { hostPath, hostProgram, startProgram } from '../../platform/host/host-programs.ts';
import { isThere, type ProcessIdentity, parseStat, RUN, userOf } from './process-identity.ts';

/** File in the keeper's folder with the ending of the process, `<pid> <status>`. */
export const ENDED = 'ended';
/** In the keeper's folder: locked while the process runs. */
export const LOCK = 'lock';
/** The keeper's descriptor of the lock. */
export const LOCK_DESCRIPTOR = 7;
/** Prefix of the line before the program starts, followed by /proc/…/stat. */
const READY = 'ready ';
const LOCK_SECONDS = 3;
/** Options of `setpriv`: the program is killed when its parent ends. */
export const WITH_US = ['--pdeathsig', 'KILL', '--'] as const;
/** The shells' name in a list of processes. */
export const KEEPER_NAME = 'cloudlet-keeper';

interface ShellOptions {
  /** The program's descriptors 0, 1, 2, and from 4 on, as for Node's spawn. */
  readonly stdio: readonly unknown[];
  readonly endsWithUs: boolean;
  /** Arguments before the shell's command: a program that runs the command. */
  readonly first?: readonly string[];
}

/** Measured on a quiet host. */
const READY_MS = 30_000;
const MAX_OUTPUT_BYTES = 8192;
const USER_TRIES = 10_000;
const READY_LINE = new RegExp(`^${READY}(.*)\n`, 'm');
const KEPT: ShellOptions = { stdio: ['ignore', 'ignore', 'ignore'], endsWithUs: false };

export class KeeperShell {
  readonly child: ChildProcess;

  private constructor(child: ChildProcess) {
    this.child = child;
  }

  /** Resolves when it runs. Rejects when the host allows no further process or file. */
  static async begin({ stdio, endsWithUs, first = [] }: ShellOptions): Promise<KeeperShell> {
    const others = stdio.slice(3);
    const [program = '', ...words] = [...first, ...shellCommand(others.length, endsWithUs)];
    const child = await startProgram(program, words, {
      cwd: '/',
      env: {},
      detached: true,
      stdio: [...stdio.slice(0, 3), 'pipe', ...others] as StdioOptions,
    });
    const shell = new KeeperShell(child);
    // The shell may have ended, which the missing answer shows.
    shell.#line.on('error', () => {});
    return shell;
  }

  get #line(): Socket {
    return this.child.stdio[3] as Socket;
  }

  get isAlive(): boolean {
    const { exitCode, signalCode, pid = 0 } = this.child;
    // Node reports the end of a process a little late.
    return exitCode === null && signalCode === null && isThere(pid);
  }

  /**
   * Runs a script, once. Resolves with its output on descriptor 3: with `stat`, the process's line of
   * /proc/…/stat, when it got so far.
   */
  async run(script: string): Promise<{ readonly stat: string | null; readonly text: string }> {
    const line = this.#line;
    line.ref();
    let text = '';
    const timer = setTimeout(() => line.destroy(), patienceMs(READY_MS));
    line.setEncoding('latin1').end(script);
    try {
      for await (const piece of line) {
        text += piece;
        if (READY_LINE.test(text) || text.length > MAX_OUTPUT_BYTES) break;
      }
    } catch (error) {
      text += String(error);
    } finally {
      clearTimeout(timer);
    }
    return { stat: READY_LINE.exec(text)?.[1] ?? null, text };
  }

  /** Lets the event loop end meanwhile. */
  unref(): void {
    this.child.unref();
    this.#line.unref();
  }

  /** Ends an unused shell. */
  dismiss(): void {
    this.#line.destroy();
  }

  /** Kills the shell and its process group. */
  kill(): void {
    try {
      if (this.child.pid !== undefined) process.kill(-this.child.pid, 'SIGKILL');
    } catch {
      // The shell has ended.
    }
  }
}

/** Shells for processes that outlive Cloudlet; one is prepared, and ends with Cloudlet. */
export class KeeperShells {
  #spare: Promise<KeeperShell | null> | null = null;
  #isClosed = false;

  /** Prepares the next shell. */
  refill(): void {
    if (this.#isClosed || this.#spare !== null) return;
    const spare = KeeperShell.begin(KEPT).then(
      (shell) => {
        shell.unref();
        shell.child.once('exit', () => {
          if (this.#spare === spare) this.#spare = null;
        });
        return shell;
      },
      () => null,
    );
    this.#spare = spare;
  }

  /** The prepared shell, or a new one. Rejects like KeeperShell.begin(). */
  async take(): Promise<KeeperShell> {
    const spare = this.#spare;
    this.#spare = null;
    const shell = (await spare) ?? null;
    return shell?.isAlive ? shell : KeeperShell.begin(KEPT);
  }

  /** Ends the prepared shell. */
  close(): void {
    this.#isClosed = true;
    void this.#spare?.then((shell) => shell?.dismiss());
    this.#spare = null;
  }
}

/** A folder that outlives Cloudlet with its process. */
export interface Keeper {
  /** Absolute. Unique, and not accessible to the process. */
  readonly folder: string;
  /** Name of the log file for the process's output. */
  readonly log: string;
}

export interface Launch {
  /** Arguments before a command to run it in new namespaces; empty: it runs in ours. */
  readonly namespaces: readonly string[];
  /** File system of the process; null: the host's. */
  readonly view: {
    /** Lines that create the file system at `root`. */
    readonly script: string;
    readonly root: string;
    /** Working directory inside that file system. */
    readonly folder: string;
  } | null;
  /** Working directory without a view. Absolute. */
  readonly folder: string;
  /** Whether the process leads a session, which identifies its child processes. */
  readonly hasSession: boolean;
  /** Arguments before the whole command; they run outside the restricted file system. */
  readonly first?: readonly string[];
  /** The arguments before the command: `setpriv` with its options. */
  readonly prefix: readonly string[];
  readonly command: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  /** Lines for a shell. */
  readonly limits: readonly string[];
  /** File of the control group; null: none. */
  readonly groupFile: string | null;
  /** null: nothing is recorded. */
  readonly keeper: Keeper | null;
  /** Whether the kernel ends the process when we end. */
  readonly endsWithUs: boolean;
  /** Whether descriptor 4 leads to the mover of its view, see moverLines(). */
  readonly isMovable?: boolean;
  readonly bootId: string;
}

/** Quotes a word for a shell. */
export function quoted(word: string): string {
  return `'${word.replaceAll("'", "'\\''")}'`;
}

/** The real path of `setpriv`, also valid in a view that includes its folder. */
export function setprivProgram(): string {
  return realpathSync(hostProgram('setpriv'));
}

/**
 * The command of a shell that runs the script it reads from descriptor 3. Descriptors 0, 1 and 2 and `others`
 * from 4 on are kept for the program; all above are closed. For the script 0 and 2 are 5 and 6.
 */
function shellCommand(others: number, endsWithUs: boolean): string[] {
  const script = [
    // A shell that starts after our end gets no signal.
    ...(endsWithUs ? [`[ "$PPID" = ${process.pid} ] || exit`] : []),
    closeOthers(4 + others),
    `exec /bin/sh -s ${KEEPER_NAME} 5<&0 6>&2 0<&3 2>&3`,
  ];
  const first = endsWithUs ? [hostProgram('setpriv'), ...WITH_US] : [];
  return [...first, hostProgram('bash'), '--norc', '-c', script.join('\n'), 'bash'];
}

/**
 * The script for that shell. It contains the program's arguments and variables: no process list shows them.
 * The braces prevent a truncated script from being run in part.
 */
export function launchScript(launch: Launch): string {
  const { keeper, namespaces, limits } = launch;
  const waiting = waitingScript(launch);
  return [
    '{',
    'umask 077',
    `PATH=${quoted(hostPath())}`,
    ...(keeper === null ? [] : keeperLines(keeper)),
    ...limits,
    namespaces.length === 0
      ? waiting
      : hereDocument(`exec ${[...namespaces, '/bin/sh', '-s', KEEPER_NAME].map(quoted).join(' ')}`, waiting),
    '}',
    '',
  ].join('\n');
}

function keeperLines({ folder, log }: Keeper): string[] {
  return [
    `cd ${quoted(folder)} && exec ${LOCK_DESCRIPTOR}>${LOCK} && flock -w ${LOCK_SECONDS} ${LOCK_DESCRIPTOR} || { echo it runs already >&3; exit; }`,
    `: >${ENDED} && : >${RUN} || exit`,
    `exec 5</dev/null >>${quoted(log)} 6>&1`,
  ];
}

/** Starts one process, the first of a new PID namespace where possible, and waits for it. */
function waitingScript(launch: Launch): string {
  const { keeper, view, hasSession, endsWithUs, isMovable = false } = launch;
  const first = [
    ...(endsWithUs ? [hostProgram('setpriv'), ...WITH_US] : []),
    ...(view === null && hasSession ? ['setsid'] : []),
  ];
  const inner = innerScript(launch);
  return [
    '{',
    'unset PWD OLDPWD SHLVL _',
    `PATH=${quoted(hostPath())}`,
    'cd /',
    first.length === 0
      ? `(\n${inner}\n) &`
      : hereDocument(`${[...first, '/bin/sh', '-s'].map(quoted).join(' ')}`, inner, ' &'),
    'first=$!',
    ...(view === null || !isMovable ? [] : moverLines(`${view.root}${view.folder}`)),
    'exec </dev/null >/dev/null 2>&1 3>&- 4>&- 5<&- 6>&-',
    'wait $first',
    ...(keeper === null ? [] : [`echo "$first $?" >${quoted(`${keeper.folder}/${ENDED}`)}`]),
    'exit',
    '}',
  ].join('\n');
}

/**
 * Mounts the folder whose path it reads from descriptor 4 over the folder of the process, once, and confirms
 * this there. It has the required privileges from the start: a process that enters a user namespace later
 * does not get them.
 */
function moverLines(folder: string): string[] {
  const words = `mount --no-mtab --rbind "$to" ${quoted(folder)}`;
  return [`{ read -r to && ${words} && echo moved; } <&4 >&4 2>/dev/null 3>&- 5<&- 6>&- &`];
}

function innerScript(launch: Launch): string {
  const { view, folder, first = [], prefix, command, args, env, groupFile, keeper, bootId } = launch;
  const enter =
    view === null ? [] : [hostProgram('unshare'), `--root=${view.root}`, `--wd=${view.folder}`, '--'];
  const words = [...first, ...enter, ...prefix, command, ...args].map(quoted).join(' ');
  const seen = quoted((view === null ? '' : view.root) + command);
  return [
    '{',
    'set -e',
    `PATH=${quoted(hostPath())}`,
    // 0 is the process that writes it.
    ...(groupFile === null ? [] : [`echo 0 >${quoted(groupFile)}`]),
    'read -r stat </proc/self/stat',
    ...(keeper === null ? [] : [`echo ${quoted(bootId)} "$stat" >${quoted(`${keeper.folder}/${RUN}`)}`]),
    'umask 022',
    view === null ? `cd ${quoted(folder)}` : view.script,
    `[ -x ${seen} ] || { echo ${seen} is no program here >&2; exit 1; }`,
    'umask 077',
    `echo "${READY}$stat" >&3`,
    'unset PWD OLDPWD',
    ...Object.entries(env).map(([name, value]) => `export ${name}=${quoted(value)}`),
    `exec ${words} <&5 2>&6 3>&- ${launch.isMovable ? '4>&- ' : ''}5<&- 6>&- 7>&-`,
    '}',
  ].join('\n');
}

/** Runs the launch in the shell. Resolves with the process's identity as the program starts. */
export async function begin(
  shell: KeeperShell,
  launch: Launch,
  uid: number | null,
): Promise<ProcessIdentity> {
  const { stat, text } = await shell.run(launchScript(launch));
  const found = parseStat(stat ?? '');
  if (found !== null) {
    const identity = { pid: found.pid, startTime: found.startTime, bootId: launch.bootId, uid };
    // The user changes last; until then the process cannot be identified. Its `stat` is not read meanwhile:
    // Linux keeps the reader waiting while a process replaces its program, up to 0.5 s on a busy host.
    for (let tries = 0; tries < USER_TRIES && isAnothers(identity); tries++) await sleep(1);
    return identity;
  }
  shell.kill();
  throw new AppError('internal_error', `${launch.command} cannot be started here`, {
    cause: new Error(text.trim()),
  });
}

function isAnothers({ pid, uid }: ProcessIdentity): boolean {
  const user = userOf(pid);
  return uid !== null && user !== null && user !== uid;
}

/** A command that reads `content`, which may hold any line. */
function hereDocument(command: string, content: string, after = ''): string {
  let end = 'END';
  while (content.includes(end)) end += '_';
  return `${command} <<'${end}'${after}\n${content}\n${end}`;
}

/** Lines for Bash, the only shell with descriptors above 9: closes all from number `kept` on. */
function closeOthers(kept: number): string {
  return `for fd in /proc/$$/fd/*; do
fd=\${fd##*/}
((fd < ${kept})) || eval "exec $fd>&-"
done`;
}

/**
 * The command that runs `words` without descriptors above 3 and without environment: Cloudlet passes on only
 * descriptors that it was itself started with. The process number stays the same.
 * Throws `engine_unavailable` where there is no Bash.
 */
export function withoutOthers(words: readonly string[]): [program: string, args: string[]] {
  return [hostProgram('bash'), ['--norc', '-c', `${closeOthers(4)}\nexec -c "$@"`, 'bash', ...words]];
}

/**
 * Runs untrusted programs: engines, tools on untrusted data, and our own code on such data. Where the host
 * allows it each has its own user, sees only its folder and the system's programs, and has a PID namespace
 * that ends with it, a system-call filter, and kernel-enforced limits. `isolation()` reports the measures in
 * force.
 */
import type { ChildProcess } from 'node:child_process';
import { closeSync, openSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Clock } from '../../platform/clock.ts';
import { withoutPowers } from '../../platform/host/other-users.ts';
import { Cgroups } from './cgroups.ts';
import type { ForeignProgram, SelfConfinedProgram } from './foreign-program.ts';
import { findIsolation, type Isolation, namespaceCommand, seenUser } from './isolation.ts';
import {
  begin,
  ENDED,
  type Keeper,
  KeeperShell,
  KeeperShells,
  type Launch,
  setprivProgram,
  WITH_US,
} from './keeper-shells.ts';
import { openPaths } from './open-paths.ts';
import {
  hostBootId,
  isAlive,
  keptProcess,
  type ProcessIdentity,
  yieldMemoryFirst,
} from './process-identity.ts';
import {
  keepOffOne,
  offOneWords,
  type ProcessorOrder,
  quickWords,
  yieldProcessorFirst,
  yieldToSiblings,
} from './processor-order.ts';
import { exitOf, type ProcessEnd, RunningProcess, readEnding } from './running-process.ts';
import { type CallFilter, findFilter } from './system-calls.ts';
import { AT, ROOT, viewScript } from './view-script.ts';

type Adopted = Pick<ForeignProgram, 'name' | 'uid' | 'memoryMb' | 'maxProcesses'>;

export interface ProcessesDeps {
  readonly clock: Clock;
  /** Control group of all processes started here: `cloudlet-databases`. */
  readonly group: string;
  /** Whether programs run as separate users; then each must name one. */
  readonly hasUsers: boolean;
  /**
   * Directory of Cloudlet's that contains the folders and programs. Without views, it is made traversable for
   * programs with separate users; missing: such programs use only paths from their folder on.
   */
  readonly ground?: string;
  /** Whether all programs, also those of keep(), end with us and have no network, where possible. */
  readonly isPrivate?: boolean;
  /** Set by tests instead of the result of isolation(). */
  readonly isolation?: Isolation;
}

interface StartOptions {
  readonly stdio: readonly unknown[];
  readonly ipc?: boolean;
  readonly isLast?: boolean;
  /** Whether moveView() may move it, which needs a user namespace. Not with `ipc`. */
  readonly isMovable?: boolean;
}

interface Walls {
  readonly isolation: Isolation;
  readonly filter: CallFilter;
}

const NAME = /^[a-z0-9-]{1,64}$/;
const VARIABLE = /^[A-Za-z_][A-Za-z0-9_]*$/;
const MIB = 1024 * 1024;
/** A shell counts the sizes of files in blocks of 512 bytes. */
const BLOCKS_PER_MIB = 2048;
const NO_POWERS = ['--bounding-set=-all', '--inh-caps=-all'];
/** No core dumps, which would write tenants' memory to files. */
const NO_CORE = 'ulimit -c 0';
const LOG = 'log';
/** Attempts, because the ending is recorded shortly after it is seen. */
const NOTE_TRIES = 50;
const NOTE_STEP_MS = 10;

export class HostProcesses {
  readonly #deps: ProcessesDeps;
  /** The groups of the processes, by their names. */
  readonly cgroups: Cgroups;
  /** `refill()` makes the next keep() faster. */
  readonly shells = new KeeperShells();
  #isolation: Promise<Isolation> | undefined;

  constructor(deps: ProcessesDeps) {
    this.#deps = deps;
    this.cgroups = new Cgroups(deps.group);
  }

  /** Whether only we can reach a program. */
  get isPrivate(): boolean {
    return this.#deps.isPrivate === true;
  }

  /** Level of isolation of processes on this host. */
  isolation(): Promise<Isolation> {
    this.#isolation ??= this.#deps.isolation
      ? Promise.resolve(this.#deps.isolation)
      : findIsolation(this.#deps.hasUsers);
    return this.#isolation;
  }

  /** Whether a program without its own user runs as root, which PostgreSQL refuses. */
  async isRootSeen(): Promise<boolean> {
    return !this.#deps.hasUsers && seenUser(await this.isolation()) === 0;
  }

  /** Why the memory of a process and its children is not bounded as a whole, for humans; empty when it is. */
  get limitsProblem(): string {
    return this.cgroups.problem;
  }

  /** The path by which a process sees its folder: a short one, or the same path without a namespace. */
  async pathOf(folder: string): Promise<string> {
    return (await this.isolation()).hasView ? AT : folder;
  }

  /**
   * Starts a program that ends with this process, however that ends. `stdio`: three entries as for Node's
   * spawn; `ipc`: with Node's channel for messages. Resolves about when the program begins. Callers must read
   * its output at once: unread output is lost when the program ends. `isLast`: low priority from its first
   * instruction on, see yields(). Throws `engine_unavailable` if a required program is not installed, and
   * `internal_error` if it cannot be started.
   */
  async start(
    program: ForeignProgram,
    { stdio, ipc = false, isLast = false, isMovable = false }: StartOptions,
  ): Promise<RunningProcess> {
    const [isolation, filter] = await Promise.all([this.isolation(), findFilter()]);
    const launch = {
      ...this.#launch(program, { isolation, filter }, null),
      isMovable,
      first: isLast ? [] : quickWords(),
    };
    const shell = await KeeperShell.begin({
      stdio: ipc || isMovable ? [...stdio, ipc ? 'ipc' : 'pipe'] : stdio,
      endsWithUs: true,
      first: isLast ? offOneWords() : [],
    });
    const { child } = shell;
    this.#yieldsFirst(child.pid, isLast);
    const release = holdOutput(child);
    const identity = await begin(shell, launch, program.uid).finally(release);
    return this.#running(program, { isolation, child, identity, keeper: null, isLast });
  }

  /**
   * Starts a program that continues when this process ends, to be adopted by the next start. `keeper`: a
   * folder of Cloudlet's, inaccessible to this and unused by any other program; it gets the facts about the
   * process, and `log`, to which its output is appended. Throws like start(), and if a program already runs
   * for that folder.
   */
  async keep(program: ForeignProgram, keeper: string): Promise<RunningProcess> {
    if (this.isPrivate) return this.#startLogged(program, keeper);
    const [isolation, filter] = await Promise.all([this.isolation(), findFilter()]);
    const keeping = { folder: keeper, log: LOG };
    const launch = { ...this.#launch(program, { isolation, filter }, keeping), first: quickWords() };
    const shell = await this.shells.take();
    this.#yieldsFirst(shell.child.pid);
    const identity = await begin(shell, launch, program.uid);
    shell.unref();
    return this.#running(program, { isolation, child: shell.child, identity, keeper });
  }

  async #startLogged(program: ForeignProgram, keeper: string): Promise<RunningProcess> {
    const log = openSync(join(keeper, LOG), 'a', 0o600);
    try {
      return await this.start(program, { stdio: ['ignore', log, log] });
    } finally {
      closeSync(log);
    }
  }

  /**
   * Like keep(), for a program that confines itself and whose end the caller watches: keptProcess() finds it
   * again, and readEnding() returns how it ended. Also throws if it ends before it has its user.
   */
  async keepConfined(program: SelfConfinedProgram, keeper: Keeper): Promise<ProcessIdentity> {
    const launch = confinedLaunch(program, { keeper, endsWithUs: this.isPrivate });
    const shell = this.isPrivate
      ? await KeeperShell.begin({ stdio: ['ignore', 'ignore', 'ignore'], endsWithUs: true })
      : await this.shells.take();
    this.#yieldsFirst(shell.child.pid);
    const identity = await begin(shell, launch, program.user?.uid ?? null);
    shell.unref();
    if (!isAlive(identity)) throw new Error('the process ended at once');
    yieldMemoryFirst(identity.pid);
    this.#yieldsFirst(identity.pid);
    return identity;
  }

  /** The process of that folder from keep(), with its limits restored; null: not running. */
  async adopt(program: Adopted, keeper: string): Promise<RunningProcess | null> {
    const { name, uid } = program;
    const isolation = await this.isolation();
    const identity = keptProcess(keeper, uid);
    if (identity === null) return null;
    this.cgroups.make(name, groupLimits(program));
    return this.#running({ name }, { isolation, child: null, identity, keeper });
  }

  /** The ending of the process of that folder; null: running, or unknown. */
  lastEnd(keeper: string): ProcessEnd | null {
    const ending = readEnding(join(keeper, ENDED));
    return ending === null ? null : { ...exitOf(ending.status), at: ending.at };
  }

  #launch(program: ForeignProgram, { isolation, filter }: Walls, keeper: Keeper | null): Launch {
    const { command, args, env = {}, uid, folder, readOnly = [], temporaryMb = 64 } = program;
    if ((uid !== null) !== this.#deps.hasUsers) throw new Error('a separate user, where the host has them');
    assertRunnable(program);
    const { ground } = this.#deps;
    if (!isolation.hasView && uid !== null && ground !== undefined)
      openPaths(ground, [folder, command, ...readOnly]);
    const namespaces = namespaceCommand(isolation, this.isPrivate ? 'none' : program.network);
    const view = () => viewScript({ folder, readOnly, temporaryMb, uid: uid ?? seenUser(isolation) });
    return {
      command,
      args,
      env,
      folder,
      keeper,
      namespaces,
      view: isolation.hasView ? { script: view(), root: ROOT, folder: AT } : null,
      hasSession: true,
      endsWithUs: keeper === null,
      prefix: [
        setprivProgram(),
        ...userWords(uid, isolation.inUserNamespace && namespaces.length > 0),
        '--no-new-privs',
        ...(keeper === null ? WITH_US : ['--']),
        ...filter.words,
      ],
      limits: this.#shellLimits(program),
      groupFile: this.cgroups.make(program.name, groupLimits(program)),
      bootId: hostBootId(),
    };
  }

  #shellLimits(program: ForeignProgram): string[] {
    const { uid, memoryMb, reservedMb, maxProcesses = 1024, cpuSeconds, fileMb } = program;
    const isGroupEnough = this.cgroups.problem === '' && reservedMb === undefined;
    return [
      NO_CORE,
      ...(isGroupEnough ? [] : [`ulimit -d ${(memoryMb + (reservedMb ?? 0)) * 1024}`]),
      ...(uid === null ? [] : [processLimit(maxProcesses)]),
      ...(cpuSeconds === undefined ? [] : [`ulimit -t ${cpuSeconds}`]),
      ...(fileMb === undefined ? [] : [`ulimit -f ${fileMb * BLOCKS_PER_MIB}`]),
    ];
  }

  #running(
    { name }: Pick<ForeignProgram, 'name'>,
    about: {
      isolation: Isolation;
      child: ChildProcess | null;
      identity: ProcessIdentity;
      keeper: string | null;
      isLast?: boolean;
    },
  ): RunningProcess {
    const { isolation, child, identity, keeper, isLast = false } = about;
    yieldMemoryFirst(identity.pid);
    // Linux assigns a new weight to a session.
    this.#yieldsFirst(identity.pid, isLast);
    const onGone = async () => {
      await this.cgroups.remove(name);
      if (keeper !== null) return this.#noted(keeper);
      const end =
        typeof child?.exitCode === 'number' ? exitOf(child.exitCode) : { code: null, signal: 'SIGKILL' };
      return { ...end, at: this.#deps.clock.now() };
    };
    return new RunningProcess({ identity, child, leadsGroup: !isolation.hasView, onGone });
  }

  /**
   * Cloudlet serves everybody, so it has priority over each of its processes; they inherit the lower priority
   * from the shell that starts them. Control groups already weigh them.
   */
  #yieldsFirst(pid: number | undefined, isLast = false): void {
    if (pid === undefined || this.cgroups.problem === '') return;
    yieldProcessorFirst(pid);
    if (isLast) yieldToSiblings(pid, true);
  }

  /**
   * Makes a process that computes for long yield to its siblings, or undoes this. Control groups, if
   * available, already share the processor, but do not wake a process sooner.
   */
  yields(
    { identity }: RunningProcess,
    change: { readonly from: ProcessorOrder; readonly to: ProcessorOrder },
  ): void {
    if (isAlive(identity)) this.orderTask({ tid: identity.pid, isProcess: true }, change);
  }

  /** Same as yields(), for one thread or process of a running program. */
  orderTask(
    { tid, isProcess }: { readonly tid: number; readonly isProcess: boolean },
    { from, to }: { readonly from: ProcessorOrder; readonly to: ProcessorOrder },
  ): void {
    if (from === to) return;
    if (this.cgroups.problem !== '') yieldToSiblings(tid, to === 'last', isProcess);
    if (from === 'usual' || to === 'usual') keepOffOne(tid, to !== 'usual', isProcess);
  }

  async #noted(keeper: string): Promise<ProcessEnd> {
    for (let tries = 0; tries < NOTE_TRIES; tries++) {
      const end = this.lastEnd(keeper);
      if (end !== null) return end;
      await sleep(NOTE_STEP_MS);
    }
    return { code: null, signal: null, at: null };
  }
}

function groupLimits({ memoryMb, maxProcesses = 1024 }: Adopted): Readonly<Record<string, string>> {
  return {
    'memory.max': String(memoryMb * MIB),
    // An engine is useless with only some of its processes.
    'memory.oom.group': '1',
    'pids.max': String(maxProcesses),
  };
}

function confinedLaunch(
  program: SelfConfinedProgram,
  { keeper, endsWithUs }: { readonly keeper: Keeper; readonly endsWithUs: boolean },
): Launch {
  const { command, args, env = {}, folder, user, opener } = program;
  assertRunnable(program);
  const asUser = userWords(user?.uid ?? null, false, user?.gid ?? null);
  return {
    command,
    args,
    env,
    folder,
    keeper,
    namespaces: [],
    view: null,
    hasSession: false,
    endsWithUs,
    prefix: [...opener, setprivProgram(), ...asUser, '--no-new-privs', ...(endsWithUs ? WITH_US : ['--'])],
    limits: [NO_CORE],
    groupFile: null,
    bootId: hostBootId(),
  };
}

function assertRunnable(program: Pick<ForeignProgram, 'name' | 'command' | 'args' | 'env' | 'folder'>): void {
  const { name, command, args, env = {}, folder } = program;
  if (!NAME.test(name)) throw new Error('not a name of a process');
  if (!Object.keys(env).every((key) => VARIABLE.test(key))) throw new Error('not a variable');
  if ([command, folder, ...args, ...Object.values(env)].some((word) => word.includes('\0')))
    throw new Error('no program takes a NUL');
}

/** Dash uses -p where others use -u. */
function processLimit(count: number): string {
  return `ulimit -u ${count} 2>/dev/null || ulimit -p ${count} || exit`;
}

function userWords(uid: number | null, inUserNamespace: boolean, gid = uid): string[] {
  if (uid !== null) return ['--reuid', String(uid), '--regid', String(gid), '--clear-groups'];
  return inUserNamespace ? [...NO_POWERS, '--ambient-caps=-all'] : withoutPowers();
}

/** A program may end before the caller listens; Node then drops its output unless someone listens. */
function holdOutput({ stdout, stderr }: ChildProcess): () => void {
  const streams = [stdout, stderr].filter((stream) => stream !== null);
  const hold = () => {};
  for (const stream of streams) stream.on('readable', hold);
  return () => {
    for (const stream of streams) stream.off('readable', hold);
  };
}

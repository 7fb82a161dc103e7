/**
 * Runs programs that are not trusted with this host: engines, tools on strangers' data, our own code on them.
 * Where the host allows it each has a user of its own, sees only its folder and the system's programs, has a
 * space of processes that ends with it, and limits that the kernel keeps. `way()` says what holds here.
 */
import type { ChildProcess, StdioOptions } from 'node:child_process';
import * as fs from 'node:fs';
import { join } from 'node:path';
import type { Readable, Writable } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import { startProgram } from '../../platform/child-process.ts';
import type { Clock } from '../../platform/clock.ts';
import { AppError } from '../../platform/errors.ts';
import { hostProgram } from '../../platform/host-programs.ts';
import { withoutPowers } from '../../platform/other-users.ts';
import { Cgroups } from './cgroups.ts';
import { ENDED, exitOf, readEnding } from './ending-note.ts';
import { apart, findWay, seenUser, setprivProgram, type Way } from './host-ways.ts';
import { keeperScript, type Launch, READY, RUN, shellScript, WITH_US } from './launch-script.ts';
import { openPaths } from './open-paths.ts';
import {
  hostBootId,
  isAlive,
  isThere,
  type ProcessIdentity,
  parseStat,
  yieldMemoryFirst,
} from './process-identity.ts';
import { type ProcessEnd, RunningProcess } from './running-process.ts';
import { AT } from './view-script.ts';

export interface ForeignProgram {
  /** Lower case letters, digits and hyphens; no two that run at a time have the same. */
  readonly name: string;
  /** Absolute path, in the system's folders or in `readOnly`. */
  readonly command: string;
  readonly args: readonly string[];
  /** All of its environment. */
  readonly env?: Readonly<Record<string, string>>;
  /** Number of its user and group, which nothing else has while it runs; null: ours. */
  readonly uid: number | null;
  /** Absolute. All that it can write, and its working directory. It must be its user's. */
  readonly folder: string;
  /** Files and folders, absolute, that it sees where they are. Nothing in them may be secret. */
  readonly readOnly?: readonly string[];
  /** `none`: not even this host's own addresses, where `way()` says so. Unix sockets work all the same. */
  readonly network: 'none' | 'host';
  /** It and its children together; where there are no control groups, each of them, and data alone. */
  readonly memoryMb: number;
  /**
   * What it reserves besides and never fills, as V8 does for code. When given, data is bounded for each
   * process, so that one that can do with an allocation that fails is not killed for it.
   */
  readonly reservedMb?: number;
  /** Processes and threads; counted where it has a user or a control group of its own. Default 1024. */
  readonly maxProcesses?: number;
  /** Processor time of each of its processes. Default unlimited. */
  readonly cpuSeconds?: number;
  /** Size of each of its files, MiB. Default unlimited. */
  readonly fileMb?: number;
  /** Most that it may keep in /tmp and /dev/shm, where it sees its own; memory. Default 64. */
  readonly temporaryMb?: number;
}

type Adopted = Pick<ForeignProgram, 'name' | 'uid' | 'memoryMb' | 'maxProcesses'>;

export interface ProcessesDeps {
  readonly clock: Clock;
  /** Control group of all that are started here: `cloudlet-databases`. */
  readonly group: string;
  /** Whether programs have users of their own; then each must name one. */
  readonly hasUsers: boolean;
  /**
   * Directory of ours, in which folders and programs are. Where there are no views it is opened for programs
   * with users of their own to pass; not given: such programs name all files from their folder on.
   */
  readonly ground?: string;
  /** As `way()` finds it; given by tests. */
  readonly way?: Way;
}

const NAME = /^[a-z0-9-]{1,64}$/;
const VARIABLE = /^[A-Za-z_][A-Za-z0-9_]*$/;
const MIB = 1024 * 1024;
const READY_MS = 30_000;
const NO_POWERS = ['--bounding-set=-all', '--inh-caps=-all'];
const USER_TRIES = 10_000;
const MAX_OUTPUT_BYTES = 8192;
const READY_LINE = new RegExp(`^${READY}(.*)\n`, 'm');
/** The end is written down a little after it is seen. */
const NOTE_TRIES = 50;
const NOTE_STEP_MS = 10;

export class HostProcesses {
  readonly #deps: ProcessesDeps;
  readonly #cgroups: Cgroups;
  #way: Promise<Way> | undefined;

  constructor(deps: ProcessesDeps) {
    this.#deps = deps;
    this.#cgroups = new Cgroups(deps.group);
  }

  /** How far processes are kept from everything else here. */
  way(): Promise<Way> {
    this.#way ??= this.#deps.way ? Promise.resolve(this.#deps.way) : findWay(this.#deps.hasUsers);
    return this.#way;
  }

  /** Whether a program that is given no user of its own knows itself as root, as PostgreSQL refuses to. */
  async isRootSeen(): Promise<boolean> {
    return !this.#deps.hasUsers && seenUser(await this.way()) === 0;
  }

  /** Why the memory of a process and its children is not bounded as a whole, for humans; empty when it is. */
  get limitsProblem(): string {
    return this.#cgroups.problem;
  }

  /** The path by which a process sees its folder: a short one, or where it sees more, that very path. */
  async pathOf(folder: string): Promise<string> {
    return (await this.way()).hasView ? AT : folder;
  }

  /**
   * Starts a program that ends when we do, however we end. `stdio` as Node's spawn takes it, of three; `ipc`:
   * with Node's channel for messages. Resolves about when the program begins. Whoever takes its output takes
   * it at once: what nobody listens to when the program ends is gone. Throws `engine_unavailable`
   * when what this takes is not installed, and `internal_error` when it cannot be started.
   */
  async start(
    program: ForeignProgram,
    { stdio, ipc = false }: { readonly stdio: readonly unknown[]; readonly ipc?: boolean },
  ): Promise<RunningProcess> {
    const way = await this.way();
    const launch = this.#launch(program, way, null);
    const child = await this.#spawn(launch, ipc ? [...stdio, 'pipe', 'ipc'] : [...stdio, 'pipe']);
    const letGo = holdOutput(child);
    const identity = await ready(child, launch, program.uid).finally(letGo);
    return this.#running(program, { way, child, identity, keeper: null });
  }

  /**
   * Starts a program that runs on when we end, to be adopted by our next start. `keeper`: a folder of ours,
   * out of its reach and of no other program, which will hold what is to be known of it, and `log`, to which
   * all that it says is added. Throws as start() does, and when one runs for that folder already.
   */
  async keep(program: ForeignProgram, keeper: string): Promise<RunningProcess> {
    const way = await this.way();
    const launch = this.#launch(program, way, keeper);
    const log = fs.openSync(join(keeper, 'log'), 'a', 0o600);
    const child = await this.#spawn(launch, ['ignore', log, log, 'pipe']).finally(() => fs.closeSync(log));
    const identity = await ready(child, launch, program.uid);
    child.unref();
    return this.#running(program, { way, child, identity, keeper });
  }

  /** What keep() started for that folder, when it runs still, under its limits again; null: it does not. */
  async adopt(program: Adopted, keeper: string): Promise<RunningProcess | null> {
    const { name, uid } = program;
    const way = await this.way();
    const [bootId = '', ...stat] = readText(join(keeper, RUN)).split(' ');
    const found = parseStat(stat.join(' '));
    if (found === null) return null;
    const identity = { pid: found.pid, startTime: found.startTime, bootId, uid };
    if (!isAlive(identity)) return null;
    this.#cgroups.make(name, groupLimits(program));
    return this.#running({ name }, { way, child: null, identity, keeper });
  }

  /** How what keep() started for that folder ended, or null: it runs, or nobody knows. */
  lastEnd(keeper: string): ProcessEnd | null {
    const ending = readEnding(join(keeper, ENDED));
    return ending === null ? null : { ...exitOf(ending.status), at: ending.at };
  }

  #launch(program: ForeignProgram, way: Way, keeper: string | null): Launch {
    const { command, args, env = {}, uid, folder, readOnly = [], temporaryMb = 64 } = program;
    this.#assertRunnable(program);
    const { ground } = this.#deps;
    if (!way.hasView && uid !== null && ground !== undefined)
      openPaths(ground, [folder, command, ...readOnly]);
    const namespaces = apart(way, program.network);
    return {
      command,
      args,
      env,
      folder,
      keeper,
      apart: namespaces,
      view: way.hasView ? { folder, readOnly, temporaryMb, uid: uid ?? seenUser(way) } : null,
      asUser: [
        setprivProgram(),
        ...userWords(uid, way.inUserNamespace && namespaces.length > 0),
        '--no-new-privs',
        ...(keeper === null ? WITH_US : ['--']),
      ],
      limits: this.#shellLimits(program),
      groupFile: this.#cgroups.make(program.name, groupLimits(program)),
      bootId: hostBootId(),
    };
  }

  #assertRunnable({ name, command, args, env = {}, uid, folder }: ForeignProgram): void {
    if (!NAME.test(name)) throw new Error('not a name of a process');
    if ((uid !== null) !== this.#deps.hasUsers) throw new Error('a user of its own, where there are such');
    if (!Object.keys(env).every((key) => VARIABLE.test(key))) throw new Error('not a variable');
    if ([command, folder, ...args, ...Object.values(env)].some((word) => word.includes('\0')))
      throw new Error('no program takes a NUL');
  }

  #shellLimits(program: ForeignProgram): string[] {
    const { uid, memoryMb, reservedMb, maxProcesses = 1024, cpuSeconds, fileMb } = program;
    const isGroupEnough = this.#cgroups.problem === '' && reservedMb === undefined;
    return [
      'ulimit -c 0',
      ...(isGroupEnough ? [] : [`ulimit -d ${(memoryMb + (reservedMb ?? 0)) * 1024}`]),
      ...(uid === null ? [] : [`ulimit -u ${maxProcesses}`]),
      ...(cpuSeconds === undefined ? [] : [`ulimit -t ${cpuSeconds}`]),
      ...(fileMb === undefined ? [] : [`ulimit -f ${fileMb * 1024}`]),
    ];
  }

  /** Starts the shell that waits for the program; see launch-script.ts. */
  #spawn(launch: Launch, stdio: readonly unknown[]): Promise<ChildProcess> {
    const words = [hostProgram('bash'), '--norc', '-c', shellScript(launch, stdio.length - 4), 'bash'];
    const first = launch.keeper === null ? [hostProgram('setpriv'), ...WITH_US] : [];
    const [program = '', ...rest] = [...first, ...words];
    return startProgram(program, rest, { cwd: '/', env: {}, detached: true, stdio: stdio as StdioOptions });
  }

  #running(
    { name }: Pick<ForeignProgram, 'name'>,
    about: { way: Way; child: ChildProcess | null; identity: ProcessIdentity; keeper: string | null },
  ): RunningProcess {
    const { way, child, identity, keeper } = about;
    yieldMemoryFirst(identity.pid);
    const onGone = async () => {
      await this.#cgroups.remove(name);
      if (keeper !== null) return this.#noted(keeper);
      const end =
        typeof child?.exitCode === 'number' ? exitOf(child.exitCode) : { code: null, signal: 'SIGKILL' };
      return { ...end, at: this.#deps.clock.now() };
    };
    return new RunningProcess({ identity, child, leadsGroup: !way.hasView, onGone });
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
    // Half of an engine is no engine.
    'memory.oom.group': '1',
    'pids.max': String(maxProcesses),
  };
}

function userWords(uid: number | null, inUserNamespace: boolean): string[] {
  if (uid !== null) return ['--reuid', String(uid), '--regid', String(uid), '--clear-groups'];
  return inUserNamespace ? [...NO_POWERS, '--ambient-caps=-all'] : withoutPowers();
}

/** Gives the shell its script, and resolves with what the process is known by once it may begin. */
async function ready(child: ChildProcess, launch: Launch, uid: number | null): Promise<ProcessIdentity> {
  const line = child.stdio[3] as Readable & Writable;
  let text = '';
  const timer = setTimeout(() => line.destroy(), READY_MS);
  line.on('error', () => {});
  line.setEncoding('latin1').end(keeperScript(launch));
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
  const found = parseStat(READY_LINE.exec(text)?.[1] ?? '');
  if (found !== null) {
    const identity = { pid: found.pid, startTime: found.startTime, bootId: launch.bootId, uid };
    // Its user is changed last of all; until then it would not be known again.
    for (let tries = 0; tries < USER_TRIES && !isAlive(identity) && isThere(found.pid); tries++)
      await sleep(1);
    return identity;
  }
  killGroup(child.pid);
  throw new AppError('internal_error', `${launch.command} cannot be started here`, {
    cause: new Error(text.trim()),
  });
}

/** A program may end before our caller can listen; Node then drops what it said, unless somebody listens. */
function holdOutput({ stdout, stderr }: ChildProcess): () => void {
  const streams = [stdout, stderr].filter((stream) => stream !== null);
  const hold = () => {};
  for (const stream of streams) stream.on('readable', hold);
  return () => {
    for (const stream of streams) stream.off('readable', hold);
  };
}

function killGroup(leader: number | undefined): void {
  try {
    if (leader !== undefined) process.kill(-leader, 'SIGKILL');
  } catch {
    // It ended meanwhile.
  }
}

function readText(path: string): string {
  try {
    return fs.readFileSync(path, 'latin1');
  } catch {
    return '';
  }
}

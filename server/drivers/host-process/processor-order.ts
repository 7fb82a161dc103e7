/**
 * The order of processes that compete for a processor: Cloudlet first, then the programs that it runs for
 * others, last those of them that compute for long.
 *
 * Each process of a tenant has its own share, so a few together have more than Cloudlet, however small each
 * share is. As root, Cloudlet therefore takes a much larger share than a usual program.
 *
 * Nice values divide processor time in the long run, but do not help a process that wakes up briefly: if it
 * has just used slightly more than its share, Linux lets the other process continue until the next tick, up
 * to 4 ms later, and a call has several such steps. So long computations are also kept off one processor,
 * and processes that must answer quickly request short slices.
 *
 * Cloudlet's threads are no real-time threads, although these wake up at once: busy ones leave databases and
 * all other programs of the host the 5 % that Linux reserves. Of four busy clouds on two processors, two
 * answered no request in 30 s.
 */
import { execFile, spawn } from 'node:child_process';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { Socket } from 'node:net';
import { getPriority, setPriority } from 'node:os';
import type { Writable } from 'node:stream';
import { promisify } from 'node:util';
import { patienceMs } from '../../platform/host/host-facts.ts';
import { findHostProgram, hostPath } from '../../platform/host/host-programs.ts';

const run = promisify(execFile);

/** `apart`: leaves one processor free. `last`: also a smaller share of the others. */
export type ProcessorOrder = 'usual' | 'apart' | 'last';

/** Nine times the share of a usual host program, 28 times that of a tenant's process. */
const FIRST_NICE = -10;
/** From 0 (default) to 19; 5 is a third of the usual processor share. */
const NICE = 5;
/** A twentieth of the share of its siblings, while it keeps its processor busy for long. */
const LAST_NICE = 19;
/** The bit of CAP_SYS_NICE, without which a lowered priority cannot be raised again. */
const SYS_NICE = 23n;

/**
 * Time slice that our threads request, ns, the minimum in Linux 6.12 and later: a waking thread that has had
 * less than its share, with a shorter slice than the running thread, runs at once.
 */
const SLICE_NS = 100_000;
/** The kernel's own slice. */
const USUAL_SLICE = 0;
/** Numbers of the calls sched_setattr and sched_setaffinity. */
const SET_ATTRIBUTES: Readonly<Record<string, number>> = { x64: 314, arm64: 274 };
const SET_AFFINITY: Readonly<Record<string, number>> = { x64: 203, arm64: 122 };
/** V8's threads: the main thread waits for them when it collects garbage. */
const COLLECTORS = 'node-V8Worker';
/** Fills the kernel's struct sched_attr. The flag 1: what the threads start inherits neither. */
const ATTRIBUTES = [
  'my ($call, $nice, $slice, @threads) = map { $_ + 0 } @ARGV;',
  'my $attributes = pack "L2 Q l L Q3", 48, 0, 1, $nice, 0, $slice, 0, 0;',
  'for my $thread (@threads) {',
  'syscall($call, $thread, $attributes, 0) == 0 or die "sched_setattr: $!\\n" }',
].join(' ');
/** Gives `$thread` (0: itself) the slice and leaves its nice value, if possible. */
const GIVE_SLICE = [
  'my $attributes = pack "L2 Q l L Q3", 48, 0, 0, getpriority(0, $thread), 0, $slice, 0, 0;',
  'syscall($call + 0, $thread, $attributes, 0)',
].join(' ');
/** Sets its own time slice and runs a command. */
const QUICK = [
  'my ($call, $slice, $thread) = (splice(@ARGV, 0, 2), 0);',
  `${GIVE_SLICE};`,
  'exec { $ARGV[0] } @ARGV or die "$ARGV[0]: $!\\n"',
].join(' ');
/**
 * Reads lines of thread ids, a slice, and the 32-bit words of a set of processors, and gives each thread
 * both. A thread may have ended, or belong to a user that root may not touch.
 */
const MOVES = [
  'my ($affinity, $call) = map { $_ + 0 } @ARGV;',
  'while (my $line = <STDIN>) {',
  'my ($threads, $slice, $words) = split " ", $line;',
  'my $processors = pack "L*", split /,/, $words;',
  'for my $thread (map { $_ + 0 } split /,/, $threads) {',
  'syscall($affinity, $thread, length $processors, $processors);',
  `${GIVE_SLICE} } }`,
].join(' ');
const WORD_BITS = 32;
const ASK_MS = 10_000;

interface Processors {
  /** The list of processors that we may use, for `taskset`. */
  readonly all: string;
  /** All processors but the first; null: there is only one. */
  readonly others: string | null;
}

let mayRaise: boolean | undefined;
let ours: Processors | undefined;
/** Carries out moves in their order: a process for each would hold Cloudlet up for milliseconds. */
let mover: Writable | null = null;

/**
 * Gives the main thread, our threads of those names, and the garbage collector's threads a larger share than
 * all other programs, if we are permitted to and no other nice value was set. Helpers and programs of tenants
 * that they start from then on are as usual. Linux may weigh sessions against each other first: ours comes
 * first too, unless it is that of the shell that started us. Never rejects.
 */
export async function comeFirst(names: readonly string[]): Promise<void> {
  mayRaise ??= readMayRaise();
  const call = SET_ATTRIBUTES[process.arch];
  const perl = findHostProgram('perl');
  if (call === undefined || perl === null) return;
  const given = getPriority();
  const nice = mayRaise && given === 0 ? FIRST_NICE : given;
  try {
    const numbers = [call, nice, SLICE_NS, process.pid, ...threadsOf([...names, COLLECTORS])];
    const words = ['-e', ATTRIBUTES, '--', ...numbers.map(String)];
    await run(perl, words, { timeout: patienceMs(ASK_MS), env: { PATH: hostPath() } });
    if (mayRaise && nice < 0 && leadsSession()) writeFileSync('/proc/self/autogroup', String(nice));
  } catch {
    // The kernel does not allow it, or has no autogroups.
  }
}

/**
 * Gives the process, and every process that it starts from now on, a smaller share of the processor than
 * ours. Linux may weigh sessions against each other first (autogroup), so that the nice value of a process
 * alone would change nothing: its session gets the same, unless it is ours.
 */
export function yieldProcessorFirst(pid: number): void {
  setNice(pid, NICE);
}

/**
 * Gives the process a smaller share than its siblings, or the same share again; only if we may raise it
 * again. A long computation must not delay processes that have little to do.
 */
export function yieldToSiblings(pid: number, yields: boolean, isProcess = true): void {
  mayRaise ??= readMayRaise();
  if (mayRaise) setNice(pid, yields ? LAST_NICE : NICE, isProcess);
}

/**
 * Keeps the process off one of our processors, where there are several, and takes the short slices of
 * quickWords() from it; or undoes both.
 */
export function keepOffOne(pid: number, isKeptOff: boolean, isProcess = true): void {
  const { all, others } = processors();
  if (others === null) return;
  const threads = isProcess ? tasksOf(String(pid)) : [String(pid)];
  if (threads.length === 0) return;
  const words = wordsOf(isKeptOff ? others : all);
  mover ??= startMover();
  mover?.write(`${threads.join(',')} ${isKeptOff ? USUAL_SLICE : SLICE_NS} ${words.join(',')}\n`);
}

/** Ends with Cloudlet, which holds its standard input. Null: there is no perl, or another processor. */
function startMover(): Writable | null {
  const [call, affinity] = [SET_ATTRIBUTES[process.arch], SET_AFFINITY[process.arch]];
  const perl = findHostProgram('perl');
  if (call === undefined || affinity === undefined || perl === null) return null;
  const child = spawn(perl, ['-e', MOVES, '--', String(affinity), String(call)], {
    stdio: ['pipe', 'ignore', 'ignore'],
    env: { PATH: hostPath() },
  });
  const isOver = () => {
    mover = null;
  };
  child.once('error', isOver).once('exit', isOver).unref();
  // Absent where no file can be opened, contrary to its type.
  const stdin: Writable | undefined = child.stdin;
  stdin?.on('error', () => {});
  if (stdin instanceof Socket) stdin.unref();
  return stdin ?? null;
}

/** A list such as `0-3,6` as words of bits, lowest first. */
export function wordsOf(list: string): number[] {
  const words: number[] = [];
  for (const range of list.split(',')) {
    const [from = 0, to = from] = range.split('-').map(Number);
    for (let processor = from; processor <= to; processor++) {
      const word = Math.floor(processor / WORD_BITS);
      words[word] = ((words[word] ?? 0) | (1 << (processor % WORD_BITS))) >>> 0;
    }
  }
  return Array.from(words, (word) => word ?? 0);
}

/**
 * Arguments before a command that must respond quickly: its processes get short time slices, so that after
 * sleeping they run before busy ones. Empty without Linux or perl.
 */
export function quickWords(): string[] {
  const call = SET_ATTRIBUTES[process.arch];
  const perl = findHostProgram('perl');
  return call === undefined || perl === null ? [] : [perl, '-e', QUICK, '--', String(call), String(SLICE_NS)];
}

/** Arguments before a command that must not run on that processor, from its first instruction on. */
export function offOneWords(): string[] {
  const { others } = processors();
  const taskset = findHostProgram('taskset');
  return others === null || taskset === null ? [] : [taskset, '--cpu-list', others];
}

function processors(): Processors {
  ours ??= readProcessors();
  return ours;
}

function readProcessors(): Processors {
  const [, all = ''] = /^Cpus_allowed_list:\s+(\S+)$/m.exec(ownStatus()) ?? [];
  return { all, others: withoutFirst(all) };
}

/** A list such as `0-3,6` without its first processor; null: empty. */
export function withoutFirst(list: string): string | null {
  const [first = '', ...rest] = list.split(',');
  const [from = '', to] = first.split('-');
  const next = Number(from) + 1;
  const left = to === undefined ? [] : [next === Number(to) ? to : `${next}-${to}`];
  const others = [...left, ...rest].join(',');
  return others === '' ? null : others;
}

function readMayRaise(): boolean {
  const [, rights = '0'] = /^CapEff:\s+([0-9a-f]+)$/m.exec(ownStatus()) ?? [];
  return ((BigInt(`0x${rights}`) >> SYS_NICE) & 1n) === 1n;
}

function threadsOf(names: readonly string[]): number[] {
  const nameOf = (tid: string) => readFileSync(`/proc/self/task/${tid}/comm`, 'latin1').trim();
  return tasksOf('self')
    .filter((tid) => names.includes(nameOf(tid)))
    .map(Number);
}

/** Threads of the process; none: it has ended. */
function tasksOf(process: string): string[] {
  try {
    return readdirSync(`/proc/${process}/task`);
  } catch {
    return [];
  }
}

function leadsSession(): boolean {
  const stat = readFileSync('/proc/self/stat', 'latin1');
  const session = stat.slice(stat.lastIndexOf(')') + 2).split(' ')[3];
  return session === String(process.pid);
}

function ownStatus(): string {
  try {
    return readFileSync('/proc/self/status', 'latin1');
  } catch {
    return '';
  }
}

/** `isProcess` false: a thread id, whose session is shared. */
function setNice(pid: number, nice: number, isProcess = true): void {
  try {
    setPriority(pid, nice);
    if (!isProcess) return;
    const [own, its] = ['self', pid].map(
      (of) => readFileSync(`/proc/${of}/autogroup`, 'latin1').split(' ')[0],
    );
    if (own !== its) writeFileSync(`/proc/${pid}/autogroup`, String(nice));
  } catch {
    // The process has ended, or the kernel lacks autogroups.
  }
}

/**
 * Sessions of a server whose statements compute for long leave one processor to others, and get low
 * priority on the others after a while: processes of PostgreSQL, threads of MariaDB and mongod.
 */
import { readdirSync } from 'node:fs';
import { type Clock, systemClock } from '../../../platform/clock.ts';
import type { HostProcesses } from '../../host-process/host-processes.ts';
import { MS_PER_TICK, processorTimes, readProc, readStat } from '../../host-process/process-identity.ts';
import type { ProcessorOrder } from '../../host-process/processor-order.ts';
import type { ServerLog } from './server-log.ts';
import { ServerRounds } from './server-rounds.ts';

/**
 * A session that runs at every check is long-running if it used this share of a processor since the last
 * check. On an overloaded host it is enough that it waited for a processor for nearly all of the time.
 */
const BUSY_SHARE = 0.1;
const WANTED_SHARE = 0.9;
const APART_MS = 200;
const LAST_MS = 1000;
/** Idle time after which a long-running process gets the usual priority again. */
const MOST_MS = 5000;

const LOOK_MS = 500;
/** A tenant can fill the log. */
const TRIM_MS = 1000;

interface Upkept {
  readonly isUp: boolean;
  /** The server's first process; null: none. */
  readonly pid: number | null;
  readonly log: Pick<ServerLog, 'trim'>;
}

interface Task {
  readonly tid: number;
  /** Path of its `stat` in /proc. */
  readonly path: string;
  readonly isProcess: boolean;
}

interface Now {
  readonly at: number;
  readonly cpuMs: number;
  /** Time in which it waited for a processor. */
  readonly waitedMs: number;
  readonly isRunning: boolean;
}

interface Seen extends Now {
  /** Computing time, less idle time since. */
  readonly longMs: number;
  readonly order: ProcessorOrder;
}

/** Starts periodic work that every running server of ours needs. */
export function upkeep(server: Upkept, processes: Pick<HostProcesses, 'orderTask'>): ServerRounds {
  const sessions = new LongSessions(systemClock, processes);
  return new ServerRounds(
    () => server.isUp,
    [
      { everyMs: TRIM_MS, work: async () => server.log.trim() },
      { everyMs: LOOK_MS, work: async () => sessions.look(server.pid) },
    ],
  );
}

class LongSessions {
  readonly #clock: Pick<Clock, 'monotonic'>;
  readonly #processes: Pick<HostProcesses, 'orderTask'>;
  #seen = new Map<string, Seen>();

  constructor(clock: Pick<Clock, 'monotonic'>, processes: Pick<HostProcesses, 'orderTask'>) {
    this.#clock = clock;
    this.#processes = processes;
  }

  look(pid: number | null): void {
    const isOrdered = [...this.#seen.values()].some(({ order }) => order !== 'usual');
    if (pid === null || (!isOrdered && isHostQuiet())) return;
    const seen = new Map<string, Seen>();
    for (const task of tasksOf(pid)) {
      const stat = readStat(task.path);
      if (stat === null) continue;
      const before = this.#seen.get(task.path);
      const now = {
        at: this.#clock.monotonic(),
        cpuMs: stat.cpuTicks * MS_PER_TICK,
        waitedMs: processorTimes(task.path).waitedMs,
        isRunning: stat.isRunning,
      };
      const fresh: Seen = { ...now, longMs: 0, order: 'usual' };
      seen.set(task.path, before === undefined ? fresh : this.#judge(task, before, now));
    }
    this.#seen = seen;
  }

  #judge({ tid, isProcess }: Task, before: Seen, now: Now): Seen {
    const [passedMs, usedMs] = [now.at - before.at, now.cpuMs - before.cpuMs];
    const stoodMs = now.waitedMs - before.waitedMs;
    const isBusy = now.isRunning && wantsProcessor({ passedMs, usedMs, waitedMs: stoodMs });
    const longMs = isBusy ? Math.min(MOST_MS, before.longMs + usedMs) : Math.max(0, before.longMs - passedMs);
    const order = orderAfter(longMs, before.order);
    this.#processes.orderTask({ tid, isProcess }, { from: before.order, to: order });
    return { ...now, longMs, order };
  }
}

interface Wanted {
  readonly passedMs: number;
  readonly usedMs: number;
  readonly waitedMs: number;
}

/** Of a session that runs now, since the last check. */
export function wantsProcessor({ passedMs, usedMs, waitedMs }: Wanted): boolean {
  return usedMs > passedMs * BUSY_SHARE || usedMs + waitedMs > passedMs * WANTED_SHARE;
}

/** Returns to normal only after resting as long as it computed. */
function orderAfter(longMs: number, before: ProcessorOrder): ProcessorOrder {
  if (longMs === 0) return 'usual';
  if (longMs >= LAST_MS || before === 'last') return 'last';
  return longMs >= APART_MS ? 'apart' : before;
}

/** Whether only we need a processor right now. */
function isHostQuiet(): boolean {
  return Number(readProc('loadavg')?.split(' ')[3]?.split('/')[0]) <= 1;
}

/** Threads of the server's first process, and its child processes. */
function tasksOf(pid: number): Task[] {
  const children = readProc(`${pid}/task/${pid}/children`)?.trim() ?? '';
  const processes = children === '' ? [] : children.split(' ');
  return [
    ...threadsOf(pid).map((tid) => ({ tid, path: `${pid}/task/${tid}`, isProcess: false })),
    ...processes.map((child) => ({ tid: Number(child), path: child, isProcess: true })),
  ];
}

function threadsOf(pid: number): number[] {
  try {
    return readdirSync(`/proc/${pid}/task`).map(Number);
  } catch {
    return [];
  }
}

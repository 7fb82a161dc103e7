/** Periodic work, run at shared moments so that an idle process seldom wakes up. */
import { systemClock } from '../clock.ts';

/** Work due within this time runs now: timers are a little early or late relative to each other. */
const SLACK_MS = 10;
/** The interval of work that has nothing to watch now. */
const REST_MS = 1000;

export interface Beat {
  stop(): void;
}

interface Due {
  readonly everyMs: number;
  readonly work: () => unknown;
  readonly mayRest: () => boolean;
  /** A time of the monotonic clock. */
  at: number;
}

const all = new Set<Due>();
let timer: NodeJS.Timeout | undefined;

/**
 * Calls `work` at the multiples of `everyMs` since this process began, and never keeps the process
 * alive. Moments that passed while it was busy are skipped. While `mayRest` says that there is nothing to
 * watch, shorter intervals are a second.
 */
export function onBeat(everyMs: number, work: () => unknown, mayRest = () => false): Beat {
  const due: Due = { everyMs, work, mayRest, at: nextAt(everyMs) };
  all.add(due);
  arm();
  return {
    stop: () => {
      all.delete(due);
      arm();
    },
  };
}

/** Work that ran slightly early is not due again at that moment. */
function nextAt(everyMs: number): number {
  const from = systemClock.monotonic() + Math.min(SLACK_MS, everyMs / 2);
  return (Math.floor(from / everyMs) + 1) * everyMs;
}

function arm(): void {
  clearTimeout(timer);
  if (all.size === 0) return;
  const first = Math.min(...[...all].map(({ at }) => at));
  timer = setTimeout(run, Math.max(1, first - systemClock.monotonic())).unref();
}

function run(): void {
  const until = systemClock.monotonic() + SLACK_MS;
  const now = [...all].filter(({ at }) => at <= until);
  for (const due of now) due.at = nextAt(due.mayRest() ? Math.max(REST_MS, due.everyMs) : due.everyMs);
  arm();
  // An error of one ends the process, as in a timer, but the others still run.
  for (const due of now)
    queueMicrotask(() => {
      if (all.has(due)) due.work();
    });
}

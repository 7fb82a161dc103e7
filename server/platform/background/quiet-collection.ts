/** Frees, once, the memory left over from a start: 10 MB of garbage, and of space for new objects. */
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { systemClock } from '../clock.ts';
import { type Beat, onBeat } from './beat.ts';

const LOOK_MS = 10_000;
/** An idle cloud uses a tenth of it. A collection takes 0.1 s, during which no request should wait. */
const MOST_SHARE = 0.02;

type Collect = (options: { type: 'major'; execution: 'sync'; flavor: 'last-resort' }) => void;

/**
 * Collects all garbage after the first time of `everyMs` in which this process hardly computed. Node does not
 * do so by itself until as much again was allocated, which in an idle process takes days.
 */
export function collectOnceQuiet(everyMs = LOOK_MS): Beat {
  let [since, used] = [systemClock.monotonic(), process.cpuUsage()];
  const beat = onBeat(everyMs, () => {
    const { user, system } = process.cpuUsage(used);
    const share = (user + system) / 1000 / (systemClock.monotonic() - since);
    [since, used] = [systemClock.monotonic(), process.cpuUsage()];
    if (share > MOST_SHARE) return;
    beat.stop();
    collect();
  });
  return beat;
}

function collect(): void {
  // Only contexts created after the flag have the function.
  setFlagsFromString('--expose-gc');
  const gc = runInNewContext('gc') as Collect;
  gc({ type: 'major', execution: 'sync', flavor: 'last-resort' });
}

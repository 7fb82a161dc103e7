/** An idle cloud: its processor time and its memory. */
import { setTimeout as sleep } from 'node:timers/promises';
import { cpuMs, statusBytes } from '../process-figures.ts';
import { type Measurement, type Row, type RunOptions, withCloud } from '../workshop.ts';

const MOST_SHARE = 0.003;
const MOST_BYTES = 110e6;
/** Until the work after a start is done; its garbage is collected last, after 30 s. */
const QUIET_MS = 40_000;

function idle(options: RunOptions): Promise<Row[]> {
  return withCloud(options, async ({ process }) => {
    // The first start of a build writes the compile cache, and needs more memory.
    await process.end();
    await process.start();
    await sleep(QUIET_MS);
    const [began, before] = [performance.now(), cpuMs(process.pid)];
    await sleep(options.quick ? 20_000 : 60_000);
    const ms = performance.now() - began;
    const share = (cpuMs(process.pid) - before) / ms;
    const bytes = statusBytes(process.pid, 'VmRSS');
    return [
      {
        work: 'nothing to do: processor',
        target: `≤ ${MOST_SHARE * 100} % of one core`,
        reached: `**${(share * 100).toFixed(2)} %**`,
        isMet: share <= MOST_SHARE,
        detail: `over ${Math.round(ms / 1000)} s`,
      },
      {
        work: 'nothing to do: resident memory',
        target: `≤ ${MOST_BYTES / 1e6} MB`,
        reached: `**${(bytes / 1e6).toFixed(0)} MB**`,
        isMet: bytes <= MOST_BYTES,
        detail: 'the pages of the program file included',
      },
    ];
  });
}

export const IDLE: readonly Measurement[] = [{ name: 'idle', run: idle }];

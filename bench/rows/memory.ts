/** Memory and event loop while 16 large uploads and 16 slow downloads run at once. */
import { randomBytes } from 'node:crypto';
import { statfsSync } from 'node:fs';
import { runChild, Server } from '../child.ts';
import { statusBytes } from '../process-figures.ts';
import { formatBytes, skippedRow } from '../table.ts';
import {
  type Cloud,
  createBucket,
  type Measurement,
  type Row,
  type RunOptions,
  uploadObject,
  withCloud,
} from '../workshop.ts';

const PARALLEL = 16;
const SLOW_BYTES = 64 * 2 ** 20;
const SLOW_SPEED = 2 ** 20;
const MOST_BYTES = 350 * 2 ** 20;
const MOST_DELAY_MS = 50;
const UPLOADER = new URL('../children/uploader.ts', import.meta.url);
const SLOW_READERS = new URL('../children/slow-readers.ts', import.meta.url);

async function loopDelayMs(cloud: Cloud, name: string): Promise<number> {
  const { body } = await cloud.client.call('/metrics');
  const value = new RegExp(`^cloudlet_event_loop_delay_${name}_seconds (\\S+)$`, 'm').exec(body)?.[1];
  if (value === undefined) throw new Error('/metrics has no event loop delay');
  return Number(value) * 1000;
}

async function load(cloud: Cloud, bytes: number): Promise<number> {
  const { client, port, key } = cloud;
  await createBucket(client, { name: 'bench' });
  const id = await uploadObject(client, 'bench', randomBytes(SLOW_BYTES));
  const paths = Array.from({ length: PARALLEL }, () => `/api/storage/${id}/download`);
  const readers = await Server.start(SLOW_READERS, [
    JSON.stringify({ port, paths, key, bytesPerSecond: SLOW_SPEED }),
  ]);
  try {
    const input = { port, key, path: '/api/buckets/bench/upload', name: 'large', bytes, parallel: PARALLEL };
    const { seconds } = await runChild<{ seconds: number[] }>(UPLOADER, input);
    if (!readers.isRunning) throw new Error('the slow downloads broke off');
    return Math.max(...seconds);
  } finally {
    await readers.stop();
  }
}

async function memory(options: RunOptions): Promise<Row[]> {
  const bytes = options.quick ? 128 * 2 ** 20 : 2 ** 30;
  const work = `${PARALLEL} uploads of ${formatBytes(bytes)} + ${PARALLEL} slow downloads`;
  const disk = statfsSync(options.folder);
  if (disk.bavail * disk.bsize < 1.5 * PARALLEL * bytes) {
    return [skippedRow(work, `≤ ${formatBytes(MOST_BYTES)}`, 'too little space on this disk')];
  }
  return withCloud(options, async (cloud) => {
    const idle = statusBytes(cloud.process.pid, 'VmHWM');
    const seconds = await load(cloud, bytes);
    const peak = statusBytes(cloud.process.pid, 'VmHWM');
    const p99 = await loopDelayMs(cloud, 'p99');
    const max = await loopDelayMs(cloud, 'max');
    const speed = `${formatBytes((PARALLEL * bytes) / seconds)}/s in`;
    return [
      {
        work: `${work}: peak RSS`,
        target: `≤ ${formatBytes(MOST_BYTES)}`,
        reached: `**${formatBytes(peak)}**`,
        isMet: peak <= MOST_BYTES,
        detail: `${formatBytes(idle)} after the start; ${speed}`,
      },
      {
        work: `${work}: event-loop delay p99`,
        target: `≤ ${MOST_DELAY_MS} ms`,
        reached: `**${p99.toFixed(1)} ms**`,
        isMet: p99 <= MOST_DELAY_MS,
        detail: `at worst ${max.toFixed(0)} ms`,
      },
    ];
  });
}

export const MEMORY: readonly Measurement[] = [{ name: 'memory', run: memory }];

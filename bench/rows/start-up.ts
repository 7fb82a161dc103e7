/** From the command to Ready: an empty data directory, and a full one after kill -9. */
import { randomBytes } from 'node:crypto';
import { Client } from '../../test/harness/client.ts';
import { fillBucket } from '../filling.ts';
import { median } from '../ratios.ts';
import {
  type Cloud,
  createBucket,
  type Measurement,
  type Row,
  type RunOptions,
  uploadObject,
  withCloud,
} from '../workshop.ts';

const OBJECTS = 100_000;

interface Starts {
  readonly work: string;
  readonly target: string;
  readonly most: number;
  readonly seconds: readonly number[];
}

function startRow({ work, target, most, seconds }: Starts): Row {
  const middle = median(seconds);
  const spread = `${Math.min(...seconds).toFixed(2)}–${Math.max(...seconds).toFixed(2)}`;
  return {
    work,
    target,
    reached: `**${middle.toFixed(2)} s** (${spread})`,
    isMet: middle <= most,
    detail: `${seconds.length} starts`,
  };
}

async function timeStart({ process }: Cloud): Promise<number> {
  const began = performance.now();
  await process.start();
  return (performance.now() - began) / 1000;
}

function starts(options: RunOptions): Promise<Row[]> {
  const rounds = options.quick ? 3 : 7;
  return withCloud(options, async (cloud) => {
    const { process, client, key } = cloud;
    const empty: number[] = [];
    const full: number[] = [];
    await createBucket(client, { name: 'bench' });
    for (let round = 0; round < rounds; round++) {
      await process.stop();
      empty.push(await timeStart(cloud));
    }
    await process.stop();
    fillBucket(process.dataDir, 'bench', { objects: OBJECTS });
    await process.start();
    for (let round = 0; round < rounds; round++) {
      // So that the log has something that only the next start can bring into the database.
      await uploadObject(new Client(process.api, key), 'bench', randomBytes(4096));
      await process.crash();
      full.push(await timeStart(cloud));
    }
    return [
      startRow({
        work: 'second start, empty data directory: Ready',
        target: '< 2 s',
        most: 2,
        seconds: empty,
      }),
      startRow({ work: 'start after kill -9 with 100,000 objects', target: '≤ 3 s', most: 3, seconds: full }),
    ];
  });
}

export const START_UP: readonly Measurement[] = [{ name: 'start-up', run: starts }];

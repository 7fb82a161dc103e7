/** Removing a bucket with its content: versions of one name compared with as many names. */
import { Client } from '../../test/harness/client.ts';
import { fillBucket } from '../filling.ts';
import { compare } from '../ratios.ts';
import { formatNumber, ratioRow } from '../table.ts';
import {
  type Cloud,
  createBucket,
  type Measurement,
  type Row,
  type RunOptions,
  withCloud,
} from '../workshop.ts';

async function timeRemoval({ process, key }: Cloud, bucket: string): Promise<number> {
  const client = new Client(process.api, key);
  const began = performance.now();
  const { status, body } = await client.call(`/api/buckets/${bucket}?force=true`, { method: 'DELETE' });
  if (status !== 200) throw new Error(`a removal was answered ${status}: ${JSON.stringify(body)}`);
  return performance.now() - began;
}

function emptying(options: RunOptions): Promise<Row[]> {
  const count = options.quick ? 10_000 : 40_000;
  const rounds = options.quick ? 3 : 5;
  return withCloud(options, async (cloud) => {
    const { process, key } = cloud;
    const names: number[] = [];
    const versions: number[] = [];
    for (let round = 0; round < rounds; round++) {
      const client = new Client(process.api, key);
      await createBucket(client, { name: 'names', versioning: true });
      await createBucket(client, { name: 'versions', versioning: true });
      await process.stop();
      fillBucket(process.dataDir, 'names', { objects: count, versions: () => 1 });
      fillBucket(process.dataDir, 'versions', { objects: 1, versions: () => count });
      await process.start();
      names.push(await timeRemoval(cloud, 'names'));
      versions.push(await timeRemoval(cloud, 'versions'));
    }
    return [
      ratioRow({
        work: `remove a bucket with ${formatNumber(count)} versions of one name`,
        against: 'one with as many names',
        atMost: 1.2,
        comparison: compare(names, versions),
        unit: 'ms',
      }),
    ];
  });
}

export const EMPTYING: readonly Measurement[] = [{ name: 'emptying', run: emptying }];

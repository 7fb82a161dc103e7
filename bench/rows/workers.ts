/**
 * Front nodes beside the host node (CLOUDLET_WORKERS), compared with one process on the same kind of stores.
 */
import { randomBytes } from 'node:crypto';
import { Client } from '../../test/harness/client.ts';
import { Cluster, noCluster } from '../../test/harness/cluster.ts';
import { freePort } from '../../test/harness/free-port.ts';
import { compare, interleave } from '../ratios.ts';
import { ratioRow, skippedRow } from '../table.ts';
import { createBucket, type Measurement, type Row, type RunOptions, uploadObject } from '../workshop.ts';
import { runWrk } from '../wrk.ts';

const BYTES = 4096;
const CONNECTIONS = 32;
const WORKERS = [1, 2, 4];
const AGAINST = 'one process on PostgreSQL and S3';

interface Served {
  readonly api: string;
  readonly key: string;
  readonly objectId: string;
}

let runs = 0;

const download = ({ api, key, objectId }: Served, seconds: number) =>
  runWrk({ connections: CONNECTIONS, seconds, url: `${api}/api/storage/${objectId}/download`, key });

const upload = ({ api, key }: Served, seconds: number) =>
  runWrk({
    connections: CONNECTIONS,
    seconds,
    url: `${api}/api/buckets/bench/upload`,
    key,
    upload: { prefix: `run-${++runs}-`, bytes: BYTES },
  });

/** Starts a cloud with this many workers; it has its own PostgreSQL and S3. */
async function withWorkers<Result>(
  count: number,
  work: (served: Served) => Promise<Result>,
): Promise<Result> {
  const limits = { CLOUDLET_RATE_REQUESTS: '1000000000', CLOUDLET_RATE_S3: '1000000000' };
  const own = {
    CLOUDLET_NODE_URL: `http://127.0.0.1:${await freePort()}`,
    CLOUDLET_DATA_PORT: String(await freePort()),
  };
  const workers = count === 0 ? {} : { ...own, CLOUDLET_WORKERS: String(count) };
  const cluster = await Cluster.start(1, { ...limits, ...workers });
  try {
    const api = cluster.nodes[0]?.api ?? '';
    const { api_key: key } = await new Client(api).register();
    const client = new Client(api, key);
    await createBucket(client, { name: 'bench' });
    return await work({ api, key, objectId: await uploadObject(client, 'bench', randomBytes(BYTES)) });
  } finally {
    await cluster.stop();
  }
}

async function measured(count: number, { quick }: RunOptions): Promise<Row[]> {
  const { rounds, seconds } = quick ? { rounds: 3, seconds: 2 } : { rounds: 7, seconds: 4 };
  return withWorkers(0, (one) =>
    withWorkers(count, async (several) => {
      const rows: Row[] = [];
      for (const [name, load] of Object.entries({ download, upload })) {
        // Each process compiles the code that it runs.
        for (const served of [one, several, several]) await load(served, seconds);
        const rate = async (served: Served) => (await load(served, seconds)).requestsPerSecond;
        const { yardstick, ours } = await interleave(rounds, {
          yardstick: () => rate(one),
          ours: () => rate(several),
        });
        const work = `${name} 4 KiB, CLOUDLET_WORKERS=${count}`;
        const comparison = compare(yardstick, ours);
        rows.push(ratioRow({ work, against: AGAINST, atLeast: 1, comparison, unit: '/s' }));
      }
      return rows;
    }),
  );
}

async function workers(options: RunOptions): Promise<Row[]> {
  if (noCluster !== false) return [skippedRow('CLOUDLET_WORKERS', `≥ 1 × ${AGAINST}`, noCluster)];
  const rows: Row[] = [];
  for (const count of WORKERS) rows.push(...(await measured(count, options)));
  return rows;
}

export const WORKERS_BESIDE: readonly Measurement[] = [{ name: 'workers', run: workers }];

/** The same cloud on PostgreSQL and on S3, compared with itself on SQLite and with the S3 alone. */
import { join } from 'node:path';
import { parseS3Url } from '../../server/config/s3-address.ts';
import { operatorPostgresql } from '../../server/testing/operator-postgresql.ts';
import { noPostgresql } from '../../server/testing/postgresql-fixture.ts';
import { S3Server } from '../../test/harness/s3-server.ts';
import { Ceph } from '../../test/long/ceph.ts';
import { cannotMakeTree } from '../../test/long/debian-tree.ts';
import { runChild } from '../child.ts';
import { cpuMs } from '../process-figures.ts';
import { compare, interleave } from '../ratios.ts';
import { ratioRow, skippedRow } from '../table.ts';
import {
  type Cloud,
  createBucket,
  type Measurement,
  type Row,
  type RunOptions,
  withCloud,
} from '../workshop.ts';
import { runWrk } from '../wrk.ts';

const SMALL_BYTES = 4096;
const CONNECTIONS = 32;
const LARGE_BYTES = 64 * 2 ** 20;
const UPLOADER = new URL('../children/uploader.ts', import.meta.url);
const S3_CLIENT = new URL('../children/s3-client.ts', import.meta.url);
const BUCKET = 'bench';

let runs = 0;

const upload = ({ process, key }: Cloud, seconds: number) =>
  runWrk({
    connections: CONNECTIONS,
    seconds,
    url: `${process.api}/api/buckets/bench/upload`,
    key,
    upload: { prefix: `run-${++runs}-`, bytes: SMALL_BYTES },
  });

/** Otherwise the slower engine would be measured while V8 is still compiling. */
async function warmUp(cloud: Cloud, { count, seconds }: { count: number; seconds: number }): Promise<void> {
  for (let done = 0; done < count; ) done += (await upload(cloud, seconds)).requestsPerSecond * seconds;
}

/** Processor time of Cloudlet with all its threads for one upload, µs, without that of the server. */
async function cpuOfUpload(cloud: Cloud, seconds: number): Promise<number> {
  const { pid } = cloud.process;
  const before = cpuMs(pid);
  const { requestsPerSecond } = await upload(cloud, seconds);
  return ((cpuMs(pid) - before) * 1000) / (requestsPerSecond * seconds);
}

async function uploadsToPostgresql(options: RunOptions): Promise<Row[]> {
  const work = 'upload 4 KiB, metadata in PostgreSQL: processor of Cloudlet';
  const against = 'the same in SQLite';
  if (noPostgresql !== false) return [skippedRow(work, `≤ 1.5 × ${against}`, noPostgresql)];
  const { rounds, seconds, count } = options.quick
    ? { rounds: 3, seconds: 2, count: 2000 }
    : { rounds: 7, seconds: 4, count: 10_000 };
  const server = await operatorPostgresql();
  const at = (name: string) => ({ ...options, folder: join(options.folder, name) });
  const env = { CLOUDLET_METADATA_URL: server.url('postgres', 'of-the-operator') };
  try {
    return await withCloud(at('sqlite'), (sqlite) =>
      withCloud(
        at('postgresql'),
        async (postgresql) => {
          for (const cloud of [sqlite, postgresql]) {
            await createBucket(cloud.client, { name: 'bench' });
            await warmUp(cloud, { count, seconds });
          }
          const { yardstick, ours } = await interleave(rounds, {
            yardstick: () => cpuOfUpload(sqlite, seconds),
            ours: () => cpuOfUpload(postgresql, seconds),
          });
          return [ratioRow({ work, against, atMost: 1.5, comparison: compare(yardstick, ours), unit: 'µs' })];
        },
        env,
      ),
    );
  } finally {
    await server.close();
  }
}

export interface S3 {
  readonly name: string;
  /** For CLOUDLET_BLOBS_URL. */
  readonly url: string;
  stop(): Promise<void>;
}

/** Ceph, which takes minutes to unpack, if available; s3rver is one process that hashes and copies. */
export async function startS3({ folder, quick }: RunOptions): Promise<S3> {
  if (!quick && cannotMakeTree() === false) {
    const ceph = await Ceph.start(folder);
    return { name: 'Ceph', url: await ceph.bucket(BUCKET), stop: () => ceph.stop() };
  }
  const server = await S3Server.start(join(folder, 's3'));
  return { name: 's3rver', url: server.url('cloud'), stop: () => server.kill() };
}

async function secondsOf(input: object): Promise<number> {
  return (await runChild<{ seconds: number }>(S3_CLIENT, { bytes: LARGE_BYTES, ...input })).seconds;
}

async function objectsInS3(options: RunOptions): Promise<Row[]> {
  const rounds = options.quick ? 3 : 15;
  const s3 = await startS3(options);
  try {
    const { host, port, bucket, accessKeyId, secretAccessKey } = parseS3Url(s3.url);
    const url = `http://${host}:${port}/${bucket}/raw`;
    const raw = { url, keys: { accessKeyId, secretAccessKey } };
    const env = { CLOUDLET_BLOBS_URL: s3.url };
    return await withCloud(options, (cloud) => transfers(cloud, { rounds, raw, name: s3.name }), env);
  } finally {
    await s3.stop();
  }
}

async function transfers(
  { client, port, key, process: { api } }: Cloud,
  { rounds, raw, name }: { readonly rounds: number; readonly raw: object; readonly name: string },
): Promise<Row[]> {
  await createBucket(client, { name: 'bench' });
  const upload = {
    port,
    path: '/api/buckets/bench/upload',
    key,
    name: 'object',
    bytes: LARGE_BYTES,
    parallel: 1,
  };
  const rate = async (seconds: Promise<number>) => LARGE_BYTES / (await seconds);
  const up = await interleave(rounds, {
    yardstick: () => rate(secondsOf({ ...raw, method: 'PUT' })),
    ours: () =>
      rate(runChild<{ seconds: number[] }>(UPLOADER, upload).then(({ seconds }) => seconds[0] ?? NaN)),
  });
  const { body } = await client.call('/api/buckets/bench/files');
  const address = `${api}/api/storage/${body[0].id}/download`;
  const down = await interleave(rounds, {
    yardstick: () => rate(secondsOf({ ...raw, method: 'GET' })),
    ours: () => rate(secondsOf({ method: 'GET', url: address, key })),
  });
  const row = { against: 'aws4fetch alone', atLeast: 0.8, unit: 'B/s' };
  return [
    ratioRow({ ...row, work: `upload 64 MiB to S3 (${name})`, comparison: compare(up.yardstick, up.ours) }),
    ratioRow({
      ...row,
      work: `download 64 MiB from S3 (${name})`,
      comparison: compare(down.yardstick, down.ours),
    }),
  ];
}

export const GROWTH: readonly Measurement[] = [
  { name: 'metadata-postgresql', run: uploadsToPostgresql },
  { name: 'blobs-s3', run: objectsInS3 },
];

/** 64 MiB objects: download compared with nginx, upload with MD5, and the cost of encryption. */
import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { runChild } from '../child.ts';
import { NGINX_MISSING, Nginx } from '../nginx.ts';
import { compare, interleave } from '../ratios.ts';
import { ratioRow, skippedRow } from '../table.ts';
import {
  type Cloud,
  createBucket,
  type Measurement,
  type Row,
  type RunOptions,
  uploadObject,
  withCloud,
} from '../workshop.ts';
import { runWrk } from '../wrk.ts';

const BYTES = 64 * 2 ** 20;
const UPLOADER = new URL('../children/uploader.ts', import.meta.url);
const HASHER = new URL('../children/hasher.ts', import.meta.url);

const pace = ({ quick }: RunOptions) => (quick ? { rounds: 3, seconds: 2 } : { rounds: 7, seconds: 4 });

/** Bytes per second of one upload; the object is replaced each time. */
async function uploadRate({ port, key }: Cloud, bucket: string): Promise<number> {
  const path = `/api/buckets/${bucket}/upload`;
  const input = { port, path, key, name: 'upload', bytes: BYTES, parallel: 1 };
  const { seconds } = await runChild<{ seconds: number[] }>(UPLOADER, input);
  return BYTES / (seconds[0] ?? Number.NaN);
}

async function downloadRate(url: string, key: string, seconds: number): Promise<number> {
  return (await runWrk({ url, key, connections: 2, seconds })).bytesPerSecond;
}

function downloads(options: RunOptions): Promise<Row[]> {
  const { rounds, seconds } = pace(options);
  return withCloud(options, async ({ client, key, process }) => {
    const content = randomBytes(BYTES);
    const nginx = await Nginx.start(join(options.folder, 'nginx'), content);
    const work = 'download 64 MiB, 2 connections, checksums verified';
    if (nginx === undefined) return [skippedRow(work, '≥ 0.45 × nginx with sendfile', NGINX_MISSING)];
    try {
      await createBucket(client, { name: 'bench' });
      const id = await uploadObject(client, 'bench', content);
      const { yardstick, ours } = await interleave(rounds, {
        yardstick: () => downloadRate(`http://127.0.0.1:${nginx.port}/object`, key, seconds),
        ours: () => downloadRate(`${process.api}/api/storage/${id}/download`, key, seconds),
      });
      const comparison = compare(yardstick, ours);
      return [ratioRow({ work, against: 'nginx with sendfile', atLeast: 0.45, comparison, unit: 'B/s' })];
    } finally {
      await nginx.stop();
    }
  });
}

function uploads(options: RunOptions): Promise<Row[]> {
  const { rounds } = pace(options);
  return withCloud(options, async (cloud) => {
    await createBucket(cloud.client, { name: 'bench' });
    const { md5, ours } = await interleave(rounds * 2, {
      md5: async () => {
        const input = { work: 'md5', bytes: BYTES };
        return (await runChild<{ bytesPerSecond: number }>(HASHER, input)).bytesPerSecond;
      },
      ours: () => uploadRate(cloud, 'bench'),
    });
    return [
      ratioRow({
        work: 'upload 64 MiB, durable',
        against: 'MD5 of the same bytes on one core',
        atLeast: 0.65,
        comparison: compare(md5, ours),
        unit: 'B/s',
      }),
    ];
  });
}

function encryption(options: RunOptions): Promise<Row[]> {
  const { rounds, seconds } = pace(options);
  return withCloud(options, async (cloud) => {
    const { client, key, process } = cloud;
    const content = randomBytes(BYTES);
    await createBucket(client, { name: 'plain', encryption: false });
    await createBucket(client, { name: 'sealed', encryption: true });
    const plainId = await uploadObject(client, 'plain', content);
    const sealedId = await uploadObject(client, 'sealed', content);
    const address = (id: string) => `${process.api}/api/storage/${id}/download`;
    const up = await interleave(rounds * 2, {
      plain: () => uploadRate(cloud, 'plain'),
      sealed: () => uploadRate(cloud, 'sealed'),
    });
    const down = await interleave(rounds, {
      plain: () => downloadRate(address(plainId), key, seconds),
      sealed: () => downloadRate(address(sealedId), key, seconds),
    });
    const target = { against: 'the same, unencrypted', atLeast: 0.7, unit: 'B/s' };
    return [
      ratioRow({ ...target, work: 'encrypted upload 64 MiB', comparison: compare(up.plain, up.sealed) }),
      ratioRow({
        ...target,
        work: 'encrypted download 64 MiB, 2 connections',
        comparison: compare(down.plain, down.sealed),
      }),
    ];
  });
}

export const LARGE_OBJECTS: readonly Measurement[] = [
  { name: 'download-64m', run: downloads },
  { name: 'upload-64m', run: uploads },
  { name: 'encryption', run: encryption },
];

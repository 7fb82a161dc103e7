/** 4 KiB objects over 32 connections: download, durable upload, and the cost of the audit log. */
import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { Client } from '../../test/harness/client.ts';
import { CloudProcess } from '../../test/harness/cloud-process.ts';
import { runChild, Server } from '../child.ts';
import { cpuMs } from '../process-figures.ts';
import { compare, interleave } from '../ratios.ts';
import { ratioRow } from '../table.ts';
import {
  createBucket,
  type Measurement,
  type Row,
  type RunOptions,
  uploadObject,
  withCloud,
} from '../workshop.ts';
import { runWrk } from '../wrk.ts';

const BYTES = 4096;
const CONNECTIONS = 32;
const BARE_SERVER = new URL('../children/bare-server.ts', import.meta.url);
const DURABLE_FILES = new URL('../children/durable-files.ts', import.meta.url);

async function withBareServer<Result>(work: (url: string) => Promise<Result>): Promise<Result> {
  const server = await Server.start(BARE_SERVER, []);
  try {
    return await work(`http://127.0.0.1:${server.port}/`);
  } finally {
    await server.stop();
  }
}

function downloads(options: RunOptions): Promise<Row[]> {
  const { rounds, seconds } = options.quick ? { rounds: 3, seconds: 2 } : { rounds: 7, seconds: 4 };
  return withCloud(options, ({ client, key, process }) =>
    withBareServer(async (bareUrl) => {
      await createBucket(client, { name: 'bench' });
      const id = await uploadObject(client, 'bench', randomBytes(BYTES));
      const load = { connections: CONNECTIONS, seconds };
      const rate = async (url: string) => (await runWrk({ ...load, url, key })).requestsPerSecond;
      const { bare, ours } = await interleave(rounds, {
        bare: () => rate(bareUrl),
        ours: () => rate(`${process.api}/api/storage/${id}/download`),
      });
      return [
        ratioRow({
          work: 'download 4 KiB, 32 connections, with key',
          against: 'bare node:http',
          atLeast: 0.4,
          comparison: compare(bare, ours),
          unit: '/s',
        }),
      ];
    }),
  );
}

function uploads(options: RunOptions): Promise<Row[]> {
  const { rounds, seconds } = options.quick ? { rounds: 3, seconds: 2 } : { rounds: 7, seconds: 4 };
  return withCloud(options, ({ client, key, process }) =>
    withBareServer(async (bareUrl) => {
      await createBucket(client, { name: 'bench' });
      let run = 0;
      const rate = async (url: string) => {
        const upload = { prefix: `run-${++run}-`, bytes: BYTES };
        return (await runWrk({ connections: CONNECTIONS, seconds, url, key, upload })).requestsPerSecond;
      };
      const { files, bare, ours } = await interleave(rounds, {
        files: async () => {
          const input = {
            directory: join(options.folder, 'files'),
            seconds,
            writers: CONNECTIONS,
            bytes: BYTES,
          };
          return (await runChild<{ perSecond: number }>(DURABLE_FILES, input)).perSecond;
        },
        bare: () => rate(bareUrl),
        ours: () => rate(`${process.api}/api/buckets/bench/upload`),
      });
      const work = 'REST upload 4 KiB, 32 connections, durable';
      return [
        ratioRow({
          work,
          against: 'a file + fdatasync + directory fsync each',
          atLeast: 1.5,
          comparison: compare(files, ours),
          unit: '/s',
        }),
        ratioRow({
          work,
          against: 'bare node:http reading the body',
          atLeast: 0.14,
          comparison: compare(bare, ours),
          unit: '/s',
        }),
      ];
    }),
  );
}

/** Fewer than the entries of an account that are stored individually. */
const CALLS = 900;
const ACCOUNTS = 3;
const WITHOUT_AUDIT = new URL('../children/without-audit.ts', import.meta.url);

interface Audited {
  readonly work: string;
  readonly atMost: number;
  /** The setting of the bucket for entries about its objects. */
  readonly dataEvents: 'writes' | null;
  readonly call: (client: Client, index: number) => Promise<{ readonly status: number }>;
}

const uploading: Audited['call'] = (client, index) => client.upload('bench', `${index}`, Buffer.alloc(BYTES));
const AUDITED: readonly Audited[] = [
  { work: 'a 4 KiB upload', atMost: 1.1, dataEvents: null, call: uploading },
  { work: 'a 4 KiB upload, entries on', atMost: 1.1, dataEvents: 'writes', call: uploading },
  {
    work: 'a change of a bucket',
    atMost: 1.15,
    dataEvents: null,
    call: (client, index) => {
      // Another value each time: for the same one SQLite writes no page, and syncs nothing.
      const json = { versioning: Math.floor(index / CONNECTIONS) % 2 === 0 };
      return client.call(`/api/buckets/bench-${index % CONNECTIONS}`, { method: 'PATCH', json });
    },
  },
];

/** Processor time of the cloud for these calls of new accounts, ms each. */
async function cpuOf(cloud: CloudProcess, audited: Audited): Promise<number> {
  let ms = 0;
  for (let account = 0; account < ACCOUNTS; account++) ms += await cpuOfOne(cloud, audited);
  return ms / ACCOUNTS / CALLS;
}

async function cpuOfOne(cloud: CloudProcess, { call, dataEvents }: Audited): Promise<number> {
  const client = await new Client(cloud.api).newUser();
  await createBucket(client, { name: 'bench' });
  for (let i = 0; i < CONNECTIONS; i++) await createBucket(client, { name: `bench-${i}` });
  const json = { data_events: dataEvents };
  await client.call('/api/buckets/bench/settings', { method: 'PATCH', json });
  let next = 0;
  const lane = async () => {
    for (let index = next++; index < CALLS; index = next++) {
      const { status } = await call(client, index);
      if (status !== 200) throw new Error(`a call was answered ${status}`);
    }
  };
  const before = cpuMs(cloud.pid);
  await Promise.all(Array.from({ length: CONNECTIONS }, lane));
  return cpuMs(cloud.pid) - before;
}

async function audit(options: RunOptions): Promise<Row[]> {
  const start = (name: string, ...more: string[]) =>
    CloudProcess.start({
      dataDir: join(options.folder, name),
      env: { CLOUDLET_RATE_REQUESTS: '1000000000', CLOUDLET_RATE_REGISTRATIONS: '1000000' },
      command: [process.execPath, ...more, 'server/main.ts', 'start'],
    });
  const without = await start('without-audit', '--import', WITHOUT_AUDIT.href);
  const ours = await start('with-audit');
  try {
    const rows: Row[] = [];
    for (const one of AUDITED) {
      const found = await interleave(options.quick ? 3 : 9, {
        without: () => cpuOf(without, one),
        ours: () => cpuOf(ours, one),
      });
      rows.push(
        ratioRow({
          work: `processor of ${one.work}, with the audit log`,
          against: 'without it',
          atMost: one.atMost,
          comparison: compare(found.without, found.ours),
          unit: 'ms',
        }),
      );
    }
    return rows;
  } finally {
    await Promise.all([without.stop(), ours.stop()]);
  }
}

export const SMALL_OBJECTS: readonly Measurement[] = [
  { name: 'download-4k', run: downloads },
  { name: 'upload-4k', run: uploads },
  { name: 'audit', run: audit },
];

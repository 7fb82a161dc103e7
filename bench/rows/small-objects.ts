/** 4 KiB objects over 32 connections: download, and durable upload. */
import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { runChild, Server } from '../child.ts';
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

export const SMALL_OBJECTS: readonly Measurement[] = [
  { name: 'download-4k', run: downloads },
  { name: 'upload-4k', run: uploads },
];

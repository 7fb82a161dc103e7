/**
 * The S3 endpoint with signed requests: compared with the REST API, with Ceph's gateway, and lists of a
 * million.
 */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseS3Url } from '../../server/config/s3-address.ts';
import { newS3, pathOf, S3Client, textsOf } from '../../test/acceptance/s3-kit.ts';
import { fillBucket } from '../filling.ts';
import { compare, interleave, median } from '../ratios.ts';
import { formatNumber, ratioRow } from '../table.ts';
import {
  createBucket,
  type Measurement,
  type Row,
  type RunOptions,
  uploadObject,
  withCloud,
} from '../workshop.ts';
import { runWrk } from '../wrk.ts';
import { startS3 } from './growth.ts';

const SMALL_BYTES = 4096;
const LARGE_BYTES = 64 * 2 ** 20;
const CONNECTIONS = 32;
/** Names that uploads of a round use in turn; each is new except for the fastest. */
const NAMES = 20_000;
const PAGE = 1000;
const BUCKET = 'bench';

interface Load {
  readonly s3: S3Client;
  readonly folder: string;
  readonly bucket: string;
  readonly bytes: number;
  readonly connections: number;
  readonly seconds: number;
}

let runs = 0;

/** Signs the requests outside the measured time. The body of uploads is not part of the signature. */
async function load({ s3, folder, bytes, ...how }: Load, method: 'PUT' | 'GET', names: readonly string[]) {
  const path = join(folder, `requests-${++runs}`);
  const lines = names.map((name) => {
    const { target, headers } = s3.prepare(method, pathOf(how.bucket, name), { mode: 'unsigned' });
    const { 'content-length': _, host = '', ...rest } = headers;
    // wrk would add a second one.
    const sent = { Host: host, ...rest };
    return [method, target, ...Object.entries(sent).map((pair) => pair.join(': '))].join('\t');
  });
  writeFileSync(path, `${lines.join('\n')}\n`);
  const prepared = { path, bodyBytes: method === 'PUT' ? bytes : 0 };
  return runWrk({ url: s3.base, connections: how.connections, seconds: how.seconds, prepared });
}

async function uploadRate(how: Load): Promise<number> {
  const prefix = `run-${++runs}-`;
  const count = how.bytes === SMALL_BYTES ? NAMES : how.connections;
  const names = Array.from({ length: count }, (_, index) => `${prefix}${index}`);
  return (await load(how, 'PUT', names)).requestsPerSecond;
}

async function downloadRate(how: Load, name: string): Promise<number> {
  return (await load(how, 'GET', [name])).requestsPerSecond;
}

function besideRest(options: RunOptions): Promise<Row[]> {
  const { rounds, seconds } = options.quick ? { rounds: 3, seconds: 2 } : { rounds: 7, seconds: 4 };
  return withCloud(options, async ({ client, key, process }) => {
    await createBucket(client, { name: BUCKET });
    const s3 = await newS3(process.data, client);
    const how = { s3, folder: options.folder, bucket: BUCKET, connections: CONNECTIONS, seconds };
    const small = { ...how, bytes: SMALL_BYTES };
    const id = await uploadObject(client, BUCKET, Buffer.alloc(SMALL_BYTES, 'x'));
    const rest = { connections: CONNECTIONS, seconds, key };
    const url = `${process.api}/api/buckets/${BUCKET}/upload`;
    const up = await interleave(rounds, {
      rest: async () => {
        const upload = { prefix: `run-${++runs}-`, bytes: SMALL_BYTES };
        return (await runWrk({ ...rest, url, upload })).requestsPerSecond;
      },
      s3: () => uploadRate(small),
    });
    const address = `${process.api}/api/storage/${id}/download`;
    const down = await interleave(rounds, {
      rest: async () => (await runWrk({ ...rest, url: address })).requestsPerSecond,
      s3: () => downloadRate(small, 'object'),
    });
    const row = { atLeast: 0.8, unit: '/s' };
    return [
      ratioRow({
        ...row,
        work: 'S3 PUT 4 KiB, 32 connections, signed, durable',
        against: 'REST upload',
        comparison: compare(up.rest, up.s3),
      }),
      ratioRow({
        ...row,
        work: 'S3 GET 4 KiB, 32 connections, signed',
        against: 'REST download',
        comparison: compare(down.rest, down.s3),
      }),
    ];
  });
}

interface Aims {
  readonly name: string;
  readonly rounds: number;
  readonly atLeastUp: number;
  readonly atLeastDown: number;
}

/** Rates of uploads and downloads in turn, at both servers. */
async function compareDoors(
  [theirs, ours]: readonly [Load, Load],
  { name, rounds, atLeastUp, atLeastDown }: Aims,
): Promise<Row[]> {
  const size = ours.bytes === SMALL_BYTES ? '4 KiB' : '64 MiB';
  const up = await interleave(rounds, { theirs: () => uploadRate(theirs), ours: () => uploadRate(ours) });
  for (const each of [theirs, ours]) {
    const body = Buffer.alloc(each.bytes, 'x');
    await each.s3.ok('PUT', pathOf(each.bucket, 'object'), { body, mode: 'unsigned' });
  }
  const down = await interleave(rounds, {
    theirs: () => downloadRate(theirs, 'object'),
    ours: () => downloadRate(ours, 'object'),
  });
  const what = `${size}, ${ours.connections} connections, signed`;
  const row = { against: name, unit: '/s' };
  return [
    ratioRow({
      ...row,
      work: `S3 PUT ${what}`,
      atLeast: atLeastUp,
      comparison: compare(up.theirs, up.ours),
    }),
    ratioRow({
      ...row,
      work: `S3 GET ${what}`,
      atLeast: atLeastDown,
      comparison: compare(down.theirs, down.ours),
    }),
  ];
}

async function besideCeph(options: RunOptions): Promise<Row[]> {
  const { rounds, seconds } = options.quick ? { rounds: 3, seconds: 2 } : { rounds: 5, seconds: 5 };
  const other = await startS3(options);
  try {
    const { host, port, bucket, accessKeyId, secretAccessKey } = parseS3Url(other.url);
    const pair = { access_key_id: accessKeyId, secret_access_key: secretAccessKey };
    const theirs = new S3Client(`http://${host}:${port}`, pair);
    return await withCloud(options, async ({ client, process }) => {
      await createBucket(client, { name: BUCKET });
      const ours = await newS3(process.data, client);
      const both = (how: Pick<Load, 'bytes' | 'connections' | 'seconds'>): [Load, Load] => [
        { ...how, s3: theirs, bucket, folder: options.folder },
        { ...how, s3: ours, bucket: BUCKET, folder: options.folder },
      ];
      const aims = { name: other.name, rounds };
      const small = both({ bytes: SMALL_BYTES, connections: CONNECTIONS, seconds });
      const large = both({ bytes: LARGE_BYTES, connections: 2, seconds: 2 * seconds });
      return [
        ...(await compareDoors(small, { ...aims, atLeastUp: 5, atLeastDown: 2 })),
        ...(await compareDoors(large, { ...aims, atLeastUp: 1, atLeastDown: 1 })),
      ];
    });
  } finally {
    await other.stop();
  }
}

async function timeList(s3: S3Client, bucket: string, query: string): Promise<number> {
  const began = performance.now();
  const { text } = await s3.ok('GET', `/${bucket}`, { query });
  const elapsed = performance.now() - began;
  const entries = textsOf(text, 'Key').length + textsOf(text, 'Prefix').length;
  if (entries < PAGE) throw new Error(`a page has ${entries} entries: ${text.slice(0, 300)}`);
  return elapsed;
}

const MOST_LIST_MS = 50;
/** Folders of fillBucket(), of which `folder-1500/` is in the middle. */
const FOLDERS = 2000;
/** Each list with its delimiter, and the names after which its pages start. */
const LISTS = {
  keys: { query: '', after: { beginning: '', middle: 'folder-1500/', end: 'folder-99/~' } },
  folders: { query: '&delimiter=%2F', after: { beginning: '', middle: 'folder-14' } },
  'names cut at an x': { query: '&delimiter=x', after: { beginning: '', middle: 'folder-1500/' } },
};

function lists(options: RunOptions): Promise<Row[]> {
  const objects = options.quick ? 200_000 : 1_000_000;
  return withCloud(options, async ({ process, client }) => {
    const { pair } = await newS3(process.data, client);
    for (const name of ['small', 'large']) await createBucket(client, { name });
    await process.stop();
    const filling = { folders: FOLDERS, versions: () => 1 };
    fillBucket(process.dataDir, 'small', { ...filling, objects: 10_000 });
    fillBucket(process.dataDir, 'large', { ...filling, objects });
    await process.start();
    const s3 = new S3Client(process.data, pair);
    const rows: Row[] = [];
    const medians: number[] = [];
    for (const [what, { query, after }] of Object.entries(LISTS)) {
      const page = (bucket: string, start: string) =>
        timeList(s3, bucket, `list-type=2${query}&start-after=${encodeURIComponent(start)}`);
      const { small, ...times } = await interleave<string>(options.quick ? 15 : 40, {
        small: () => page('small', ''),
        ...Object.fromEntries(
          Object.entries(after).map(([position, start]) => [position, () => page('large', start)]),
        ),
      });
      for (const [position, values] of Object.entries(times)) {
        medians.push(median(values));
        rows.push(
          ratioRow({
            work: `S3 list, ${formatNumber(PAGE)} ${what} out of ${formatNumber(objects)}, ${position}`,
            against: 'a page out of 10,000',
            atMost: 3,
            comparison: compare(small ?? [], values),
            unit: 'ms',
          }),
        );
      }
    }
    const slowest = Math.max(...medians);
    rows.push({
      work: `S3 list, ${formatNumber(PAGE)} out of ${formatNumber(objects)}, the slowest of these pages`,
      target: `< ${MOST_LIST_MS} ms`,
      reached: `**${slowest.toFixed(1)} ms**`,
      isMet: slowest < MOST_LIST_MS,
      detail: 'median',
    });
    return rows;
  });
}

export const S3: readonly Measurement[] = [
  { name: 's3-small', run: besideRest },
  { name: 's3-ceph', run: besideCeph },
  { name: 's3-list', run: lists },
];

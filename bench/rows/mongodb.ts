/**
 * MongoDB databases, built in: the time until a driver has one, the time of a command, and both beside
 * runaways.
 */
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Document, MongoClient } from 'mongodb';
import { runChild } from '../child.ts';
import { compare, interleave, median } from '../ratios.ts';
import { ratioRow } from '../table.ts';
import { bodyOf, type Cloud, type Measurement, type Row, type RunOptions, withCloud } from '../workshop.ts';
import { runWrk } from '../wrk.ts';
import { REST_MS } from './databases.ts';

const COMMANDS = new URL('../children/document-commands.ts', import.meta.url);
const DURABLE_FILES = new URL('../children/durable-files.ts', import.meta.url);
const CONNECTIONS = 16;
const POINTS = 10_000;
const INDEXED = 100_000;
const MOST_FIRST_MS = 200;
const MOST_INDEXED_MS = 5;
const MOST_P99_MS = 20;
const RUNAWAYS = 2;

async function create({ client }: Cloud, name: string): Promise<string> {
  const json = { name, engine: 'mongodb' };
  const body = await bodyOf(client, '/api/databases', { json });
  return body.connection.uri;
}

async function withDriver<Result>(
  uri: string,
  work: (driver: MongoClient) => Promise<Result>,
): Promise<Result> {
  const driver = new MongoClient(uri);
  try {
    return await work(driver);
  } finally {
    await driver.close(true);
  }
}

async function fill(uri: string, name: string, count: number): Promise<void> {
  await withDriver(uri, async (driver) => {
    const collection = driver.db().collection<Document>(name);
    if (name === 'indexed') await collection.createIndex({ n: 1 });
    for (let from = 0; from < count; from += POINTS) {
      const documents = Array.from({ length: POINTS }, (_, i) => ({
        _id: from + i,
        n: from + i,
        x: 'hello',
      }));
      await collection.insertMany(documents as Document[]);
    }
  });
}

/** `restMs`: pause between two databases. */
async function firstQuery(cloud: Cloud, restMs: number, rounds: number): Promise<Row> {
  const times: number[] = [];
  for (let i = 0; i < rounds; i++) {
    await sleep(restMs);
    const begun = performance.now();
    const uri = await create(cloud, `first-${restMs}-${i}`);
    await withDriver(uri, async (driver) => {
      await driver.db().collection('points').findOne();
      times.push(performance.now() - begun);
    });
  }
  const p50 = median(times);
  const how = restMs === 0 ? 'one after the other' : `one every ${restMs / 1000} s`;
  return {
    work: `create a MongoDB database → first query by the driver, p50, ${how}`,
    target: `≤ ${MOST_FIRST_MS} ms`,
    reached: `**${p50.toFixed(0)} ms**`,
    isMet: p50 <= MOST_FIRST_MS,
    detail: `${rounds} times; at worst ${Math.max(...times).toFixed(0)} ms`,
  };
}

async function indexed(uri: string): Promise<Row> {
  await fill(uri, 'indexed', INDEXED);
  const times = await withDriver(uri, async (driver) => {
    const collection = driver.db().collection('indexed');
    const found: number[] = [];
    for (let i = 0; i < 500; i++) {
      const begun = performance.now();
      await collection.findOne({ n: (i * 7919) % INDEXED });
      found.push(performance.now() - begun);
    }
    return found;
  });
  const p50 = median(times);
  return {
    work: 'MongoDB: one of 100,000 documents by an indexed field, p50',
    target: `≤ ${MOST_INDEXED_MS} ms`,
    reached: `**${p50.toFixed(1)} ms**`,
    isMet: p50 <= MOST_INDEXED_MS,
    detail: `by the driver; at worst ${Math.max(...times).toFixed(1)} ms`,
  };
}

interface Done {
  readonly perSecond: number;
  readonly p99: number;
}

async function commands(cloud: Cloud, uri: string, options: RunOptions): Promise<Row[]> {
  const { rounds, seconds } = options.quick ? { rounds: 3, seconds: 2 } : { rounds: 7, seconds: 4 };
  const load = { connections: CONNECTIONS, seconds };
  const rate = async (work: string) => (await runChild<Done>(COMMANDS, { ...load, uri, work })).perSecond;
  const found = await interleave(rounds, {
    route: async () => (await runWrk({ ...load, url: `${cloud.process.api}/healthz` })).requestsPerSecond,
    find: () => rate('find'),
    files: async () => {
      const input = { directory: join(options.folder, 'files'), seconds, writers: CONNECTIONS, bytes: 100 };
      return (await runChild<{ perSecond: number }>(DURABLE_FILES, input)).perSecond;
    },
    insert: () => rate('insert'),
  });
  return [
    ratioRow({
      work: `MongoDB find by _id, ${CONNECTIONS} connections`,
      against: 'our bare JSON route',
      atLeast: 0.15,
      comparison: compare(found.route, found.find),
      unit: '/s',
    }),
    ratioRow({
      work: `MongoDB insertOne, ${CONNECTIONS} connections, durable`,
      against: 'a file + fdatasync + directory fsync each',
      atLeast: 0.5,
      comparison: compare(found.files, found.insert),
      unit: '/s',
    }),
  ];
}

/** The longest wait of one client while others' databases evaluate endless regular expressions. */
async function besideRunaways(cloud: Cloud, uri: string, seconds: number): Promise<Row> {
  const one = { uri, work: 'find', connections: 1, seconds };
  const alone = await runChild<Done>(COMMANDS, one);
  const uris = await Promise.all(
    Array.from({ length: RUNAWAYS }, (_, index) => create(cloud, `runaway-${index}`)),
  );
  const running = uris.map((other) =>
    withDriver(other, async (driver) => {
      const texts = driver.db().collection('texts');
      await texts.insertOne({ text: `${'a'.repeat(60)}b` });
      await texts.findOne({ text: { $regex: '^(a+)+$' } }).catch(() => {});
    }),
  );
  const beside = await runChild<Done>(COMMANDS, one);
  await Promise.all(running);
  return {
    work: `MongoDB find by _id beside ${RUNAWAYS} databases that run away, p99`,
    target: `≤ 2 × alone, or ${MOST_P99_MS} ms`,
    reached: `**${beside.p99.toFixed(1)} ms**`,
    isMet: beside.p99 <= Math.max(2 * alone.p99, MOST_P99_MS),
    detail: `alone ${alone.p99.toFixed(1)} ms`,
  };
}

async function mongodb(options: RunOptions): Promise<Row[]> {
  return withCloud(options, async (cloud) => {
    // The engine is prepared with its first database, for any account.
    const uri = await create(cloud, 'points');
    await fill(uri, 'points', POINTS);
    return [
      await firstQuery(cloud, 0, options.quick ? 5 : 7),
      await firstQuery(cloud, REST_MS, options.quick ? 5 : 15),
      ...(await commands(cloud, uri, options)),
      await indexed(uri),
      await besideRunaways(cloud, uri, options.quick ? 5 : 20),
    ];
  });
}

export const MONGODB: readonly Measurement[] = [{ name: 'mongodb', run: mongodb }];

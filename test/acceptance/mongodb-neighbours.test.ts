/**
 * A tenant sends MongoDB its slowest operations; another one gets answers meanwhile, and the first survives.
 */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Collection, type Document, MongoClient, MongoServerError } from 'mongodb';
import { Client } from '../harness/client.ts';
import { CloudProcess } from '../harness/cloud-process.ts';

const STATEMENT_SECONDS = 3;
/** Between two queries of the victim. */
const PAUSE_MS = 10;

let cloud: CloudProcess;
let attacker: MongoClient;
let victim: MongoClient;

async function connected(name: string): Promise<MongoClient> {
  const user = await new Client(cloud.api).newUser();
  const made = await user.call('/api/databases', { json: { name, engine: 'mongodb' } });
  assert.equal(made.status, 201, JSON.stringify(made.body));
  return new MongoClient(String(made.body.connection.uri)).connect();
}

before(async () => {
  const env = { CLOUDLET_DATABASE_STATEMENT_SECONDS: String(STATEMENT_SECONDS) };
  cloud = await CloudProcess.start({ env: { ...env, CLOUDLET_MONGODB_SERVER: 'built-in' } });
  [attacker, victim] = [await connected('attacker'), await connected('victim')];
});
after(async () => {
  await attacker?.close();
  await victim?.close();
  await cloud?.stop();
});

const numbers = (count: number) => Array.from({ length: count }, (_, i) => i);

function ring(corners: number, teeth: number): number[][] {
  const points = numbers(corners).map((i) => {
    const [angle, radius] = [(2 * Math.PI * i) / corners, 20 * (1 + teeth * (i % 2))];
    return [radius * Math.cos(angle), radius * Math.sin(angle)];
  });
  return [...points, points[0] as number[]];
}
const polygon = (corners: number, teeth = 0) => ({ type: 'Polygon', coordinates: [ring(corners, teeth)] });
const words = (count: number) =>
  numbers(count)
    .map((i) => (i * 7919).toString(36))
    .join(' ');

/** Fills the collections of the attacker. */
async function fill(): Promise<void> {
  const db = attacker.db();
  await db.collection('points').createIndex({ p: '2dsphere' });
  await db.collection('points').insertMany(numbers(3000).map((i) => ({ p: [(i % 40) - 20, (i % 38) - 19] })));
  await db.collection('areas').insertOne({ p: polygon(30_000) });
  await db.collection('texts').createIndex({ s: 'text' });
  await db
    .collection('texts')
    .insertMany(numbers(300).map((i) => ({ s: `${i} ${'some words '.repeat(100)}` })));
  await db
    .collection('lists')
    .insertMany(
      numbers(20).map(() => ({ n: numbers(5000), s: numbers(5000).map(() => `${'a'.repeat(300)}b`) })),
    );
  await db.createCollection('schema', {
    validator: {
      $jsonSchema: {
        properties: { l: { items: { pattern: '^(a+)+$', enum: numbers(10_000) } } },
        patternProperties: Object.fromEntries(numbers(2000).map((i) => [`^a.*${i}$`, { minimum: 0 }])),
      },
    },
  });
  const input = { $range: [0, 100_000] };
  const $expr = { $gt: [{ $sum: { $map: { input, in: '$$this' } } }, -1] };
  await db.createCollection('costly', { validator: { $expr } });
  await db.createCollection('tiny', { capped: true, size: 1 });
  const weights = Object.fromEntries(numbers(1000).map((i) => [`f${i}`, i + 1]));
  await db.collection('weighted').createIndex({ f0: 'text' }, { weights });
}

const all = (name: string): Collection => attacker.db().collection(name);
const count = (name: string, filter: Document) => () => all(name).countDocuments(filter);
const insert =
  (name: string, ...documents: Document[]) =>
  () =>
    all(name).insertMany(documents);
const $regex = '^(a+)+$';
/** Each attack is built before the victim's time is measured: both are in one process here. */
const ATTACKS: Readonly<Record<string, () => () => Promise<unknown>>> = {
  'a polygon of 100,000 corners': () =>
    count('points', { p: { $geoWithin: { $geometry: polygon(100_000) } } }),
  'a star of 100,000 corners': () =>
    count('points', { p: { $geoIntersects: { $geometry: polygon(100_000, 0.0001) } } }),
  'areas in areas': () => count('areas', { p: { $geoWithin: { $geometry: polygon(40_000) } } }),
  'a text of a million words': () => insert('texts', { s: words(1_000_000) }),
  'a search for 4,000 phrases': () =>
    count('texts', { $text: { $search: `${'"some words" '.repeat(4000)} words` } }),
  'patterns of a schema': () => insert('schema', { l: numbers(3000).map(() => `${'a'.repeat(30)}b`) }),
  'patterns of names': () => insert('schema', Object.fromEntries(numbers(20_000).map((i) => [`ab${i}`, 1]))),
  'an expensive validator': () => insert('costly', ...numbers(500).map((i) => ({ i }))),
  'a bomb of an expression': () => count('lists', { s: { $regex } }),
  'an expression that is slow on many texts': () => count('lists', { s: { $regex: 'a*a*c' } }),
  'no index, and 1,000 conditions': () => count('lists', { $nor: numbers(1000).map((i) => ({ n: -1 - i })) }),
  'lists that are unwound thrice': () => () =>
    all('lists')
      .aggregate([
        { $set: { m: '$n', o: '$n' } },
        { $unwind: '$n' },
        { $unwind: '$m' },
        { $unwind: '$o' },
        { $match: { x: 1 } },
      ])
      .toArray(),
  'walks from each document to all others': () => () =>
    all('points')
      .aggregate([
        {
          $graphLookup: {
            from: 'points',
            startWith: '$p',
            connectFromField: 'p',
            connectToField: 'p',
            as: 'w',
          },
        },
        { $match: { x: 1 } },
      ])
      .toArray(),
  'a join without an index, twenty times': () => () =>
    all('points')
      .aggregate([
        ...numbers(20).map((i) => ({
          $lookup: { from: 'points', localField: '_id', foreignField: 'none', as: `x${i}` },
        })),
        { $match: { x: 1 } },
      ])
      .toArray(),
  'the clocks of a zone, a million times': () => () =>
    all('lists')
      .aggregate([
        { $limit: 1 },
        { $set: { input: { $range: [0, 1_000_000] } } },
        {
          $project: {
            x: { $map: { input: '$input', in: { $hour: { date: '$$NOW', timezone: 'Asia/Tokyo' } } } },
          },
        },
        { $project: { n: { $size: '$x' } } },
      ])
      .toArray(),
  'a collection of one byte': () => insert('tiny', ...numbers(20_000).map((i) => ({ i }))),
  'weights of 1,000 fields': () => insert('weighted', ...numbers(50_000).map((i) => ({ f1: `abc ${i}` }))),
};

/** The victim's longest wait for an answer while `work` runs, and the duration of `work`, ms. */
async function beside(
  work: () => Promise<unknown>,
): Promise<{ longest: number; took: number; outcome: unknown }> {
  let isOver = false;
  const notes = victim.db().collection('notes');
  const asking = async () => {
    for (let longest = 0; ; await sleep(PAUSE_MS)) {
      const from = performance.now();
      await notes.findOne({ _id: 1 } as Document);
      longest = Math.max(longest, performance.now() - from);
      if (isOver) return longest;
    }
  };
  const asked = asking();
  const from = performance.now();
  const outcome = await work().catch((error: unknown) => error);
  const took = performance.now() - from;
  isOver = true;
  return { longest: await asked, took, outcome };
}

/** Refusals, each of a single command: its shape, its time, limits of texts, or the validator. */
const REFUSED = new Set([2, 50, 121, 16732, 16733]);

test('whatever one asks, another is answered, and his own process lives on', async (t) => {
  await fill();
  await victim
    .db()
    .collection('notes')
    .insertOne({ _id: 1 } as Document);
  const upSince = async () => Number((await attacker.db().command({ serverStatus: 1 })).uptimeMillis);
  let before = await upSince();
  for (const [name, attack] of Object.entries(ATTACKS)) {
    const { longest, took, outcome } = await beside(attack());
    const code =
      outcome instanceof MongoServerError ? outcome.code : outcome instanceof Error ? outcome : null;
    t.diagnostic(
      `${name}: ${took.toFixed(0)} ms (${code ?? 'done'}), beside it at most ${longest.toFixed(0)} ms`,
    );
    assert.ok(code === null || REFUSED.has(Number(code)), `${name}: ${String(outcome)}`);
    const now = await upSince();
    assert.ok(now > before, `${name}: the attacker's process was ended`);
    before = now;
    // An attack that blocks the cloud would block the victim for as long.
    if (took > 1000) assert.ok(longest < took / 2, `${name}: ${longest} of ${took} ms`);
  }
});

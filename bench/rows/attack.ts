/**
 * Effects on one account while two free ones attack: errors, and the slowest hundredth of its calls beside
 * those of the same minutes without an attack. All accounts have the limits that they have by default.
 *
 * Both sides have computers of their own, which share that of the cloud here: the victim's calls come first,
 * so that a wait of his own program is not taken for one of the cloud, and the attackers' program last. It
 * still takes its share, so it also runs against a server that does nothing.
 */
import { PerformanceObserver } from 'node:perf_hooks';
import { setTimeout as sleep } from 'node:timers/promises';
import { Client } from '../../test/harness/client.ts';
import { Server } from '../child.ts';
import { comesFirst, runApart } from '../own-computer.ts';
import { compare } from '../ratios.ts';
import { ratioRow } from '../table.ts';
import {
  bodyOf,
  type Cloud,
  createBucket,
  type Measurement,
  type Row,
  type RunOptions,
  withCloud,
} from '../workshop.ts';

const ATTACKERS = new URL('../children/attackers.ts', import.meta.url);
const NOTHING = new URL('../children/nothing-server.ts', import.meta.url);
/** An account's rate limit, which the other rows lift. */
const DEFAULT_RATES = { CLOUDLET_RATE_REQUESTS: '2000', CLOUDLET_RATE_S3: '50000' };
const DATABASES_EACH = 4;
/** A round has hundreds of calls, as a 99th percentile requires, and fewer than the victim's limit. */
const PAUSE_MS = 5;
const LEAST_CALLS = 100;
/** Time in which requests of an attack in progress end. */
const REST_MS = 3000;
const MOST_RATIO = 3;

const CALLS = [
  'a SELECT',
  'an INSERT',
  'an upload of 4 KiB',
  'a download',
  'a list of buckets',
  '/healthz',
] as const;
type CallName = (typeof CALLS)[number];

/** A round's figures. */
interface Slowest {
  /** The 99th percentile of each call, ms. */
  readonly p99: Readonly<Record<CallName, number>>;
  readonly callsEach: number;
}

interface Victim {
  readonly calls: Readonly<Record<CallName, () => Promise<number>>>;
  readonly errors: string[];
}

function made(client: Client, path: string, json: object) {
  return bodyOf(client, path, { json });
}

async function newVictim({ client }: Cloud): Promise<Victim> {
  const { database_id: id } = await made(client, '/api/databases', { name: 'shop' });
  await createBucket(client, { name: 'photos' });
  const bytes = Buffer.alloc(4096, 'v');
  const { body } = await client.upload('photos', 'kept', bytes);
  const run = (statement: string) => async () =>
    (await client.call(`/api/databases/${id}/query`, { json: { statement, read_only: false } })).status;
  await run('CREATE TABLE t (x text)')();
  const get = (path: string) => async () => (await client.call(path)).status;
  return {
    errors: [],
    calls: {
      'a SELECT': run('SELECT count(*) FROM t'),
      'an INSERT': run("INSERT INTO t VALUES ('row')"),
      'an upload of 4 KiB': async () => (await client.upload('photos', 'written', bytes)).status,
      'a download': get(`/api/storage/${body.object_id}/download`),
      'a list of buckets': get('/api/buckets'),
      '/healthz': get('/healthz'),
    },
  };
}

async function newAttacker({ process: { api } }: Cloud) {
  const client = await new Client(api).newUser();
  const databases: string[] = [];
  for (let i = 0; i < DATABASES_EACH; i++)
    databases.push((await made(client, '/api/databases', { name: `endless-${i}` })).database_id);
  await createBucket(client, { name: 'junk' });
  return { key: client.key ?? '', databases };
}

interface Span {
  readonly begun: number;
  readonly ended: number;
}

/**
 * Times the victim's calls meanwhile, which come one after the other. A call in which the victim's own
 * garbage collector ran says nothing of the cloud, and is left out.
 */
async function slowest({ calls, errors }: Victim, until: Promise<unknown>): Promise<Slowest> {
  const spans = Object.fromEntries(CALLS.map((name) => [name, []])) as unknown as Record<CallName, Span[]>;
  const pauses: Span[] = [];
  const observer = new PerformanceObserver((list) => {
    for (const { startTime, duration } of list.getEntries())
      pauses.push({ begun: startTime, ended: startTime + duration });
  });
  observer.observe({ entryTypes: ['gc'] });
  let isOver = false;
  void until.finally(() => {
    isOver = true;
  });
  while (!isOver)
    for (const name of CALLS) {
      const begun = performance.now();
      const status = await calls[name]().catch((error: Error) => error.message);
      spans[name].push({ begun, ended: performance.now() });
      if (status !== 200) errors.push(`${name}: ${status}`);
      await sleep(PAUSE_MS);
    }
  observer.disconnect();
  const times = (name: CallName) =>
    spans[name]
      .filter((span) => !pauses.some(({ begun, ended }) => begun < span.ended && ended > span.begun))
      .map(({ begun, ended }) => ended - begun)
      .sort((a, b) => a - b);
  const p99 = (all: readonly number[]) => all[Math.ceil(all.length * 0.99) - 1] ?? 0;
  return {
    p99: Object.fromEntries(CALLS.map((name) => [name, p99(times(name))])) as Record<CallName, number>,
    callsEach: Math.min(...CALLS.map((name) => times(name).length)),
  };
}

interface Rounds {
  readonly quiet: readonly Slowest[];
  readonly clientsAlone: readonly Slowest[];
  readonly beside: readonly Slowest[];
  /** Whether the victim's program had priority over the others. */
  readonly isFirst: boolean;
}

function rowOf(name: CallName, { quiet, clientsAlone, beside, isFirst }: Rounds): Row {
  const of = (all: readonly Slowest[]) => all.map(({ p99 }) => p99[name]);
  const fewest = Math.min(...[...quiet, ...beside].map(({ callsEach }) => callsEach));
  const row = ratioRow({
    work: `${name} beside two accounts that attack, p99`,
    against: 'the same without them',
    atMost: MOST_RATIO,
    comparison: compare(of(quiet), of(beside)),
    unit: 'ms',
  });
  const { ratio } = compare(of(quiet), of(clientsAlone));
  const notes = [
    `at least ${fewest} calls a round${fewest < LEAST_CALLS ? ', too few for a p99' : ''}`,
    `their program alone makes ${ratio.toFixed(2)} × of it`,
    ...(isFirst ? [] : ["the victim's program had no right to come first"]),
  ];
  return { ...row, detail: [row.detail, ...notes].join('; ') };
}

async function attacked(cloud: Cloud, { quick }: RunOptions): Promise<Row[]> {
  const { rounds, seconds } = quick ? { rounds: 2, seconds: 10 } : { rounds: 5, seconds: 20 };
  const victim = await newVictim(cloud);
  const attackers = [await newAttacker(cloud), await newAttacker(cloud)];
  const input = { api: cloud.process.api, attackers, seconds };
  const quiet: Slowest[] = [];
  const beside: Slowest[] = [];
  const clientsAlone: Slowest[] = [];
  const nothing = await Server.start(NOTHING, []);
  let said = '';
  const isFirst = comesFirst();
  await slowest(victim, sleep(2000));
  for (let round = 0; round < rounds; round++) {
    quiet.push(await slowest(victim, sleep(seconds * 1000)));
    const alone = { ...input, api: `http://127.0.0.1:${nothing.port}` };
    clientsAlone.push(await slowest(victim, runApart<object>(ATTACKERS, alone)));
    const attack = runApart<object>(ATTACKERS, input);
    beside.push(await slowest(victim, attack));
    said = JSON.stringify(await attack);
    await sleep(REST_MS);
  }
  await nothing.stop();
  console.error(`the last attack was answered: ${said}`);
  const { errors } = victim;
  if (errors.length > 0) console.error(`the victim met: ${[...new Set(errors)].join('; ')}`);
  const rows = CALLS.map((name) => rowOf(name, { quiet, clientsAlone, beside, isFirst }));
  return [
    ...rows,
    {
      work: 'the same: errors',
      target: '0',
      reached: `**${errors.length}**`,
      isMet: errors.length === 0,
      detail: errors.slice(0, 3).join('; '),
    },
  ];
}

export const ATTACK: readonly Measurement[] = [
  {
    name: 'attack',
    run: (options) => withCloud(options, (cloud) => attacked(cloud, options), DEFAULT_RATES),
  },
];

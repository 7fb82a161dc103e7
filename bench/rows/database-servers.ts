/**
 * PostgreSQL and MariaDB: the time until a driver has a database, the time of a statement, and both beside
 * runaways.
 */
import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { createConnection } from 'mysql2/promise';
import { Client as PostgresqlDriver } from 'pg';
import { Client } from '../../test/harness/client.ts';
import { runChild } from '../child.ts';
import { compare, interleave, median } from '../ratios.ts';
import { serverLineOf, serverPidOf, startByHand } from '../server-by-hand.ts';
import { formatBytes, ratioRow } from '../table.ts';
import { bodyOf, type Cloud, type Measurement, type Row, type RunOptions, withCloud } from '../workshop.ts';

const POINT_SELECTS = new URL('../children/point-selects.ts', import.meta.url);
const CONNECTIONS = 4;
const MOST_NEXT_MS = 300;
const MOST_WAKE_MS = 600;
const MOST_EVER_MS = 6000;
const MOST_P99_MS = 20;
const MOST_HEALTH_MS = 100;
const HEALTH_PAUSE_MS = 10;
/** Until Cloudlet's own idle sessions have ended. */
const SETTLE_MS = 12_000;
const TABLE = 'CREATE TABLE points (id int PRIMARY KEY, x varchar(200))';

interface Kind {
  readonly engine: 'postgresql' | 'mysql';
  readonly title: string;
  readonly mostIdle: number;
  /** From the call that creates an account's first database to its first query. */
  readonly mostFirstMs: number;
  readonly mostDisk: number;
  /** Fills a table of 10,000 rows. */
  readonly fill: string;
  /** None of them ends by itself. */
  readonly runaways: readonly string[];
}

const KINDS: readonly Kind[] = [
  {
    engine: 'postgresql',
    title: 'PostgreSQL',
    mostIdle: 40 * 2 ** 20,
    mostFirstMs: 1000,
    mostDisk: 48 * 2 ** 20,
    fill: "INSERT INTO points SELECT g, repeat('x', 100) FROM generate_series(1, 10000) g",
    runaways: [
      'SELECT pg_sleep(1e4)',
      'SELECT count(*) FROM (SELECT g FROM generate_series(1, 1e12::bigint) g ORDER BY random()) x',
      'WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c) SELECT count(*) FROM c',
    ],
  },
  {
    engine: 'mysql',
    title: 'MariaDB',
    mostIdle: 120 * 2 ** 20,
    mostFirstMs: 1500,
    mostDisk: 128 * 2 ** 20,
    fill: "INSERT INTO points SELECT seq, REPEAT('x', 100) FROM seq_1_to_10000",
    runaways: [
      'SELECT SLEEP(1e4)',
      'SELECT seq FROM seq_1_to_1000000000 ORDER BY RAND() LIMIT 1',
      'SELECT COUNT(*) FROM seq_1_to_1000000000 a, seq_1_to_1000000000 b',
    ],
  },
];

/** Runs statements with the driver, one after the other. */
async function run(uri: string, ...statements: readonly string[]): Promise<void> {
  if (uri.startsWith('mysql:')) {
    const driver = await createConnection(uri);
    // A session to be ended.
    driver.on('error', () => {});
    try {
      for (const statement of statements) await driver.query(statement);
    } finally {
      driver.destroy();
    }
    return;
  }
  const driver = new PostgresqlDriver(uri);
  driver.on('error', () => {});
  try {
    await driver.connect();
    for (const statement of statements) await driver.query(statement);
  } finally {
    await driver.end();
  }
}

async function create(
  { client }: Cloud,
  { engine }: Kind,
  name: string,
): Promise<{ readonly id: string; readonly uri: string }> {
  const body = await bodyOf(client, '/api/databases', { json: { name, engine } });
  return { id: body.database_id, uri: body.connection.uri };
}

/** The same cloud from another account. */
async function asAnother(cloud: Cloud): Promise<Cloud> {
  const { api } = cloud.process;
  const { api_key: key } = await new Client(api).register();
  return { ...cloud, key, client: new Client(api, key) };
}

async function timeFirstQuery(cloud: Cloud, kind: Kind, name: string): Promise<number> {
  const began = performance.now();
  await run((await create(cloud, kind, name)).uri, 'SELECT 1');
  return performance.now() - began;
}

/** The usual case: creating a database leaves its pages in memory. */
async function startAgain({ client }: Cloud): Promise<void> {
  const [database] = await bodyOf(client, '/api/databases');
  await bodyOf(client, `/api/databases/${database.database_id}/restart`, { method: 'POST' });
}

function timeRow(work: string, times: readonly number[], most: number): Row {
  const middle = median(times);
  return {
    work,
    target: `≤ ${most} ms`,
    reached: `**${middle.toFixed(0)} ms**`,
    isMet: middle <= most,
    detail: `${times.length} times; at worst ${Math.max(...times).toFixed(0)} ms`,
  };
}

/** With its server's data created and its server started; and their time for an idle one. */
async function firstEver(kind: Kind, options: RunOptions): Promise<Row[]> {
  const times: number[] = [];
  const idle: number[] = [];
  for (let round = 0; round < (options.quick ? 1 : 5); round++) {
    await withCloud(options, async (cloud) => {
      times.push(await timeFirstQuery(cloud, kind, 'first'));
      await startAgain(cloud);
      await sleep(SETTLE_MS);
      idle.push(idleBytes(serverLineOf(cloud.process.dataDir, kind.engine).pid));
    });
  }
  const bytes = median(idle);
  return [
    timeRow(`the first ${kind.title} database of a cloud → first query`, times, MOST_EVER_MS),
    {
      work: `${kind.title} without a session: memory`,
      target: `≤ ${formatBytes(kind.mostIdle)}`,
      reached: `**${formatBytes(bytes)}**`,
      isMet: bytes <= kind.mostIdle,
      detail: 'proportional (PSS), all of its processes',
    },
  ];
}

async function next(cloud: Cloud, kind: Kind, quick: boolean): Promise<Row[]> {
  // Databases that a server has initially.
  await create(cloud, kind, 'before');
  const rounds = quick ? 3 : 15;
  const next: number[] = [];
  for (let round = 0; round < rounds; round++) next.push(await timeFirstQuery(cloud, kind, `next-${round}`));
  const first: number[] = [];
  for (let round = 0; round < rounds; round++)
    first.push(await timeFirstQuery(await asAnother(cloud), kind, 'first'));
  return [
    timeRow(`the first ${kind.title} database of an account → first query`, first, kind.mostFirstMs),
    timeRow(`another ${kind.title} database of the account → first query`, next, MOST_NEXT_MS),
  ];
}

/** Idle servers are ended immediately: the first query of each session wakes one. */
async function wake(kind: Kind, options: RunOptions): Promise<Row[]> {
  const env = { CLOUDLET_DATABASE_IDLE_SECONDS: '1' };
  return withCloud(
    options,
    async (cloud) => {
      const { uri } = await create(cloud, kind, 'sleeper');
      const { home } = serverLineOf(cloud.process.dataDir, kind.engine);
      const isUp = () => existsSync(`/proc/${serverPidOf(cloud.process.dataDir, kind.engine)}`);
      const times: number[] = [];
      for (let round = 0; round < (options.quick ? 3 : 15); round++) {
        for (let tries = 0; isUp(); tries++) {
          if (tries === 600) throw new Error('the server does not fall asleep');
          await sleep(50);
        }
        const began = performance.now();
        await run(uri, 'SELECT 1');
        times.push(performance.now() - began);
      }
      const bytes = bytesOf(home);
      return [
        timeRow(`a ${kind.title} server that sleeps → first query`, times, MOST_WAKE_MS),
        {
          work: `${kind.title}: disk of an account with an empty database`,
          target: `≤ ${formatBytes(kind.mostDisk)}`,
          reached: `**${formatBytes(bytes)}**`,
          isMet: bytes <= kind.mostDisk,
          detail: 'all that its server keeps; no memory while it sleeps',
        },
      ];
    },
    env,
  );
}

function bytesOf(folder: string): number {
  return Number.parseInt(execFileSync('du', ['-s', '-B1', folder], { encoding: 'utf8' }), 10);
}

function selects(uri: string, seconds: number): Promise<{ perSecond: number; p99: number }> {
  return runChild(POINT_SELECTS, { uri, connections: CONNECTIONS, seconds });
}

/** Its processes share pages; each counts its part of them. */
function idleBytes(server: number): number {
  const isOfIt = (pid: string) =>
    Number(pid) === server ||
    new RegExp(`^PPid:\\s+${server}$`, 'm').test(readFileSync(`/proc/${pid}/status`, 'latin1'));
  const pids = readdirSync('/proc').filter((name) => /^\d+$/.test(name) && isOfIt(name));
  const parts = pids.map((pid) =>
    Number(/^Pss:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/smaps_rollup`, 'latin1'))?.[1]),
  );
  return parts.reduce((sum, part) => sum + part * 1024, 0);
}

async function againstByHand(cloud: Cloud, kind: Kind, options: RunOptions): Promise<Row> {
  const { rounds, seconds } = options.quick ? { rounds: 3, seconds: 1 } : { rounds: 9, seconds: 3 };
  const { uri } = await create(cloud, kind, 'points');
  await run(uri, TABLE, kind.fill);
  const line = serverLineOf(cloud.process.dataDir, kind.engine);
  await cloud.process.end();
  const byHand = await startByHand(line, join(options.folder, `${kind.engine}-by-hand`));
  try {
    await cloud.process.start();
    const other = uri.replace(/:\d+\//, `:${byHand.port}/`);
    await Promise.all([uri, other].map(untilItAnswers));
    const found = await interleave(rounds, {
      byHand: async () => (await selects(other, seconds)).perSecond,
      ours: async () => (await selects(uri, seconds)).perSecond,
    });
    return ratioRow({
      work: `${kind.title} point SELECT by its driver, ${CONNECTIONS} connections`,
      against: 'the same server, settings and data by hand',
      atLeast: 0.9,
      comparison: compare(found.byHand, found.ours),
      unit: '/s',
    });
  } finally {
    await byHand.stop();
  }
}

async function untilItAnswers(uri: string): Promise<void> {
  for (let tries = 0; ; tries++) {
    const failure = await run(uri, 'SELECT 1').then(
      () => null,
      (error: Error) => error,
    );
    if (failure === null) return;
    if (tries === 300) throw failure;
    await sleep(100);
  }
}

/** Another tenant's endless statements, each restarted when it was stopped. */
async function besideRunaways(cloud: Cloud, kind: Kind, quick: boolean): Promise<Row[]> {
  const { rounds, seconds } = quick ? { rounds: 2, seconds: 1 } : { rounds: 5, seconds: 5 };
  const { uri } = await create(cloud, kind, 'calm');
  await run(uri, TABLE, kind.fill);
  let round = 0;
  const health: number[] = [];
  const found = await interleave(rounds, {
    alone: async () => (await selects(uri, seconds)).p99,
    beside: async () => {
      const another = await asAnother(cloud);
      const hostile = await create(another, kind, `hostile-${++round}`);
      let isOver = false;
      const running = kind.runaways.map(async (statement) => {
        while (!isOver) await run(hostile.uri, statement).catch(() => {});
      });
      const asking = (async () => {
        for (; !isOver; await sleep(HEALTH_PAUSE_MS)) health.push(await timeHealth(cloud));
      })();
      const { p99 } = await selects(uri, seconds);
      isOver = true;
      await asking;
      // Its sessions end with it.
      await another.client.call(`/api/databases/${hostile.id}`, { method: 'DELETE' });
      await Promise.all(running);
      return p99;
    },
  });
  const comparison = compare(found.alone, found.beside);
  const row = ratioRow({
    work: `${kind.title} point SELECT beside ${kind.runaways.length} runaways of another tenant, p99`,
    against: 'the same without them',
    atMost: 2,
    comparison,
    unit: 'ms',
  });
  const isMet = row.isMet === true || comparison.ours <= MOST_P99_MS;
  const p99 = health.sort((one, other) => one - other)[Math.floor(health.length * 0.99)] ?? 0;
  return [
    { ...row, target: `${row.target}, or ${MOST_P99_MS} ms`, isMet },
    {
      work: `GET /healthz beside ${kind.runaways.length} runaways of ${kind.title}, p99`,
      target: `≤ ${MOST_HEALTH_MS} ms`,
      reached: `**${p99.toFixed(1)} ms**`,
      isMet: p99 <= MOST_HEALTH_MS,
      detail: `${health.length} calls; at worst ${health.at(-1)?.toFixed(1)} ms`,
    },
  ];
}

async function timeHealth(cloud: Cloud): Promise<number> {
  const began = performance.now();
  await (await fetch(`${cloud.process.api}/healthz`)).arrayBuffer();
  return performance.now() - began;
}

async function measure(kind: Kind, options: RunOptions): Promise<Row[]> {
  return [
    ...(await firstEver(kind, options)),
    ...(await wake(kind, options)),
    ...(await withCloud(options, async (cloud) => [
      ...(await next(cloud, kind, options.quick)),
      ...(await besideRunaways(cloud, kind, options.quick)),
      // Last, because it stops the cloud meanwhile.
      await againstByHand(cloud, kind, options),
    ])),
  ];
}

export const DATABASE_SERVERS: readonly Measurement[] = KINDS.map((kind) => ({
  name: kind.engine,
  run: (options) => measure(kind, options),
}));

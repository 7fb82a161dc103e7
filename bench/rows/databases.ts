/**
 * SQLite databases: the time until a driver has one, the time of statements over HTTP, and many with few in
 * use.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { createClient } from '@libsql/client';
import { runChild } from '../child.ts';
import { statusBytes } from '../process-figures.ts';
import { compare, interleave, median } from '../ratios.ts';
import { formatBytes, formatNumber, ratioRow } from '../table.ts';
import {
  bodyOf,
  type Cloud,
  liftQuotas,
  type Measurement,
  type Row,
  type RunOptions,
  withCloud,
} from '../workshop.ts';
import { runWrk } from '../wrk.ts';

const DURABLE_FILES = new URL('../children/durable-files.ts', import.meta.url);
const HRANA_SELECTS = new URL('../children/hrana-selects.ts', import.meta.url);
const CONNECTIONS = 16;
const MOST_FIRST_MS = 150;
const MOST_LIST_MS = 30;
const MOST_CONTROL = 250 * 2 ** 20;
const MOST_CHILD = 60 * 2 ** 20;
const IN_USE = 20;
/** By then a process waits for the next database. */
export const REST_MS = 3000;

interface Made {
  readonly url: string;
  readonly token: string;
}

async function create({ client }: Cloud, name: string): Promise<Made> {
  const body = await bodyOf(client, '/api/databases', { json: { name } });
  return { url: body.connection.uri.split('?')[0], token: body.connection.password };
}

async function query({ url, token }: Made, sql: string): Promise<void> {
  const driver = createClient({ url, authToken: token });
  await driver.execute(sql);
  driver.close();
}

/** `restMs`: pause between two databases. */
async function firstQuery(cloud: Cloud, restMs: number, rounds: number): Promise<Row> {
  const times: number[] = [];
  for (let i = 0; i < rounds; i++) {
    await sleep(restMs);
    const begun = performance.now();
    await query(await create(cloud, `first-${restMs}-${i}`), 'SELECT 1');
    times.push(performance.now() - begun);
  }
  const p50 = median(times);
  const how = restMs === 0 ? 'one after the other' : `one every ${restMs / 1000} s`;
  return {
    work: `create a SQLite database → first query by @libsql/client, p50, ${how}`,
    target: `≤ ${MOST_FIRST_MS} ms`,
    reached: `**${p50.toFixed(0)} ms**`,
    isMet: p50 <= MOST_FIRST_MS,
    detail: `${rounds} times; at worst ${Math.max(...times).toFixed(0)} ms`,
  };
}

const executed = (sql: string) => ({ requests: [{ type: 'execute', stmt: { sql } }, { type: 'close' }] });

async function statements(cloud: Cloud, options: RunOptions): Promise<Row[]> {
  const { rounds, seconds } = options.quick ? { rounds: 3, seconds: 2 } : { rounds: 7, seconds: 4 };
  const made = await create(cloud, 'statements');
  await query(made, 'CREATE TABLE t (id INTEGER PRIMARY KEY, x TEXT)');
  await query(made, "INSERT INTO t VALUES (1, 'hello')");
  const load = { connections: CONNECTIONS, seconds };
  const url = `${made.url}v2/pipeline`;
  const rate = async (sql: string) =>
    (await runWrk({ ...load, url, post: { token: made.token, json: executed(sql) } })).requestsPerSecond;
  const found = await interleave(rounds, {
    route: async () => (await runWrk({ ...load, url: `${cloud.process.api}/healthz` })).requestsPerSecond,
    select: () => rate('SELECT x FROM t WHERE id = 1'),
    files: async () => {
      const directory = join(options.folder, 'files');
      const input = { directory, seconds, writers: CONNECTIONS, bytes: 100 };
      return (await runChild<{ perSecond: number }>(DURABLE_FILES, input)).perSecond;
    },
    insert: () => rate("INSERT INTO t(x) VALUES ('hello')"),
  });
  const read = async (way: string) => {
    const input = { url: made.url, token: made.token, way, ...load };
    return (await runChild<{ perSecond: number }>(HRANA_SELECTS, input)).perSecond;
  };
  const ways = await interleave(rounds, {
    json: () => read('json'),
    protobuf: () => read('protobuf'),
    socket: () => read('socket'),
    'socket-protobuf': () => read('socket-protobuf'),
  });
  const beside = (work: string, ours: number[]) =>
    ratioRow({
      work: `SQLite point SELECT by libSQL's client, ${CONNECTIONS} at once: ${work}`,
      against: 'JSON over HTTP',
      atLeast: 0.97,
      comparison: compare(ways.json, ours),
      unit: '/s',
    });
  return [
    ratioRow({
      work: `SQLite point SELECT over HTTP, ${CONNECTIONS} connections`,
      against: 'our bare JSON route',
      atLeast: 0.35,
      comparison: compare(found.route, found.select),
      unit: '/s',
    }),
    ratioRow({
      work: `SQLite INSERT over HTTP, ${CONNECTIONS} connections, durable`,
      against: 'a file + fdatasync + directory fsync each',
      atLeast: 1.5,
      comparison: compare(found.files, found.insert),
      unit: '/s',
    }),
    beside('protobuf over HTTP', ways.protobuf),
    beside('JSON over WebSocket', ways.socket),
    beside('protobuf over WebSocket', ways['socket-protobuf']),
  ];
}

/** The parent of every process. */
function parents(): Map<number, number> {
  const found = new Map<number, number>();
  for (const name of readdirSync('/proc').filter((entry) => /^\d+$/.test(entry))) {
    try {
      const ppid = /^PPid:\s+(\d+)$/m.exec(readFileSync(`/proc/${name}/status`, 'utf8'))?.[1];
      found.set(Number(name), Number(ppid));
    } catch {
      // It ended meanwhile.
    }
  }
  return found;
}

/** Resident memory of the processes below one, largest first. */
function childrenBytes(pid: number): number[] {
  const all = parents();
  const isBelow = (child: number): boolean => {
    const parent = all.get(child) ?? 0;
    return parent === pid || (parent > 1 && isBelow(parent));
  };
  const below = [...all.keys()].filter(isBelow);
  return below.map((child) => statusBytes(child, 'VmRSS')).sort((one, other) => other - one);
}

async function manyDatabases(cloud: Cloud, quick: boolean): Promise<Row[]> {
  const count = quick ? 200 : 1000;
  const made: Made[] = [];
  for (let i = 0; i < count; i++) made.push(await create(cloud, `many-${i}`));
  for (const one of made.slice(0, IN_USE)) await query(one, 'SELECT 1');
  const times: number[] = [];
  for (let i = 0; i < 20; i++) {
    const begun = performance.now();
    await cloud.client.call('/api/databases');
    times.push(performance.now() - begun);
  }
  const control = statusBytes(cloud.process.pid, 'VmRSS');
  const [largest = 0, ...rest] = childrenBytes(cloud.process.pid);
  const work = `${formatNumber(count)} databases, ${IN_USE} in use`;
  const list = median(times);
  return [
    {
      work: `${work}: memory without their processes`,
      target: `≤ ${formatBytes(MOST_CONTROL)}`,
      reached: `**${formatBytes(control)}**`,
      isMet: control <= MOST_CONTROL,
      detail: 'resident',
    },
    {
      work: `${work}: GET /api/databases`,
      target: `≤ ${MOST_LIST_MS} ms`,
      reached: `**${list.toFixed(1)} ms**`,
      isMet: list <= MOST_LIST_MS,
      detail: `at worst ${Math.max(...times).toFixed(1)} ms`,
    },
    {
      work: `${work}: the largest of their processes`,
      target: `≤ ${formatBytes(MOST_CHILD)}`,
      reached: `**${formatBytes(largest)}**`,
      isMet: largest <= MOST_CHILD,
      detail: `of ${rest.length + 1}, those that keep them included`,
    },
  ];
}

async function databases(options: RunOptions): Promise<Row[]> {
  return withCloud(options, async (cloud) => {
    await liftQuotas(cloud, 'databases');
    return [
      await firstQuery(cloud, 0, options.quick ? 10 : 30),
      await firstQuery(cloud, REST_MS, options.quick ? 5 : 15),
      ...(await statements(cloud, options)),
      ...(await manyDatabases(cloud, options.quick)),
    ];
  });
}

export const DATABASES: readonly Measurement[] = [{ name: 'databases', run: databases }];

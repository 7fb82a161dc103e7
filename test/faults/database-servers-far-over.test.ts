/** A server uses far more of the disk than its databases may, in ways that read-only does not stop. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { globSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { createConnection } from 'mysql2/promise';
import pg from 'pg';
import { NO_MARIADB, NO_POSTGRESQL } from '../../scripts/installed.ts';
import { Client } from '../harness/client.ts';
import { CloudProcess } from '../harness/cloud-process.ts';
import { eventually } from '../harness/waiting.ts';

const LIMIT_MB = 20;
/** For temporary files or tables, for each of the two sessions. */
const MB = 400;

interface Session {
  query(sql: string): Promise<unknown>;
  close(): void;
}

async function openPostgresql(uri: string): Promise<Session> {
  const client = new pg.Client({ connectionString: uri });
  client.on('error', () => {});
  await client.connect();
  return { query: (sql) => client.query(sql), close: () => void client.end().catch(() => {}) };
}

async function openMysql(uri: string): Promise<Session> {
  const driver = await createConnection(uri);
  driver.on('error', () => {});
  return { query: (sql) => driver.query(sql), close: () => driver.destroy() };
}

const NUMBERS = `WITH RECURSIVE n AS (SELECT 1 AS a UNION ALL SELECT a + 1 FROM n WHERE a < ${MB * 16})`;
const CASES = [
  {
    engine: 'postgresql',
    programs: 'postgresql',
    missing: NO_POSTGRESQL,
    open: openPostgresql,
    /** Keeps the rows it has read in a file, until the session ends. */
    taking: [
      `BEGIN; DECLARE held CURSOR WITH HOLD FOR SELECT repeat('x', 1000) || g FROM generate_series(1, ${MB * 1000}) g; COMMIT`,
    ],
    waiting: 'SELECT pg_sleep(60)',
  },
  {
    engine: 'mysql',
    programs: 'mariadb',
    missing: NO_MARIADB,
    open: openMysql,
    taking: [
      'SET max_recursive_iterations = 1000000',
      `CREATE TEMPORARY TABLE held AS ${NUMBERS} SELECT a, REPEAT('x', 65000) AS text FROM n`,
    ],
    waiting: 'SELECT SLEEP(60)',
  },
];

for (const { engine, programs, missing, open, taking, waiting } of CASES) {
  const skip = globSync(`build/programs/${programs}-*/usr`).length > 0 ? false : missing;
  test(`${engine}: that server is ended, gives its space back, and nobody else notices`, {
    skip,
  }, async (t) => {
    const cloud = await CloudProcess.start();
    t.after(() => cloud.stop());
    const newUri = async () => {
      const user = await new Client(cloud.api).newUser();
      const json = { name: 'shop', engine, size_limit_mb: LIMIT_MB };
      const { status, body } = await user.call('/api/databases', { json });
      assert.equal(status, 201, JSON.stringify(body));
      return String(body.connection.uri);
    };
    const [mine, others] = [await newUri(), await newUri()];
    const neighbour = await open(others);
    t.after(() => neighbour.close());
    let rounds = 0;
    let isOver = false;
    t.after(() => {
      isOver = true;
    });
    const using = (async () => {
      for (; !isOver; rounds++) {
        await neighbour.query('SELECT 1');
        await sleep(10);
      }
    })();
    const bytes = () =>
      Number.parseInt(execFileSync('du', ['-sm', join(cloud.dataDir, 'databases', engine)]).toString(), 10);
    const before = bytes();
    const isReported = () =>
      /was ended: the server uses \d+ MB of disk, and the limit of its databases is \d+ MB/.test(
        cloud.output,
      );
    const take = async () => {
      const session = await open(mine).catch(() => null);
      if (session === null) return;
      // Its temporary data is removed with it.
      for (const sql of [...taking, waiting]) await session.query(sql);
    };
    // A session also ends when its database becomes read-only, possibly before the server's end.
    const takers = [take, take].map(async (again) => {
      while (!isReported() && !isOver) await again().catch(() => sleep(10));
    });
    await eventually('it is reported', isReported);
    await Promise.all(takers);
    await eventually('its server is back', async () => {
      const again = await open(mine).catch(() => null);
      const isMade = await again?.query('CREATE TABLE IF NOT EXISTS t (a int)').catch(() => null);
      again?.close();
      return isMade;
    });
    await eventually('its space is free', () => bytes() < before + MB / 2);
    isOver = true;
    await using;
    assert.ok(rounds > 10);
  });
}

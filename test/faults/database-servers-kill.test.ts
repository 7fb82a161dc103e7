/** Writers of PostgreSQL and MariaDB while a session's process, the server or all of Cloudlet is killed. */
import assert from 'node:assert/strict';
import { globSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { createPool } from 'mysql2/promise';
import { Pool } from 'pg';
import { NO_MARIADB, NO_POSTGRESQL } from '../../scripts/installed.ts';
import { Client } from '../harness/client.ts';
import { CloudProcess } from '../harness/cloud-process.ts';
import { eventually } from '../harness/waiting.ts';

const WRITERS = 16;
const WAIT_MS = 20;

interface Driver {
  readonly add: (number: number) => Promise<unknown>;
  /** Each number that is there, with how often. */
  readonly numbers: () => Promise<Map<number, number>>;
  readonly close: () => Promise<void>;
}

const TABLE = 'CREATE TABLE IF NOT EXISTS numbers (number bigint)';
const COUNT = 'SELECT number, COUNT(*) AS times FROM numbers GROUP BY number';

type CountRow = { readonly number: unknown; readonly times: unknown };
const asMap = (rows: readonly CountRow[]) =>
  new Map(rows.map(({ number, times }) => [Number(number), Number(times)]));

/** As programs use it: a pool, which connects again when a session has ended. */
async function openPostgresql(uri: string): Promise<Driver> {
  const pool = new Pool({ connectionString: uri, max: WRITERS });
  pool.on('error', () => {}).on('connect', (client) => client.on('error', () => {}));
  await pool.query(TABLE);
  return {
    add: (number) => pool.query('INSERT INTO numbers VALUES ($1)', [number]),
    numbers: async () => asMap((await pool.query<CountRow>(COUNT)).rows),
    close: () => pool.end(),
  };
}

async function openMysql(uri: string): Promise<Driver> {
  const pool = createPool({ uri, connectionLimit: WRITERS });
  pool.on('connection', (connection) => connection.on('error', () => {}));
  await pool.query(TABLE);
  return {
    add: (number) => pool.query('INSERT INTO numbers VALUES (?)', [number]),
    numbers: async () => asMap((await pool.query(COUNT))[0] as CountRow[]),
    close: () => pool.end(),
  };
}

function serverPid(cloud: CloudProcess, engine: string): number {
  const [note] = globSync(join(cloud.dataDir, 'databases', engine, 'accounts/*/keeper/run'));
  return Number(readFileSync(String(note), 'latin1').split(' ')[1]);
}

/** PostgreSQL's process of one of a tenant's sessions; MariaDB has threads. */
function sessionPid(server: number): number | undefined {
  const isSession = (pid: string) => {
    try {
      const parent = /^PPid:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'latin1'))?.[1];
      return (
        Number(parent) === server && /^postgres: u_/.test(readFileSync(`/proc/${pid}/cmdline`, 'latin1'))
      );
    } catch {
      return false;
    }
  };
  const found = readdirSync('/proc').find((name) => /^\d+$/.test(name) && isSession(name));
  return found === undefined ? undefined : Number(found);
}

/** Writes its own numbers, each once, until told to stop; keeps those that were acknowledged. */
class Writer {
  readonly acknowledged: number[] = [];
  #isStopped = false;

  async run(first: number, driver: Driver): Promise<void> {
    for (let number = first; !this.#isStopped; number += WRITERS) {
      try {
        await driver.add(number);
        this.acknowledged.push(number);
      } catch {
        // It may be there or not; its number is never used again.
        await sleep(WAIT_MS);
      }
    }
  }

  stop(): void {
    this.#isStopped = true;
  }
}

const CASES = [
  { engine: 'postgresql', programs: 'postgresql', missing: NO_POSTGRESQL, open: openPostgresql },
  { engine: 'mysql', programs: 'mariadb', missing: NO_MARIADB, open: openMysql },
];

for (const { engine, programs, missing, open } of CASES) {
  const skip = globSync(`build/programs/${programs}-*/usr`).length > 0 ? false : missing;
  test(`${engine}: every row that was acknowledged is there, and none twice`, { skip }, async (t) => {
    const cloud = await CloudProcess.start({ env: { CLOUDLET_DATABASE_CONNECTIONS: '20' } });
    t.after(() => cloud.stop());
    const user = await new Client(cloud.api).newUser();
    const { body: made } = await user.call('/api/databases', { json: { name: 'numbers', engine } });
    const driver = await open(made.connection.uri);
    t.after(() => driver.close());
    const writers = Array.from({ length: WRITERS }, () => new Writer());
    const running = writers.map((writer, index) => writer.run(index, driver));
    const count = () => writers.reduce((sum, { acknowledged }) => sum + acknowledged.length, 0);
    const goesOn = async () => {
      const before = count();
      await eventually('more rows', () => count() > before + 3 * WRITERS);
    };
    const killServer = async () => {
      const killed = serverPid(cloud, engine);
      process.kill(killed, 'SIGKILL');
      return killed;
    };
    /** PostgreSQL's sessions go on a little without it, as long as they find another statement to run. */
    const replaceServer = async () => {
      const killed = await killServer();
      if (engine !== 'postgresql') return;
      await eventually('a session of the next server', () => {
        const next = serverPid(cloud, engine);
        return next !== killed && sessionPid(next);
      });
    };
    const killSession = async () => {
      process.kill(await eventually('a session', () => sessionPid(serverPid(cloud, engine))), 'SIGKILL');
    };
    /** It serves on without Cloudlet, and when it is killed then, the next Cloudlet has it back. */
    const killCloudlet = async () => {
      await cloud.crash();
      await goesOn();
      await killServer();
      await cloud.start();
    };
    const kills = [replaceServer, killCloudlet, engine === 'postgresql' ? killSession : replaceServer];
    for (const kill of kills) {
      await goesOn();
      await kill();
    }
    await goesOn();
    for (const writer of writers) writer.stop();
    await Promise.all(running);
    const times = await driver.numbers();
    const wrong = writers.flatMap(({ acknowledged }) => acknowledged).filter((n) => times.get(n) !== 1);
    assert.deepEqual(wrong, []);
    assert.deepEqual(
      [...times].filter(([, n]) => n > 1),
      [],
    );
  });
}

/** Writers of PostgreSQL and MariaDB while a session's process, the server or all of Cloudlet is killed. */
import assert from 'node:assert/strict';
import { globSync, readdirSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { createConnection, createPool, type RowDataPacket } from 'mysql2/promise';
import { Pool, Client as Postgresql } from 'pg';
import { NO_MARIADB, NO_POSTGRESQL } from '../../scripts/installed.ts';
import { GOES_STRAIGHT } from '../acceptance/databases-kit.ts';
import { Client } from '../harness/client.ts';
import { CloudProcess } from '../harness/cloud-process.ts';
import { eventually } from '../harness/waiting.ts';

const WRITERS = 16;
const WAIT_MS = 20;

interface Driver {
  readonly add: (number: number) => Promise<unknown>;
  /** Each existing number, with its count. */
  readonly numbers: () => Promise<Map<number, number>>;
  readonly close: () => Promise<void>;
}

const TABLE = 'CREATE TABLE IF NOT EXISTS numbers (number bigint)';
const COUNT = 'SELECT number, COUNT(*) AS times FROM numbers GROUP BY number';

type CountRow = { readonly number: unknown; readonly times: unknown };
const asMap = (rows: readonly CountRow[]) =>
  new Map(rows.map(({ number, times }) => [Number(number), Number(times)]));

/** As in programs: a pool, which reconnects when a session has ended. */
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

/** The address of a new session from the view of the server. */
async function hostOfPostgresql(uri: string): Promise<string> {
  const client = new Postgresql(uri);
  await client.connect();
  const { rows } = await client.query('SELECT host(inet_client_addr()) AS host');
  await client.end();
  return rows[0].host;
}

async function hostOfMysql(uri: string): Promise<string> {
  const driver = await createConnection(uri);
  const [rows] = await driver.query<RowDataPacket[]>(
    "SELECT SUBSTRING_INDEX(host, ':', 1) AS host FROM information_schema.processlist WHERE id = CONNECTION_ID()",
  );
  driver.destroy();
  return String(rows[0]?.host);
}

/** One for each account with a server of that engine. */
function serverPids(cloud: CloudProcess, engine: string): number[] {
  const notes = globSync(join(cloud.dataDir, 'databases', engine, 'accounts/*/keeper/run'));
  return notes.map((note) => Number(readFileSync(note, 'latin1').split(' ')[1]));
}

function serverPid(cloud: CloudProcess, engine: string): number {
  return Number(serverPids(cloud, engine)[0]);
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

/** Writes its own numbers, each once, until stopped; keeps the acknowledged ones. */
class Writer {
  readonly acknowledged: number[] = [];
  #isStopped = false;

  async run(first: number, driver: Driver): Promise<void> {
    for (let number = first; !this.#isStopped; number += WRITERS) {
      try {
        await driver.add(number);
        this.acknowledged.push(number);
      } catch {
        // It may exist or not; its number is never used again.
        await sleep(WAIT_MS);
      }
    }
  }

  stop(): void {
    this.#isStopped = true;
  }
}

const CASES = [
  {
    engine: 'postgresql',
    programs: 'postgresql',
    missing: NO_POSTGRESQL,
    open: openPostgresql,
    hostOf: hostOfPostgresql,
  },
  { engine: 'mysql', programs: 'mariadb', missing: NO_MARIADB, open: openMysql, hostOf: hostOfMysql },
];

for (const { engine, programs, missing, open, hostOf } of CASES) {
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
    /**
     * PostgreSQL's sessions continue for a while without it, as long as they find another statement to run.
     */
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
    /** It continues to serve without Cloudlet, and if it is killed then, the next Cloudlet restores it. */
    const killCloudlet = async () => {
      // Clients that waited for the server go through Cloudlet, until rules lead past it.
      const isStraight = () =>
        hostOf(made.connection.uri).then(
          (host) => host === '127.0.0.1',
          () => false,
        );
      if (GOES_STRAIGHT) await eventually('the way past Cloudlet', isStraight);
      await cloud.crash();
      if (GOES_STRAIGHT) await goesOn();
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
    await assertAllThere(driver, writers);
  });
}

async function assertAllThere(driver: Driver, writers: readonly Writer[]): Promise<void> {
  const times = await driver.numbers();
  const wrong = writers.flatMap(({ acknowledged }) => acknowledged).filter((n) => times.get(n) !== 1);
  assert.deepEqual(wrong, []);
  const twice = [...times].filter(([, n]) => n > 1);
  assert.deepEqual(twice, []);
}

const ACCOUNTS = 5;
const MISSING = CASES.find(
  ({ programs }) => globSync(`build/programs/${programs}-*/usr`).length === 0,
)?.missing;

test('ten servers: Cloudlet is killed under their writers, and takes each over', {
  skip: MISSING ?? false,
}, async (t) => {
  const cloud = await CloudProcess.start();
  t.after(() => cloud.stop());
  const all: { readonly driver: Driver; readonly writer: Writer; readonly running: Promise<void> }[] = [];
  for (const { engine, open } of CASES) {
    for (let at = 0; at < ACCOUNTS; at++) {
      const user = await new Client(cloud.api).newUser();
      const { body: made } = await user.call('/api/databases', { json: { name: 'numbers', engine } });
      const driver = await open(made.connection.uri);
      const writer = new Writer();
      all.push({ driver, writer, running: writer.run(0, driver) });
    }
  }
  t.after(() => Promise.all(all.map(({ driver }) => driver.close())));
  const pids = () => CASES.flatMap(({ engine }) => serverPids(cloud, engine)).sort();
  const goOn = async () => {
    const before = all.map(({ writer }) => writer.acknowledged.length);
    const hasMore = ({ writer }: { writer: Writer }, at: number) =>
      writer.acknowledged.length > Number(before[at]) + 3;
    await eventually('more rows in each', () => all.every(hasMore));
  };
  const before = pids();
  for (let kills = 0; kills < 2; kills++) {
    await goOn();
    await cloud.crash();
    await cloud.start();
  }
  await goOn();
  assert.equal(before.length, 2 * ACCOUNTS);
  assert.deepEqual(pids(), before);
  for (const { writer } of all) writer.stop();
  await Promise.all(all.map(({ running }) => running));
  for (const { driver, writer } of all) await assertAllThere(driver, [writer]);
  await cloud.crash();
  await cloud.start();
  // Before all servers were taken over.
  await cloud.end();
  assert.deepEqual(before.filter(isRunning), []);
});

function isRunning(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

for (const { engine, programs, missing, open, hostOf } of CASES) {
  const skip = globSync(`build/programs/${programs}-*/usr`).length > 0 ? false : missing;
  test(`${engine}: another cloud of this host that stops ends nobody's session here`, { skip }, async (t) => {
    const [ours, other] = [await CloudProcess.start(), await CloudProcess.start()];
    t.after(() => Promise.all([ours.stop(), other.stop()]));
    const newUri = async (cloud: CloudProcess): Promise<string> => {
      const user = await new Client(cloud.api).newUser();
      const { status, body } = await user.call('/api/databases', { json: { name: 'numbers', engine } });
      assert.equal(status, 201, JSON.stringify(body));
      return body.connection.uri;
    };
    const uri = await newUri(ours);
    const theirs = await newUri(other);
    const isStraight = async () => (await hostOf(uri)) === '127.0.0.1';
    if (GOES_STRAIGHT) await eventually('the way past Cloudlet', isStraight);
    const driver = await open(uri);
    t.after(() => driver.close());
    await driver.add(1);
    await (await open(theirs)).close();
    await other.end();
    // Not one of a pool: the same session.
    assert.deepEqual([...(await driver.numbers())], [[1, 1]]);
    if (GOES_STRAIGHT) assert.ok(await isStraight());
  });
}

for (const { engine, programs, missing, open } of CASES) {
  const skip = globSync(`build/programs/${programs}-*/usr`).length > 0 ? false : missing;
  test(`${engine}: after a kill and a move of the directory every driver connects`, { skip }, async (t) => {
    const before = await CloudProcess.start();
    t.after(() => before.stop());
    const user = await new Client(before.api).newUser();
    const { body: made } = await user.call('/api/databases', { json: { name: 'numbers', engine } });
    const first = await open(made.connection.uri);
    await first.add(1);
    await first.close();
    await before.crash();
    const moved = `${before.dataDir}-moved`;
    renameSync(before.dataDir, moved);
    t.after(() => rmSync(moved, { recursive: true, force: true }));
    const after = await CloudProcess.start({ dataDir: moved });
    t.after(() => after.stop());
    for (let number = 2; number <= 5; number++) {
      const driver = await open(made.connection.uri);
      await driver.add(number);
      await driver.close();
    }
    const last = await open(made.connection.uri);
    assert.deepEqual([...(await last.numbers()).keys()].sort(), [1, 2, 3, 4, 5]);
    await last.close();
  });
}

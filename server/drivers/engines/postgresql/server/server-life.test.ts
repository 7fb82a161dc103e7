/** The PostgreSQL server when its host changes: programs, data, disk. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import * as fs from 'node:fs';
import { createServer } from 'node:net';
import { getPriority } from 'node:os';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import type { Client } from 'pg';
import { isAppError } from '../../../../platform/errors.ts';
import { eventually } from '../../../../testing/eventually.ts';
import { newDatabase } from '../../../../testing/new-database.ts';
import {
  connect,
  noPostgresql,
  type PostgresqlFixture,
  postgresqlFixture,
} from '../../../../testing/postgresql-fixture.ts';
import { allowedProcessors } from '../../../../testing/processors.ts';

import { pidOf } from '../../../../testing/server-fixture.ts';
import { withoutFirst } from '../../../host-process/processor-order.ts';

const STAYS = new AbortController().signal;
const SECRET = 'aaaaaaaaaaaaaaaaaaaaaaaa';
const ADDRESS_MARK = 'cloudlet';

/** With a database that contains a row. */
async function used(t: { after(work: () => Promise<void>): void }, database = newDatabase()) {
  const fixture = postgresqlFixture();
  t.after(() => fixture.close());
  await fixture.engine.provision(database, SECRET);
  const client = await connect(fixture.engine, database, SECRET);
  await client.query('CREATE TABLE t AS SELECT 1 AS a');
  return { fixture, database, client };
}

function pathOf({ folder }: PostgresqlFixture, ...names: string[]): string {
  return join(folder, 'accounts', '1', ...names);
}

describe('the server of PostgreSQL', { skip: noPostgresql }, () => {
  test('made anew with a database while the last one is dropped, it opens to the next Cloudlet', async (t) => {
    const { fixture, database, client } = await used(t);
    client.on('error', () => {});
    const next = newDatabase();
    const isMade = () =>
      fixture.engine.provision(next, SECRET).then(
        () => true,
        (error) => {
          if (!isAppError(error, 'engine_unavailable')) throw error;
          return false;
        },
      );
    await Promise.all([fixture.engine.drop(database.database), eventually(isMade)]);
    await (await connect(fixture.engine, next, SECRET)).end();
    const engine = fixture.reopen();
    assert.deepEqual((await engine.tables(next, STAYS)).toJSON(), []);
    await (await connect(engine, next, SECRET)).end();
  });

  test('a new start of Cloudlet adopts it; what is asked of both at once goes well', async (t) => {
    const { fixture, database, client } = await used(t);
    const pid = pidOf(fixture.engine);
    const next = fixture.reopen();
    await Promise.all([next.wake(), next.tables(database, STAYS), next.tables(database, STAYS)]);
    assert.equal(pidOf(next), pid);
    assert.deepEqual((await client.query('SELECT a FROM t')).rows, [{ a: 1 }]);
    await next.rotate(database, 'other');
    await (await connect(next, database, 'other')).end();
  });

  test('its log gives the disk back when it sleeps', async (t) => {
    const { fixture, client } = await used(t, newDatabase({ sizeLimitBytes: 2 ** 30 }));
    const log = pathOf(fixture, 'home', 'data', 'pg_wal');
    const sizeOf = () =>
      fs.readdirSync(log).reduce((sum, name) => sum + fs.statSync(join(log, name)).size, 0);
    await client.query("CREATE TABLE large AS SELECT repeat('x', 1000) FROM generate_series(1, 24000)");
    await client.query('INSERT INTO large SELECT * FROM large');
    assert.ok(sizeOf() > 16 * 2 ** 20, `${sizeOf()}`);
    await client.end();
    await fixture.engine.serverOf(1)?.engine.server.stop();
    assert.ok(sizeOf() < 8 * 2 ** 20, `${sizeOf()}`);
  });

  test('a session that computes for long stays off one processor, and comes last, until it rests', async (t) => {
    const limits = { connections: 5, statementMs: 300_000 };
    const { fixture, database, client } = await used(t, newDatabase({ limits }));
    const long = await connect(fixture.engine, database, SECRET);
    const server = pidOf(fixture.engine);
    const backendOf = async (session: Client) => {
      // The server may count its own processes.
      const { rows } = await session.query('SELECT pg_backend_pid() AS pid');
      const isIt = (pid: string) => {
        const numbers = /^NSpid:\s+(.*)$/m.exec(fs.readFileSync(`/proc/${pid}/status`, 'latin1'))?.[1] ?? pid;
        return parentOf(pid) === server && Number(numbers.split('\t').at(-1)) === rows[0]?.pid;
      };
      return Number(fs.readdirSync('/proc').find((pid) => /^\d+$/.test(pid) && isIt(pid)));
    };
    const [busy, other] = [await backendOf(long), await backendOf(client)];
    const [all, usual] = [allowedProcessors('self'), getPriority(other)];
    const isWeighed = usual !== 0 && process.getuid?.() === 0;
    const running = long.query('DO $$ BEGIN LOOP END LOOP; END $$').catch((error) => error);
    await eventually(() => allowedProcessors(busy) === (withoutFirst(all) ?? all));
    if (isWeighed) {
      await eventually(() => getPriority(busy) === 19);
      const session = fs.readFileSync(`/proc/${busy}/autogroup`, 'utf8');
      assert.match(session, / nice 19$/m);
    }
    assert.deepEqual((await client.query('SELECT a FROM t')).rows, [{ a: 1 }]);
    assert.equal(allowedProcessors(other), all);
    assert.equal(getPriority(other), usual);
    await client.query("SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE query LIKE 'DO %'");
    assert.match(String(await running), /cancel/);
    await eventually(() => allowedProcessors(busy) === all && getPriority(busy) === usual);
    await long.end();
  });

  test('sessions come back when one of its processes, or all of it, is killed', async (t) => {
    const { fixture, database } = await used(t);
    const before = pidOf(fixture.engine);
    // The kernel ends the children with the first process; a backend is found by its parent.
    const backends = () =>
      fs.readdirSync('/proc').filter((name) => /^\d+$/.test(name) && parentOf(name) === before);
    const victim = (await eventually(() => backends().at(-1))) as string;
    process.kill(Number(victim), 'SIGKILL');
    /** Reads like a program that reconnects. */
    const read = async () => {
      const session = await connect(fixture.engine, database, SECRET);
      return (await session.query('SELECT a FROM t')).rows;
    };
    const rowsAgain = () => eventually(() => read().catch(() => null));
    assert.deepEqual(await rowsAgain(), [{ a: 1 }]);
    assert.equal(pidOf(fixture.engine), before);
    process.kill(before as number, 'SIGKILL');
    await eventually(() => pidOf(fixture.engine) !== before);
    assert.deepEqual(await rowsAgain(), [{ a: 1 }]);
    assert.deepEqual([...fixture.alarms.keys()], []);
  });

  test('its endless statement is ended for an account that waits, and its owner is told why', async (t) => {
    const { fixture, database } = await used(t);
    const { engine, slots } = fixture;
    const query = {
      params: [],
      readOnly: true,
      maxRows: 9,
      maxBytes: 999,
      timeoutMs: 600_000,
      signal: STAYS,
    };
    const endless = engine.query(database, { ...query, statement: 'SELECT pg_sleep(600)' });
    const ended = assert.rejects(endless, (error) => {
      assert.ok(isAppError(error, 'engine_unavailable'), String(error));
      assert.match(error.message, /^Statements were ended, the longest after \d+ s: another account waited/);
      return true;
    });
    await eventually(() => engine.serverOf(1)?.busySince !== null);
    const others = [2, 2, 2, 2, 2, 2, 3].map((accountId) => slots.take(accountId));
    for (const leave of await Promise.all([...others, slots.take(4)])) leave();
    await ended;
    assert.match(await engine.log(database, 100_000), /^Cloudlet: Statements were ended, the longest after/m);
    assert.equal((await engine.query(database, { ...query, statement: 'SELECT a FROM t' })).rowCount, 1);
  });

  test('data of a major version whose programs are not here are left alone, and it is said', async (t) => {
    const { fixture, database } = await used(t);
    await fixture.engine.close();
    const version = pathOf(fixture, 'home', 'data', 'PG_VERSION');
    const right = fs.readFileSync(version, 'utf8');
    fs.writeFileSync(version, '12\n');
    const before = fs.readdirSync(pathOf(fixture, 'home')).sort();
    const next = fixture.reopen();
    await assert.rejects(next.tables(database, STAYS), (error) => {
      assert.match(`${error}`, /PostgreSQL 12/);
      return isAppError(error, 'engine_unavailable');
    });
    assert.deepEqual(fs.readdirSync(pathOf(fixture, 'home')).sort(), before);
    fs.writeFileSync(version, right);
    const last = fixture.reopen();
    assert.equal((await last.tables(database, STAYS)).toJSON().length, 1);
  });

  test('data that were only half made are made anew', async (t) => {
    const fixture = postgresqlFixture();
    t.after(() => fixture.close());
    const half = pathOf(fixture, 'home', 'data.new');
    fs.mkdirSync(half, { recursive: true });
    fs.writeFileSync(join(half, 'PG_VERSION'), '15\n');
    await fixture.engine.provision(newDatabase(), SECRET);
    assert.ok(!fs.existsSync(half));
  });

  test('a port that another program has is left to that, and its own stays its own', async (t) => {
    const port = 30_000 + (process.pid % 2000);
    const other = createServer();
    await once(other.listen(port, '127.0.0.1'), 'listening');
    const fixture = postgresqlFixture({ firstPort: port });
    t.after(async () => {
      await fixture.close();
      other.close();
    });
    const database = newDatabase();
    await fixture.engine.provision(database, SECRET);
    await (await connect(fixture.engine, database, SECRET)).end();
    const before = (await fixture.engine.endpoint(database)).port;
    assert.ok(before > port);
    await fixture.engine.close();
    assert.equal((await fixture.reopen().endpoint(database)).port, before);
  });

  test('while the disk is nearly full nothing is written, reads go on, and it recovers', async (t) => {
    const { fixture, database, client } = await used(t);
    fixture.disk.isLow = true;
    await eventually(async () => {
      const { rows } = await client.query('SHOW default_transaction_read_only');
      return rows[0]?.default_transaction_read_only === 'on';
    });
    await assert.rejects(client.query('INSERT INTO t VALUES (2)'), { code: '25006' });
    const stubborn = await connect(fixture.engine, database, SECRET);
    await stubborn.query('BEGIN READ WRITE; INSERT INTO t VALUES (3)');
    await eventually(() =>
      stubborn.query('SELECT 1').then(
        () => false,
        () => true,
      ),
    );
    assert.deepEqual((await client.query('SELECT a FROM t')).rows, [{ a: 1 }]);
    const full = (error: unknown) => isAppError(error, 'host_disk_full');
    await assert.rejects(fixture.engine.provision(newDatabase(), SECRET), full);
    fixture.disk.isLow = false;
    await eventually(() =>
      client.query('INSERT INTO t VALUES (4)').then(
        () => true,
        () => false,
      ),
    );
  });

  test('no password is in its log or its files', async (t) => {
    const { fixture, database } = await used(t);
    await fixture.engine.rotate(database, 'another-password-of-it');
    await assert.rejects(connect(fixture.engine, database, 'a-wrong-password-of-it'));
    await fixture.engine.close();
    const files = fs
      .readdirSync(fixture.folder, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) => join(entry.parentPath, entry.name));
    const found = files.filter((path) => {
      const bytes = fs.readFileSync(path);
      return [SECRET, 'another-password', 'a-wrong-password'].some((word) => bytes.includes(word));
    });
    assert.deepEqual(found, []);
    assert.ok(files.some((path) => fs.readFileSync(path).includes(ADDRESS_MARK)));
  });
});

function parentOf(pid: string): number | null {
  try {
    return Number(/^PPid:\s+(\d+)/m.exec(fs.readFileSync(`/proc/${pid}/status`, 'latin1'))?.[1]);
  } catch {
    return null;
  }
}

/**
 * Data of PostgreSQL upgraded to another version. Only one version is available, so it is upgraded to itself,
 * but by pg_upgrade, into a new directory.
 */
import assert from 'node:assert/strict';
import * as fs from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { systemClock } from '../../../platform/clock.ts';
import { isAppError } from '../../../platform/errors.ts';
import { eventually } from '../../../testing/eventually.ts';
import { newDatabase } from '../../../testing/new-database.ts';
import { noUsers, testUidBase } from '../../../testing/own-ground.ts';
import { connect, noPostgresql, postgresqlFixture } from '../../../testing/postgresql-fixture.ts';
import { HostProcesses } from '../../host-process/host-processes.ts';
import { readServerSecret, rolePassword } from '../../managed-server/links/server-secret.ts';
import { findPrograms } from './postgresql-programs.ts';
import { settleUpgrade, upgradeData } from './server/data-directory.ts';

const SECRET = 'aaaaaaaaaaaaaaaaaaaaaaaa';
const ACCOUNT_UIDS = 1000;
const DAYS_8 = 8 * 86_400_000;

/** A server after an orderly stop, with a database that has rows, and everything needed to upgrade it. */
async function given(t: { after(work: () => Promise<void>): void }) {
  const fixture = postgresqlFixture();
  t.after(() => fixture.close());
  const database = newDatabase();
  await fixture.engine.provision(database, SECRET);
  const client = await connect(fixture.engine, database, SECRET);
  await client.query('CREATE TABLE t AS SELECT generate_series(1, 1000) AS a');
  await client.query("CREATE EXTENSION pg_trgm; CREATE SCHEMA more; COMMENT ON TABLE t IS 'kept'");
  await fixture.engine.close();
  const hasUsers = noUsers === null;
  const processes = new HostProcesses({ clock: systemClock, group: 'cloudlet-postgresql-test', hasUsers });
  const home = join(fixture.folder, 'accounts', '1', 'home');
  const keeper = join(fixture.folder, 'accounts', '1', 'keeper');
  const uid = hasUsers ? testUidBase() + ACCOUNT_UIDS + 1 : null;
  const folders = { home, keeper, seen: await processes.pathOf(home) };
  const passwordOf = (role: string) => rolePassword(readServerSecret({ keeper }), role);
  const programs = await findPrograms(null);
  if (!('bin' in programs)) throw new Error(programs.reason);
  const rows = async (engine = fixture.reopen()) => {
    await engine.wake();
    const session = await connect(engine, database, SECRET);
    const { rows: found } = await session.query('SELECT count(*)::int AS n FROM t');
    await session.end();
    return found[0]?.n;
  };
  return { fixture, database, programs, rows, folders, making: { processes, uid, folders, passwordOf } };
}

describe('an upgrade of the data of PostgreSQL', { skip: noPostgresql }, () => {
  test('keeps everything: rows, rights, passwords, limits; the old data stay a week', async (t) => {
    const { fixture, database, programs, rows, folders, making } = await given(t);
    await upgradeData(making, { from: programs, to: programs });
    const engine = fixture.reopen();
    assert.equal(await rows(engine), 1000);
    assert.deepEqual(await engine.list(), [database.database]);
    await assert.rejects(connect(engine, database, 'wrong'), { code: '28P01' });
    const client = await connect(engine, database, SECRET);
    const { rows: limits } = await client.query('SHOW statement_timeout');
    assert.deepEqual(limits, [{ statement_timeout: '10s' }]);
    const counted = "SELECT reltuples::int AS n FROM pg_class WHERE relname = 't'";
    await eventually(async () => (await client.query(counted)).rows[0]?.n === 1000);
    await client.end();
    const old = join(folders.home, 'data.old');
    assert.ok(fs.existsSync(join(old, 'PG_VERSION')));
    await settleUpgrade(folders);
    assert.ok(fs.existsSync(old));
    await settleUpgrade(folders, systemClock.now() + DAYS_8);
    assert.ok(!fs.existsSync(old));
  });

  test('one that fails changes nothing', async (t) => {
    const { programs, rows, folders, making } = await given(t);
    const from = { ...programs, bin: join(folders.home, 'nothing') };
    await assert.rejects(upgradeData(making, { from, to: programs }), /upgrade.* ended with 1/);
    assert.ok(!fs.existsSync(join(folders.home, 'data.old')));
    assert.equal(await rows(), 1000);
  });

  test('one that was cut off between its last steps is finished by the next start', async (t) => {
    const { rows, folders } = await given(t);
    const [data, whole, old] = ['data', 'data.upgraded', 'data.old'].map((name) => join(folders.home, name));
    fs.cpSync(data as string, old as string, { recursive: true });
    fs.renameSync(data as string, whole as string);
    assert.equal(await rows(), 1000);
  });

  test('where the data are gone no new ones are made', async (t) => {
    const { fixture, database, folders } = await given(t);
    fs.renameSync(join(folders.home, 'data'), join(folders.home, 'elsewhere'));
    const engine = fixture.reopen();
    await assert.rejects(engine.tables(database, new AbortController().signal), (error) => {
      assert.match(`${error}`, /data directory of PostgreSQL is missing/);
      return isAppError(error, 'engine_unavailable');
    });
    assert.ok(!fs.existsSync(join(folders.home, 'data')));
  });
});

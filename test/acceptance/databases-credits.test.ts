/** Databases of every engine whose account runs out of credits: they continue, close, and reopen. */
import assert from 'node:assert/strict';
import { globSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { MongoClient } from 'mongodb';
import { createConnection } from 'mysql2/promise';
import { Client as Postgresql } from 'pg';
import { NO_MARIADB, NO_POSTGRESQL } from '../../scripts/installed.ts';
import { CheckedClient } from '../harness/checked-client.ts';
import type { Account } from '../harness/client.ts';
import { ADMIN_KEY, CloudProcess } from '../harness/cloud-process.ts';
import { eventually } from '../harness/waiting.ts';
import { FAKED_CLOCK, noFakedClock } from './faked-clock.ts';

const MIB = 2 ** 20;
/** Long enough to observe a database in use in it. */
const GRACE_SECONDS = 8;
/** Credits for a GB-hour. */
const PRICE = 100;
const LEFT_MICRO = 200;

/** A session with the users' driver. */
interface Session {
  /** Writes a MiB. */
  add(): Promise<unknown>;
  /** The number of rows. */
  count(): Promise<number>;
  end(): Promise<unknown>;
}

async function postgresql(uri: string): Promise<Session> {
  const driver = new Postgresql(uri);
  driver.on('error', () => {});
  await driver.connect();
  const count = async () => Number((await driver.query('SELECT count(*) AS n FROM t')).rows[0]?.n);
  await driver.query('CREATE TABLE IF NOT EXISTS t (x text); ALTER TABLE t ALTER x SET STORAGE EXTERNAL');
  return {
    count,
    add: () => driver.query(`INSERT INTO t VALUES (repeat('x', ${MIB}))`),
    end: () => driver.end(),
  };
}

async function mysql(uri: string): Promise<Session> {
  const driver = await createConnection(uri);
  driver.on('error', () => {});
  await driver.query('CREATE TABLE IF NOT EXISTS t (x LONGTEXT)');
  const count = async () => {
    const [rows] = await driver.query('SELECT count(*) AS n FROM t');
    return Number((rows as { n: number }[])[0]?.n);
  };
  return {
    count,
    add: () => driver.query(`INSERT INTO t VALUES (repeat('x', ${MIB}))`),
    end: async () => driver.destroy(),
  };
}

async function mongodb(uri: string): Promise<Session> {
  const driver = await new MongoClient(uri, { serverSelectionTimeoutMS: 5000 }).connect();
  const documents = driver.db().collection('t');
  await documents.countDocuments();
  return {
    add: () => documents.insertOne({ x: 'x'.repeat(MIB) }),
    count: () => documents.countDocuments(),
    end: () => driver.close(),
  };
}

const isThere = (name: string) => globSync(`build/programs/${name}-*/usr`).length > 0;
const ENGINES = [
  { engine: 'postgresql', open: postgresql, skip: isThere('postgresql') ? false : NO_POSTGRESQL },
  { engine: 'mysql', open: mysql, skip: isThere('mariadb') ? false : NO_MARIADB },
  { engine: 'mongodb', open: mongodb, skip: false },
] as const;

describe('without credits', { skip: noFakedClock, concurrency: true }, () => {
  let cloud: CloudProcess;
  let anyone: CheckedClient;
  let directory: string;
  before(async () => {
    directory = mkdtempSync(join(tmpdir(), 'cloudlet-clock-'));
    const file = join(directory, 'time');
    writeFileSync(file, '+0\n');
    const env = {
      ...FAKED_CLOCK,
      FAKETIME_TIMESTAMP_FILE: file,
      CLOUDLET_CREDIT_GRACE_SECONDS: String(GRACE_SECONDS),
    };
    cloud = await CloudProcess.start({ dataDir: join(directory, 'data'), env });
    anyone = await CheckedClient.open(cloud.api);
    // Databases cost nothing unless a price is set, which starts with a future hour.
    for (const { engine } of ENGINES) {
      const json = { meter: 'database.storage', engine, price: PRICE };
      await anyone.as(ADMIN_KEY).expect(201, '/api/admin/prices', { json });
    }
    writeFileSync(file, '+3h\n');
  });
  after(async () => {
    await cloud.stop();
    rmSync(directory, { recursive: true });
  });

  const give = (account: Account, amount: number) =>
    anyone
      .as(ADMIN_KEY)
      .expect(200, `/api/admin/accounts/${account.id}/credits`, { json: { amount, reason: 'a test' } });
  const stateIs = (user: CheckedClient, wanted: string) =>
    eventually(`the state ${wanted}`, async () => {
      const { billing_state } = await user.expect(200, '/api/account');
      return billing_state === wanted;
    });
  /** Leaves so few credits that the database uses them up within seconds. */
  async function nearlyRunOut(account: Account, user: CheckedClient): Promise<void> {
    const { credits } = await user.expect(200, '/api/account');
    await give(account, -(Math.round(credits * 1e6) - LEFT_MICRO) / 1e6);
  }
  const seenAs = (user: CheckedClient, path: string, wanted: string) =>
    eventually(`a database that is ${wanted}`, async () => {
      const seen = await user.expect(200, path);
      return seen.state === wanted && seen;
    });

  for (const { engine, open, skip } of ENGINES)
    test(`${engine} is charged, goes on in grace, closes, and comes back with credits`, {
      skip,
    }, async () => {
      const account = await anyone.register();
      const user = anyone.as(account.api_key);
      const made = await user.expect(201, '/api/databases', { json: { name: 'shop', engine } });
      const path = `/api/databases/${made.database_id}`;
      const session = await open(made.connection.uri);
      for (let time = 0; time < 2; time++) await session.add();
      await eventually('its size', async () => (await user.expect(200, path)).size_bytes > 2 * MIB);
      const { items } = await user.expect(200, '/api/billing/estimate');
      assert.deepEqual([items.length, items[0].meter], [1, 'database.storage']);
      assert.ok(items[0].quantity > 2 / 1024, `${items[0].quantity} GB-hours an hour`);
      await eventually('its cost', async () => {
        const report = await user.expect(200, '/api/billing/usage');
        return report.items.some((one: { meter: string; cost: number }) => one.cost > 0);
      });

      await nearlyRunOut(account, user);
      await stateIs(user, 'grace');
      assert.equal(await session.count(), 2);
      const more = { json: { name: 'more', engine } };
      await user.refused(402, 'insufficient_credits', ['/api/databases', more]);

      await stateIs(user, 'suspended');
      const { state_reason } = await seenAs(user, path, 'suspended');
      assert.equal(state_reason.code, 'credits_exhausted');
      // Its engine ends open sessions right after.
      const isOver = () =>
        session.count().then(
          () => false,
          () => true,
        );
      await eventually('the end of the session', isOver);
      await assert.rejects(session.add());
      await assert.rejects(open(made.connection.uri));
      await session.end();

      await give(account, 10);
      await seenAs(user, path, 'ready');
      const again = await open(made.connection.uri);
      assert.equal(await again.count(), 2);
      await again.add();
      assert.equal(await again.count(), 3);
      await again.end();
    });
});

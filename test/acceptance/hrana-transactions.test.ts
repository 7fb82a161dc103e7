/** Transactions that a statement of their user ends, and the conditions of batches, over each protocol. */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { createClient, type Client as Driver, type InStatement } from '@libsql/client';
import * as hrana from '@libsql/hrana-client';
import { Client } from '../harness/client.ts';
import type { CloudProcess } from '../harness/cloud-process.ts';
import { sharedCloud } from '../harness/shared-cloud.ts';
import { addressOf, type Database, newDatabase, openStream, RawSocket } from './hrana-kit.ts';

let cloud: CloudProcess;
let shop: Database;
before(async () => {
  cloud = await sharedCloud();
  shop = await newDatabase(await new Client(cloud.api).newUser(), 'shop');
});

const closed = { code: 'TRANSACTION_CLOSED' };
const FIRST = 'INSERT INTO t VALUES (1), (2), (3)';
const LATER = 'INSERT INTO t VALUES (4), (5)';
const DUPLICATE = 'INSERT OR ROLLBACK INTO t VALUES (1)';

for (const scheme of ['http', 'ws'] as const) {
  describe(`a transaction of the official driver over ${scheme}`, () => {
    let driver: Driver;
    before(() => {
      driver = createClient({ url: addressOf(shop, scheme), authToken: shop.connection.password });
    });
    after(() => driver.close());
    const empty = () => driver.batch(['DROP TABLE IF EXISTS t', 'CREATE TABLE t (a UNIQUE)'], 'write');
    const count = async () => (await driver.execute('SELECT count(*) AS n FROM t')).rows[0]?.n;

    for (const [name, statement] of Object.entries({
      ROLLBACK: 'ROLLBACK',
      'OR ROLLBACK': DUPLICATE,
      'ROLLBACK with a comment': '-- so\n rollback /* it */ transaction;',
    })) {
      test(`${name} ends it, and nothing later is saved`, async () => {
        await empty();
        const transaction = await driver.transaction('write');
        const [first, end, later] = [FIRST, statement, LATER].map((sql) => transaction.execute(sql));
        await first;
        await end?.catch(() => {});
        await assert.rejects(Promise.resolve(later), closed);
        await assert.rejects(transaction.batch([LATER, LATER]), closed);
        await assert.rejects(transaction.executeMultiple(`${LATER}; SELECT 1`), closed);
        await assert.rejects(transaction.commit());
        transaction.close();
        assert.equal(await count(), 0);
      });
    }

    test('OR ROLLBACK as its first statement ends it', async () => {
      await empty();
      await driver.execute(FIRST);
      const transaction = await driver.transaction('write');
      const [first, later] = [DUPLICATE, LATER].map((sql) => transaction.execute(sql));
      await assert.rejects(Promise.resolve(first), { code: 'SQLITE_CONSTRAINT' });
      await assert.rejects(Promise.resolve(later), closed);
      transaction.close();
      assert.equal(await count(), 3);
    });

    test('a ROLLBACK in its script or in its batch ends it', async () => {
      await empty();
      const script = await driver.transaction('write');
      await assert.rejects(script.executeMultiple(`${FIRST}; ROLLBACK; ${LATER}`), closed);
      await assert.rejects(script.execute(LATER), closed);
      script.close();
      const batch = await driver.transaction('write');
      await assert.rejects(batch.batch([FIRST, 'ROLLBACK', LATER]), closed);
      await assert.rejects(batch.execute(LATER), closed);
      batch.close();
      const statements: InStatement[] = [FIRST, 'ROLLBACK', LATER];
      await assert.rejects(driver.batch(statements, 'write'), closed);
      await assert.rejects(
        driver.batch([FIRST, FIRST.replace('INSERT', 'INSERT OR ROLLBACK'), LATER], 'write'),
      );
      assert.equal(await count(), 0);
    });

    test('an error, a savepoint and the next transaction end nothing', async () => {
      await empty();
      const transaction = await driver.transaction('write');
      await transaction.execute(FIRST);
      await assert.rejects(transaction.execute('SELECT missing'));
      for (const sql of ['SAVEPOINT s', LATER, 'ROLLBACK TO s', 'RELEASE s']) await transaction.execute(sql);
      await transaction.commit();
      assert.equal(await count(), 3);
      await driver.batch([LATER], 'write');
      await driver.migrate(['INSERT INTO t VALUES (6)']);
      await driver.executeMultiple('BEGIN; INSERT INTO t VALUES (7); ROLLBACK; INSERT INTO t VALUES (8);');
      assert.equal(await count(), 7);
    });
  });
}

/** A condition; the lists show whether it is true after a successful and a failed step. */
type Given = { readonly type: string; readonly [member: string]: unknown };
const OK: Given = { type: 'ok', step: 0 };
const FAILED: Given = { type: 'ok', step: 1 };
const AUTOCOMMIT: Given = { type: 'is_autocommit' };
const not = (cond: Given): Given => ({ type: 'not', cond });
const and = (...conds: Given[]): Given => ({ type: 'and', conds });
const or = (...conds: Given[]): Given => ({ type: 'or', conds });
const CONDITIONS: readonly (readonly [given: Given, holds: boolean])[] = [
  [OK, true],
  [FAILED, false],
  [{ type: 'error', step: 0 }, false],
  [{ type: 'error', step: 1 }, true],
  [not(OK), false],
  [not(FAILED), true],
  [and(), true],
  [or(), false],
  [not(and()), false],
  [not(or()), true],
  [and(OK, not(FAILED)), true],
  [and(OK, FAILED), false],
  [or(FAILED, OK), true],
  [or(FAILED, and(or())), false],
];
const OF_VERSION_3: typeof CONDITIONS = [
  [AUTOCOMMIT, true],
  [not(AUTOCOMMIT), false],
  [not(not(AUTOCOMMIT)), true],
  [and(OK, not(AUTOCOMMIT)), false],
  [and(OK, or(FAILED, AUTOCOMMIT)), true],
];
/** In a transaction these are inverted. */
const INSIDE = OF_VERSION_3.map(([given, holds]) => [given, !holds] as const);

/** The conditions that are true, by whether their steps ran. */
type Ask = (conditions: readonly Given[], isInside: boolean) => Promise<readonly boolean[]>;

const stmt = (sql: string) => ({ sql });
const stepsOf = (conditions: readonly Given[], isInside: boolean) => [
  { stmt: stmt(isInside ? 'BEGIN' : 'SELECT 1') },
  { stmt: stmt('SELECT missing') },
  ...conditions.map((condition) => ({ condition, stmt: stmt('SELECT 1') })),
];

async function post(path: string, body: unknown): Promise<Record<string, unknown>[]> {
  const answer = await fetch(`${addressOf(shop, 'http')}${path}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${shop.connection.password}` },
    body: JSON.stringify(body),
  });
  return (await answer.text())
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line));
}

const ranOf = (result: { step_results: unknown[] }) =>
  result.step_results.slice(2).map((each) => each !== null);

const byPipeline =
  (version: string): Ask =>
  async (conditions, isInside) => {
    const batch = { steps: stepsOf(conditions, isInside) };
    const [answer] = await post(`${version}/pipeline`, {
      requests: [{ type: 'batch', batch }, { type: 'close' }],
    });
    // biome-ignore lint/suspicious/noExplicitAny: an answer read from outside
    return ranOf((answer as any).results[0].response.result);
  };

const byCursor: Ask = async (conditions, isInside) => {
  const entries = await post('v3/cursor', { batch: { steps: stepsOf(conditions, isInside) } });
  const begun = new Set(entries.filter(({ type }) => type === 'step_begin').map(({ step }) => step));
  return conditions.map((_, index) => begun.has(index + 2));
};

const bySocket =
  (protocol: string): Ask =>
  async (conditions, isInside) => {
    const socket = new RawSocket(shop, protocol);
    await socket.logIn();
    socket.ask(1, openStream(1));
    socket.ask(2, { type: 'batch', stream_id: 1, batch: { steps: stepsOf(conditions, isInside) } });
    const [, answer] = await socket.next(2);
    socket.webSocket.close();
    return ranOf(answer.response.result);
  };

const byClient =
  (open: () => hrana.Client, isCursor: boolean): Ask =>
  async (conditions, isInside) => {
    const client = open();
    await client.getVersion();
    const stream = client.openStream();
    const batch = stream.batch(isCursor);
    const steps = stepsOf([], isInside).map(({ stmt: { sql } }) => {
      const step = batch.step();
      step.query(sql).catch(() => {});
      return step;
    });
    const made = (given: Given): hrana.BatchCond => {
      const { type, step, cond, conds } = given as Given & { step: number; cond: Given; conds: Given[] };
      if (type === 'not') return hrana.BatchCond.not(made(cond));
      if (type === 'is_autocommit') return hrana.BatchCond.isAutocommit(batch);
      if (type === 'and' || type === 'or') return hrana.BatchCond[type](batch, conds.map(made));
      return hrana.BatchCond[type as 'ok' | 'error'](steps[step] as hrana.BatchStep);
    };
    const results = conditions.map((given) => batch.step().condition(made(given)).query('SELECT 1'));
    await batch.execute();
    const ran = (await Promise.all(results)).map((rows) => rows !== undefined);
    client.close();
    return ran;
  };

const { openHttp, openWs } = hrana;
const http = () => openHttp(addressOf(shop, 'http'), shop.connection.password, undefined, undefined, 3);
const ws = () => openWs(addressOf(shop, 'ws'), shop.connection.password, 3);
const WAYS: Readonly<Record<string, readonly [version: 1 | 2 | 3, ask: Ask]>> = {
  'v2/pipeline': [2, byPipeline('v2')],
  'v3/pipeline': [3, byPipeline('v3')],
  'v3/cursor': [3, byCursor],
  hrana1: [1, bySocket('hrana1')],
  hrana2: [2, bySocket('hrana2')],
  hrana3: [3, bySocket('hrana3')],
  'v3-protobuf/pipeline': [3, byClient(http, false)],
  'v3-protobuf/cursor': [3, byClient(http, true)],
  'hrana3-protobuf': [3, byClient(ws, false)],
  'hrana3-protobuf by a cursor': [3, byClient(ws, true)],
};

for (const [name, [version, ask]] of Object.entries(WAYS)) {
  test(`conditions of every kind decide which steps run: ${name}`, async () => {
    // Hrana 1 and 2 have no `is_autocommit`.
    const given = version === 3 ? [...CONDITIONS, ...OF_VERSION_3] : CONDITIONS;
    const outside = await ask(
      given.map(([condition]) => condition),
      false,
    );
    assert.deepEqual(
      outside,
      given.map(([, holds]) => holds),
    );
    if (version < 3) return;
    const inside = await ask(
      INSIDE.map(([condition]) => condition),
      true,
    );
    assert.deepEqual(
      inside,
      INSIDE.map(([, holds]) => holds),
    );
  });
}

/** Contract §7: the usage report of an account, and the operator's report of all accounts. */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { after, describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import Database from 'better-sqlite3';
import { CheckedClient } from '../harness/checked-client.ts';
import { ADMIN_KEY, CloudProcess } from '../harness/cloud-process.ts';
import { runCloudlet } from '../harness/command.ts';
import { eventually } from '../harness/waiting.ts';

const cloud = await CloudProcess.start();
after(() => cloud.stop());
const anyone = await CheckedClient.open(cloud.api);
const admin = anyone.as(ADMIN_KEY);
const USAGE = '/api/billing/usage';

async function newUser() {
  const account = await anyone.register();
  return { id: account.id as number, client: anyone.as(account.api_key) };
}

/** The beginning of the next hour, as in records. */
function nextHour(hours = 1): string {
  const ms = Math.floor(performance.timeOrigin / 3_600_000 + performance.now() / 3_600_000 + hours);
  return new Date(ms * 3_600_000).toISOString().slice(0, 19).replace('T', ' ');
}

describe('the usage report', () => {
  test('of a new account has what it was given and nothing else', async () => {
    const { id, client } = await newUser();
    const report = await client.expect(200, USAGE);
    const { account_id, plan, currency, credits, total_cost, items } = report;
    assert.deepEqual([account_id, plan, currency, total_cost, items], [id, 'free', 'credits', 0, []]);
    assert.deepEqual(credits, { granted: 10, used: 0, balance: 10, held: 0 });
    assert.match(report.period.from, /^\d{4}-\d\d-01 00:00:00$/);
    assert.match(report.period.to, /^\d{4}-\d\d-01 00:00:00$/);
    assert.equal(report.daily.at(-1).date, report.as_of.slice(0, 10));
  });

  test('shows what is stored and sent, by the name of the bucket', async () => {
    const { client } = await newUser();
    await client.expect(201, '/api/buckets', { json: { name: 'reported' } });
    const { body } = await client.upload('reported', 'a.bin', 'x'.repeat(100_000));
    await client.call(`/api/storage/${body.object_id}/download`);
    let items: { meter: string; resource_id: string; quantity: number }[] = [];
    for (let i = 0; i < 100 && items.length < 2; i++) {
      await sleep(100);
      items = (await client.expect(200, USAGE)).items;
    }
    assert.deepEqual(items.map(({ meter }) => meter).sort(), ['egress', 'storage']);
    for (const { resource_id, quantity } of items) {
      assert.equal(resource_id, 'reported');
      assert.ok(quantity > 0);
    }
  });

  test('comes as a table when it is asked for', async () => {
    const { client } = await newUser();
    const response = await client.fetch(USAGE, { headers: { accept: 'text/csv' } });
    assert.equal(response.status, 200);
    assert.match(response.headers.get('content-type') ?? '', /^text\/csv; charset=utf-8/);
    assert.match(response.headers.get('vary') ?? '', /accept/i);
    const head = 'resource_type,resource_id,name,meter,quantity,unit,unit_price,cost\r\n';
    assert.equal(await response.text(), head);
    const json = await client.fetch(USAGE, { headers: { accept: '*/*' } });
    assert.match(json.headers.get('content-type') ?? '', /^application\/json/);
    assert.match(json.headers.get('vary') ?? '', /accept/i);
  });

  test('refuses what is no period', async () => {
    const { client } = await newUser();
    for (const query of ['from=x', 'to=2026-02-30', 'from=2026-02-02&to=2026-02-01', 'from=2020-01-01'])
      await client.refused(400, 'invalid_request', [`${USAGE}?${query}`]);
    const report = await client.expect(200, `${USAGE}?from=2026-02-01&to=2026-02-03T12:30:00Z`);
    assert.deepEqual(report.period, { from: '2026-02-01 00:00:00', to: '2026-02-03 13:00:00' });
    assert.equal(report.daily.length, 3);
  });

  test('needs the scope billing:read', async () => {
    const { client } = await newUser();
    const keyOf = async (scopes: string[]) =>
      (await client.expect(201, '/api/account/access-keys', { json: { name: 'k', scopes } })).api_key;
    await client.as(await keyOf(['storage:*'])).refused(403, 'scope_required', [USAGE]);
    await client.as(await keyOf(['billing:read'])).expect(200, USAGE);
  });
});

describe('the ledger of an account', () => {
  test('is its own, newest first, in pages, and adds up to the balance', async () => {
    const { id, client } = await newUser();
    for (const amount of [1, 2.5, -0.5, 0.000001])
      await admin.expect(200, `/api/admin/accounts/${id}/credits`, { json: { amount, reason: 'test' } });
    const whole = await client.expect(200, '/api/billing/ledger');
    assert.deepEqual(
      whole.map((entry: { amount: number }) => entry.amount),
      [0.000001, -0.5, 2.5, 1, 10],
    );
    assert.deepEqual(
      whole.map((entry: { balance: number }) => entry.balance),
      [13.000001, 13, 13.5, 11, 10],
    );
    const paged: unknown[] = [];
    for (let url: string | undefined = '/api/billing/ledger?limit=2'; url !== undefined; ) {
      const { body, headers } = await client.call(url);
      assert.ok(body.length <= 2);
      paged.push(...body);
      url = /<([^>]+)>; rel="next"/.exec(headers.get('link') ?? '')?.[1]?.replace(/^https?:\/\/[^/]+/, '');
    }
    assert.deepEqual(paged, whole);
    await client.refused(400, 'invalid_cursor', ['/api/billing/ledger?limit=2&cursor=x']);
    const statement = await admin.expect(200, `/api/admin/accounts/${id}/statement`);
    assert.deepEqual(statement.entries, [...whole].reverse());
    assert.deepEqual([statement.opening_balance, statement.closing_balance], [0, 13.000001]);
    const before = await admin.expect(200, `/api/admin/accounts/${id}/statement?month=2020-01`);
    assert.deepEqual([before.opening_balance, before.entries, before.closing_balance], [0, [], 0]);
    await admin.refused(404, 'account_not_found', ['/api/admin/accounts/999999/statement']);
    await admin.refused(400, 'invalid_request', [`/api/admin/accounts/${id}/statement?month=2020-13`]);
  });
});

describe('prices', () => {
  test('are those of the catalogue until the operator sets one for an hour to come', async () => {
    const { client } = await newUser();
    const find = async (meter: string, type: string | null) => {
      const list: { meter: string; instance_type: string | null }[] = await client.expect(
        200,
        '/api/billing/prices',
      );
      return list.find((price) => price.meter === meter && price.instance_type === type);
    };
    const micro = await find('vm.time', 't2.micro');
    assert.deepEqual(micro, {
      meter: 'vm.time',
      resource_type: 'vm',
      instance_type: 't2.micro',
      unit: 'hour',
      engine: null,
      price: 0.0116,
      price_per_month: 8.468,
      effective_from: null,
      upcoming: [],
    });
    const json = { meter: 'storage', price: 0.000031507, effective_from: nextHour(2) };
    const set = await admin.expect(201, '/api/admin/prices', { json });
    assert.deepEqual(set, {
      meter: 'storage',
      instance_type: null,
      plan: null,
      unit: 'GB-hour',
      engine: null,
      price: 0.000031507,
      effective_from: json.effective_from,
    });
    const storage = await find('storage', null);
    assert.deepEqual(storage, {
      meter: 'storage',
      resource_type: 'bucket',
      instance_type: null,
      unit: 'GB-hour',
      price: 0,
      price_per_month: 0,
      engine: null,
      effective_from: null,
      upcoming: [{ price: 0.000031507, effective_from: json.effective_from }],
    });
    assert.ok((await admin.expect(200, '/api/admin/prices')).length >= 1);
    const forSqlite = { meter: 'database.storage', engine: 'sqlite', price: 0.0002 };
    const ofSqlite = await admin.expect(201, '/api/admin/prices', { json: forSqlite });
    assert.deepEqual([ofSqlite.engine, ofSqlite.instance_type, ofSqlite.unit], ['sqlite', null, 'GB-hour']);
  });

  test('that cannot be are refused', async () => {
    const cases = [
      { meter: 'storage', price: -1 },
      { meter: 'storage', price: 1e9 },
      { meter: 'storage', price: 1e-10 },
      { meter: 'storage', price: '1' },
      { meter: 'nothing', price: 1 },
      { meter: 'vm.time', price: 1 },
      { meter: 'vm.time', price: 1, instance_type: 't9.none' },
      { meter: 'storage', price: 1, instance_type: 't2.micro' },
      { meter: 'database.storage', price: 1 },
      { meter: 'database.storage', price: 1, engine: 'oracle' },
      { meter: 'vm.time', price: 1, instance_type: 't2.micro', engine: 'sqlite' },
      { meter: 'storage', price: 1, plan: 'no-such-plan' },
      { meter: 'storage', price: 1, effective_from: nextHour(0) },
      { meter: 'storage', price: 1, effective_from: nextHour(2).replace(':00:00', ':30:00') },
    ];
    for (const json of cases) await admin.refused(400, 'invalid_request', ['/api/admin/prices', { json }]);
  });
});

test('an estimate of nothing is nothing, and the revenue of no use too', async () => {
  const { client } = await newUser();
  const estimate = await client.expect(200, '/api/billing/estimate');
  assert.deepEqual([estimate.per_month, estimate.days_left, estimate.spendable], [0, null, 10]);
  const { total } = await admin.expect(200, '/api/admin/revenue?from=2026-01-01&to=2026-01-02');
  assert.deepEqual(total, { compute: 0, storage: 0, egress: 0, databases: 0, total: 0, written_off: 0 });
});

describe('cloudlet ledger verify', () => {
  const verify = (...args: string[]) =>
    runCloudlet(['ledger', 'verify', ...args], { env: { CLOUDLET_DATA_DIR: cloud.dataDir } });

  test('finds nothing wrong with a running cloud', async () => {
    const { code, stdout } = await verify();
    assert.equal(code, 0, stdout);
    const [, head = ''] = /^\d+ transfers verified.*; head (\d+:[0-9a-f]{64})$/m.exec(stdout) ?? [];
    assert.equal((await verify('--head', head)).code, 0);
    assert.equal((await verify('--head', 'x')).code, 2);
    const { components } = await anyone.expect(200, '/api/system/status');
    assert.equal(components.billing.status, 'ok');
  });

  test('names a transfer that was changed, and spending stops until it is mended', async () => {
    const other = await CloudProcess.start();
    try {
      const there = await CheckedClient.open(other.api);
      const { api_key: key } = await there.register();
      await other.crash();
      const tamper = (sql: string) => {
        const database = new Database(join(other.dataDir, 'metadata.db'));
        database.exec(sql);
        database.close();
      };
      const verifyThere = () =>
        runCloudlet(['ledger', 'verify'], { env: { CLOUDLET_DATA_DIR: other.dataDir } });
      const names = ({ code, stdout, stderr }: Awaited<ReturnType<typeof verifyThere>>) => {
        assert.equal(code, 1, stdout + stderr);
        assert.match(stdout, /^inconsistent: transfer 1 \(.+\) was changed$/m);
      };
      tamper(`DROP TRIGGER ledger_no_update;
        UPDATE ledger_transfers SET reference = reference || 'x' WHERE seq = 1`);
      names(await verifyThere());
      await other.start();
      const user = (await CheckedClient.open(other.api)).as(key);
      for (let i = 0; ; i++) {
        const operator = user.as(ADMIN_KEY);
        const { status, components, alarms } = await operator.expect(200, '/api/system/status');
        if (components.billing.status === 'degraded') {
          assert.equal(status, 'degraded');
          assert.match(alarms[0].detail, /transfer 1/);
          const { alarms: told } = await user.expect(200, '/api/system/status');
          assert.deepEqual([told.length, told[0].code], [1, 'billing_inconsistent']);
          assert.doesNotMatch(told[0].detail, /transfer/);
          break;
        }
        assert.ok(i < 100, 'no alarm');
        await sleep(100);
      }
      await user.refused(503, 'billing_inconsistent', ['/api/buckets', { json: { name: 'refused' } }]);
      await user.expect(200, USAGE);
      names(await verifyThere());
      tamper("UPDATE ledger_transfers SET reference = rtrim(reference, 'x') WHERE seq = 1");
      assert.equal((await verifyThere()).code, 0);
      await eventually('the alarm ended', async () => {
        const { components } = await user.expect(200, '/api/system/status');
        return components.billing.status === 'ok';
      });
    } finally {
      await other.stop();
    }
  });
});

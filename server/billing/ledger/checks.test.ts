import assert from 'node:assert/strict';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import Database from 'better-sqlite3';
import { Alarms } from '../../platform/alarms.ts';
import { isAppError } from '../../platform/errors.ts';
import { openBillingFixture } from '../../testing/billing-fixture.ts';
import { Checks } from './checks.ts';
import { LedgerWalk } from './checks-walk.ts';
import { LedgerStore } from './ledger-store.ts';

const VM = { vm_id: 'vm-1', account_id: 1, name: 'web', instance_type: 't2.micro', disk_gb: 30 };

async function open(t: TestContext) {
  const fixture = await openBillingFixture();
  t.after(fixture.close);
  const alarms = new Alarms(fixture.clock);
  const settled: number[] = [];
  const unchargeable = new Set<number>();
  const checks = new Checks({
    alarms,
    clock: fixture.clock,
    store: new LedgerStore(fixture.metadata),
    rateUsage: async (accountId) => {
      if (unchargeable.has(accountId)) throw new Error('cannot be charged');
      settled.push(accountId);
      await fixture.rating.rateUsage(accountId);
    },
    onError: (error) => assert.match(String(error), /cannot be charged/),
  });
  const { metadata } = fixture;
  const run = async (sql: string, ...params: (string | number)[]) => {
    await metadata.commit([{ sql, params }]);
  };
  /** A change that anyone with a copy of sqlite3 could make. */
  const tamper = async (sql: string) => {
    const [{ file }] = metadata.all<{ file: string }>('PRAGMA database_list') as [{ file: string }];
    const database = new Database(join(file));
    try {
      database.exec(
        `DROP TRIGGER IF EXISTS ledger_no_update; DROP TRIGGER IF EXISTS ledger_no_delete; ${sql}`,
      );
    } finally {
      database.close();
    }
    // All reads of this turn use one snapshot.
    await new Promise((resolve) => setImmediate(resolve));
  };
  const verify = async () => {
    checks.startVerification();
    await checks.untilIdle();
    return checks.verification().problem;
  };
  /** A running machine, or its row without its usage line. */
  const runs = (startedAt: number | null) =>
    run(
      `INSERT OR REPLACE INTO vms (vm_id, account_id, name, instance_type, region, tags, vcpus, memory_mb,
         disk_gb, price_micro, image_id, ssh_keys, ports, outbound, uuid, mac, state, desired_state,
         state_changed_at, created_at, started_at)
       VALUES ('vm-1', 1, 'web', 't2.micro', 'r', '', 1, 1, 30, 1, 'tiny', '[]', '[]', 0, 'u', 'm',
         '${startedAt === null ? 'stopped' : 'running'}', 'running', 0, 0, ?)`.replace(
        '?',
        startedAt === null ? 'NULL' : String(startedAt),
      ),
    );
  return { fixture, checks, alarms, settled, unchargeable, run, runs, tamper, verify };
}

test('use, ratings, holds and grants keep everything sound', async (t) => {
  const { fixture, checks, alarms, runs, verify } = await open(t);
  const { clock, metadata, usage, holds, rating } = fixture;
  assert.equal(await verify(), null);
  await metadata.commit(usage.vmCreated(VM));
  await runs(clock.now());
  await metadata.commit([...(await holds.place(VM)), ...usage.vmStarted(VM, clock.now())]);
  for (let hour = 0; hour < 3; hour++) {
    clock.advance(3_600_000);
    await Promise.all([rating.rateUsage(1), fixture.grant(1, 5n), checks.check()]);
  }
  await checks.check();
  assert.deepEqual(alarms.list(), []);
  checks.assertSound();
  assert.equal(await verify(), null);
  const { checked, head } = checks.verification();
  assert.equal(checked, head.seq);
});

/** The damage, and the text of the alarm about it. */
const BREAKS: readonly (readonly [string, RegExp])[] = [
  [
    'UPDATE accounts SET credits_micro = credits_micro + 1',
    /account 1 shows 10000005 micro-credits, .* 10000004/,
  ],
  [
    'UPDATE billing_accounts SET held_micro = 1',
    /account 1 shows 1 micro-credits on hold, but its transfers sum up to 0/,
  ],
  [
    `INSERT INTO holds VALUES ('vm-9', 1, 7, 0)`,
    /account 1 shows 0 micro-credits on hold, but its holds sum up to 7/,
  ],
  [
    `INSERT INTO usage_windows VALUES (1, 0, 'egress', '7', 'b', '', 1, 1, 9)`,
    /the usage of account 1 cost 9 micro-credits, but 0 were booked/,
  ],
  ['UPDATE ledger_transfers SET hash = hash || hash WHERE seq = 2', /transfer 2 \(grant-1-1\) was changed/],
  ['DELETE FROM ledger_transfers WHERE seq = 2', /transfer 2 is missing/],
];

test('whatever is broken raises the alarm within a minute, and stops spending until it is mended', async (t) => {
  for (const [sql, words] of BREAKS) {
    const { fixture, checks, alarms, tamper, verify } = await open(t);
    await fixture.grant(1, 4n);
    assert.equal(await verify(), null, sql);
    await tamper(sql);
    await checks.check();
    assert.match(alarms.list()[0]?.detail ?? '', words, sql);
    assert.throws(
      () => checks.assertSound(),
      (error) => isAppError(error, 'billing_inconsistent'),
    );
    assert.match((await verify()) ?? '', /./, sql);
  }
  const { checks, tamper, alarms, verify } = await open(t);
  await verify();
  await tamper('UPDATE accounts SET credits_micro = credits_micro + 1');
  await checks.check();
  assert.equal(alarms.list().length, 1);
  await tamper('UPDATE accounts SET credits_micro = credits_micro - 1');
  await checks.check();
  assert.deepEqual(alarms.list(), []);
  checks.assertSound();
});

test('an old row that is changed is found by the whole walk', async (t) => {
  const { fixture, checks, alarms, tamper, verify } = await open(t);
  for (let i = 0; i < 20; i++) await fixture.grant(1, 4n);
  assert.equal(await verify(), null);
  await tamper(`UPDATE ledger_transfers SET reference = 'other' WHERE seq = 5`);
  await checks.check();
  assert.deepEqual(alarms.list(), [], 'each minute only what is new is walked');
  assert.match((await verify()) ?? '', /transfer 5 \(grant-1-4\) was changed/);
  assert.equal(alarms.list().length, 1);
  await checks.check();
  assert.equal(alarms.list().length, 1, 'until a whole walk finds nothing');
  await tamper(`UPDATE ledger_transfers SET reference = 'test' WHERE seq = 5`);
  assert.equal(await verify(), null);
  assert.deepEqual(alarms.list(), []);
});

test('a head that was noted finds transfers cut off the end, and a wrong note stops nothing', async (t) => {
  const { fixture, checks, alarms, tamper, verify } = await open(t);
  await fixture.grant(1, 4n);
  await verify();
  const { head } = checks.verification();
  const anchored = async (seq: bigint, hash: string) => {
    checks.startVerification({ seq, hash });
    assert.throws(
      () => checks.startVerification(),
      (error) => isAppError(error, 'job_running'),
    );
    await checks.untilIdle();
    return checks.verification().problem;
  };
  assert.equal(await anchored(BigInt(head.seq), head.hash), null);
  assert.match(
    (await anchored(1n, head.hash)) ?? '',
    /transfer 1 \(grant-1-0\) differs from the one recorded/,
  );
  await tamper('DELETE FROM ledger_transfers WHERE seq = 2; UPDATE accounts SET credits_micro = 10000000');
  assert.match((await anchored(2n, head.hash)) ?? '', /transfers 2 to 2 are missing/);
  assert.deepEqual(alarms.list(), []);
});

test('a machine that runs is metered, one that does not is not, and both are rated', async (t) => {
  const { fixture, checks, alarms, settled, unchargeable, runs } = await open(t);
  const { clock, metadata, usage } = fixture;
  await runs(clock.now());
  await checks.check();
  assert.match(alarms.list()[0]?.detail ?? '', /machine vm-1 is running but not metered/);
  await metadata.commit([...usage.vmCreated(VM), ...usage.vmStarted(VM, clock.now())]);
  await checks.check();
  assert.deepEqual(alarms.list(), []);
  clock.advance(3 * 3_600_000);
  await checks.check();
  assert.deepEqual([settled, alarms.list()], [[1], []], 'what is late is charged, not an alarm');
  unchargeable.add(1);
  clock.advance(3 * 3_600_000);
  await checks.check();
  assert.match(alarms.list()[0]?.detail ?? '', /account 1 has not been charged since/);
  unchargeable.clear();
  await checks.check();
  assert.deepEqual(alarms.list(), []);
  await runs(null);
  await checks.check();
  assert.match(alarms.list()[0]?.detail ?? '', /machine vm-1 is metered but not running/);
});

test('a walk ends when it is told to, as at the end of Cloudlet', async (t) => {
  const { fixture } = await open(t);
  const signal = AbortSignal.abort(new Error('told to'));
  const walk = new LedgerWalk({ store: new LedgerStore(fixture.metadata), signal });
  await assert.rejects(walk.wholeProblem(), /told to/);
});

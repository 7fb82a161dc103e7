import assert from 'node:assert/strict';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import Database from 'better-sqlite3';
import { SqliteThreads } from '../../drivers/metadata-sqlite/sqlite-threads.ts';
import { isAppError } from '../../platform/errors.ts';
import { openBillingHouse } from '../../testing/billing-house.ts';
import { LedgerWalk } from './checks-walk.ts';
import { transferStatements } from './ledger.ts';
import { CheckStore } from './ledger-store.ts';

const TRANSFERS = 60;

/** Sixty transfers between four accounts, use and write-offs among them; walked by threads in parts. */
async function open(t: TestContext) {
  const house = await openBillingHouse();
  const { directory, metadata } = house;
  const threads = new SqliteThreads({ directory });
  t.after(async () => {
    await threads.close();
    await house.close();
  });
  const others = await Promise.all([house.addAccount(0n), house.addAccount(0n), house.addAccount(0n)]);
  for (let i = 2; i <= TRANSFERS; i++) {
    const account = `account:${i % 4 === 0 ? 1 : others[(i % 4) - 1]}`;
    const kinds = [
      { debit: 'system:grants', credit: account, code: 'grant' },
      { debit: 'account:1', credit: 'system:revenue-compute', code: 'usage' },
      { debit: 'account:1', credit: account === 'account:1' ? 'held:1' : account, code: 'test' },
    ] as const;
    const kind = kinds[i % 3] ?? kinds[0];
    const transfer = { ...kind, id: `t-${i}`, amountMicro: BigInt(i), reference: 'ÿ 🙂', at: i };
    if (kind.credit !== 'held:1') await metadata.commit(transferStatements(transfer));
    else await house.grant(1, BigInt(i));
  }
  const store = new CheckStore(metadata);
  const tamper = (sql: string) => {
    const database = new Database(join(directory, 'metadata.db'));
    try {
      database.exec(
        `DROP TRIGGER IF EXISTS ledger_no_update; DROP TRIGGER IF EXISTS ledger_no_delete; ${sql}`,
      );
    } finally {
      database.close();
    }
  };
  const inParts = () => new LedgerWalk({ store, threads, leastPartRows: 1 });
  return { ...house, threads, store, tamper, inParts };
}

test('a walk by threads finds the same head and the same balances as one that takes row after row', async (t) => {
  const { store, threads, inParts, grant } = await open(t);
  const alone = new LedgerWalk({ store });
  const parts: unknown[] = [];
  const walk = new LedgerWalk({
    store,
    leastPartRows: 1,
    threads: {
      threads: 4,
      run: (module, input) => {
        parts.push(input);
        return threads.run(module, input);
      },
    },
  });
  assert.equal(await walk.balanceProblem(), null);
  assert.equal(await alone.balanceProblem(), null);
  assert.deepEqual(walk.head, alone.head);
  assert.equal(walk.head.seq, BigInt(TRANSFERS));
  assert.deepEqual(parts, [
    { from: 1, to: 15 },
    { from: 16, to: 30 },
    { from: 31, to: 45 },
    { from: 46, to: 60 },
  ]);
  await grant(1, 5n);
  assert.equal(await inParts().balanceProblem(), null);
  assert.equal(await walk.balanceProblem(), null, 'and goes on where it ended');
  assert.equal(walk.head.seq, BigInt(TRANSFERS + 1));
});

const ROW = (seq: number) => `UPDATE ledger_transfers SET reference = 'other' WHERE seq = ${seq}`;

/** What somebody does to the rows, and what is said of it; 30 is the last of the first part of two. */
const BREAKS: readonly (readonly [string, RegExp, number])[] = [
  [ROW(7), /transfer 7 \(t-7\) was changed/, 6],
  [`${ROW(55)}; ${ROW(40)}; ${ROW(29)}`, /transfer 29 \(t-29\) was changed/, 28],
  [ROW(31), /transfer 31 \(t-31\) was changed/, 30],
  ["UPDATE ledger_transfers SET hash = 'x' WHERE seq = 30", /transfer 30 \(t-30\) was changed/, 29],
  ['DELETE FROM ledger_transfers WHERE seq = 30', /transfer 30 is missing/, 29],
  ['DELETE FROM ledger_transfers WHERE seq = 31', /transfer 31 is missing/, 30],
  ['DELETE FROM ledger_transfers WHERE seq = 1', /transfer 1 is missing/, 0],
  ["UPDATE ledger_transfers SET prev_hash = 'x' WHERE seq = 31", /transfer 31 \(t-31\) was changed/, 30],
];

test('the first of all that was tampered with is named, in whichever part it is', async (t) => {
  for (const [sql, words, sound] of BREAKS) {
    const { tamper, inParts } = await open(t);
    tamper(sql);
    const walk = inParts();
    assert.match((await walk.balanceProblem()) ?? '', words, sql);
    assert.equal(walk.head.seq, BigInt(sound), sql);
  }
});

test('a balance that was tampered with is found by what the threads added up', async (t) => {
  const { tamper, inParts } = await open(t);
  tamper('UPDATE accounts SET credits_micro = credits_micro + 1 WHERE id = 3');
  assert.match((await inParts().balanceProblem()) ?? '', /account 3 shows \d+ micro-credits/);
});

test('a walk whose threads are ended is broken off', async (t) => {
  const { threads, inParts } = await open(t);
  const broken = assert.rejects(inParts().balanceProblem(), (error) => isAppError(error, 'shutting_down'));
  // So that the threads are there.
  await new Promise((resolve) => setImmediate(resolve));
  await threads.close();
  await broken;
});

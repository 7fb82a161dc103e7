import assert from 'node:assert/strict';
import { copyFileSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import Database from 'better-sqlite3';
import fc from 'fast-check';
import type { SqliteMetadata } from '../../drivers/metadata-sqlite/sqlite-metadata.ts';
import { CommitRejected } from '../../metadata/metadata.ts';
import { Alarms } from '../../platform/alarms.ts';
import { systemClock } from '../../platform/clock.ts';
import { cases } from '../../testing/cases.ts';
import { openTestMetadata } from '../../testing/new-metadata.ts';
import { Ledger, type Transfer, transferStatements } from './ledger.ts';

interface Fixture {
  readonly directory: string;
  readonly metadata: SqliteMetadata;
  readonly ledger: Ledger;
  readonly book: (transfer: Partial<Transfer> & Pick<Transfer, 'id'>) => Promise<unknown>;
  readonly balance: (account: number) => bigint;
  readonly held: (account: number) => bigint;
}

const open = (directory: string) =>
  openTestMetadata({ directory, clock: systemClock, alarms: new Alarms(systemClock) });

const newAccount = (name: string) => ({
  sql: "INSERT INTO accounts (username, email, password_hash, created_at) VALUES (?, 'e', '', 0)",
  params: [name],
});

async function makeFixture(
  t: TestContext | null,
  accounts = 3,
): Promise<Fixture & { done: () => Promise<void> }> {
  const directory = mkdtempSync(join(tmpdir(), 'cloudlet-ledger-'));
  const metadata = await open(directory);
  const done = async () => {
    await metadata.close();
    rmSync(directory, { recursive: true });
  };
  t?.after(done);
  for (let i = 1; i <= accounts; i++) await metadata.commit([newAccount(`a${i}`)]);
  const book: Fixture['book'] = (transfer) =>
    metadata.commit(
      transferStatements({
        debit: 'system:grants',
        credit: 'account:1',
        amountMicro: 10n,
        code: 'test',
        reference: 'a ÿ 🙂 reference',
        at: 1_700_000_000_000,
        ...transfer,
      }),
    );
  const read = (sql: string) => (account: number) =>
    BigInt(metadata.get<{ c: number | bigint }>(sql, account)?.c ?? -1);
  const balance = read('SELECT credits_micro AS c FROM accounts WHERE id = ?');
  const held = read('SELECT held_micro AS c FROM billing_accounts WHERE account_id = ?');
  return { directory, metadata, ledger: new Ledger({ metadata }), book, balance, held, done };
}

test('an empty ledger is sound', async (t) => {
  const { ledger } = await makeFixture(t);
  assert.deepEqual(await ledger.verify(), { problem: null, head: { seq: 0n, hash: '0'.repeat(64) } });
});

test('a transfer moves the cached balances, and SQL hashes as verify does', async (t) => {
  const { ledger, book, balance } = await makeFixture(t);
  await book({ id: 'one', amountMicro: 10_000_000n });
  await book({ id: 'two', debit: 'account:1', credit: 'account:2', amountMicro: 3n });
  await book({ id: 'three', debit: 'account:2', credit: 'system:revenue', amountMicro: 1n });
  assert.deepEqual([balance(1), balance(2)], [9_999_997n, 2n]);
  const { problem, head } = await ledger.verify();
  assert.equal(problem, null);
  assert.equal(head.seq, 3n);
});

test('an account made in the same commit can be given credits', async (t) => {
  const { metadata, ledger, balance } = await makeFixture(t, 0);
  const [made] = await metadata.commit([
    newAccount('new'),
    ...transferStatements({
      id: 'signup',
      debit: 'system:grants',
      credit: { rowIdOf: 0 },
      amountMicro: 10_000_000n,
      code: 'signup_grant',
      reference: '',
      at: 0,
    }),
  ]);
  assert.equal(balance(made?.lastRowId ?? 0), 10_000_000n);
  assert.equal((await ledger.verify()).problem, null);
  const side = metadata.get<{ credit: string }>('SELECT credit FROM ledger_transfers');
  assert.equal(side?.credit, `account:${made?.lastRowId}`);
});

test('an id is booked once, whatever comes with it', async (t) => {
  const { book, balance } = await makeFixture(t);
  const outcomes = await Promise.allSettled(Array.from({ length: 50 }, () => book({ id: 'same' })));
  assert.equal(outcomes.filter((outcome) => outcome.status === 'fulfilled').length, 1);
  for (const outcome of outcomes) {
    if (outcome.status === 'fulfilled') continue;
    assert.ok(outcome.reason instanceof CommitRejected && outcome.reason.reason === 'unique');
  }
  assert.equal(balance(1), 10n);
});

test('64 spenders of a balance for exactly 20: 20 succeed, none goes below zero', async (t) => {
  const { ledger, book, balance } = await makeFixture(t);
  await book({ id: 'fund', amountMicro: 209n });
  const spends = Array.from({ length: 64 }, (_, i) =>
    book({ id: `spend${i}`, debit: 'account:1', credit: 'system:revenue', amountMicro: 10n }),
  );
  const outcomes = await Promise.allSettled(spends);
  assert.equal(outcomes.filter((outcome) => outcome.status === 'fulfilled').length, 20);
  assert.equal(balance(1), 9n);
  assert.equal((await ledger.verify()).problem, null);
});

test('a rolled-back commit leaves no gap in the chain', async (t) => {
  const { ledger, book } = await makeFixture(t);
  await book({ id: 'one' });
  await assert.rejects(book({ id: 'two', debit: 'account:1', credit: 'account:99', amountMicro: 1n }), {
    reason: 'expectation',
  });
  await book({ id: 'three' });
  const { problem, head } = await ledger.verify();
  assert.deepEqual([problem, head.seq], [null, 2n]);
});

test('money beyond 2^53 micro-credits is exact', async (t) => {
  const { ledger, book, balance } = await makeFixture(t);
  for (let i = 0; i < 3; i++) await book({ id: `huge${i}`, amountMicro: 2n ** 53n - 1n });
  await book({ id: 'small', amountMicro: 4n });
  assert.equal(balance(1), 3n * 2n ** 53n + 1n);
  assert.equal((await ledger.verify()).problem, null);
});

test('what cannot be booked is refused before it reaches the database', () => {
  const good = {
    id: 'x',
    debit: 'system:grants',
    credit: 'account:1',
    amountMicro: 1n,
    code: 'c',
    reference: '',
    at: 0,
  };
  transferStatements(good);
  for (const amountMicro of [0n, -1n, 2n ** 60n, 0, 1.5, Number.NaN]) {
    assert.throws(() => transferStatements({ ...good, amountMicro }), RangeError);
  }
  for (const credit of ['account:0', 'account:01', 'account:x', 'user:1', 'system:', 'system:grants']) {
    assert.throws(() => transferStatements({ ...good, credit }), TypeError, credit);
  }
  assert.throws(() => transferStatements({ ...good, reference: 'a\0b' }), { code: 'invalid_request' });
  assert.throws(() => transferStatements({ ...good, reference: '\ud800' }), { code: 'invalid_request' });
});

test('any mix of concurrent transfers ends where a model ends', async () => {
  const side = fc.constantFrom(
    'account:1',
    'account:2',
    'held:1',
    'held:2',
    'system:grants',
    'system:revenue',
  );
  const transfer = fc.record({
    id: fc.integer({ min: 0, max: 30 }).map((n) => `t${n}`),
    debit: side,
    credit: side,
    amountMicro: fc.bigInt({ min: 1n, max: 50n }),
    reference: fc.string({ unit: 'grapheme', maxLength: 20 }).filter((text) => !text.includes('\0')),
  });
  await fc.assert(
    fc.asyncProperty(fc.array(transfer, { maxLength: 60 }), async (transfers) => {
      const fixture = await makeFixture(null);
      try {
        const valid = transfers.filter(({ debit, credit }) => debit !== credit);
        const outcomes = await Promise.allSettled(valid.map((one) => fixture.book(one)));
        // Commits run in the order in which they were queued.
        const balances = new Map<string, bigint>();
        const booked = new Set<string>();
        const of = (name: string) => balances.get(name) ?? 0n;
        for (const [i, { id, debit, credit, amountMicro }] of valid.entries()) {
          const may = !booked.has(id) && (debit.startsWith('system:') || of(debit) >= amountMicro);
          assert.equal(outcomes[i]?.status, may ? 'fulfilled' : 'rejected');
          if (!may) continue;
          booked.add(id);
          balances.set(debit, of(debit) - amountMicro);
          balances.set(credit, of(credit) + amountMicro);
        }
        for (const account of [1, 2]) {
          assert.equal(fixture.balance(account), of(`account:${account}`));
          assert.equal(fixture.held(account), of(`held:${account}`));
        }
        assert.equal((await fixture.ledger.verify()).problem, null);
      } finally {
        await fixture.done();
      }
    }),
    { numRuns: cases(15) },
  );
});

test('a row changed, removed, put in between or cut off, or a balance changed, is named', async (t) => {
  const fixture = await makeFixture(t);
  for (let i = 1; i <= 1100; i++) await fixture.book({ id: `t${i}`, amountMicro: BigInt(i) });
  await fixture.book({ id: 'spend', debit: 'account:1', credit: 'account:2', amountMicro: 7n });
  const anchor = (await fixture.ledger.verify()).head;
  await fixture.metadata.close();
  const path = join(fixture.directory, 'metadata.db');
  const cases: [string, RegExp][] = [
    [
      'UPDATE ledger_transfers SET amount_micro = amount_micro + 1 WHERE seq = 700',
      /^transfer 700 \(t700\) was changed/,
    ],
    ["UPDATE ledger_transfers SET credit = 'account:2' WHERE seq = 1", /^transfer 1 \(t1\) was changed/],
    [
      "UPDATE ledger_transfers SET reference = 'other' WHERE seq = 1101",
      /^transfer 1101 \(spend\) was changed/,
    ],
    [
      'UPDATE ledger_transfers SET created_at = created_at - 1 WHERE seq = 2',
      /^transfer 2 \(t2\) was changed/,
    ],
    ['DELETE FROM ledger_transfers WHERE seq = 501', /^transfer 501 is missing/],
    ['DELETE FROM ledger_transfers WHERE seq = 1', /^transfer 1 is missing/],
    ['DELETE FROM ledger_transfers WHERE seq = 1101', /^transfers 1101 to 1101 are missing/],
    [
      'UPDATE accounts SET credits_micro = credits_micro + 5 WHERE id = 2',
      /^account 2 shows 12 .* sum up to 7$/,
    ],
    [
      'UPDATE billing_accounts SET held_micro = 3 WHERE account_id = 2',
      /^account 2 shows 3 micro-credits on hold, .* sum up to 0$/,
    ],
    [
      'DELETE FROM billing_accounts; DELETE FROM accounts WHERE id = 2',
      /^the sum of all balances differs from the sum of all transfers by -7 /,
    ],
  ];
  for (const [i, [sql, expected]] of cases.entries()) {
    const directory = mkdtempSync(join(fixture.directory, `copy${i}-`));
    copyFileSync(path, join(directory, 'metadata.db'));
    const database = new Database(join(directory, 'metadata.db'));
    database.exec(`DROP TRIGGER ledger_no_update; DROP TRIGGER ledger_no_delete; ${sql}`);
    database.close();
    const metadata = await open(directory);
    const { problem } = await new Ledger({ metadata }).verify(anchor);
    assert.match(problem ?? 'nothing found', expected, sql);
    await metadata.close();
  }
  const sound = await open(fixture.directory);
  assert.equal((await new Ledger({ metadata: sound }).verify(anchor)).problem, null);
  await assert.rejects(sound.commit([{ sql: 'DELETE FROM ledger_transfers', params: [] }]), {
    reason: 'check',
  });
  await assert.rejects(sound.commit([{ sql: "UPDATE ledger_transfers SET code = 'x'", params: [] }]), {
    reason: 'check',
  });
  await sound.close();
});

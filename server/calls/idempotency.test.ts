import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { AppError, isAppError } from '../platform/errors.ts';
import { type AccountFixture, openAccountFixture } from '../testing/account-fixture.ts';
import { Idempotency } from './idempotency.ts';
import { IdempotencyStore } from './idempotency-store.ts';
import { NOBODY, type Principal } from './principal.ts';

/** As the contract says. */
const IDEMPOTENCY_TTL_MS = 24 * 3600 * 1000;

let fixture: AccountFixture;
before(async () => {
  fixture = await openAccountFixture();
});
after(() => fixture.close());

/** As after a restart: only what is stored is known. */
const open = (maxKept = 1000) => {
  const store = new IdempotencyStore(fixture.metadata);
  return new Idempotency({ ...fixture, store, maxKept, ownKeyState: async () => null });
};
const caller: Principal = { ...NOBODY, accountId: 1, via: 'key', credentialId: 'key-1' };
const name = (key: string) => ({ caller, address: '127.0.0.1', route: 'createBucket', key });
const ANSWER = { status: 201, body: '{"secret":"clk_x"}' };

async function first(key: string, fingerprint = 'print'): Promise<void> {
  const attempt = await open().begin(name(key));
  assert.equal(attempt.bindRequest(fingerprint), undefined);
  await attempt.complete(ANSWER);
  attempt.end();
}

const isCode = (code: 'idempotency_in_flight' | 'idempotency_mismatch') => (error: unknown) =>
  isAppError(error, code);

test('the first answer is replayed, also after a restart', async () => {
  await first('a');
  const attempt = await open().begin(name('a'));
  const { status, body } = attempt.bindRequest('print') ?? assert.fail('not known');
  assert.deepEqual({ status, body }, ANSWER);
  attempt.end();
});

test('what was asked is not to be read in what is stored', async () => {
  await first('sealed', 'the fingerprint');
  const rows = fixture.metadata.all<Record<string, unknown>>('SELECT * FROM idempotency');
  const texts = rows.flatMap((row) =>
    Object.values(row).map((value) =>
      value instanceof Uint8Array ? Buffer.from(value).toString('latin1') : value,
    ),
  );
  assert.ok(texts.includes('sealed'));
  assert.ok(!texts.join().includes('fingerprint'));
});

test('another request under the same key is refused; of another key, route or credential it is new', async () => {
  await first('b');
  const again = await open().begin(name('b'));
  assert.throws(() => again.bindRequest('another'), isCode('idempotency_mismatch'));
  again.end();
  const others = [
    name('b2'),
    { ...name('b'), route: 'createVm' },
    { ...name('b'), caller: { ...caller, credentialId: 'key-2' } },
    { ...name('b'), caller: NOBODY },
  ];
  for (const other of others) {
    const attempt = await open().begin(other);
    assert.equal(attempt.bindRequest('another'), undefined);
    attempt.end();
  }
});

test('while the first runs the second is refused, and let in when it has ended without an answer', async () => {
  const idempotency = open();
  const running = await idempotency.begin(name('c'));
  await assert.rejects(idempotency.begin(name('c')), isCode('idempotency_in_flight'));
  running.end();
  const second = await idempotency.begin(name('c'));
  assert.equal(second.bindRequest('print'), undefined);
  second.end();
});

test('the record is stored with the effect or not at all', async () => {
  const attempt = await open().begin(name('d'));
  attempt.bindRequest('print');
  const failing = { sql: 'UPDATE accounts SET plan = plan WHERE id = -1', params: [], expectChanges: 1 };
  await assert.rejects(fixture.metadata.commit([...attempt.record(ANSWER), failing]));
  attempt.end();
  const again = await open().begin(name('d'));
  assert.equal(again.bindRequest('print'), undefined);
  await fixture.metadata.commit(again.record(ANSWER));
  await again.complete(ANSWER);
  again.end();
  const third = await open().begin(name('d'));
  assert.equal(third.bindRequest('print')?.body, ANSWER.body);
  third.end();
});

test('who waited for more after the effect leaves that answer', async () => {
  const attempt = await open().begin(name('later'));
  attempt.bindRequest('print');
  await fixture.metadata.commit(attempt.record(ANSWER));
  await attempt.complete({ status: 200, body: 'complete' });
  attempt.end();
  const again = await open().begin(name('later'));
  assert.equal(again.bindRequest('print')?.body, 'complete');
  again.end();
});

test('answers may hold secrets and are stored sealed', async () => {
  await first('e');
  const sql = 'SELECT sealed_body AS body FROM idempotency WHERE key = ?';
  const row = await fixture.metadata.get<{ body: Uint8Array }>(sql, 'e');
  assert.ok(row && !Buffer.from(row.body).includes('clk_x'));
});

test('after 24 hours the key is free again, swept or not', async () => {
  await first('f');
  fixture.clock.advance(IDEMPOTENCY_TTL_MS - 1);
  const early = await open().begin(name('f'));
  assert.ok(early.bindRequest('print'));
  early.end();
  fixture.clock.advance(1);
  const late = await open().begin(name('f'));
  assert.equal(late.bindRequest('another'), undefined);
  await late.complete(ANSWER);
  late.end();
  fixture.clock.advance(1000);
  await open().sweep();
  const rows = await fixture.metadata.all<{ key: string }>('SELECT key FROM idempotency');
  assert.deepEqual(rows, [{ key: 'f' }]);
});

test('a key whose stored answer cannot be read is not blocked for ever', async () => {
  await first('g');
  const idempotency = new Idempotency({
    ...fixture,
    store: new IdempotencyStore(fixture.metadata),
    maxKept: 1000,
    ownKeyState: async () => null,
    sealer: {
      ...fixture.sealer,
      unseal: () => {
        throw new AppError('data_corrupted', 'damaged');
      },
    },
  });
  for (let i = 0; i < 2; i++) {
    await assert.rejects(idempotency.begin(name('g')), (error) => isAppError(error, 'data_corrupted'));
  }
});

test("an account's oldest answers go when it has too many, and nobody else's", async () => {
  const bounded = open(5);
  const keep = async (who: Principal, key: string) => {
    const attempt = await bounded.begin({ ...name(key), caller: who });
    attempt.bindRequest('print');
    await attempt.complete(ANSWER);
    attempt.end();
    fixture.clock.advance(1);
  };
  const other = { ...caller, accountId: 2, credentialId: 'key-9' };
  for (let i = 0; i < 3; i++) await keep(other, `other-${i}`);
  for (let i = 0; i < 20; i++) await keep({ ...caller, credentialId: `key-${i % 3}` }, `many-${i}`);
  const keysOf = (accountId: number) =>
    fixture.metadata.all<{ key: string }>(
      'SELECT key FROM idempotency WHERE account_id = ? ORDER BY created_at',
      accountId,
    );
  const left = (await keysOf(caller.accountId)).map(({ key }) => key);
  assert.deepEqual(left, ['many-15', 'many-16', 'many-17', 'many-18', 'many-19']);
  assert.equal((await keysOf(2)).length, 3);
});

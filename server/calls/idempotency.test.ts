import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { AppError, isAppError } from '../platform/errors.ts';
import { type AccountFixture, openAccountFixture } from '../testing/account-fixture.ts';
import { Idempotency } from './idempotency.ts';
import { IdempotencyStore } from './idempotency-store.ts';
import { NOBODY, type Principal } from './principal.ts';

/** As in the contract. */
const IDEMPOTENCY_TTL_MS = 24 * 3600 * 1000;

let fixture: AccountFixture;
before(async () => {
  fixture = await openAccountFixture();
});
after(() => fixture.close());

/** As after a restart: only stored state is known. */
const open = (maxKept = 1000, maxKeptBytes = 1e6) => {
  const store = new IdempotencyStore(fixture.metadata);
  return new Idempotency({ ...fixture, store, maxKept, maxKeptBytes, ownKeyState: async () => null });
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
  const rows = await fixture.metadata.all<Record<string, unknown>>('SELECT * FROM idempotency');
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

/** Stores a response of this size for each key, one millisecond apart. */
async function keepAll(idempotency: Idempotency, keys: readonly string[], bytes: number): Promise<void> {
  for (const key of keys) {
    const attempt = await idempotency.begin(name(key));
    attempt.bindRequest('print');
    await attempt.complete({ status: 200, body: JSON.stringify({ text: 'x'.repeat(bytes) }) });
    attempt.end();
    fixture.clock.advance(1);
  }
}

async function replayOf(idempotency: Idempotency, key: string) {
  const attempt = await idempotency.begin(name(key));
  attempt.end();
  return attempt.bindRequest('print');
}

test('of a large answer only that the call is done is kept, with its status', async () => {
  await keepAll(open(), ['fits', 'large'], 16_300);
  assert.equal(JSON.parse((await replayOf(open(), 'fits'))?.body ?? '').text.length, 16_300);
  await keepAll(open(), ['too-large'], 2 ** 20);
  const { status, body } = (await replayOf(open(), 'too-large')) ?? assert.fail('not known');
  assert.equal(status, 200);
  assert.equal(JSON.parse(body).response_not_kept, true);
  const refusal = await open().begin(name('refused'));
  refusal.bindRequest('print');
  const problem = { status: 409, code: 'bucket_exists', detail: 'y'.repeat(20_000), title: 'Taken' };
  await refusal.refuse({ status: 409, body: JSON.stringify(problem) });
  refusal.end();
  const short = JSON.parse((await replayOf(open(), 'refused'))?.body ?? '');
  assert.deepEqual([short.code, short.title, short.detail.length], ['bucket_exists', 'Taken', 1000]);
});

const bytesOf = async (accountId: number) => {
  const sql = 'SELECT sum(length(sealed_body)) AS bytes FROM idempotency WHERE account_id = ?';
  return (await fixture.metadata.get<{ bytes: number }>(sql, accountId))?.bytes ?? 0;
};

test("an account's oldest answers go when they take too many bytes", async () => {
  const bounded = open(1000, 100_000);
  const keys = Array.from({ length: 30 }, (_, i) => `bytes-${i}`);
  await keepAll(bounded, keys, 10_000);
  assert.ok((await bytesOf(1)) <= 111_000, `${await bytesOf(1)} bytes`);
  const known = await Promise.all(keys.map((key) => replayOf(bounded, key)));
  const left = keys.filter((_, i) => known[i] !== undefined);
  assert.ok(left.length >= 8 && left.length <= 10, String(left));
  assert.deepEqual(left, keys.slice(-left.length), 'the newest stay');
});

test('the answer of an operation that still runs is found though its row was deleted', async () => {
  const bounded = open(1000, 50_000);
  const first = await bounded.begin(name('accepted'));
  first.bindRequest('print');
  const response = { status: 202, body: '{"operation_id":"op-1"}' };
  await fixture.metadata.commit(first.record(response));
  const letGo = first.accept(response);
  first.end();
  fixture.clock.advance(1);
  await keepAll(
    bounded,
    Array.from({ length: 20 }, (_, i) => `push-${i}`),
    10_000,
  );
  fixture.clock.advance(IDEMPOTENCY_TTL_MS);
  await bounded.sweep();
  assert.equal((await replayOf(bounded, 'accepted'))?.body, response.body);
  letGo();
  assert.equal(await replayOf(bounded, 'accepted'), undefined, 'the row is gone');
});

test('what an earlier version kept is counted, cut and bounded', async () => {
  const { metadata, sealer, clock } = fixture;
  const before = await open();
  for (let i = 0; i < 450; i++) {
    const scope = `${caller.credentialId} createBucket`;
    const key = `old-${String(i).padStart(3, '0')}`;
    const body = JSON.stringify({ text: 'z'.repeat(i % 100 === 0 ? 300_000 : 1000) });
    const sealed = sealer.seal(Buffer.from(`print\n${body}`), `idempotency:${scope}:${key}`);
    const sql = `INSERT INTO idempotency (scope, key, status, sealed_body, created_at, account_id)
                 VALUES (?, ?, 201, ?, ?, 1)`;
    await metadata.commit([{ sql, params: [scope, key, sealed, clock.now() + i] }]);
  }
  clock.advance(1000);
  await before.countEarlier();
  const large = (await replayOf(before, 'old-400')) ?? assert.fail('not known');
  assert.deepEqual([large.status, JSON.parse(large.body).response_not_kept], [201, true]);
  assert.equal(JSON.parse((await replayOf(before, 'old-449'))?.body ?? '').text.length, 1000);
  await open(1000, 200_000).countEarlier();
  assert.ok((await bytesOf(1)) < 600_000, 'counted once: nothing is left to count');
  await keepAll(open(1000, 200_000), ['after'], 10);
  assert.ok((await bytesOf(1)) <= 200_000);
});

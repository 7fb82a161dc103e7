import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { BACKGROUND } from '../metadata/change.ts';
import type { Statement } from '../metadata/metadata.ts';
import { isAppError } from '../platform/errors.ts';
import { ALONE } from '../platform/membership.ts';
import { type AccountFixture, openAccountFixture } from '../testing/account-fixture.ts';
import { eventually } from '../testing/eventually.ts';
import { Operations } from './operations.ts';
import { OperationsStore } from './operations-store.ts';
import { NOBODY, type Principal } from './principal.ts';

/** As in the contract. */
const DAY_MS = 24 * 3600 * 1000;
const ANSWER = { status: 201, body: '{"secret":"clk_x"}' };
const REFUSAL = { status: 409, body: '{"code":"bucket_exists"}' };
const NOW = { ms: 0, signal: new AbortController().signal };

const CREATE = { name: 'createBucket', isCancellable: false };

let fixture: AccountFixture;
let ann: Principal;
let bob: Principal;
before(async () => {
  fixture = await openAccountFixture();
  [ann, bob] = (await Promise.all(['ann', 'bob'].map(principal))) as [Principal, Principal];
});
after(() => fixture.close());

async function principal(username: string): Promise<Principal> {
  const account = { username, email: `${username}@x.org`, password: 'correct horse' };
  const { id } = await fixture.accounts.register(BACKGROUND, account);
  return { ...NOBODY, accountId: id, via: 'key', scopes: ['*'], credentialId: username };
}

const lost: string[] = [];
/** As after a restart: only stored state is known. */
const open = (maxKept = 1000, maxKeptBytes = 1e6) => {
  const { metadata, sealer, clock } = fixture;
  const onLost = (operationId: string) => void lost.push(operationId);
  const isOwner = async ({ credentialId }: Principal) => /^(ann|bob)$/.test(credentialId);
  const store = new OperationsStore(metadata);
  return new Operations({ metadata, store, sealer, clock, maxKept, maxKeptBytes, isOwner, onLost });
};
/** One of two nodes that share the metadata. */
const node = (runId: string, gone: ReadonlySet<string> = new Set(), lookMs = 500) => {
  const { metadata, sealer, clock } = fixture;
  const membership = { ...ALONE, runId, isShared: true, isGone: (id: string) => gone.has(id) };
  const store = new OperationsStore(metadata);
  const onLost = (_: string, error: unknown) => assert.fail(String(error));
  const isOwner = async ({ credentialId }: Principal) => credentialId === 'ann';
  const base = { metadata, membership, store, sealer, clock };
  return new Operations({ ...base, lookMs, maxKept: 1000, isOwner, onLost });
};
/** A node that has heard of no other since that time. */
const deafSince = (heardAt: number) => {
  const { metadata, sealer, clock } = fixture;
  const isGone = (_: string, aliveAt = 0) => aliveAt < heardAt;
  const store = new OperationsStore(metadata);
  const base = {
    metadata,
    store,
    sealer,
    clock,
    membership: { ...ALONE, runId: 'deaf', isShared: true, isGone },
  };
  return new Operations({ ...base, maxKept: 1000, isOwner: async () => true, onLost: () => {} });
};
const none = () => [];
const badStatement: Statement = { sql: 'INSERT INTO accounts (id) VALUES (NULL)', params: [] };

/** A running operation, and the function that ends it. */
async function running(operations: Operations, who = ann) {
  const pending = await operations.begin(who, CREATE, none);
  const work = Promise.withResolvers<typeof ANSWER>();
  const done = pending.run(() => work.promise);
  return { id: pending.operation.operationId, work, done };
}

test('is running, then ended with its response, also after a restart', async () => {
  const operations = open();
  const { id, work, done } = await running(operations);
  assert.match(id, /^op-[0-9a-z]{26}$/);
  assert.deepEqual(await operations.find(ann, id, NOW), {
    operationId: id,
    name: 'createBucket',
    createdAt: fixture.clock.now(),
    endedAt: null,
    state: 'running',
    response: null,
    progress: null,
    isCancellable: false,
  });
  fixture.clock.advance(1000);
  work.resolve(ANSWER);
  await done;
  for (const each of [operations, open()]) {
    const { state, response, endedAt, createdAt } = await each.find(ann, id, NOW);
    assert.deepEqual([state, response, (endedAt as number) - createdAt], ['ended', ANSWER, 1000]);
  }
});

test('tells its progress, and is cancelled by its owner only', async () => {
  const operations = open();
  const pending = await operations.begin(ann, { name: 'restoreBucket', isCancellable: true }, none);
  const { work, operation } = pending;
  const { operationId: id } = operation;
  const progress = { done: 1, total: 2, bytes: 10, totalBytes: null };
  work.report(progress);
  assert.deepEqual((await operations.find(ann, id, NOW)).progress, progress);
  await assert.rejects(operations.cancel({ principal: bob }, id, NOW), { code: 'operation_not_found' });
  assert.equal(work.signal.aborted, false);
  assert.equal((await operations.cancel({ principal: ann }, id, NOW)).state, 'running');
  assert.ok(isAppError(work.signal.reason, 'operation_cancelled'));
  await pending.run(async () => REFUSAL);
  const { state, progress: after, isCancellable } = await operations.cancel({ principal: ann }, id, NOW);
  assert.deepEqual([state, after, isCancellable], ['ended', null, false]);
  const other = await running(operations);
  await assert.rejects(operations.cancel({ principal: ann }, other.id, NOW), {
    code: 'operation_not_cancellable',
  });
  other.work.resolve(ANSWER);
  await other.done;
});

test('what was running when Cloudlet ended is interrupted', async () => {
  const { id } = await running(open());
  const { state, response } = await open().find(ann, id, NOW);
  assert.deepEqual([state, response], ['interrupted', null]);
});

test('an operation of a node that another has not heard of yet is not interrupted', async () => {
  const { id, work, done } = await running(node('new'));
  const now = fixture.clock.now();
  const states = [now - 1, now + 1].map(async (at) => (await deafSince(at).find(ann, id, NOW)).state);
  assert.deepEqual(await Promise.all(states), ['running', 'interrupted']);
  work.resolve(ANSWER);
  await done;
});

test('the answer is in the commit with the effect, and a later end does not change it', async () => {
  const operations = open();
  const pending = await operations.begin(ann, CREATE, none);
  const { operationId } = pending.operation;
  await pending.run(async () => {
    await fixture.metadata.commit(pending.record(ANSWER));
    assert.equal((await open().find(ann, operationId, NOW)).state, 'ended');
    return REFUSAL;
  });
  assert.deepEqual((await operations.find(ann, operationId, NOW)).response, ANSWER);
});

test('of a commit that was refused the record is worth nothing', async () => {
  const operations = open();
  const pending = await operations.begin(ann, CREATE, none);
  await pending.run(async () => {
    await assert.rejects(fixture.metadata.commit([...pending.record(ANSWER), badStatement]));
    return REFUSAL;
  });
  assert.deepEqual((await operations.find(ann, pending.operation.operationId, NOW)).response, REFUSAL);
});

test('one that cannot be stored is not begun', async () => {
  const operations = open();
  let id = '';
  const also = ({ operationId }: { operationId: string }) => {
    id = operationId;
    return [badStatement];
  };
  await assert.rejects(operations.begin(ann, CREATE, also));
  await assert.rejects(operations.find(ann, id, NOW), { code: 'operation_not_found' });
  await operations.drain(60_000); // at once: nothing runs
});

test('an end that cannot be stored is reported, and called interrupted', async () => {
  const operations = open();
  const { id, work, done } = await running(operations);
  work.reject(new Error('of the work, which answers failures itself'));
  await done;
  assert.ok(lost.includes(id));
  assert.equal((await operations.find(ann, id, NOW)).state, 'interrupted');
});

test("is shown to the key that asked, and to the account's own", async () => {
  const operations = open();
  const asker: Principal = { ...ann, credentialId: 'asker' };
  const { id } = await running(operations, asker);
  for (const caller of [asker, ann]) assert.equal((await operations.find(caller, id, NOW)).operationId, id);
  for (const caller of [bob, { ...asker, credentialId: 'another' }, { ...asker, accountId: bob.accountId }]) {
    await assert.rejects(operations.find(caller, id, NOW), { code: 'operation_not_found' });
  }
});

test('a reader waits for the end, but no longer than it said', async () => {
  const operations = open();
  const { id, work } = await running(operations);
  assert.equal((await operations.find(ann, id, { ...NOW, ms: 20 })).state, 'running');
  const gone = new AbortController();
  const leaving = operations.find(ann, id, { ms: 3_600_000, signal: gone.signal });
  gone.abort();
  assert.equal((await leaving).state, 'running');
  const waiting = operations.find(ann, id, { ...NOW, ms: 3_600_000 });
  work.resolve(ANSWER);
  assert.equal((await waiting).state, 'ended');
});

test('a stop ends the waiting, begins nothing more, and waits for what runs', async () => {
  const operations = open();
  const { id, work } = await running(operations);
  const waiting = operations.find(ann, id, { ...NOW, ms: 3_600_000 });
  await operations.drain(20);
  assert.equal((await waiting).state, 'running');
  await assert.rejects(operations.begin(ann, CREATE, none), { code: 'shutting_down' });
  const settled = operations.drain(3_600_000);
  work.resolve(ANSWER);
  await settled;
  assert.equal((await operations.find(ann, id, NOW)).state, 'ended');
});

test('an account has at most 100 at a time', async () => {
  const operations = open();
  const all = await Promise.all(Array.from({ length: 100 }, () => running(operations)));
  await assert.rejects(
    running(operations),
    (error) => isAppError(error, 'rate_limited') && error.retryAfterSeconds === 1,
  );
  await running(operations, bob);
  all[50]?.work.resolve(ANSWER);
  await all[50]?.done;
  await running(operations);
});

test('nothing of the answer is to be read in what is stored', async () => {
  const { work, done } = await running(open());
  work.resolve(ANSWER);
  await done;
  const rows = await fixture.metadata.all<Record<string, unknown>>('SELECT * FROM operations');
  const bytes = rows.map(({ sealed_body }) => Buffer.from((sealed_body as Uint8Array | null) ?? []));
  assert.ok(bytes.length > 0);
  assert.ok(!Buffer.concat(bytes).includes('clk_x'));
});

test('is forgotten after 24 h', async () => {
  const operations = open();
  const { id, work, done } = await running(operations);
  work.resolve(ANSWER);
  await done;
  fixture.clock.advance(DAY_MS - 1);
  await operations.sweep();
  assert.equal((await operations.find(ann, id, NOW)).state, 'ended');
  fixture.clock.advance(1);
  await operations.sweep();
  await assert.rejects(operations.find(ann, id, NOW), { code: 'operation_not_found' });
});

test("an account's oldest operations go when it has too many, but none that runs", async () => {
  const operations = open(3);
  const early = await running(operations, bob);
  for (let i = 0; i < 10; i++) {
    fixture.clock.advance(1);
    const { work, done } = await running(operations, bob);
    work.resolve(ANSWER);
    await done;
  }
  const count = 'SELECT count(*) AS count FROM operations WHERE account_id = ? AND ended_at IS NOT NULL';
  const row = await fixture.metadata.get<{ count: number }>(count, bob.accountId);
  assert.equal(row?.count, 3);
  assert.equal((await operations.find(bob, early.id, NOW)).state, 'running');
  early.work.resolve(ANSWER);
  await early.done;
});

test('of a large outcome only that the call is done is kept; the oldest outcomes go by their bytes', async () => {
  const operations = open(1000, 50_000);
  const early = await running(operations, ann);
  const ids: string[] = [];
  for (let i = 0; i < 20; i++) {
    fixture.clock.advance(1);
    const { id, work, done } = await running(operations, ann);
    work.resolve({ status: 201, body: JSON.stringify('x'.repeat(i === 19 ? 2 ** 20 : 10_000)) });
    await done;
    ids.push(id);
  }
  const last = await operations.find(ann, ids[19] ?? '', NOW);
  assert.equal(last.response?.status, 201);
  assert.equal(JSON.parse(last.response?.body ?? '').response_not_kept, true);
  const kept = await Promise.allSettled(ids.map((id) => operations.find(ann, id, NOW)));
  const states = kept.map(({ status }) => status === 'fulfilled');
  assert.ok(states.lastIndexOf(false) >= 13, String(states));
  assert.ok(!states.slice(states.lastIndexOf(false) + 1).includes(false), 'the newest stay');
  fixture.clock.advance(DAY_MS);
  await operations.sweep();
  assert.equal((await operations.find(ann, early.id, NOW)).state, 'running');
  early.work.resolve(ANSWER);
  await early.done;
  assert.equal((await operations.find(ann, early.id, NOW)).state, 'ended');
});

test('outcomes that an earlier version kept are counted and cut', async () => {
  const operations = open();
  const { metadata, sealer } = fixture;
  const { id, work, done } = await running(operations, bob);
  work.resolve(ANSWER);
  await done;
  const body = Buffer.from(JSON.stringify({ text: 'z'.repeat(100_000) }));
  const sealed = sealer.seal(body, `operation:${id}`);
  const sql = 'UPDATE operations SET sealed_body = ?, kept_bytes = NULL WHERE operation_id = ?';
  await metadata.commit([{ sql, params: [sealed, id] }]);
  await operations.countEarlier();
  const { response } = await operations.find(bob, id, NOW);
  assert.deepEqual([response?.status, JSON.parse(response?.body ?? '').response_not_kept], [201, true]);
});

test('another node shows it running, until its node is gone or has begun anew', async () => {
  const gone = new Set<string>();
  const [first, second] = [node('nod-1'), node('nod-2', gone)];
  const { id } = await running(first);
  const stateOf = async () => {
    const { state } = await second.find(ann, id, NOW);
    const page = await Array.fromAsync(second.list(ann, { before: undefined, limit: 1 }));
    return [state, page[0]?.state];
  };
  assert.deepEqual(await stateOf(), ['running', 'running']);
  gone.add('nod-1');
  assert.deepEqual(await stateOf(), ['interrupted', 'failed']);
  gone.clear();
  assert.deepEqual(await stateOf(), ['running', 'running']);
  await node('nod-1').start();
  assert.deepEqual(await stateOf(), ['interrupted', 'failed']);
});

test('a reader at another node waits for its end', async () => {
  const [first, second] = [node('nod-1'), node('nod-2')];
  const { id, work, done } = await running(first);
  const { signal } = new AbortController();
  assert.equal((await second.find(ann, id, { ms: 1, signal })).state, 'running');
  const found = second.find(ann, id, { ms: 60_000, signal });
  work.resolve(ANSWER);
  await done;
  assert.deepEqual((await found).response, ANSWER);
});

test('a reader at another node that is told of the end need not look for it', async () => {
  const [first, second] = [node('nod-1'), node('nod-2', new Set(), 1e8)];
  const { id, work, done } = await running(first);
  const found = second.find(ann, id, { ms: 1e8, signal: new AbortController().signal });
  work.resolve(ANSWER);
  await done;
  const telling = setInterval(() => second.changed(id), 10);
  assert.deepEqual((await found).response, ANSWER);
  clearInterval(telling);
});

test('another node shows its progress and cancels it', async () => {
  const [first, second] = [node('nod-1'), node('nod-2')];
  const pending = await first.begin(ann, { name: 'restoreBucket', isCancellable: true }, none);
  const { operationId: id } = pending.operation;
  const progress = { done: 1, total: 2, bytes: 10, totalBytes: null };
  pending.work.report(progress);
  const told = async () => (await second.find(ann, id, NOW)).progress;
  await eventually(async () => (await told()) !== null);
  assert.deepEqual(await told(), progress);
  await assert.rejects(second.cancel({ principal: bob }, id, NOW), { code: 'operation_not_found' });
  assert.equal((await second.cancel({ principal: ann }, id, NOW)).state, 'running');
  await eventually(() => pending.work.signal.aborted);
  assert.ok(isAppError(pending.work.signal.reason, 'operation_cancelled'));
  await pending.run(async () => REFUSAL);
  const { state, isCancellable } = await second.cancel({ principal: ann }, id, NOW);
  assert.deepEqual([state, isCancellable], ['ended', false]);
  const fixed = await running(first);
  await assert.rejects(second.cancel({ principal: ann }, fixed.id, NOW), {
    code: 'operation_not_cancellable',
  });
});

test('the sweep of one node leaves what another runs, and takes what nobody does', async () => {
  const gone = new Set<string>();
  const [first, second] = [node('nod-1'), node('nod-2', gone)];
  const { id, work, done } = await running(first);
  fixture.clock.advance(2 * DAY_MS);
  await second.sweep();
  assert.equal((await first.find(ann, id, NOW)).state, 'running');
  work.resolve(ANSWER);
  await done;
  await second.sweep();
  await assert.rejects(first.find(ann, id, NOW), { code: 'operation_not_found' });
  const left = await running(first);
  fixture.clock.advance(2 * DAY_MS);
  gone.add('nod-1');
  await second.sweep();
  await assert.rejects(first.find(ann, left.id, NOW), { code: 'operation_not_found' });
});

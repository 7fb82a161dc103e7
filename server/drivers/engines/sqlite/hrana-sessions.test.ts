import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import fc from 'fast-check';
import { HRANA_LIMITS, type HranaLimits, HranaSessions, type Piece } from '../../../../libs/hrana/index.ts';
import { eventually } from '../../../../test/harness/waiting.ts';
import { FakeClock } from '../../../platform/clock.ts';
import { randomBase62 } from '../../../platform/ids.ts';
import { cases } from '../../../testing/cases.ts';
import { TURN_MS } from '../../engine-children/child-call.ts';
import { TenantConnections } from './tenant-connections.ts';

/** Its own database, and the protocol of its clients. */
function database(t: TestContext, more: Partial<HranaLimits> & { connections?: number } = {}) {
  const folder = mkdtempSync(join(tmpdir(), 'cloudlet-hrana-'));
  const file = join(folder, 'db');
  writeFileSync(file, '');
  const { connections = 5, ...limits } = more;
  const sizeLimit = { sizeLimitBytes: 2 ** 30, mayGrow: true };
  const tenant = new TenantConnections(file, sizeLimit, { connections, statementMs: 1000 });
  const clock = new FakeClock();
  const sessions = new HranaSessions({
    database: tenant,
    clock,
    newBaton: () => randomBase62(32),
    turnMs: TURN_MS,
    limits: { ...HRANA_LIMITS, ...limits },
  });
  t.after(() => {
    tenant.closeAll();
    rmSync(folder, { recursive: true });
  });
  const send = async (path: string, body: unknown, signal?: AbortSignal) => {
    const bytes = Buffer.from(typeof body === 'string' ? body : JSON.stringify(body));
    return sessions.handle({ path, body: bytes, ...(signal && { signal }) });
  };
  const ask = async (requests: readonly unknown[], baton: string | null = null, signal?: AbortSignal) => {
    const { status, body } = await send('v3/pipeline', { baton, requests }, signal);
    // biome-ignore lint/suspicious/noExplicitAny: an answer read from outside
    return { status, ...JSON.parse(body as string) } as any;
  };
  /** One statement in its own stream: returns its rows, or the code of its error. */
  const run = async (sql: string) => {
    const { results } = await ask([execute(sql), CLOSE]);
    const [{ response, error }] = results;
    if (error !== undefined) return error.code;
    return response.result.rows.map((row: { value: unknown }[]) => row.map(({ value }) => value));
  };
  return { tenant, clock, send, ask, run, logSize: () => statSync(`${file}-wal`).size };
}

const execute = (sql: string) => ({ type: 'execute', stmt: { sql } });
const CLOSE = { type: 'close' };

/** The code of the first result that is an error, or of the whole call. */
function codeOf({
  code,
  results,
}: {
  code?: string;
  results?: { error?: { code: string } }[];
}): string | undefined {
  return code ?? results?.find(({ error }) => error !== undefined)?.error?.code;
}

async function linesOf(body: Piece | AsyncIterable<Piece>): Promise<Record<string, unknown>[]> {
  let text = '';
  if (typeof body === 'string') text = body;
  else for await (const piece of body as AsyncIterable<string>) text += piece;
  return text
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line));
}

test('a transaction whose client is silent is undone, and its baton says why', async (t) => {
  const { ask, run, clock } = database(t);
  await run('CREATE TABLE t (a)');
  const { baton } = await ask([execute('BEGIN IMMEDIATE'), execute('INSERT INTO t VALUES (1)')]);
  const waiting = run('INSERT INTO t VALUES (2)');
  clock.advance(HRANA_LIMITS.idleMs + 1);
  assert.deepEqual(await waiting, []);
  assert.deepEqual(await run('SELECT a FROM t'), [['2']]);
  const late = await ask([execute('COMMIT')], baton);
  assert.deepEqual([late.status, late.code], [400, 'STREAM_EXPIRED']);
  assert.match(late.message, /it was idle for 5 s/);
});

test('a transaction ends with its time, however busy its client is', async (t) => {
  const { ask, clock } = database(t);
  let { baton } = await ask([execute('BEGIN')]);
  const code = await eventually('the end of the transaction', async () => {
    clock.advance(1000);
    const answer = await ask([execute('SELECT 1')], baton);
    baton = answer.baton;
    return codeOf(answer);
  });
  assert.equal(code, 'STREAM_EXPIRED');
});

test('whoever waits too long to write is told that the database is locked', async (t) => {
  const { ask, run } = database(t, { busyMs: 50 });
  await run('CREATE TABLE t (a)');
  const { baton } = await ask([execute('BEGIN IMMEDIATE')]);
  assert.equal(await run('INSERT INTO t VALUES (1)'), 'SQLITE_BUSY');
  assert.deepEqual(await run('SELECT a FROM t'), []);
  await ask([execute('COMMIT'), CLOSE], baton);
  assert.deepEqual(await run('INSERT INTO t VALUES (1)'), []);
});

test('a client that left while it waited to write writes nothing', async (t) => {
  const { ask, run } = database(t);
  await run('CREATE TABLE t (a)');
  const { baton } = await ask([execute('BEGIN IMMEDIATE')]);
  const left = new AbortController();
  const waiting = ask([execute('INSERT INTO t VALUES (1)')], null, left.signal);
  await new Promise(setImmediate);
  left.abort();
  assert.equal((await waiting).baton, null);
  await ask([execute('COMMIT'), CLOSE], baton);
  assert.deepEqual(await run('SELECT a FROM t'), []);
});

test('whoever waits for a connection gets that of a stream whose transaction ends', async (t) => {
  const { ask } = database(t, { connections: 1 });
  const { baton } = await ask([execute('BEGIN')]);
  const waiting = ask([execute('SELECT 1'), CLOSE]);
  await ask([execute('COMMIT')], baton);
  assert.equal((await waiting).status, 200);
});

test('streams that nobody closed give their connection to others; transactions keep theirs', async (t) => {
  const { ask, tenant } = database(t, { connections: 2, busyMs: 50 });
  for (let i = 0; i < 10; i++) assert.equal((await ask([execute('SELECT 1')])).status, 200);
  assert.equal(tenant.counters.connections, 2);
  const one = await ask([execute('BEGIN')]);
  const two = await ask([execute('BEGIN')]);
  const three = await ask([execute('SELECT 1')]);
  assert.deepEqual([three.status, three.code], [503, 'TOO_MANY_STREAMS']);
  for (const { baton } of [one, two]) assert.equal((await ask([execute('COMMIT')], baton)).status, 200);
});

test('what a stream sets is gone with it', async (t) => {
  const { ask, run } = database(t, { connections: 1 });
  await ask([execute('PRAGMA foreign_keys = OFF'), execute('CREATE TEMP TABLE mine (a)'), CLOSE]);
  assert.deepEqual(await run('PRAGMA foreign_keys'), [['1']]);
  assert.equal(await run('SELECT * FROM mine'), 'SQLITE_ERROR');
  await ask([execute('BEGIN'), execute('CREATE TABLE half (a)'), CLOSE]);
  assert.equal(await run('SELECT * FROM half'), 'SQLITE_ERROR');
});

test('a reader that keeps the log from being written back is ended', async (t) => {
  const { ask, run, logSize } = database(t, { logBytes: 2 ** 20 });
  await run('CREATE TABLE t (a)');
  const { baton } = await ask([execute('BEGIN'), execute('SELECT * FROM t')]);
  for (let i = 0; i < 20; i++) await run('INSERT INTO t VALUES (randomblob(100000))');
  assert.ok(logSize() > 2 ** 20);
  await eventually('a short log', () => logSize() <= 2 ** 20);
  const ended = await ask([execute('SELECT 1')], baton);
  assert.equal(ended.code, 'STREAM_EXPIRED');
  assert.match(ended.message, /old snapshot/);
});

test('a result that is too large is an error, and reads in pieces', async (t) => {
  const { run, ask, send } = database(t, { responseLength: 100_000 });
  await run('CREATE TABLE t (a)');
  for (let i = 0; i < 30; i++) await run('INSERT INTO t VALUES (hex(randomblob(5000)))');
  assert.equal(codeOf(await ask([execute('SELECT a FROM t')])), 'RESPONSE_TOO_LARGE');
  const { body } = await send('v3/cursor', { batch: { steps: [{ stmt: { sql: 'SELECT a FROM t' } }] } });
  const lines = await linesOf(body);
  assert.deepEqual(lines.filter(({ type }) => type === 'row').length, 30);
});

test('a cursor that nobody reads on is ended, and so is one that is left', async (t) => {
  const { run, send, ask, clock, tenant } = database(t);
  await run('CREATE TABLE t (a)');
  for (let i = 0; i < 30; i++) await run('INSERT INTO t VALUES (hex(randomblob(5000)))');
  const open = async () => {
    const { body } = await send('v3/cursor', { batch: { steps: [{ stmt: { sql: 'SELECT a FROM t' } }] } });
    const pieces = (body as AsyncIterable<string>)[Symbol.asyncIterator]();
    const first = await pieces.next();
    return { pieces, baton: JSON.parse(first.value.split('\n', 1)[0]).baton as string };
  };
  const left = await open();
  await left.pieces.return?.();
  const next = await ask([execute('SELECT 1'), CLOSE], left.baton);
  assert.equal(next.status, 200);
  const slow = await open();
  clock.advance(HRANA_LIMITS.idleMs + 1);
  await eventually('the end of the stream', () => tenant.counters.connections === 0);
  const rest = (await slow.pieces.next()).value;
  assert.match(rest, /"type":"error","error":.*STREAM_EXPIRED/);
  assert.equal((await slow.pieces.next()).done, true);
  assert.equal(codeOf(await ask([execute('SELECT 1')], slow.baton)), 'STREAM_EXPIRED');
});

test('the conditions of a batch', async (t) => {
  const { ask } = database(t);
  const ok = (step: number) => ({ type: 'ok', step });
  const error = (step: number) => ({ type: 'error', step });
  const step = (sql: string, condition?: object) => ({ stmt: { sql }, condition });
  const steps = [
    step('SELECT 1'),
    step('SLECT 1'),
    step('SELECT 2', ok(1)),
    step('SELECT 3', { type: 'and', conds: [ok(0), error(1), { type: 'not', cond: ok(2) }] }),
    step('SELECT 4', { type: 'or', conds: [ok(1), error(0)] }),
    step('SELECT 5', { type: 'is_autocommit' }),
    step('SELECT 6', ok(99)),
  ];
  const { results } = await ask([{ type: 'batch', batch: { steps } }]);
  const { step_results, step_errors } = results[0].response.result;
  assert.deepEqual(
    step_results.map((result: object | null) => result !== null),
    [...[true, false, false, true, false, true, false]],
  );
  assert.deepEqual(
    step_errors.map((problem: object | null) => problem !== null),
    [...[false, true, false, false, false, false, false]],
  );
});

test('a statement that was said before sees the table as others have changed it', async (t) => {
  const { ask, run } = database(t);
  await run('CREATE TABLE t (a)');
  await run('INSERT INTO t VALUES (1)');
  const all = async () => {
    const { results } = await ask([execute('SELECT * FROM t'), CLOSE]);
    const { cols, rows } = results[0].response.result;
    return [cols.map(({ name }: { name: string }) => name), rows[0].length];
  };
  const { baton } = await ask([execute('BEGIN'), execute('SELECT * FROM t'), execute('COMMIT')]);
  assert.deepEqual(await all(), [['a'], 1]);
  await ask([execute('ALTER TABLE t ADD COLUMN b')], baton);
  assert.deepEqual(await all(), [['a', 'b'], 2]);
});

test('texts that are stored are used, described and forgotten', async (t) => {
  const { ask } = database(t);
  const { results } = await ask([
    { type: 'store_sql', sql_id: 7, sql: 'SELECT :a AS a' },
    {
      type: 'execute',
      stmt: { sql_id: 7, named_args: [{ name: 'a', value: { type: 'text', value: 'x' } }] },
    },
    { type: 'describe', sql_id: 7 },
    { type: 'store_sql', sql_id: 7, sql: 'SELECT 2' },
    { type: 'close_sql', sql_id: 7 },
    { type: 'sequence', sql_id: 7 },
    { type: 'execute', stmt: { sql: 'SELECT 1', want_rows: false } },
  ]);
  assert.deepEqual(results[1].response.result.rows, [[{ type: 'text', value: 'x' }]]);
  assert.deepEqual(results[2].response.result, {
    params: [{ name: ':a' }],
    cols: [{ name: 'a', decltype: null }],
    is_explain: false,
    is_readonly: true,
  });
  assert.equal(results[3].error.code, 'PROTOCOL_ERROR');
  assert.equal(results[5].error.code, 'PROTOCOL_ERROR');
  assert.deepEqual(results[6].response.result.rows, []);
});

const value = fc.oneof(
  fc.record({
    type: fc.constantFrom('null', 'integer', 'float', 'text', 'blob', 'what'),
    value: fc.jsonValue(),
  }),
  fc.record({ type: fc.constant('integer'), value: fc.bigInt().map(String) }),
  fc.record({ type: fc.constant('blob'), base64: fc.string() }),
  fc.jsonValue(),
);
const text = fc.oneof(
  fc.constantFrom(
    ...[
      'SELECT ?',
      'SELECT :a, @b',
      'INSERT INTO t VALUES (?) RETURNING *',
      'BEGIN',
      'COMMIT',
      'ROLLBACK',
      '',
    ],
    ...[
      'SAVEPOINT s',
      'PRAGMA foreign_keys = 0',
      'SELECT 1; SELECT 2',
      "SELECT 1e999, -1e999, x'', '\\u0000'",
    ],
  ),
  fc.string(),
);
const stmt = fc.record(
  {
    sql: fc.oneof(text, fc.jsonValue()),
    sql_id: fc.nat(3),
    args: fc.oneof(fc.array(value), fc.jsonValue()),
    named_args: fc.array(fc.record({ name: fc.string(), value })),
    want_rows: fc.boolean(),
  },
  { requiredKeys: [] },
);
const { condition } = fc.letrec((tie) => ({
  condition: fc.oneof(
    { depthSize: 'small' },
    fc.record({ type: fc.constantFrom('ok', 'error', 'is_autocommit', 'what'), step: fc.nat(5) }),
    fc.record({ type: fc.constant('not'), cond: tie('condition') }),
    fc.record({ type: fc.constantFrom('and', 'or'), conds: fc.array(tie('condition')) }),
    fc.jsonValue(),
  ),
}));
const batch = fc.record({ steps: fc.array(fc.record({ stmt, condition }, { requiredKeys: ['stmt'] })) });
const types = [
  'execute',
  'batch',
  'sequence',
  'describe',
  'store_sql',
  'close_sql',
  'get_autocommit',
  'close',
  'x',
];
const request = fc.oneof(
  fc.record(
    { type: fc.constantFrom(...types), stmt, batch, sql: text, sql_id: fc.nat(3) },
    { requiredKeys: ['type'] },
  ),
  fc.jsonValue(),
);

test('whatever a client sends, it gets an answer of the protocol, and others go on', async (t) => {
  const { send, run } = database(t);
  await run('CREATE TABLE t (a)');
  const body = fc.oneof(
    fc.record({ baton: fc.constant(null), requests: fc.array(request) }),
    fc.record({ baton: fc.jsonValue(), requests: fc.jsonValue() }),
    fc.constant({ baton: [{ toString: false }], requests: [] }),
    fc.record({ batch }),
    fc.jsonValue(),
    fc.string(),
  );
  await fc.assert(
    fc.asyncProperty(
      fc.constantFrom('v2/pipeline', 'v3/pipeline', 'v3/cursor', 'x'),
      body,
      async (path, sent) => {
        const answer = await send(path, sent as object);
        const lines = await linesOf(answer.body);
        if (answer.status !== 200) {
          assert.ok([400, 404].includes(answer.status), JSON.stringify(lines));
          assert.deepEqual(Object.keys(lines[0] ?? {}), ['message', 'code']);
          return;
        }
        const [{ baton, results = [] } = {}] = lines as { baton?: string; results?: { type: string }[] }[];
        if (path !== 'v3/cursor') {
          assert.equal(results.length, (sent as { requests: unknown[] }).requests.length);
          assert.ok(results.every(({ type }) => type === 'ok' || type === 'error'));
        }
        assert.doesNotMatch(JSON.stringify(lines), /INTERNAL_ERROR/);
        if (typeof baton === 'string') await send('v3/pipeline', { baton, requests: [CLOSE] });
      },
    ),
    { numRuns: cases(1000) },
  );
  assert.deepEqual(await run('SELECT count(*) > 0 FROM t'), await run('SELECT EXISTS (SELECT 1 FROM t)'));
  assert.deepEqual(await run('DELETE FROM t'), []);
});

/**
 * Rows, documents, prices and spend caps requested by other accounts, with wrong types, and fifty times at
 * once.
 */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { CheckedClient } from '../harness/checked-client.ts';
import { ADMIN_KEY, CloudProcess } from '../harness/cloud-process.ts';
import { DATABASES, newDatabase, rowsOf } from './databases-kit.ts';

type Answered = Awaited<ReturnType<CheckedClient['call']>>;

const AT_ONCE = 50;

let cloud: CloudProcess;
let owner: CheckedClient;
let stranger: CheckedClient;
let admin: CheckedClient;
let ownerId: number;
/** The owner has a table `t` with one row, and a database with a collection `c` of one document. */
let sql: string;
let mongo: string;
before(async () => {
  cloud = await CloudProcess.start();
  admin = await CheckedClient.open(cloud.api, ADMIN_KEY);
  const made = await admin.register();
  ownerId = made.id;
  owner = admin.as(made.api_key);
  stranger = admin.as((await admin.register()).api_key);
  sql = await newDatabase(
    owner,
    'CREATE TABLE t (id INTEGER PRIMARY KEY, v INTEGER, "__proto__" TEXT)',
    'INSERT INTO t VALUES (1, 0, NULL)',
  );
  const json = { name: 'papers', engine: 'mongodb' };
  mongo = `${DATABASES}/${(await owner.expect(201, DATABASES, { json })).database_id}`;
  await owner.expect(200, `${mongo}/rows/import?table=c`, { body: form('[{"_id": 1, "v": 0}]') });
});
after(() => cloud?.stop());

function form(text: string): FormData {
  const made = new FormData();
  made.set('file', new Blob([text]), 'rows.json');
  return made;
}

const change = (changes: unknown, table: unknown = 't') => ({ json: { table, changes } });
const insert = (values: unknown) => ({ action: 'insert', values });
const unchanged = async () => {
  assert.deepEqual(await rowsOf(owner, sql, 'SELECT * FROM t'), [[1, 0, null]]);
  const { rows } = await owner.expect(200, `${mongo}/rows/read`, { json: { table: 'c' } });
  assert.deepEqual(rows, [[{ _id: 1, v: 0 }, rows[0][1]]]);
};
const together = (call: (at: number) => Promise<Answered>) =>
  Promise.all(Array.from({ length: AT_ONCE }, (_, at) => call(at)));
const counts = (answers: readonly Answered[]) => {
  const found: Record<string, number> = {};
  for (const { status, body } of answers) {
    const name = status < 400 ? String(status) : `${status} ${body.code}`;
    found[name] = (found[name] ?? 0) + 1;
  }
  return found;
};

describe('a stranger', () => {
  test('finds no database of another account, whatever is asked of its rows', async () => {
    for (const path of [sql, mongo]) {
      const table = path === sql ? 't' : 'c';
      const calls: [string, object][] = [
        [`${path}/rows/read`, { json: { table } }],
        [`${path}/rows/change`, change([insert({ id: 2, _id: 2 })], table)],
        [`${path}/rows/change`, { json: { table, changes: [insert({ id: 2 })], dry_run: true } }],
        [`${path}/rows/export?table=${table}`, {}],
        [`${path}/rows/import?table=${table}`, { body: form('[{"id": 2}]') }],
        [`${path}/rows/import?table=${table}&dry_run=true`, { body: form('[{"id": 2}]') }],
      ];
      for (const call of calls) await stranger.refused(404, 'database_not_found', call);
      for (const call of calls) assert.equal((await stranger.as(undefined).call(...call)).status, 401);
      // An administrator's key does not give access to another account's data, either.
      for (const call of calls) await admin.refused(404, 'database_not_found', call);
    }
    await unchanged();
  });

  test('with a key that only reads changes nothing; one of another kind does not even read', async () => {
    const keyOf = async (scopes: readonly string[]) => {
      const json = { name: scopes.join(), scopes };
      return owner.as((await owner.expect(201, '/api/account/access-keys', { json })).api_key);
    };
    for (const scopes of [['databases:read'], ['databases:connect'], ['storage:*'], ['billing:*']]) {
      const limited = await keyOf(scopes);
      await limited.refused(403, 'scope_required', [`${sql}/rows/change`, change([insert({ id: 2 })])]);
      const importing = { body: form('[{"id": 2}]') };
      await limited.refused(403, 'scope_required', [`${sql}/rows/import?table=t`, importing]);
      const cap = { method: 'PATCH', json: { cap: 1 } };
      await limited.refused(403, 'scope_required', ['/api/billing/cap', cap]);
    }
    await (await keyOf(['storage:*'])).refused(403, 'scope_required', [
      '/api/billing/quote?resource_type=bucket',
    ]);
    assert.equal((await owner.expect(200, '/api/billing/cap')).cap, null);
    await unchanged();
  });

  test('neither sees nor sets the cap of another account', async () => {
    const terms = `/api/admin/accounts/${ownerId}`;
    await stranger.refused(403, 'admin_required', [`${terms}/spend-cap`]);
    await stranger.refused(403, 'admin_required', [terms, { method: 'PATCH', json: { spend_cap: 0 } }]);
    // Members that name another account are refused, not used.
    for (const more of [
      { account_id: ownerId },
      { id: ownerId },
      { spend_cap: 1 },
      { administrator_cap: null },
    ])
      await stranger.refused(400, 'invalid_request', [
        '/api/billing/cap',
        { method: 'PATCH', json: { cap: 0, ...more } },
      ]);
    await stranger.expect(200, '/api/billing/cap', { method: 'PATCH', json: { cap: 0 } });
    assert.equal((await owner.expect(200, '/api/billing/cap')).cap, null);
    await stranger.expect(200, '/api/billing/cap', { method: 'PATCH', json: { cap: null } });
    for (const id of ['0', '-1', '1e3', 'x', '99999999999999999999'])
      assert.equal((await admin.call(`/api/admin/accounts/${id}/spend-cap`)).status, 404, id);
  });
});

describe('wrong types', () => {
  const deep = (levels: number) => `${'['.repeat(levels)}1${']'.repeat(levels)}`;

  test('of changes are refused in words, and change nothing', async () => {
    const one = { id: 1, v: 0 };
    const wrong: unknown[] = [
      ...[undefined, null, 'x', 1, {}, [], [null], ['insert'], [[]], [{}], [{ action: 'drop' }]],
      ...[[insert(null)], [insert([])], [insert('x')], [insert(1)], [{ action: 'insert' }]],
      ...[[insert({ none: 1 })], [insert({ constructor: 1 })], [insert({ 'v"; DROP TABLE t; --': 1 })]],
      ...[[insert({ id: { a: 1 } })], [insert({ id: [1] })], [insert({ id: 2, v: { base64: '***' } })]],
      ...[[{ action: 'update', values: { v: 1 } }], [{ action: 'update', old: one }], [{ action: 'delete' }]],
      ...[[{ action: 'update', old: { v: 0 }, values: { v: 1 } }], [{ action: 'delete', old: { v: 0 } }]],
      ...[[{ action: 'update', old: one, values: {} }], [{ action: 'delete', old: { id: null } }]],
      Array.from({ length: 1001 }, (_, at) => insert({ id: at + 10 })),
    ];
    for (const changes of wrong) {
      const { status, body } = await owner.call(`${sql}/rows/change`, change(changes));
      assert.ok(
        status >= 400 && status < 500,
        `${JSON.stringify(changes)?.slice(0, 100)}: ${JSON.stringify(body)}`,
      );
    }
    for (const table of [
      null,
      1,
      '',
      ['t'],
      'none',
      'sqlite_schema',
      '__proto__',
      't\u0000',
      'x'.repeat(2000),
    ]) {
      const { status, body } = await owner.call(`${sql}/rows/change`, change([insert({ id: 9 })], table));
      assert.ok(status >= 400 && status < 500, `${table}: ${JSON.stringify(body)}`);
    }
    const headers = { 'content-type': 'application/json' };
    for (const body of ['', '{', 'null', '"x"', `{"table":"t","changes":${deep(20_000)}}`]) {
      const answer = await owner.call(`${sql}/rows/change`, { method: 'POST', headers, body });
      assert.ok(answer.status >= 400 && answer.status < 500, `${body.slice(0, 40)}: ${answer.status}`);
    }
    await unchanged();
  });

  test('a member called __proto__ is refused as such, and nothing is changed', async () => {
    const json = JSON.parse(
      '{"table":"t","changes":[{"action":"update","old":{"id":1},"values":{"__proto__":"mine"}}]}',
    );
    const { detail } = await owner.refused(400, 'invalid_json', [`${sql}/rows/change`, { json }]);
    assert.match(detail, /forbidden member "__proto__"/);
    await unchanged();
  });

  test('of documents are refused in words, and change nothing', async () => {
    const wrong: unknown[] = [
      ...[[insert(null)], [insert([])], [insert({ _id: [1] })], [insert({ _id: { $oid: 'x' } })]],
      ...[[insert({ _id: 2, a: { $date: 'never' } })], [insert({ _id: 2, a: { $numberLong: 'x' } })]],
      ...[
        [{ action: 'update', old: { v: 0 }, values: { v: 1 } }],
        [{ action: 'delete', old: { $where: '1' } }],
      ],
      ...[[{ action: 'update', old: { _id: 1, v: 0 }, values: { $set: { v: 1 } } }]],
      ...[
        [{ action: 'delete', old: { _id: { $gt: 0 } } }],
        [{ action: 'delete', old: { _id: 1, v: { $gte: 0 } } }],
      ],
      ...[[{ action: 'update', old: { _id: 1, v: 0 }, values: { _id: 2 } }]],
    ];
    for (const changes of wrong) {
      const { status, body } = await owner.call(`${mongo}/rows/change`, change(changes, 'c'));
      assert.ok(
        status >= 400 && status < 500,
        `${JSON.stringify(changes)}: ${status} ${JSON.stringify(body)}`,
      );
    }
    for (const text of ['x', '[', '[1]', '[[{}]]', '{"_id":{"$oid":1}}', `[${deep(5000)}]`, '[{"$db":"x"}'])
      for (const table of ['c', 'fresh', 'system.users', '$cmd', 'a\u0000b', '']) {
        const path = `${mongo}/rows/import?format=json&table=${encodeURIComponent(table)}`;
        const { status, body } = await owner.call(path, { body: form(text) });
        assert.ok(
          status >= 400 && status < 500,
          `${table} ${text.slice(0, 30)}: ${status} ${JSON.stringify(body)}`,
        );
      }
    for (const columns of [
      'x',
      '[]',
      '1',
      '{"a":1}',
      '{"a":{"type":"spam"}}',
      '{"__proto__":{"type":"text"}}',
    ]) {
      const path = `${mongo}/rows/import?table=fresh&format=csv&columns=${encodeURIComponent(columns)}`;
      const { status, body } = await owner.call(path, { body: form('a\n1\n') });
      assert.ok(status >= 400 && status < 500, `${columns}: ${status} ${JSON.stringify(body)}`);
    }
    const tables = await owner.expect(200, `${mongo}/tables`);
    assert.deepEqual(
      tables.map(({ name }: { name: string }) => name),
      ['c'],
    );
    await unchanged();
  });

  test('of quotes and caps are refused in words', async () => {
    const queries = [
      ...['', 'resource_type=', 'resource_type=__proto__', 'resource_type=vm&resource_type=bucket'],
      ...['resource_type=vm&instance_type=constructor', 'resource_type=vm&instance_type=__proto__'],
      ...['resource_type=database&engine=toString', 'resource_type=bucket&size_gb=-1'],
      ...[
        'resource_type=bucket&size_gb=1e999',
        'resource_type=bucket&size_gb=NaN',
        'resource_type=bucket&size_gb=1.5',
      ],
      ...['resource_type=bucket&size_gb=1000001', `resource_type=vm&instance_type=${'x'.repeat(65)}`],
    ];
    for (const query of queries) {
      const answer = await owner.call(`/api/billing/quote?${query}`);
      assert.equal(answer.status, 400, `${query}: ${JSON.stringify(answer.body)}`);
    }
    const headers = { 'content-type': 'application/json' };
    const bodies = [
      ...[
        '{"cap":1e400}',
        '{"cap":-0.000001}',
        '{"cap":1e9,"cap":-1}',
        '{"cap":[]}',
        '{"cap":{}}',
        '{"cap":true}',
      ],
      ...['{"cap":"0x10"}', '{"warn_percent":null}', '{"warn_percent":[1.5]}', '{"warn_percent":[[50]]}'],
      ...['{"warn_percent":{"0":50,"length":1}}', `{"warn_percent":[${Array(11).fill(5)}]}`, 'null', '[]'],
    ];
    for (const body of bodies) {
      const answer = await owner.call('/api/billing/cap', { method: 'PATCH', headers, body });
      assert.equal(answer.status, 400, `${body}: ${JSON.stringify(answer.body)}`);
    }
    assert.equal((await owner.expect(200, '/api/billing/cap')).cap, null);
  });
});

describe('fifty at once', () => {
  test('of one row, one changes it, and the others are told that it changed', async () => {
    const paths = [
      { path: sql, table: 't', old: { id: 1, v: 0 }, to: (v: number) => ({ v }) },
      { path: mongo, table: 'c', old: { _id: 1, v: 0 }, to: (v: number) => ({ _id: 1, v }) },
    ];
    for (const { path, table, old, to } of paths) {
      const answers = await together((at) =>
        owner.call(`${path}/rows/change`, change([{ action: 'update', old, values: to(at + 1) }], table)),
      );
      const { 200: done = 0, '409 write_conflict': late = 0, ...others } = counts(answers);
      assert.equal(done, 1, JSON.stringify(counts(answers)));
      assert.equal(done + late + othersOf(others), AT_ONCE);
      const winner = answers.findIndex(({ status }) => status === 200) + 1;
      const now = { ...old, v: winner };
      await owner.expect(
        200,
        `${path}/rows/change`,
        change([{ action: 'update', old: now, values: to(0) }], table),
      );
    }
    await unchanged();
  });

  test('with the same new key, one is inserted, and nothing of the others', async () => {
    for (const [path, table, key] of [
      [sql, 't', 'id'],
      [mongo, 'c', '_id'],
    ] as const) {
      const answers = await together((at) =>
        owner.call(
          `${path}/rows/change`,
          change([insert({ [key]: 1000 + at }), insert({ [key]: 7 })], table),
        ),
      );
      const { 200: done = 0, '400 query_failed': refused = 0, ...others } = counts(answers);
      assert.equal(done, 1, JSON.stringify(counts(answers)));
      assert.equal(done + refused + othersOf(others), AT_ONCE);
      const { rows } = await owner.expect(200, `${path}/rows/read`, { json: { table, limit: 1000 } });
      assert.equal(rows.length, 3, 'the one of before, and both of one call');
      const winner = 1000 + answers.findIndex(({ status }) => status === 200);
      const removed = [7, winner].map((id) => ({
        action: 'delete',
        old: path === sql ? { id, v: null } : { [key]: id },
      }));
      await owner.expect(200, `${path}/rows/change`, change(removed, table));
    }
    await unchanged();
  });

  test('imports into one new collection are whole or not there', async () => {
    const answers = await together((at) => {
      const documents = Array.from({ length: 20 }, (_, n) => ({ _id: at * 100 + n, at }));
      return owner.call(`${mongo}/rows/import?table=many`, { body: form(JSON.stringify(documents)) });
    });
    const { 200: done = 0, '400 query_failed': late = 0, ...others } = counts(answers);
    // Another request created the collection meanwhile.
    for (const { body } of answers)
      if (body.code === 'query_failed') assert.equal(body.engine_code, 'NamespaceExists');
    assert.ok(done > 0, JSON.stringify(others));
    assert.equal(done + late + othersOf(others), AT_ONCE);
    const read = { json: { table: 'many', limit: 1000, count: true } };
    const { total, rows } = await owner.expect(200, `${mongo}/rows/read`, read);
    assert.equal(total, done * 20, JSON.stringify(counts(answers)));
    const whole = new Set(rows.map(([{ at }]: [{ at: number }]) => at));
    for (const [at, { status }] of answers.entries()) assert.equal(whole.has(at), status === 200, String(at));
  });

  test('caps end as one of them, quotes are the same, and nobody else is kept waiting', async () => {
    const answers = await together((at) =>
      owner.call('/api/billing/cap', { method: 'PATCH', json: { cap: at + 1, warn_percent: [at + 1] } }),
    );
    const { 200: done = 0, '409 write_conflict': late = 0, ...others } = counts(answers);
    assert.ok(done > 0);
    assert.equal(done + late + othersOf(others), AT_ONCE);
    const { cap, warn_percent: percents } = await owner.expect(200, '/api/billing/cap');
    assert.deepEqual(percents, [cap], 'both of one call');
    await owner.expect(200, '/api/billing/cap', {
      method: 'PATCH',
      json: { cap: null, warn_percent: [50, 80] },
    });
    const quotes = await together(() =>
      owner.call('/api/billing/quote?resource_type=vm&instance_type=t2.micro'),
    );
    const prices = new Set(quotes.filter(({ status }) => status === 200).map(({ body }) => body.per_month));
    assert.equal(prices.size, 1);
    const { 200: asked = 0, ...refused } = counts(quotes);
    assert.equal(asked + othersOf(refused), AT_ONCE);
    await stranger.expect(200, '/api/billing/quote?resource_type=bucket');
  });
});

/** Counts the calls refused with a retry: too many at once for one account. Fails for all others. */
function othersOf(found: Readonly<Record<string, number>>): number {
  for (const name of Object.keys(found)) assert.match(name, /^(?:429|503) /);
  return Object.values(found).reduce((sum, one) => sum + one, 0);
}

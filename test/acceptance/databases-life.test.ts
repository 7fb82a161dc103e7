/** Databases: created, listed, changed, copied, deleted and undeleted. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { CheckedClient } from '../harness/checked-client.ts';
import { ADMIN_KEY } from '../harness/cloud-process.ts';
import { sharedCloud } from '../harness/shared-cloud.ts';
import { DATABASES, DELETE, newDatabase, POST, rowsOf, run } from './databases-kit.ts';

const cloud = await sharedCloud();
const anyone = await CheckedClient.open(cloud.api);
const admin = anyone.as(ADMIN_KEY);
const newUser = async () => anyone.as((await anyone.register()).api_key);
const user = await newUser();
const UNKNOWN = `${DATABASES}/db-00000000000000000000000000`;

describe('a new database', () => {
  test('is ready, with its password in the answer, and without it afterwards', async () => {
    const made = await user.expect(201, DATABASES, { json: { name: 'shop' } });
    assert.deepEqual([made.engine, made.state, made.state_reason], ['sqlite', 'ready', null]);
    const { password, uri } = made.connection;
    assert.match(password, /^[0-9A-Za-z]{32}$/);
    assert.ok(uri.includes(password));
    const found = await user.expect(200, `${DATABASES}/${made.database_id}`);
    assert.ok(!JSON.stringify(found).includes(password));
    assert.ok(found.connection.uri.includes('***'));
    assert.ok(!JSON.stringify(await user.expect(200, DATABASES)).includes(password));
    const credentials = await user.expect(200, `${DATABASES}/${made.database_id}/credentials`);
    assert.equal(credentials.connection.password, password);
    assert.ok(credentials.snippets.node.includes(password));
  });

  test('has a name that no other of the account has', async () => {
    const other = await newUser();
    await other.expect(201, DATABASES, { json: { name: 'shop' } });
    await other.refused(409, 'database_exists', [DATABASES, { json: { name: 'shop' } }]);
  });

  test('is made once under an Idempotency-Key, and its password told again', async () => {
    const call = { json: { name: 'once' }, headers: { 'idempotency-key': 'make-once' } };
    const first = await user.call(DATABASES, call);
    const again = await user.call(DATABASES, call);
    assert.deepEqual([first.status, again.status], [201, 201]);
    assert.deepEqual(again.body, first.body);
    assert.equal(again.headers.get('idempotent-replayed'), 'true');
  });

  test('may be had later', async () => {
    const call = { json: { name: 'later' }, headers: { prefer: 'respond-async' } };
    const { operation_id } = await user.expect(202, DATABASES, call);
    const { state, result } = await user.expect(200, `/api/operations/${operation_id}?wait=60`);
    assert.equal(state, 'succeeded');
    assert.equal(result.name, 'later');
  });

  test('50 at once at a quota of 5: exactly 5', async () => {
    const account = await anyone.register();
    const limited = anyone.as(account.api_key);
    const terms = { method: 'PATCH', json: { quotas: { databases: 5 } } };
    await admin.expect(200, `/api/admin/accounts/${account.id}`, terms);
    const requests = Array.from({ length: 50 }, (_, i) =>
      limited.call(DATABASES, { json: { name: `d${i}` } }),
    );
    const statuses = (await Promise.all(requests)).map(({ status, body }) => body.code ?? status);
    assert.equal(statuses.filter((status) => status === 201).length, 5, statuses.join());
    assert.equal(statuses.filter((status) => status === 'quota_exceeded').length, 45);
    assert.equal((await limited.expect(200, DATABASES)).length, 5);
  });
});

test('a listing has pages, oldest first', async () => {
  const lister = await newUser();
  for (const name of ['a', 'b', 'c']) await lister.expect(201, DATABASES, { json: { name } });
  const names: string[] = [];
  let path: string | undefined = `${DATABASES}?limit=2`;
  let pages = 0;
  while (path !== undefined) {
    const { headers, body } = await lister.call(path);
    for (const { name } of body) names.push(name);
    path = /<([^>]+)>; rel="next"/.exec(headers.get('link') ?? '')?.[1]?.replace(cloud.api, '');
    pages++;
  }
  assert.deepEqual([names, pages], [['a', 'b', 'c'], 2]);
  await lister.refused(400, 'invalid_cursor', [`${DATABASES}?cursor=nonsense`]);
});

test('a change of name, limit and protection is seen at once', async () => {
  const path = await newDatabase(user);
  const json = { name: 'renamed', size_limit_mb: 77, delete_protection: true };
  const changed = await user.expect(200, path, { method: 'PATCH', json });
  assert.deepEqual([changed.name, changed.size_limit_mb, changed.delete_protection], ['renamed', 77, true]);
  assert.deepEqual(await user.expect(200, path), changed);
  const other = await newDatabase(user);
  await user.refused(409, 'database_exists', [other, { method: 'PATCH', json: { name: 'renamed' } }]);
  await user.refused(409, 'delete_protected', [path, DELETE]);
  await user.expect(200, path, { method: 'PATCH', json: { delete_protection: false } });
  await user.expect(200, path, DELETE);
});

test('a rotation gives another password', async () => {
  const path = await newDatabase(user);
  const { connection: before } = await user.expect(200, `${path}/credentials`);
  const { connection, snippets } = await user.expect(200, `${path}/credentials/rotate`, POST);
  assert.notEqual(connection.password, before.password);
  assert.ok(snippets.cli.includes(connection.password));
  assert.deepEqual((await user.expect(200, `${path}/credentials`)).connection, connection);
});

describe('a copy', () => {
  test('has what was there, and goes its own way', async () => {
    const path = await newDatabase(user, 'CREATE TABLE t (x)', 'INSERT INTO t VALUES (1), (2)');
    const database_id = path.split('/').at(-1);
    const copy = await user.expect(201, DATABASES, { json: { name: 'copy', from: { database_id } } });
    assert.ok(copy.size_bytes > 0, 'its bytes are known');
    const copied = `${DATABASES}/${copy.database_id}`;
    await run(user, copied, 'DELETE FROM t WHERE x = 1');
    assert.deepEqual(await rowsOf(user, copied, 'SELECT x FROM t'), [[2]]);
    assert.deepEqual(await rowsOf(user, path, 'SELECT x FROM t'), [[1], [2]]);
  });

  test('is refused of what is not there, not yours, or of another engine', async () => {
    const from = { database_id: (await newDatabase(user)).split('/').at(-1) };
    const stranger = await newUser();
    const request = (json: object): [string, { json: object }] => [DATABASES, { json }];
    await stranger.refused(404, 'database_not_found', request({ name: 'x', from }));
    await user.refused(404, 'database_not_found', request({ name: 'x', from: { database_id: 'nonsense' } }));
    await user.refused(400, 'invalid_request', request({ name: 'x', engine: 'postgresql', from }));
    await user.refused(400, 'invalid_request', request({ name: 'x', from: {} }));
    await user.refused(400, 'invalid_request', request({ name: 'x', from: 'db' }));
  });
});

describe('a deleted database', () => {
  test('is brought back at any moment of its last dump, and nothing else ends by that', async () => {
    const path = await newDatabase(user, 'CREATE TABLE t (x)', 'INSERT INTO t VALUES (7)');
    for (let ms = 0; ms < 200; ms += 10) {
      await user.expect(200, path, DELETE);
      await sleep(ms);
      await user.expect(200, `${path}/undelete`, { json: {} });
    }
    assert.deepEqual(await rowsOf(user, path, 'SELECT x FROM t'), [[7]]);
  });

  test('is gone at once and for good with keep=false, also when it was deleted before', async () => {
    const live = await newDatabase(user);
    assert.equal((await user.expect(200, `${live}?keep=false`, DELETE)).deletes_at, null);
    const { hint } = await user.refused(404, 'database_not_found', [`${live}/undelete`, POST]);
    assert.equal(hint, undefined);
    const kept = await newDatabase(user);
    await user.expect(200, kept, DELETE);
    await user.refused(400, 'invalid_request', [`${kept}?keep=perhaps`, DELETE]);
    await user.expect(200, `${kept}?keep=false`, DELETE);
    await user.refused(404, 'database_not_found', [`${kept}/undelete`, POST]);
    await user.refused(404, 'database_not_found', [`${kept}?keep=false`, DELETE]);
  });

  test('is gone, and comes back with all that was in it and its password', async () => {
    const path = await newDatabase(user, 'CREATE TABLE t (x)', 'INSERT INTO t VALUES (7)');
    const before = await user.expect(200, `${path}/credentials`);
    const deleted = await user.expect(200, path, DELETE);
    assert.equal(deleted.state, 'deleting');
    assert.match(deleted.deletes_at, /^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d$/);
    const { hint } = await user.refused(404, 'database_not_found', [path]);
    assert.match(hint, /undelete/);
    for (const part of ['/credentials', '/tables', '/dump']) {
      await user.refused(404, 'database_not_found', [path + part]);
    }
    const listed = await user.expect(200, `${DATABASES}?deleted=true`);
    assert.ok(listed.some((one: { database_id: string }) => one.database_id === deleted.database_id));
    const back = await user.expect(200, `${path}/undelete`, { json: {} });
    assert.deepEqual([back.state, back.deletes_at, back.name], ['ready', null, deleted.name]);
    assert.deepEqual(await rowsOf(user, path, 'SELECT x FROM t'), [[7]]);
    assert.deepEqual((await user.expect(200, `${path}/credentials`)).connection, before.connection);
    await user.refused(404, 'database_not_found', [`${path}/undelete`, POST]);
  });

  test('leaves its name free for an empty one', async () => {
    const path = await newDatabase(user, 'CREATE TABLE t (x)');
    const { name } = await user.expect(200, path, DELETE);
    const made = await user.expect(201, DATABASES, { json: { name } });
    assert.deepEqual(await user.expect(200, `${DATABASES}/${made.database_id}/tables`), []);
    const { hint } = await user.refused(409, 'database_exists', [`${path}/undelete`, { json: {} }]);
    assert.match(hint, /name/);
    const back = await user.expect(200, `${path}/undelete`, { json: { name: `${name}-old` } });
    assert.equal(back.name, `${name}-old`);
    assert.equal((await user.expect(200, `${path}/tables`)).length, 1);
  });

  test('is brought back with quotas and credits asked as for a new one', async () => {
    const account = await anyone.register();
    const limited = anyone.as(account.api_key);
    const path = await newDatabase(limited);
    await limited.expect(200, path, DELETE);
    const terms = { method: 'PATCH', json: { quotas: { databases: 0 } } };
    await admin.expect(200, `/api/admin/accounts/${account.id}`, terms);
    await limited.refused(403, 'quota_exceeded', [`${path}/undelete`, { json: {} }]);
  });
});

test('what is not there is not found, by every operation', async () => {
  const calls: [string, object?][] = [
    [UNKNOWN],
    [UNKNOWN, { method: 'PATCH', json: { name: 'x' } }],
    [UNKNOWN, DELETE],
    [`${UNKNOWN}/undelete`, { json: {} }],
    [`${UNKNOWN}/credentials`],
    [`${UNKNOWN}/credentials/rotate`, POST],
    [`${UNKNOWN}/query`, { json: { statement: 'SELECT 1' } }],
    [`${UNKNOWN}/tables`],
    [`${UNKNOWN}/dump`],
    [`${DATABASES}/nonsense`],
  ];
  for (const call of calls) await user.refused(404, 'database_not_found', call);
});

describe('an access key', () => {
  const keyOf = async (scope: string) => {
    const json = { name: scope, scopes: [scope] };
    return anyone.as((await user.expect(201, '/api/account/access-keys', { json })).api_key);
  };

  test('that may only read sees what there is, and no password, row or dump', async () => {
    const path = await newDatabase(user);
    const reader = await keyOf('databases:read');
    await reader.expect(200, path);
    await reader.expect(200, DATABASES);
    await reader.expect(200, `${path}/tables`);
    const query = { json: { statement: 'SELECT 1' } };
    const refused: [string, object?][] = [
      [`${path}/credentials`],
      [`${path}/credentials/rotate`, POST],
      [`${path}/dump`],
      [`${path}/query`, query],
      [`${path}/undelete`, { json: {} }],
      [path, DELETE],
      [path, { method: 'PATCH', json: {} }],
      [DATABASES, { json: { name: 'x' } }],
    ];
    for (const call of refused) await reader.refused(403, 'scope_required', call);
  });

  test('of another area may do nothing here', async () => {
    const other = await keyOf('storage:*');
    await other.refused(403, 'scope_required', [DATABASES]);
  });
});

/** Invalid calls about databases, and their errors. */
import assert from 'node:assert/strict';
import { after, describe, test } from 'node:test';
import { CheckedClient } from '../harness/checked-client.ts';
import { CloudProcess } from '../harness/cloud-process.ts';
import { DATABASES, newDatabase } from './databases-kit.ts';

const cloud = await CloudProcess.start({ env: { CLOUDLET_DATABASE_SIZE_MB: '100' } });
after(() => cloud.stop());
const anyone = await CheckedClient.open(cloud.api);
const user = anyone.as((await anyone.register()).api_key);

/** The field named in the refusal of a creation or change. */
async function fieldOf(json: unknown, path = DATABASES, method = 'POST'): Promise<string> {
  const { errors } = await user.refused(400, 'invalid_request', [path, { method, json }]);
  return errors?.[0]?.field;
}

describe('a new database', () => {
  const names = ['', 'A', '1a', '-a', '_a', 'a b', 'ä', 'a/b', 'a.b', 'x'.repeat(64), 7, null, ['a'], {}];
  for (const name of names) {
    test(`is not named ${JSON.stringify(name)}`, async () => assert.equal(await fieldOf({ name }), 'name'));
  }

  test('is named', async () => assert.equal(await fieldOf({}), 'name'));

  test('may have the shortest name, the longest, and every character', async () => {
    for (const name of ['a', 'x'.repeat(63), 'a-z_09']) {
      assert.equal((await user.expect(201, DATABASES, { json: { name } })).name, name);
    }
  });

  for (const size of [0, -1, 1.5, '10', 101, 1e300, null]) {
    test(`has no size limit of ${JSON.stringify(size)}`, async () =>
      assert.equal(await fieldOf({ name: 'sized', size_limit_mb: size }), 'size_limit_mb'));
  }

  test('has the largest default that fits', async () => {
    const { size_limit_mb } = await user.expect(201, DATABASES, { json: { name: 'sized' } });
    assert.equal(size_limit_mb, 100);
  });

  for (const engine of ['oracle', '', 7]) {
    test(`has no engine ${JSON.stringify(engine)}`, async () =>
      assert.equal(await fieldOf({ name: 'x', engine }), 'engine'));
  }

  for (const engine of ['postgresql', 'mysql', 'mongodb']) {
    test(`of ${engine} is told to be not to be had yet, and the list says so too`, async () => {
      const listed = await anyone.expect(200, '/api/database-engines');
      const entry = listed.find((one: { engine: string }) => one.engine === engine);
      if (entry.available) return;
      const { hint } = await user.refused(503, 'engine_unavailable', [
        DATABASES,
        { json: { name: 'x', engine } },
      ]);
      assert.equal(hint, entry.fix);
    });
  }

  test('is a JSON object', async () => {
    for (const json of [[], 'shop', null]) await user.refused(400, 'invalid_request', [DATABASES, { json }]);
  });

  test('of which a member was mistyped is made, and the member named in a warning', async () => {
    const { status, headers } = await user.call(DATABASES, { json: { name: 'warned', size_limit: 5 } });
    assert.equal(status, 201);
    assert.match(headers.get('warning') ?? '', /Unknown member size_limit is ignored/);
  });
});

describe('a change', () => {
  test('has the same rules', async () => {
    const path = await newDatabase(user);
    assert.equal(await fieldOf({ name: 'A' }, path, 'PATCH'), 'name');
    assert.equal(await fieldOf({ size_limit_mb: 101 }, path, 'PATCH'), 'size_limit_mb');
    assert.equal(await fieldOf({ delete_protection: 'yes' }, path, 'PATCH'), 'delete_protection');
    assert.equal(await fieldOf({ name: 'A' }, `${path}/undelete`), 'name');
  });
});

test('the list of engines says what they allow', async () => {
  const [sqlite, ...others] = await anyone.expect(200, '/api/database-engines');
  assert.deepEqual([sqlite.engine, sqlite.available, sqlite.default], ['sqlite', true, true]);
  assert.equal(sqlite.limits.size_mb, 100);
  assert.equal(others.length, 3);
});

test('the list of engines says how each is asked, reached and named', async () => {
  const listed = await anyone.expect(200, '/api/database-engines');
  const facts = listed.map((one: Listed) => {
    const { language, dialect, transport, ...can } = one.traits;
    const able = Object.entries(can).flatMap(([name, has]) => (has ? [name] : []));
    return [one.title, language, dialect, transport, able, one.client?.programs ?? []];
  });
  const server = ['has_log', 'offers_tls', 'has_test_databases', 'has_account_server'];
  assert.deepEqual(facts, [
    ['SQLite', 'sql', 'sqlite', 'http', [], []],
    ['PostgreSQL', 'sql', 'postgresql', 'tcp', server, ['psql']],
    ['MySQL', 'sql', 'mysql', 'tcp', server, ['mariadb', 'mysql']],
    ['MongoDB', 'documents', null, 'tcp', ['offers_tls', 'has_test_databases'], ['mongosh']],
  ]);
  assert.ok(listed.every(({ summary }: Listed) => summary.endsWith('.')));
});

interface Listed {
  readonly title: string;
  readonly summary: string;
  readonly traits: Readonly<Record<string, string | boolean | null>>;
  readonly client: { readonly programs: readonly string[] } | null;
}

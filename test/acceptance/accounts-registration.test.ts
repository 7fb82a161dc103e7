/** Contract §3: who can register, with which fields, and the response. */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, test } from 'node:test';
import { CheckedClient } from '../harness/checked-client.ts';
import { CloudProcess } from '../harness/cloud-process.ts';

const directory = mkdtempSync(join(tmpdir(), 'cloudlet-blocklist-'));
const blocklist = join(directory, 'list');
writeFileSync(blocklist, 'letmein12345\n');
const cloud = await CloudProcess.start({ env: { CLOUDLET_PASSWORD_BLOCKLIST: blocklist } });
after(async () => {
  await cloud.stop();
  rmSync(directory, { recursive: true });
});
const client = await CheckedClient.open(cloud.api);

const PASSWORD = 'correct horse battery';
let counter = 0;

/** Valid fields, some of them replaced. */
function fields(replaced: Record<string, unknown> = {}): Record<string, unknown> {
  const username = `reg-${++counter}`;
  return { username, email: `${username}@example.org`, password: PASSWORD, ...replaced };
}

const register = (json: unknown) => client.call('/api/register', { json });

async function refusedFields(json: unknown): Promise<string[]> {
  const problem = await client.refused(400, 'invalid_request', ['/api/register', { json }]);
  assert.ok(problem.detail.includes(problem.errors[0].field), problem.detail);
  return problem.errors.map(({ field }: { field: string }) => field).sort();
}

describe('the answer to a registration', () => {
  test('has exactly these members', async () => {
    const before = Math.floor(Date.now() / 1000) * 1000;
    const { status, body } = await register({
      username: 'Ada.L_1-x',
      email: 'Ada@Example.org',
      password: PASSWORD,
    });
    assert.equal(status, 201);
    const { id, api_key, created_at, ...rest } = body;
    assert.deepEqual(rest, {
      username: 'Ada.L_1-x',
      email: 'Ada@Example.org',
      plan: 'free',
      credits: 10,
      is_active: true,
      last_login: null,
    });
    assert.ok(Number.isSafeInteger(id) && id > 0);
    assert.match(api_key, /^clk_[0-9A-Za-z]{38}$/);
    assert.match(created_at, /^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d$/);
    const at = Date.parse(`${created_at.replace(' ', 'T')}Z`);
    assert.ok(at >= before && at <= Date.now(), created_at);
  });

  test('gives a key that works at once, and ids and keys of its own', async () => {
    const accounts = await Promise.all(Array.from({ length: 8 }, () => client.register()));
    assert.equal(new Set(accounts.map(({ id }) => id)).size, 8);
    assert.equal(new Set(accounts.map(({ api_key }) => api_key)).size, 8);
    for (const { api_key, username } of accounts)
      assert.equal((await client.as(api_key).expect(200, '/api/account')).username, username);
  });

  test('takes nothing from the body but the three fields', async () => {
    const json = fields({
      id: 999_999,
      is_admin: true,
      credits: 1e6,
      plan: 'enterprise',
      is_active: false,
      api_key: 'clk_mine',
      created_at: '2001-01-01 00:00:00',
    });
    const { status, body } = await register(json);
    assert.equal(status, 201);
    assert.notEqual(body.id, 999_999);
    assert.notEqual(body.api_key, 'clk_mine');
    assert.deepEqual([body.credits, body.plan, body.is_active], [10, 'free', true]);
    assert.doesNotMatch(body.created_at, /^2001/);
    const profile = await client.as(body.api_key).expect(200, '/api/account');
    assert.deepEqual([profile.is_admin, profile.credits, profile.plan], [false, 10, 'free']);
    await client.as(body.api_key).refused(403, 'admin_required', ['/api/admin/accounts']);
  });
});

describe('accepted', () => {
  const long = 'a'.repeat(63);
  const accepted: Record<string, Record<string, unknown>> = {
    'a user name of 3 characters': { username: 'a.b' },
    'a user name of 64 characters': { username: 'x'.repeat(64) },
    'a user name of signs alone': { username: '._-' },
    'a user name that is a word of the prototype': { username: 'constructor' },
    'a user name of digits': { username: '12345' },
    'an e-mail address of 254 characters': { email: `${'e'.repeat(62)}@${`${long}.`.repeat(2)}${long}` },
    'an e-mail address with a plus sign and subdomains': { email: 'a+b.c@mail.example.co.uk' },
    'an e-mail address outside ASCII': { email: 'Jürgen@bücher.example' },
    'an e-mail address without a dot in its domain': { email: 'root@localhost' },
    'a password of 8 characters': { password: '        ' },
    'a password of 256 characters': { password: 'p'.repeat(256) },
    'a password of 256 characters outside the basic plane': { password: '🔑'.repeat(256) },
    'a password with a line break and quotes': { password: 'a\tb\n"\'--;' },
    'a password everybody knows': { password: 'password' },
  };
  for (const [what, replaced] of Object.entries(accepted)) {
    test(what, async () => {
      const json = fields(replaced);
      const { status, body } = await register(json);
      assert.equal(status, 201, JSON.stringify(body));
      const { username, password } = json;
      const account = await client.expect(200, '/api/login', { json: { username, password } });
      assert.deepEqual([account.username, account.email], [username, json.email]);
    });
  }
});

describe('refused', () => {
  const refused: Record<string, [string, unknown][]> = {
    username: [
      ['2 characters', 'ab'],
      ['65 characters', 'x'.repeat(65)],
      ['a space', 'a b c'],
      ['an at sign', 'a@b'],
      ['a slash', 'a/b'],
      ['a letter outside ASCII', 'jürgen'],
      ['a line break at the end', 'abc\n'],
      ['a NUL', 'abc\u0000'],
      ['markup', '<b>x</b>'],
      ['nothing', ''],
    ],
    email: [
      ['no at sign', 'ada.example.org'],
      ['two at signs', 'a@b@c.org'],
      ['no local part', '@example.org'],
      ['no domain', 'ada@'],
      ['a domain that begins with a dot', 'ada@.org'],
      ['a domain that ends with a dot', 'ada@example.org.'],
      ['two dots in the domain', 'ada@example..org'],
      ['a space', 'a da@example.org'],
      ['a line break', 'ada@example.org\nBcc: x@y.org'],
      ['255 characters', `${'e'.repeat(63)}@${`${'a'.repeat(63)}.`.repeat(2)}${'a'.repeat(63)}`],
    ],
    password: [
      ['a NUL', 'correct horse\u0000battery'],
      ['7 characters', '1234567'],
      ['257 characters', 'p'.repeat(257)],
      ['7 characters outside the basic plane', '🔑'.repeat(7)],
      ['half a surrogate pair', `12345678${String.fromCharCode(0xd800)}`],
      ['nothing', ''],
    ],
  };
  for (const [field, cases] of Object.entries(refused)) {
    for (const [what, value] of cases) {
      test(`${field}: ${what}`, async () => {
        assert.deepEqual(await refusedFields(fields({ [field]: value })), [field]);
      });
    }
    for (const value of [null, 5, 12345678, true, ['abc'], { a: 1 }]) {
      test(`${field}: ${JSON.stringify(value)}, which is no string`, async () => {
        assert.deepEqual(await refusedFields(fields({ [field]: value })), [field]);
      });
    }
    test(`${field}: missing`, async () => {
      assert.deepEqual(await refusedFields(fields({ [field]: undefined })), [field]);
    });
  }

  test('with all that is wrong at once', async () => {
    const all = ['email', 'password', 'username'];
    assert.deepEqual(await refusedFields({}), all);
    assert.deepEqual(await refusedFields({ username: 'a', email: 'b', password: 'c' }), all);
    assert.deepEqual(await refusedFields({ username: 1, email: 'b' }), all);
  });

  for (const json of [null, [], 'text', 5, true]) {
    test(`a body that is ${JSON.stringify(json)}`, async () => {
      await client.refused(400, 'invalid_request', ['/api/register', { json }]);
    });
  }

  test('no body', async () => {
    await client.refused(400, 'invalid_request', ['/api/register', { method: 'POST' }]);
  });
});

describe('what is taken', () => {
  test('names that stand for the cloud and its operator in the audit log', async () => {
    for (const username of ['Cloudlet', 'operator'])
      await client.refused(409, 'username_taken', ['/api/register', { json: fields({ username }) }]);
  });

  test('user names and e-mail addresses are compared without regard to case', async () => {
    const first = fields();
    assert.equal((await register(first)).status, 201);
    const username = String(first.username).toUpperCase();
    await client.refused(409, 'username_taken', ['/api/register', { json: fields({ username }) }]);
    const email = String(first.email).toUpperCase();
    await client.refused(409, 'email_taken', ['/api/register', { json: fields({ email }) }]);
  });

  test('both taken at once are both named', async () => {
    const first = fields();
    assert.equal((await register(first)).status, 201);
    const { status, body } = await register(first);
    assert.equal(status, 409);
    assert.deepEqual(body.errors.map(({ field }: { field: string }) => field).sort(), ['email', 'username']);
  });

  test('of 12 who want one name at the same time one gets it', async () => {
    const username = `race-${++counter}`;
    const answers = await Promise.all(
      Array.from({ length: 12 }, (_, i) =>
        register(fields({ username, email: `${username}-${i}@example.org` })),
      ),
    );
    const statuses = answers.map(({ status }) => status).sort();
    assert.deepEqual(statuses, [201, ...Array(11).fill(409)]);
    for (const { status, body } of answers) if (status === 409) assert.equal(body.code, 'username_taken');
  });

  test("a password on the operator's list is refused, at registration and later", async () => {
    const password = 'LetMeIn12345';
    const json = fields({ password });
    assert.deepEqual(await refusedFields(json), ['password']);
    const { body } = await register({ ...json, password: PASSWORD });
    const change = { method: 'PATCH', json: { password, current_password: PASSWORD } };
    await client.as(body.api_key).refused(400, 'invalid_request', ['/api/account', change]);
  });

  test('a refused registration leaves the name free', async () => {
    const json = fields();
    await client.refused(400, 'invalid_request', ['/api/register', { json: { ...json, password: 'x' } }]);
    assert.equal((await register(json)).status, 201);
  });
});

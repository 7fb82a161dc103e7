/** The audit log: who did what, stored with the effect, shown to the owner, and never with a secret. */
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { after, describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { CheckedClient } from '../harness/checked-client.ts';
import { sessionOf } from '../harness/client.ts';
import { ADMIN_KEY, CloudProcess } from '../harness/cloud-process.ts';
import { makeSetupLink } from '../harness/command.ts';
import { CliUser } from './cli-kit.ts';
import { newS3 } from './s3-kit.ts';

const cloud = await CloudProcess.start();
after(() => cloud.stop());
const anyone = await CheckedClient.open(cloud.api);
const admin = anyone.as(ADMIN_KEY);
const PASSWORD = 'correct horse battery';

interface Row {
  readonly id: number;
  readonly account_id: number | null;
  readonly actor_id: number | null;
  readonly actor: string;
  readonly via: string;
  readonly action: string;
  readonly target: string;
  readonly outcome: string;
  readonly status: number;
  readonly code: string;
  readonly detail: Record<string, unknown> | null;
  readonly times: number;
}

const rowsOf = (client: CheckedClient, query = ''): Promise<Row[]> =>
  client.expect(200, `/api/audit${query}`);

/** The newest entry of an action, which may be stored up to a second after the answer. */
async function entryOf(client: CheckedClient, action: string, query = ''): Promise<Row> {
  for (let tries = 0; ; tries++) {
    const [row] = await rowsOf(client, `?action=${action}${query}`);
    if (row !== undefined) return row;
    assert.ok(tries < 100, `no entry of ${action}`);
    await sleep(100);
  }
}

describe('an entry', () => {
  test('of a change is there with its answer, once, also under an Idempotency-Key', async () => {
    const { id, username, api_key } = await anyone.register();
    const client = anyone.as(api_key);
    const call = { json: { name: 'audited' }, headers: { 'idempotency-key': 'one', 'user-agent': 'try/1' } };
    await client.expect(201, '/api/buckets', call);
    await client.expect(201, '/api/buckets', call);
    const rows = await rowsOf(client, '?action=createBucket');
    assert.equal(rows.length, 1);
    const { actor, actor_id, account_id, via, target, outcome, status } = rows[0] as Row;
    const expected = [username, id, id, 'key', 'audited', 'done', 201];
    assert.deepEqual([actor, actor_id, account_id, via, target, outcome, status], expected);
    await client.expect(200, '/api/buckets/audited', { method: 'PATCH', json: { versioning: true } });
    assert.deepEqual((await entryOf(client, 'changeBucket')).detail, { changed: ['versioning'] });
    await client.refused(409, 'bucket_exists', ['/api/buckets', { json: { name: 'audited' } }]);
    const refused = await entryOf(client, 'createBucket', '&outcome=refused');
    assert.deepEqual([refused.status, refused.code], [409, 'bucket_exists']);
    await client.upload('audited', 'a.txt', 'bytes');
    const names = new Set((await rowsOf(client)).map(({ action }) => action));
    assert.deepEqual(names, new Set(['register', 'createBucket', 'changeBucket']), 'objects have none');
  });

  test('of an operation that is answered before its end is stored with its effect', async () => {
    const client = anyone.as((await anyone.register()).api_key);
    const call = { json: { name: 'later' }, headers: { prefer: 'respond-async' } };
    await client.expect(202, '/api/buckets', call);
    assert.equal((await entryOf(client, 'createBucket')).target, 'later');
  });

  test('of a sign-in names the account, and a wrong password is counted', async () => {
    const { id, username } = await anyone.register();
    const json = { username, password: PASSWORD };
    const session = anyone.as(undefined);
    const signedIn = await session.call('/api/login', { json });
    const row = await entryOf(admin, 'login', `&account_id=all&actor=${id}`);
    assert.deepEqual([row.actor, row.account_id, row.outcome], [username, id, 'done']);
    const other = sessionOf(await session.call('/api/login', { json }));
    await session.expect(200, '/api/logout', { method: 'POST', headers: other });
    await session.expect(200, '/api/logout', { method: 'POST', headers: other });
    await session.expect(200, '/api/logout', { method: 'POST' });
    const out = await entryOf(admin, 'logout', `&account_id=${id}`);
    assert.deepEqual([out.actor_id, out.account_id, out.outcome], [id, id, 'done']);
    const ends = await rowsOf(admin, `?action=logout&account_id=all&actor=${id}`);
    assert.equal(ends.length, 1, 'only of a session that was one');
    const own = { headers: sessionOf(signedIn) };
    assert.equal((await session.expect(200, '/api/account?api_key=false', own)).api_key, null);
    assert.notEqual((await session.expect(200, '/api/account', own)).api_key, null);
    const secret = await entryOf(admin, 'getAccount', `&account_id=${id}`);
    assert.equal(secret.via, 'session');
    const all = await rowsOf(admin, `?action=getAccount&account_id=${id}`);
    assert.equal(all.length, 1, 'none without the key');
    for (let i = 0; i < 3; i++)
      await anyone.refused(401, 'invalid_credentials', ['/api/login', { json: { ...json, password: 'no' } }]);
    const refused = await entryOf(admin, 'login', `&account_id=${id}&outcome=refused`);
    assert.deepEqual([refused.actor, refused.code], ['', 'invalid_credentials'], 'its owner sees that, too');
    const unknown = { username: 'nobody-has-this', password: 'no' };
    await anyone.refused(401, 'invalid_credentials', ['/api/login', { json: unknown }]);
    await entryOf(admin, 'login', '&account_id=0&outcome=refused');
  });

  test("of an administrator's change is seen by who is concerned", async () => {
    const { id, api_key } = await anyone.register();
    await admin.expect(200, `/api/admin/accounts/${id}/api-key`, { method: 'POST' });
    const row = await entryOf(anyone.as(api_key), 'adminShowApiKey');
    assert.deepEqual([row.actor, row.target, row.account_id], ['admin', String(id), id]);
    await admin.expect(200, `/api/admin/accounts/${id}/credits`, { json: { amount: 2, reason: 'prize' } });
    const { detail } = await entryOf(anyone.as(api_key), 'adminAdjustCredits');
    assert.deepEqual(detail, { amount: 2, reason: 'prize' });
    const made = await admin.expect(201, '/api/admin/invitations', { json: { label: 'class 7b' } });
    assert.equal((await entryOf(admin, 'adminCreateInvitation')).target, made.id);
  });

  test('of what somebody without a key does to an account by a link or a code is seen by its owner', async () => {
    const { id, api_key } = await anyone.register();
    const owner = anyone.as(api_key);
    const { url } = await admin.expect(201, `/api/admin/accounts/${id}/reset-link`, { method: 'POST' });
    const reset = { token: url.split('#token=')[1], password: 'another battery' };
    await anyone.expect(200, '/api/reset-password', { json: reset });
    assert.deepEqual((await entryOf(owner, 'resetPassword')).account_id, id);

    const verifier = 'v'.repeat(43);
    const redirect_uri = 'http://127.0.0.1:4711/callback';
    const wanted = { name: 'a laptop', scopes: ['storage:read'] };
    const challenge = createHash('sha256').update(verifier).digest('base64url');
    const approval = { ...wanted, redirect_uri, code_challenge: challenge, code_challenge_method: 'S256' };
    const { code } = await owner.expect(201, '/api/login/approvals', { json: approval });
    const exchange = { code, code_verifier: verifier, redirect_uri };
    const byBrowser = await anyone.expect(201, '/api/login/key', { json: exchange });

    const { device_code, user_code } = await anyone.expect(201, '/api/login/device', { json: wanted });
    await owner.expect(200, '/api/login/device/decide', { json: { user_code, approve: true } });
    assert.deepEqual((await entryOf(owner, 'decideDeviceLogin')).detail, { approve: true });
    const byCode = await anyone.expect(201, '/api/login/device/key', { json: { device_code } });
    for (const [action, key] of [
      ['redeemLoginCode', byBrowser],
      ['pollDeviceLogin', byCode],
    ]) {
      const { account_id, target, outcome } = await entryOf(owner, action);
      assert.deepEqual([account_id, target, outcome], [id, key.id, 'done'], action);
    }
  });

  test('of a secret is there again when its operation shows it again', async () => {
    const owner = anyone.as((await anyone.register()).api_key);
    const json = { name: 'shown again', scopes: ['storage:read'] };
    const call = { json, headers: { prefer: 'respond-async' } };
    const { operation_id: id } = await owner.expect(202, '/api/account/access-keys', call);
    const { result } = await owner.expect(200, `/api/operations/${id}?wait=30`);
    assert.match(result.secret_access_key, /^\w{40}$/);
    await owner.expect(200, `/api/operations/${id}`);
    const shown = await rowsOf(owner, '?action=getOperation');
    assert.deepEqual(
      shown.map(({ target, outcome }) => [target, outcome]),
      [
        [id, 'done'],
        [id, 'done'],
      ],
      'stored before the answer, each time',
    );
    const bucket = { json: { name: 'no-secret' }, headers: { prefer: 'respond-async' } };
    const { operation_id: other } = await owner.expect(202, '/api/buckets', bucket);
    await owner.expect(200, `/api/operations/${other}?wait=30`);
    assert.equal((await rowsOf(owner, '?action=getOperation')).length, 2, 'nor of one without a secret');
  });

  test('of what a right is lacking for', async () => {
    const { id, api_key } = await anyone.register();
    await anyone.as(api_key).refused(403, 'admin_required', ['/api/admin/accounts']);
    const row = await entryOf(anyone.as(api_key), 'adminListAccounts');
    assert.deepEqual([row.actor_id, row.outcome, row.code], [id, 'refused', 'admin_required']);
  });

  test('of S3, where buckets change and not where objects do', async () => {
    const client = anyone.as((await anyone.register()).api_key);
    const s3 = await newS3(cloud.data, client);
    await s3.ok('PUT', '/by-s3-audited');
    const row = await entryOf(client, 's3CreateBucket');
    assert.deepEqual([row.target, row.outcome], ['by-s3-audited', 'done']);
    await s3.ok('PUT', '/by-s3-audited/a', { body: 'x' });
    assert.equal((await s3.call('DELETE', '/by-s3-audited')).status, 409);
    const refused = await entryOf(client, 's3DeleteBucket');
    assert.deepEqual([refused.outcome, refused.code], ['refused', 'BucketNotEmpty']);
    assert.deepEqual(await rowsOf(client, '?action=s3PutObject'), []);
  });

  test('of the operator on the host', async () => {
    await assert.rejects(makeSetupLink(cloud.dataDir));
    const { via, actor, code } = await entryOf(admin, 'adminCreateSetupLink', '&account_id=all');
    assert.deepEqual([via, actor, code], ['control', 'operator', 'administrator_exists']);
  });
});

describe('the list', () => {
  test('shows an owner its own only, in pages, as lines, filtered', async () => {
    const [first, second] = [await anyone.register(), await anyone.register()];
    const client = anyone.as(first.api_key);
    for (let i = 0; i < 5; i++) await client.expect(201, '/api/buckets', { json: { name: `page-${i}` } });
    const all = await rowsOf(client);
    assert.ok(all.every(({ account_id }) => account_id === first.id));
    assert.deepEqual(await rowsOf(anyone.as(second.api_key), '?action=createBucket'), []);
    for (const other of [String(second.id), 'all'])
      await client.refused(403, 'admin_required', [`/api/audit?account_id=${other}`]);
    assert.equal((await entryOf(client, 'listAudit')).code, 'admin_required', 'refused within a read');
    const found: number[] = [];
    for (let url: string | undefined = '/api/audit?limit=2&action=createBucket'; url !== undefined; ) {
      const { body, headers } = await client.call(url);
      found.push(...body.map(({ id }: Row) => id));
      url = /<([^>]+)>; rel="next"/.exec(headers.get('link') ?? '')?.[1]?.replace(/^https?:\/\/[^/]+/, '');
    }
    assert.equal(found.length, 5);
    assert.deepEqual(
      found,
      [...found].sort((a, b) => b - a),
    );
    const lines = await client.fetch('/api/audit?format=jsonl&target=page-3');
    assert.match(lines.headers.get('content-type') ?? '', /x-ndjson/);
    assert.deepEqual(
      (await lines.text())
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line).target),
      ['page-3'],
    );
    assert.deepEqual(await rowsOf(client, '?from=2999-01-01%2000:00:00'), []);
    await client.refused(400, 'invalid_request', ['/api/audit?from=yesterday']);
  });

  test('is shown, exported and verified by the client', async () => {
    const user = await CliUser.signedIn(cloud.api);
    const chief = new CliUser();
    try {
      await chief.ok(['login', cloud.api, '--key', '-'], { input: ADMIN_KEY });
      await user.ok(['mb', 'by-client']);
      assert.match(
        await user.ok(['audit', 'ls']),
        /^AT +WHO +ACTION +TARGET .*\n.* s3CreateBucket +by-client +done/,
      );
      await user.fails(4, ['audit', 'ls', '--account', 'all']);
      await user.fails(2, ['audit', 'ls', '--outcome', 'good']);
      await assert.rejects(makeSetupLink(cloud.dataDir));
      const refused = await chief.ok(['audit', 'ls', '--account', 'all', '--action', 'adminCreateSetupLink']);
      assert.match(refused, /\n.* \(operator\) +adminCreateSetupLink /, 'not like an account of that name');
      const lines = await chief.ok(['audit', 'export', '--account', 'all', '--target', 'by-client']);
      assert.deepEqual(
        lines
          .trim()
          .split('\n')
          .map((line) => JSON.parse(line).action),
        ['s3CreateBucket'],
      );
      assert.match(await chief.ok(['audit', 'verify']), /verified; \d+ rows not sealed yet/);
    } finally {
      user.remove();
      chief.remove();
    }
  });

  test('stays when the account is closed, and survives a kill with its effect', async () => {
    const { id, api_key } = await anyone.register();
    const client = anyone.as(api_key);
    const names = Array.from({ length: 20 }, (_, i) => `killed-${i}`);
    const made = names.map((name) => client.call('/api/buckets', { json: { name } }).catch(() => undefined));
    await Promise.race(made);
    await cloud.crash();
    await Promise.all(made);
    await cloud.start();
    const again = (await CheckedClient.open(cloud.api)).as(api_key);
    const buckets = (await again.expect(200, '/api/buckets')).map(({ name }: { name: string }) => name);
    const rows = await rowsOf(again, '?action=createBucket&outcome=done');
    assert.ok(rows.length > 0);
    assert.deepEqual(new Set(rows.map(({ target }) => target)), new Set(buckets));
    await again.expect(200, '/api/account', { method: 'DELETE' });
    const chief = again.as(ADMIN_KEY);
    assert.equal((await entryOf(chief, 'closeAccount', `&account_id=${id}`)).target, String(id));
    const verified = await chief.expect(200, '/api/admin/audit/verify');
    assert.deepEqual([verified.ok, verified.fault], [true, null]);
  });
});

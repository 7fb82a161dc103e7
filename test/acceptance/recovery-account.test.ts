/** One account of a recovery point, restored by an administrator as a new account. */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { after, before, test } from 'node:test';
import type { CheckedClient } from '../harness/checked-client.ts';
import { runCloudlet } from '../harness/command.ts';
import { eventually } from '../harness/waiting.ts';
import { LosableCloud, POINTS, POST } from './recovery-kit.ts';
import { newKeyPair, pathOf, S3Client, setVersioning } from './s3-kit.ts';
import { cannotRunGuests, newVm, removeAll } from './vms-kit.ts';

const skipsGuests = cannotRunGuests();
let lost: LosableCloud;
before(async () => {
  lost = await LosableCloud.start();
});
after(() => lost.end());

interface Item {
  readonly kind: string;
  readonly name: string;
  readonly source_id: string;
  readonly made_id: string | null;
  readonly refusal: string | null;
  readonly lacks: readonly string[];
}

const pathTo = (point: string, account: string) => `${POINTS}/${point}/accounts/${account}/restore`;
const restore = (point: string, account: string, json: object) =>
  lost.admin.expect(200, pathTo(point, account), { json });
const named = (username: string) => ({ username, email: `${username}@example.org` });
const query = async (user: CheckedClient, id: string, statement: string) =>
  (await user.expect(200, `/api/databases/${id}/query`, { json: { statement, read_only: false } })).rows;

let accounts = 0;

/** An account with a bucket with versions and a database. */
async function fullAccount() {
  const bucket = `photos-${++accounts}`;
  const account = await lost.user.register();
  const user = lost.user.as(account.api_key);
  const s3 = new S3Client(lost.cloud.data, await newKeyPair(user));
  await s3.ok('PUT', `/${bucket}`);
  await setVersioning(s3, bucket, 'Enabled');
  for (const body of ['first', 'second']) await s3.ok('PUT', pathOf(bucket, 'a'), { body });
  await s3.ok('PUT', pathOf(bucket, 'large'), { body: randomBytes(300_000) });
  await s3.ok('DELETE', pathOf(bucket, 'large'));
  const { database_id } = await user.expect(201, '/api/databases', { json: { name: 'shop' } });
  await query(user, database_id, "CREATE TABLE notes AS SELECT 'kept' AS x");
  return { account, user, s3, bucket, database_id };
}

test('buckets and databases are there again, once, and nothing that lets anybody in', async () => {
  const { account, user, s3, bucket, database_id } = await fullAccount();
  const { point_id } = await lost.point();
  const before = await user.expect(200, `/api/buckets/${bucket}`);
  await user.expect(200, `/api/buckets/${bucket}?force=true`, { method: 'DELETE' });
  await query(user, database_id, 'DROP TABLE notes');
  const preview = await restore(point_id, account.username, { ...named('back'), preview: true });
  assert.deepEqual(
    preview.items.map(({ kind, name, made_id }: Item) => [kind, name, made_id]),
    [
      ['bucket', bucket, null],
      ['database', 'shop', null],
    ],
  );
  assert.deepEqual([preview.state, preview.account.account_id], ['preview', null]);
  const done = await restore(point_id, String(account.id), named('back'));
  assert.equal(done.state, 'complete', JSON.stringify(done));
  const back = lost.user.as(done.account.api_key);
  const profile = await back.expect(200, '/api/profile');
  assert.deepEqual([profile.username, profile.id, profile.credits], ['back', done.account.account_id, 10]);
  const { created_at: _, ...now } = await back.expect(200, `/api/buckets/${bucket}`);
  const { created_at: __, ...then } = before;
  assert.deepEqual(now, then);
  const made = done.items.find(({ kind }: Item) => kind === 'database').made_id;
  assert.notEqual(made, database_id);
  assert.deepEqual(await query(back, made, 'SELECT x FROM notes'), [['kept']]);
  // The keys, the session and the passwords of the old account still belong to the old account only.
  assert.equal((await user.expect(200, '/api/profile')).username, account.username);
  // The name is reserved for it: it does not lead to the bucket of the new account.
  assert.equal((await s3.call('GET', `/${bucket}`)).status, 404);
  await user.refused(404, 'database_not_found', [`/api/databases/${made}`]);
  const login = { json: { username: 'back', password: 'correct horse battery' } };
  await lost.user.refused(401, 'invalid_credentials', ['/api/login', login]);
  const again = await restore(point_id, account.username, named('back'));
  assert.deepEqual([again.state, again.account.api_key], ['complete', null]);
  assert.deepEqual(
    again.items.map(({ made_id }: Item) => made_id),
    done.items.map(({ made_id }: Item) => made_id),
  );
  assert.equal((await back.expect(200, '/api/databases')).length, 1);
  assert.deepEqual((await back.expect(200, `/api/buckets/${bucket}`)).version_count, before.version_count);
});

test('only administrators restore accounts, and only of what is there', async () => {
  const { account, user } = await fullAccount();
  const { point_id } = await lost.point();
  const json = named('stolen');
  await user.refused(403, 'admin_required', [pathTo(point_id, account.username), { json }]);
  const at = (point: string, who: string) => pathTo(point, who);
  await lost.admin.refused(404, 'point_not_found', [at('drp-none', account.username), { json }]);
  await lost.admin.refused(404, 'account_not_found', [at(point_id, 'nobody-of-that-name'), { json }]);
  const taken = { username: account.username, email: 'other@example.org' };
  await lost.admin.refused(409, 'username_taken', [at(point_id, account.username), { json: taken }]);
  const wrong = { username: 'x', email: 'no address' };
  await lost.admin.refused(400, 'invalid_request', [at(point_id, account.username), { json: wrong }]);
  await restore(point_id, account.username, named('first-back'));
  const other = await lost.point();
  const mixed = [at(other.point_id, account.username), { json: named('first-back') }] as const;
  await lost.admin.refused(409, 'username_taken', [...mixed]);
});

test('a quota refuses, says so, and the rest comes when it is mended', async () => {
  const { account } = await fullAccount();
  const { point_id } = await lost.point();
  const plan = (databases: number | null) =>
    lost.admin.expect(200, '/api/admin/plans/free', { method: 'PATCH', json: { quotas: { databases } } });
  const { quotas } = await plan(0);
  assert.equal(quotas.databases, 0);
  const some = await restore(point_id, account.username, named('bounded'));
  assert.equal(some.state, 'partial');
  const shop = some.items.find(({ kind }: Item) => kind === 'database');
  assert.match(shop.refusal, /quota of 0 databases/);
  await plan(50);
  const rest = await restore(point_id, account.username, named('bounded'));
  assert.equal(rest.state, 'complete', JSON.stringify(rest));
});

async function fillMany(s3: S3Client, bucket: string): Promise<void> {
  await s3.ok('PUT', `/${bucket}`);
  for (let i = 0; i < 600; i += 30) {
    const keys = Array.from({ length: 30 }, (_, at) => `f-${i + at}`);
    await Promise.all(keys.map((key) => s3.ok('PUT', pathOf(bucket, key), { body: randomBytes(20_000) })));
  }
}

test('a restore that is cancelled goes on when it is repeated', async () => {
  const { account, s3 } = await fullAccount();
  await fillMany(s3, 'cancelled');
  const { point_id } = await lost.point();
  const later = { json: named('cancelled'), headers: { prefer: 'respond-async' } };
  const { operation_id } = await lost.admin.expect(202, pathTo(point_id, account.username), later);
  const path = `/api/operations/${operation_id}`;
  await eventually('it has begun', async () => {
    const { progress } = await lost.admin.expect(200, path);
    return progress !== null && progress.total === 3 ? true : undefined;
  });
  const { state, error } = await lost.admin.expect(200, `${path}/cancel?wait=30`, POST);
  assert.deepEqual([state, error.code], ['failed', 'operation_cancelled'], JSON.stringify(error));
  const done = await restore(point_id, account.username, named('cancelled'));
  assert.deepEqual([done.state, done.account.api_key], ['complete', null], JSON.stringify(done));
});

test('a killed restore goes on without doubles', async () => {
  const { account, s3 } = await fullAccount();
  await fillMany(s3, 'many');
  const { point_id } = await lost.point();
  const broken = lost.admin
    .call(pathTo(point_id, account.username), { json: named('killed') })
    .catch(() => undefined);
  const made = async () =>
    (await lost.admin.expect(200, '/api/admin/accounts')).filter(
      ({ username }: { username: string }) => username === 'killed',
    );
  await eventually('it has begun', async () => {
    const [row] = await made();
    return row !== undefined && row.storage_bytes > 400_000 ? true : undefined;
  });
  await lost.cloud.crash();
  await broken;
  await lost.startAgain();
  assert.equal((await made()).length, 1);
  const done = await restore(point_id, account.username, named('killed'));
  assert.deepEqual([done.state, done.account.api_key], ['complete', null], JSON.stringify(done));
  const { api_key } = await lost.admin.expect(
    200,
    `/api/admin/accounts/${done.account.account_id}/api-key`,
    POST,
  );
  const back = lost.user.as(api_key);
  assert.equal((await back.expect(200, '/api/buckets/many')).version_count, 600);
  assert.equal((await back.expect(200, '/api/databases')).length, 1);
});

test('the operator does it with a command', async () => {
  const { account } = await fullAccount();
  const { point_id } = await lost.point();
  const run = (...more: string[]) =>
    runCloudlet(
      [
        'recovery',
        'account',
        point_id,
        account.username,
        '--as',
        'by-hand',
        '--email',
        'b@example.org',
        ...more,
      ],
      { env: { CLOUDLET_DATA_DIR: lost.dataDir }, timeoutMs: 100_000 },
    );
  const preview = await run('--preview');
  assert.match(preview.stdout, /database +shop .* would be restored\n2 resources of .* nothing was changed/s);
  const done = await run();
  assert.equal(done.code, 0, done.stderr);
  const key = /shown once: (\S+)/.exec(done.stdout)?.[1] ?? '';
  assert.equal((await lost.user.as(key).expect(200, '/api/profile')).username, 'by-hand');
});

test('machines are there again, stopped, with their disks', { skip: skipsGuests }, async () => {
  const { account, user } = await fullAccount();
  const vm = (await newVm(user)).split('/').at(-1);
  const { point_id } = await lost.point();
  const done = await restore(point_id, account.username, named('with-machine'));
  assert.equal(done.state, 'complete', JSON.stringify(done));
  const back = lost.user.as(done.account.api_key);
  const [machine] = await back.expect(200, '/api/vms');
  assert.notEqual(machine.vm_id, vm);
  assert.ok(['created', 'stopped'].includes(machine.state), machine.state);
  const again = await restore(point_id, account.username, named('with-machine'));
  assert.equal(again.state, 'complete');
  assert.equal((await back.expect(200, '/api/vms')).length, 1);
  for (const owner of [user, back]) await removeAll(owner);
});

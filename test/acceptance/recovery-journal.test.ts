/** What was revoked after a point stays revoked when the point is restored. */
import assert from 'node:assert/strict';
import { globSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { CheckedClient } from '../harness/checked-client.ts';
import { eventually } from '../harness/waiting.ts';
import { LosableCloud, POST } from './recovery-kit.ts';

const KEYS = '/api/account/access-keys';
const PASSWORD = 'correct horse battery';
let lost: LosableCloud;
before(async () => {
  lost = await LosableCloud.start({ CLOUDLET_RECOVERY_JOURNAL_SECONDS: '1' });
});
after(() => lost.end());

const client = (key?: string) => CheckedClient.open(lost.cloud.api, key);
const works = async (key: string) => (await (await client(key)).call('/api/account')).status === 200;
const login = async (username: string, password: string) =>
  (await (await client()).call('/api/login', { json: { username, password } })).status;

/** Once the current state was recorded, by a run that started after it. */
async function written(): Promise<void> {
  const folder = join(lost.target, 'journals');
  const times = () =>
    globSync(join(folder, '*')).map((path) => statSync(path, { throwIfNoEntry: false })?.mtimeMs);
  for (let runs = 0; runs < 2; runs++) {
    const before = await eventually('there is a journal', () => times()[0]);
    await eventually('the journal is written', () => times()[0] !== before);
  }
}

test('keys, passwords and accounts that were revoked since are refused, the others work', async () => {
  const anyone = await client();
  const [same, ending, rotated, changed, closed] = [
    await anyone.register(),
    await anyone.register(),
    await anyone.register(),
    await anyone.register(),
    await anyone.register(),
  ];
  const owner = lost.user;
  const newKey = (fields: object) =>
    owner.expect(201, KEYS, { json: { name: 'k', scopes: ['*'], ...fields } });
  const [kept, revoked] = [await newKey({}), await newKey({})];
  const { point_id: id } = await lost.point();
  await lost.keepKey();
  await owner.expect(200, `${KEYS}/${revoked.id}`, { method: 'DELETE' });
  await anyone.as(rotated.api_key).expect(200, '/api/account/api-key', POST);
  const overlap = { json: { overlap_seconds: 86_400 } };
  const { previous_key_expires_at: endsAt } = await anyone
    .as(ending.api_key)
    .expect(200, '/api/account/api-key', overlap);
  const password = { current_password: PASSWORD, password: 'another horse battery' };
  await anyone.as(changed.api_key).expect(200, '/api/account', { method: 'PATCH', json: password });
  await anyone.as(closed.api_key).expect(200, '/api/account', { method: 'DELETE' });
  const late = await anyone.register();
  const lateKey = await newKey({});
  await written();
  const { stdout } = await lost.lose(id);
  assert.match(stdout, /Revocations up to \S+ \S+ UTC are applied/);
  assert.match(
    stdout,
    new RegExp(`API keys revoked or changed after the point are revoked: .*${revoked.id}`),
  );
  assert.match(stdout, new RegExp(`1 accounts closed or suspended after the point .*: ${closed.id}\n`));
  assert.match(stdout, new RegExp(`1 accounts have no password.*: ${changed.id}\n`));
  assert.match(stdout, new RegExp(`1 accounts created after the point are lost: ${late.id}\n`));
  assert.match(stdout, new RegExp(`keys created after the point are lost: .*${lateKey.id}`));
  for (const { api_key: key } of [same, kept, ending, changed]) assert.ok(await works(key));
  for (const { api_key: key } of [revoked, rotated, closed]) assert.ok(!(await works(key)));
  assert.equal(await login(same.username, PASSWORD), 200);
  assert.equal(await login(changed.username, PASSWORD), 401);
  assert.equal(await login(changed.username, password.password), 401);
  assert.equal(await login(closed.username, PASSWORD), 403);
  assert.ok((await (await client()).register()).id > late.id + 10_000);
  // The account that was closing is removed at its time.
  assert.notEqual(endsAt, null);
  const current = await (await client(ending.api_key)).call('/api/account/api-key', POST);
  assert.equal(current.body.code, 'scope_required');
});

test('without a journal the restore says so, and can revoke all keys', async () => {
  await lost.point();
  // It would write another one.
  await lost.cloud.end();
  rmSync(join(lost.target, 'journals'), { recursive: true });
  const known = await lost.restore(join(lost.root, 'unknown'));
  assert.match(
    known.stdout,
    /passwords changed after the recovery point was taken are valid again: no journal found/,
  );
  const none = await lost.restore(join(lost.root, 'none'), '--revoke-all-keys');
  assert.match(none.stdout, /All keys were revoked/);
});

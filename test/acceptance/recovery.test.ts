/** A cloud that is lost and restored: points, their key, and the restore into an empty directory. */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import {
  chownSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { CheckedClient } from '../harness/checked-client.ts';
import { type SessionHeaders, sessionOf } from '../harness/client.ts';
import { ADMIN_KEY, CloudProcess } from '../harness/cloud-process.ts';
import { runCloudlet } from '../harness/command.ts';
import { POINTS, POST } from './recovery-kit.ts';

const root = mkdtempSync(join(tmpdir(), 'cloudlet-recovery-'));
after(() => rmSync(root, { recursive: true, force: true }));

/** Pieces and manifests of a recovery target, in a fixed order. */
function filesOf(target: string, folder: string): string[] {
  return readdirSync(join(target, folder), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
    .sort();
}

describe('a cloud with objects, keys and an old version', () => {
  const dataDir = join(root, 'data');
  const target = join(root, 'target');
  const keyFile = join(root, 'key');
  const contents = new Map<string, Buffer>();
  let cloud: CloudProcess;
  let admin: CheckedClient;
  let user: CheckedClient;
  let session: SessionHeaders;
  let resetToken: string;
  let versions: unknown;
  const restore = (to: string, ...more: string[]) =>
    runCloudlet(['recovery', 'restore', '--from', target, '--to', to, '--key-file', keyFile, ...more], {
      env: {},
    });

  before(async () => {
    cloud = await CloudProcess.start({ dataDir, env: { CLOUDLET_RECOVERY_TARGET: target } });
    const anyone = await CheckedClient.open(cloud.api);
    admin = anyone.as(ADMIN_KEY);
    const account = await anyone.register();
    user = anyone.as(account.api_key);
    const login = { username: account.username, password: 'correct horse battery' };
    const answer = await anyone.call('/api/login', { json: login });
    session = sessionOf(answer);
    const { url } = await admin.expect(201, `/api/admin/accounts/${account.id}/reset-link`, POST);
    resetToken = new URL(url).hash.slice('#token='.length);
    await user.expect(201, '/api/buckets', { json: { name: 'plain', versioning: true } });
    await user.expect(201, '/api/buckets', { json: { name: 'sealed', encryption: true } });
    for (const bucket of ['plain', 'sealed']) {
      for (const [name, bytes] of [
        ['small', randomBytes(100)],
        ['large', randomBytes(2_500_000)],
        ['zeros', Buffer.alloc(1_200_000)],
      ] as const) {
        const { body } = await user.upload(bucket, name, bytes);
        contents.set(body.object_id, bytes);
      }
    }
    const { body } = await user.upload('plain', 'large', randomBytes(70_000));
    contents.set(`${body.object_id}?version_id=${body.version_id}`, await download(body.object_id));
    versions = await versionsOf(user);
    for (const id of contents.keys()) contents.set(id, await download(id));
  });
  after(() => cloud.end());

  /** All members except the time of the last read. */
  async function versionsOf(owner: CheckedClient): Promise<unknown[]> {
    const listed = await owner.expect(200, '/api/buckets/plain/files?include_versions=true');
    return listed.map((entry: object) => ({ ...entry, last_accessed: null }));
  }

  function download(id: string, from: CheckedClient = user): Promise<Buffer> {
    const [object = '', query] = id.split('?');
    return from.download(object, query === undefined ? '' : `?${query}`);
  }

  test('only administrators make, see or stop points', async () => {
    for (const [method, path] of [
      ['POST', POINTS],
      ['GET', POINTS],
      ['POST', '/api/admin/recovery-key'],
    ] as const) {
      assert.equal((await user.call(path, { method })).body.code, 'admin_required');
    }
    const none = await admin.call(`${POINTS}/drp-none`);
    assert.equal(none.body.code, 'point_not_found');
  });

  test('a bare POST makes one, and a second adds only what is new', async () => {
    const first = await admin.expect(201, `${POINTS}?wait=60`, POST);
    assert.equal(first.state, 'complete');
    assert.equal(first.percent, 100);
    assert.deepEqual(first.gaps, []);
    assert.match(first.manifest_sha256, /^[0-9a-f]{64}$/);
    const { accounts, buckets, objects, versions: kept } = first.contents;
    assert.deepEqual({ accounts, buckets, objects, kept }, { accounts: 2, buckets: 2, objects: 6, kept: 7 });
    const second = await admin.expect(201, `${POINTS}?wait=60`, POST);
    assert.equal(second.state, 'complete');
    assert.ok(second.stored_bytes < first.stored_bytes / 20, `${second.stored_bytes} bytes`);
    const listed = await admin.expect(200, POINTS);
    assert.deepEqual(
      listed.map((point: { point_id: string }) => point.point_id),
      [first.point_id, second.point_id],
    );
  });

  test('of two at once the second is told which one is being made', async () => {
    const answers = await Promise.all([1, 2, 3].map(() => admin.call(POINTS, POST)));
    const statuses = answers.map(({ status }) => status).sort();
    assert.deepEqual(statuses, [201, 409, 409]);
    const refused = answers.find(({ status }) => status === 409);
    assert.equal(refused?.body.code, 'point_in_progress');
    const made = answers.find(({ status }) => status === 201)?.body.point_id;
    const ended = await admin.call(`${POINTS}/${made}/cancel`, POST);
    assert.ok(ended.status === 200 || ended.body.code === 'point_invalid_state');
  });

  test('the key is shown until somebody has proved to have it', async () => {
    const { recovery_key: key } = await admin.expect(200, '/api/admin/recovery-key', POST);
    assert.match(key, /^clr(-[0-9a-hjkmnp-tv-z]{7}){8}$/);
    writeFileSync(keyFile, `${key}\n`);
    const confirm = (text: string) =>
      admin.call('/api/admin/recovery-key/confirm', { json: { recovery_key: text } });
    const other = key.endsWith('0') ? `${key.slice(0, -1)}1` : `${key.slice(0, -1)}0`;
    assert.match((await confirm(other)).body.errors[0].message, /mistyped/);
    assert.deepEqual((await confirm(key.toUpperCase())).body, { taken: true });
    assert.equal((await admin.call('/api/admin/recovery-key', POST)).body.code, 'recovery_key_taken');
  });

  test('it is lost, and every byte, version and key comes back; sessions and reset links do not', async () => {
    await cloud.crash();
    rmSync(dataDir, { recursive: true });
    const to = join(root, 'again');
    const { code, stdout, stderr } = await restore(to);
    assert.deepEqual([code, stderr], [0, ''], stdout);
    assert.match(stdout, /^Restored .*: 2 accounts, 2 buckets, 6 objects, 7 versions/m);
    const again = await CloudProcess.start({ dataDir: to });
    try {
      const anyone = await CheckedClient.open(again.api);
      const owner = anyone.as(String(user.key));
      for (const [id, bytes] of contents) assert.ok((await download(id, owner)).equals(bytes), id);
      assert.deepEqual(await versionsOf(owner), versions);
      const cookie = await anyone.call('/api/account', { headers: session });
      assert.equal(cookie.status, 401);
      // It may have been used since the point.
      const json = { token: resetToken, password: 'a new password' };
      await anyone.refused(403, 'invalid_link', ['/api/reset-password', { json }]);
      const { id } = await anyone.register();
      assert.ok(id > 10_000, 'numbers of accounts that were lost are not given again');
    } finally {
      await again.end();
    }
  });

  test('a restore that cannot be right is refused before anything is written', async () => {
    const full = join(root, 'full');
    mkdirSync(full);
    writeFileSync(join(full, 'file'), '');
    assert.match((await restore(full)).stderr, /is not empty/);
    const to = join(root, 'refused');
    const wrong = join(root, 'wrong-key');
    writeFileSync(wrong, `clr-${'0000000-'.repeat(8).slice(0, -1)}`);
    const mistyped = await runCloudlet(
      ['recovery', 'restore', '--from', target, '--to', to, '--key-file', wrong],
      { env: {} },
    );
    assert.match(mistyped.stderr, /checksum|not the one/);
    assert.match((await restore(to, '--point', 'drp-none')).stderr, /No point drp-none: there are drp-/);
    const elsewhere = await runCloudlet(
      ['recovery', 'restore', '--from', root, '--to', to, '--key-file', keyFile],
      { env: {} },
    );
    assert.match(elsewhere.stderr, /contains no recovery points/);
    assert.ok(!existsSync(to));
    assert.match((await restore(wrong)).stderr, /wrong-key is not a directory/);
    if (process.geteuid?.() !== 0) return;
    mkdirSync(to);
    chownSync(to, 4711, 4711);
    assert.match((await restore(to)).stderr, /belongs to another user \(uid 4711\): chown root/);
    assert.deepEqual(readdirSync(to), []);
  });

  test('a missing piece is named; --partial restores the rest', async () => {
    const copy = join(root, 'damaged');
    cpSync(target, copy, { recursive: true });
    const large = filesOf(copy, 'pieces').filter((path) => readFileSync(path).length > 900_000);
    rmSync(String(large[0]));
    const from = ['recovery', 'restore', '--from', copy, '--key-file', keyFile];
    const refused = await runCloudlet([...from, '--to', join(root, 'no')], { env: {} });
    assert.equal(refused.code, 1);
    assert.match(refused.stderr, /pieces\/\S+ is missing: blobs\/\S+[\s\S]*--partial/);
    assert.ok(!existsSync(join(root, 'no')));
    const some = await runCloudlet([...from, '--to', join(root, 'some'), '--partial'], { env: {} });
    assert.equal(some.code, 1);
    assert.match(some.stdout, /missing or damaged: blobs\/\S+: the piece \S+ is missing/);
    assert.ok(existsSync(join(root, 'some', 'metadata.db')));
  });
});

/** All data of an account as one zip: by its owner and by administrators, compared byte for byte. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import { mkdirSync, mkdtempSync, readdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { after, before, describe, test } from 'node:test';
import { CheckedClient } from '../harness/checked-client.ts';
import { type Account, sessionOf } from '../harness/client.ts';
import { ADMIN_KEY, CloudProcess } from '../harness/cloud-process.ts';
import { openSocket } from '../harness/raw-http.ts';
import { eventually } from '../harness/waiting.ts';
import { unzip } from '../harness/zip.ts';
import { newDatabase } from './databases-kit.ts';
import { newS3, pathOf } from './s3-kit.ts';
import { cannotRunGuests, idleImage, newVm } from './vms-kit.ts';

const EXPORT = '/api/account/export';
const PASSWORD = 'correct horse battery';

interface Packed {
  readonly files: ReadonlyMap<string, Buffer>;
  // biome-ignore lint/suspicious/noExplicitAny: a document read from outside
  readonly manifest: any;
}

let cloud: CloudProcess;
let admin: CheckedClient;
before(async () => {
  cloud = await CloudProcess.start({ env: { CLOUDLET_S3_INSECURE_SSE_C: 'true' } });
  admin = (await CheckedClient.open(cloud.api)).as(ADMIN_KEY);
});
after(() => cloud.stop());

async function exported(client: CheckedClient, path = EXPORT): Promise<Packed> {
  const response = await client.fetch(path);
  assert.equal(response.status, 200, response.ok ? '' : await response.text());
  assert.equal(response.headers.get('content-type'), 'application/zip');
  return unpacked(Buffer.from(await response.arrayBuffer()));
}

/** Compares all files with the manifest. */
function unpacked(zip: Buffer): Packed {
  const all = unzip(zip);
  const manifest = JSON.parse(String(all.at(-1)?.bytes));
  assert.equal(all.at(-1)?.name, 'MANIFEST.json');
  const files = new Map(all.slice(0, -1).map(({ name, bytes }) => [name, bytes]));
  assert.equal(files.size, all.length - 1, 'no two files have one name');
  const named = manifest.files.filter(({ sha256 }: { sha256?: string }) => sha256 !== undefined);
  assert.deepEqual(
    named.map(({ path }: { path: string }) => path),
    [...files.keys()],
  );
  for (const { path, bytes, sha256 } of named) {
    const found = files.get(path) ?? Buffer.alloc(0);
    assert.equal(found.length, bytes, path);
    assert.equal(createHash('sha256').update(found).digest('hex'), sha256, path);
  }
  const bytes = [...files.values()].reduce((sum, file) => sum + file.length, 0);
  assert.deepEqual([manifest.counts.files, manifest.counts.bytes], [files.size, bytes]);
  return { files, manifest };
}

const json = ({ files }: Packed, path: string) => JSON.parse(String(files.get(path)));
const lines = ({ files }: Packed, path: string) =>
  String(files.get(path))
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line));

async function newAccount(): Promise<{ readonly account: Account; readonly user: CheckedClient }> {
  const account = await admin.as(undefined).register();
  return { account, user: admin.as(account.api_key) };
}

describe('an export', () => {
  /** The expected content of the archive, by bucket, name and version. */
  const written: { readonly name: string; readonly version: string; readonly bytes: Buffer }[] = [];
  let owner: Awaited<ReturnType<typeof newAccount>>;
  let hookSecret = '';
  let shareUrl = '';
  before(async () => {
    owner = await newAccount();
    await fill(owner.user);
  });

  async function put(name: string, bytes: Buffer, fields = {}) {
    const { status, body } = await owner.user.upload('files', name, bytes, fields);
    assert.equal(status, 200, JSON.stringify(body));
    written.push({ name, version: body.version_id, bytes });
    return body;
  }

  async function fill(user: CheckedClient) {
    await user.expect(201, '/api/buckets', { json: { name: 'files', versioning: true, encryption: true } });
    await put('folder/note.txt', Buffer.from('first'), { metadata: '{"camera":"X100"}' });
    await put('folder/note.txt', Buffer.from('second'));
    await put('empty', Buffer.alloc(0));
    await put('large.bin', randomBytes(1_300_000));
    await put('a', Buffer.from('a file and a folder'));
    await put('a/b', Buffer.from('in it'));
    await put('../../etc/passwd', Buffer.from('stays inside'));
    await put(`long/${'é'.repeat(200)}`, Buffer.from('long name'));
    const gone = await put('gone', Buffer.from('behind a marker'));
    await user.expect(200, `/api/storage/${gone.object_id}`, { method: 'DELETE' });
    const s3 = await newS3(cloud.data, user);
    const key = randomBytes(32);
    const head = 'x-amz-server-side-encryption-customer-';
    await s3.ok('PUT', pathOf('files', 'secret'), {
      headers: {
        [`${head}algorithm`]: 'AES256',
        [`${head}key`]: key.toString('base64'),
        [`${head}key-MD5`]: createHash('md5').update(key).digest('base64'),
      },
      body: 'nobody but the client reads this',
    });
    await s3.ok('PUT', pathOf('files', 'empty'), { query: 'tagging', body: tagging('team', 'photos') });
    await user.expect(200, '/api/buckets/files/settings', { method: 'PATCH', json: { tags: { a: 'b' } } });
    const hook = { url: 'https://93.184.215.14/hook', events: ['vm.failed'] };
    hookSecret = (await user.expect(201, '/api/webhooks', { json: hook })).secret;
    const share = { bucket: 'files', name: 'a', password: 'correct horse' };
    shareUrl = (await user.expect(201, '/api/shares', { json: share })).url;
    await newDatabase(user, 'CREATE TABLE t (a)', "INSERT INTO t VALUES ('kept')");
    await user.expect(201, '/api/account/access-keys', {
      json: { name: 'backup', scopes: ['storage:read'] },
    });
  }

  test('has all versions of all objects, with the same bytes, and a line about each', async () => {
    const packed = await exported(owner.user);
    const versions = lines(packed, 'buckets/files/versions.jsonl');
    for (const { name, version, bytes } of written) {
      const line = versions.find((one) => one.version_id === version);
      assert.ok(packed.files.get(line.file)?.equals(bytes), `${name} ${version}`);
      assert.deepEqual([line.name, line.size], [name, bytes.length]);
      for (const part of line.file.split('/')) assert.ok(!['', '.', '..'].includes(part), line.file);
    }
    assert.equal(String(packed.files.get('buckets/files/objects/folder/note.txt')), 'second');
    const [first, second] = versions.filter(({ name }) => name === 'folder/note.txt');
    assert.deepEqual([first.metadata, first.is_latest, second.is_latest], [{ camera: 'X100' }, false, true]);
    assert.deepEqual(versions.find(({ name }) => name === 'empty').tags, { team: 'photos' });
    const marker = versions.find(({ is_delete_marker: is }) => is);
    assert.deepEqual([marker.name, marker.file, marker.is_latest], ['gone', null, true]);
    assert.equal(packed.manifest.counts.versions, written.length);
    const [a] = versions.filter(({ name }) => name === 'a');
    assert.notEqual(a.file, 'buckets/files/objects/a', 'a/b is a file in the folder a');
  });

  test('leaves out what only a client can read, and tells so', async () => {
    const { files, manifest } = await exported(owner.user);
    const path = 'buckets/files/objects/secret';
    assert.ok(!files.has(path));
    assert.equal(manifest.counts.left_out, 1);
    assert.equal(manifest.left_out[0].path, path);
    assert.match(manifest.left_out[0].reason, /SSE-C/);
  });

  test('has settings, databases, the bill, the audit log and keys without secrets', async () => {
    const packed = await exported(owner.user);
    const { settings, bucket } = json(packed, 'buckets/files/bucket.json');
    assert.deepEqual([settings.tags, bucket.name, bucket.versioning], [{ a: 'b' }, 'files', true]);
    const dump = [...packed.files].find(([name]) => /^databases\/.*(?<!\.json)$/.test(name));
    assert.ok(dump !== undefined, [...packed.files.keys()].join('\n'));
    const file = join(cloud.dataDir, 'dump.db');
    writeFileSync(file, dump[1]);
    const opened = new DatabaseSync(file);
    assert.deepEqual({ ...opened.prepare('SELECT a FROM t').get() }, { a: 'kept' });
    opened.close();
    assert.equal(json(packed, 'account.json').username, owner.account.username);
    assert.equal(json(packed, 'access-keys.json').at(-1).name, 'backup');
    assert.ok(lines(packed, 'billing/ledger.jsonl').some(({ code }) => code === 'signup_grant'));
    assert.equal(json(packed, 'billing/usage.json').account_id, owner.account.id);
    assert.ok(lines(packed, 'audit.jsonl').some(({ action }) => action === 'createBucket'));
    const text = [...packed.files.values()].map(String).join('\n');
    assert.equal(json(packed, 'webhooks.json')[0].url, 'https://93.184.215.14/hook');
    const [share] = json(packed, 'shared-links.json');
    assert.deepEqual([share.bucket, share.name, share.has_password], ['files', 'a', true]);
    const address = new URL(shareUrl).pathname.split('/')[4] ?? '';
    assert.ok(address.length > 20, shareUrl);
    for (const secret of [owner.account.api_key, hookSecret, address]) assert.ok(!text.includes(secret));
    assert.doesNotMatch(text, /"(?:api_key|secret_access_key|password)": "/);
  });

  test('is written in the audit log, before its first byte', async () => {
    await exported(owner.user);
    const [entry] = await owner.user.expect(200, '/api/audit?action=exportAccount&limit=1');
    assert.deepEqual([entry.account_id, entry.outcome], [owner.account.id, 'done']);
    const path = `/api/admin/accounts/${owner.account.id}/export`;
    await exported(admin, path);
    const [by] = await owner.user.expect(200, '/api/audit?action=adminExportAccount&limit=1');
    assert.deepEqual([by.actor, by.account_id], ['admin', owner.account.id]);
    const own = lines(await exported(owner.user), 'audit.jsonl');
    assert.equal(own[0].action, 'exportAccount', 'the entry of this export is in it');
  });
});

describe('who may export', () => {
  test('an administrator, a suspended account and one that is to be removed too', async () => {
    const { account, user } = await newAccount();
    await user.expect(201, '/api/buckets', { json: { name: 'mine' } });
    await user.upload('mine', 'x', 'kept');
    await newDatabase(user, 'CREATE TABLE t (a)');
    const one = `/api/admin/accounts/${account.id}`;
    const isWhole = async () => {
      const { files, manifest } = await exported(admin, `${one}/export`);
      assert.equal(String(files.get('buckets/mine/objects/x')), 'kept');
      assert.deepEqual([manifest.left_out, manifest.counts.databases], [[], 1]);
      assert.match(manifest.made_by, /^admin /);
    };
    await admin.expect(200, `${one}/suspend`, { json: { reason: 'test' } });
    await user.refused(403, 'account_suspended', [EXPORT]);
    await eventually('the database is shut', async () => {
      const { files } = await exported(admin, `${one}/export`);
      const [about] = [...files].filter(([name]) => /^databases\/.*\.json$/.test(name));
      return JSON.parse(String(about?.[1])).state === 'suspended';
    });
    await isWhole();
    await admin.expect(200, `${one}/resume`, { method: 'POST' });
    await admin.expect(200, `${one}/remove`, { json: { reason: 'test' } });
    await isWhole();
    await admin.refused(404, 'account_not_found', ['/api/admin/accounts/999999/export']);
  });

  test('an administrator that of another, who sees by whom, and whose secrets are not in it', async () => {
    const made = async (username: string) => {
      const json = { username, email: `${username}@example.org`, password: PASSWORD, is_admin: true };
      return await admin.expect(201, '/api/admin/accounts', { json });
    };
    const [head, deputy] = [await made('head'), await made('deputy')];
    const user = admin.as(head.api_key);
    await user.expect(201, '/api/buckets', { json: { name: 'of-the-head' } });
    await user.upload('of-the-head', 'x', 'read');
    const key = await user.expect(201, '/api/account/access-keys', { json: { name: 'k', scopes: ['*'] } });
    const { id, secret } = await user.expect(201, '/api/webhooks', { json: { url: 'https://example.org/' } });
    const other = admin.as(deputy.api_key);
    const path = `/api/admin/accounts/${head.id}`;
    await other.refused(403, 'operator_required', [`${path}/api-key`, { method: 'POST' }]);
    const { files, manifest } = await exported(other, `${path}/export`);
    assert.equal(String(files.get('buckets/of-the-head/objects/x')), 'read');
    assert.match(manifest.made_by, /^deputy /);
    const whole = [...files.values(), Buffer.from(JSON.stringify(manifest))].map(String).join('\n');
    for (const text of [head.api_key, key.api_key, key.secret_access_key, secret, PASSWORD])
      assert.ok(text === undefined || !whole.includes(text), 'a secret is in the export');
    assert.ok(whole.includes(key.id) && whole.includes(id));
    const [seen] = await user.expect(200, '/api/audit?action=adminExportAccount&limit=1');
    assert.deepEqual([seen.actor, seen.account_id, seen.outcome], ['deputy', head.id, 'done']);
  });

  test('an owner, by a key with all scopes or a session; no lesser key', async () => {
    const { account, user } = await newAccount();
    const keyWith = async (json: object) =>
      user.as((await user.expect(201, '/api/account/access-keys', { json: { name: 'k', ...json } })).api_key);
    await exported(await keyWith({ scopes: ['*'] }));
    for (const json of [
      { scopes: ['account:*', 'storage:*'] },
      { scopes: ['*'], buckets: [{ name: 'mine' }] },
    ])
      await (await keyWith(json)).refused(403, 'scope_required', [EXPORT]);
    const login = await user.as(undefined).call('/api/login', {
      json: { username: account.username, password: PASSWORD },
    });
    const session = sessionOf(login);
    const { body } = await user.as(undefined).call('/api/account/tickets', {
      headers: session,
      json: { path: EXPORT },
    });
    const browser = await exported(user.as(undefined), body.url);
    assert.equal(browser.manifest.account.username, account.username);
  });
});

test('a reader that stops costs no neighbour, one at a time runs, and a cut one is over and broken', async () => {
  const { account, user } = await newAccount();
  await user.expect(201, '/api/buckets', { json: { name: 'big' } });
  for (let i = 0; i < 6; i++) await user.upload('big', `file-${i}`, randomBytes(8_000_000));
  const socket = await openSocket(cloud.api);
  let received = Buffer.alloc(0);
  const begun = Promise.withResolvers<void>();
  socket.on('data', (piece: Buffer) => {
    received = Buffer.concat([received, piece]);
    socket.pause();
    begun.resolve();
  });
  const host = new URL(cloud.api).host;
  socket.write(`GET ${EXPORT} HTTP/1.1\r\nhost: ${host}\r\nx-api-key: ${account.api_key}\r\n\r\n`);
  await begun.promise;
  await user.refused(409, 'job_running', [EXPORT]);
  const neighbour = await newAccount();
  await neighbour.user.expect(201, '/api/buckets', { json: { name: 'theirs' } });
  await neighbour.user.upload('theirs', 'x', 'y');
  const { files } = await exported(neighbour.user);
  assert.equal(String(files.get('buckets/theirs/objects/x')), 'y');
  socket.destroy();
  assert.match(received.toString('latin1'), /^HTTP\/1\.1 200/);
  assert.ok(!received.includes('504b0506', 0, 'hex'), 'a broken zip has no directory');
  const again = await eventually('another may run', async () => {
    const response = await user.fetch(EXPORT);
    return response.ok ? Buffer.from(await response.arrayBuffer()) : undefined;
  });
  assert.equal(unpacked(again).manifest.counts.versions, 6);
});

test('disks of machines come when they are wanted, as the guide joins them', {
  skip: cannotRunGuests(),
}, async () => {
  const { user } = await newAccount();
  const vm = await newVm(user, await idleImage(admin));
  await user.expect(200, `${vm}/start`, { method: 'POST' });
  const without = await exported(user);
  assert.deepEqual([without.manifest.counts.machines, without.manifest.counts.disks], [1, 0]);
  const { files, manifest } = await exported(user, `${EXPORT}?disks=true`);
  assert.deepEqual([manifest.counts.machines, manifest.left_out], [1, []]);
  const folder = mkdtempSync(join(cloud.dataDir, 'unpacked-'));
  for (const [path, bytes] of files) {
    if (!path.startsWith('machines/')) continue;
    mkdirSync(join(folder, dirname(path)), { recursive: true });
    writeFileSync(join(folder, path), bytes);
  }
  const disk = [...files.keys()].find((path) => path.endsWith('/disk.qcow2'));
  assert.ok(disk !== undefined, [...files.keys()].join('\n'));
  const cwd = join(folder, dirname(disk));
  execFileSync('qemu-img', ['convert', '-O', 'qcow2', 'disk.qcow2', 'whole.qcow2'], { cwd });
  execFileSync('qemu-img', ['compare', 'disk.qcow2', 'whole.qcow2'], { cwd });
  const about = JSON.parse(
    String(execFileSync('qemu-img', ['info', '--output=json', 'whole.qcow2'], { cwd })),
  );
  assert.equal(about['backing-filename'], undefined, 'it needs no other file');
});

test('kill -9 in the middle leaves nothing behind, and the next export is whole', async () => {
  const { account, user } = await newAccount();
  await user.expect(201, '/api/buckets', { json: { name: 'killed' } });
  // So many that the directory of the zip is no longer in memory.
  for (let i = 0; i < 400; i += 20) {
    const some = Array.from({ length: 20 }, (_, n) =>
      user.upload('killed', `a/${'x'.repeat(180)}-${i + n}`, 'x'),
    );
    await Promise.all(some);
  }
  for (let i = 0; i < 6; i++) await user.upload('killed', `z-${i}`, randomBytes(8_000_000));
  const before = readdirSync(cloud.dataDir).sort();
  const socket = await openSocket(cloud.api);
  let received = 0;
  const begun = Promise.withResolvers<void>();
  socket.on('error', () => {});
  socket.on('data', (piece: Buffer) => {
    received += piece.length;
    if (received < 1_000_000) return;
    socket.pause();
    begun.resolve();
  });
  const host = new URL(cloud.api).host;
  socket.write(`GET ${EXPORT} HTTP/1.1\r\nhost: ${host}\r\nx-api-key: ${account.api_key}\r\n\r\n`);
  await begun.promise;
  await cloud.crash();
  socket.destroy();
  await cloud.start();
  admin = (await CheckedClient.open(cloud.api)).as(ADMIN_KEY);
  assert.deepEqual(readdirSync(cloud.dataDir).sort(), before);
  const { manifest } = await exported(admin.as(account.api_key));
  assert.deepEqual([manifest.counts.versions, manifest.left_out], [406, []]);
  const entries = await admin.expect(200, `/api/audit?action=exportAccount&account_id=${account.id}`);
  assert.equal(entries.length, 2, 'the one that was cut is in the log too');
});

function tagging(key: string, value: string): string {
  return `<Tagging><TagSet><Tag><Key>${key}</Key><Value>${value}</Value></Tag></TagSet></Tagging>`;
}

/** The client saves all data of an account, completely or not at all. */
import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { after, before, test } from 'node:test';
import { CheckedClient } from '../harness/checked-client.ts';
import { ADMIN_KEY, CloudProcess } from '../harness/cloud-process.ts';
import { unzip } from '../harness/zip.ts';
import { CliUser } from './cli-kit.ts';

let cloud: CloudProcess;
before(async () => {
  cloud = await CloudProcess.start();
});
after(() => cloud.stop());

const files = (path: string) =>
  new Map(unzip(readFileSync(path)).map(({ name, bytes }) => [name, String(bytes)]));

test('one’s own account, and another’s before it is removed', async () => {
  const user = await CliUser.signedIn(cloud.api);
  const client = await CheckedClient.open(cloud.api, user.key);
  await client.expect(201, '/api/buckets', { json: { name: 'mine' } });
  await client.upload('mine', 'note.txt', 'kept');
  const said = await user.ok(['account', 'export', 'mine.zip']);
  assert.match(said, /^mine\.zip contains \d+ files of user-/);
  assert.equal(files(join(user.home, 'mine.zip')).get('buckets/mine/objects/note.txt'), 'kept');
  assert.ok(!existsSync(join(user.home, 'mine.zip.part')));

  const admin = new CliUser();
  await admin.ok(['login', cloud.api, '--key', '-'], { input: ADMIN_KEY });
  const { username } = await client.expect(200, '/api/account');
  const { file, left_out } = JSON.parse(await admin.ok(['people', 'export', username, 'a.zip', '--json']));
  assert.deepEqual([file, left_out], ['a.zip', 0]);
  await admin.ok(['people', 'remove', username, '--export', 'b.zip']);
  assert.equal(files(join(admin.home, 'b.zip')).get('buckets/mine/objects/note.txt'), 'kept');
  const refused = await admin.run(['people', 'remove', username, '--export', 'no/such/folder.zip']);
  assert.notEqual(refused.code, 0);
});

test('an export that breaks off leaves no file, and nobody is removed', async () => {
  const admin = new CliUser();
  await admin.ok(['login', cloud.api, '--key', '-'], { input: ADMIN_KEY });
  const client = await CheckedClient.open(cloud.api);
  const { username, id } = await client.register();
  /** Ends exports as if they were complete, or cuts their connection. */
  let isCut = true;
  const proxy = createServer((request, response) => {
    void (async () => {
      const headers = new Headers(request.headers as Record<string, string>);
      for (const name of ['host', 'connection', 'content-length', 'transfer-encoding']) headers.delete(name);
      const hasBody = !['GET', 'HEAD'].includes(request.method ?? '');
      const sent = hasBody
        ? { body: Readable.toWeb(request) as ReadableStream, duplex: 'half' as const }
        : {};
      const found = await fetch(cloud.api + request.url, {
        method: request.method ?? 'GET',
        headers,
        ...sent,
      });
      const bytes = Buffer.from(await found.arrayBuffer());
      const isExport = request.url?.includes('/export') === true;
      response.writeHead(found.status, { 'content-type': found.headers.get('content-type') ?? 'text/plain' });
      if (!isExport) return response.end(bytes);
      response.write(bytes.subarray(0, bytes.length / 2));
      return isCut ? setTimeout(() => response.destroy(), 50) : response.end();
    })();
  });
  await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve));
  const env = {
    CLOUDLET_URL: `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`,
    CLOUDLET_API_KEY: ADMIN_KEY,
  };
  try {
    for (isCut of [true, false]) {
      const { code, stderr } = await admin.run(['people', 'remove', username, '--export', 'half.zip'], {
        env,
      });
      assert.notEqual(code, 0, stderr);
      assert.ok(!existsSync(join(admin.home, 'half.zip')) && !existsSync(join(admin.home, 'half.zip.part')));
      if (!isCut) assert.match(stderr, /the export is incomplete/);
    }
    const { removed_at } = await client.as(ADMIN_KEY).expect(200, `/api/admin/accounts/${id}`);
    assert.equal(removed_at, null);
  } finally {
    proxy.close();
    proxy.closeAllConnections();
  }
});

/** Cloud images: added by administrators, checked, converted, used. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import type { ServerResponse } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { CheckedClient } from '../harness/checked-client.ts';
import { ADMIN_KEY, CloudProcess } from '../harness/cloud-process.ts';
import { eventually } from '../harness/waiting.ts';
import { helloDisk, IMAGES, settled, upload, type WebServer, webServer } from './images-kit.ts';
import { cannotRunGuests, newVm, removeAll } from './vms-kit.ts';

const skip = cannotRunGuests();
const DISK = helloDisk();
const SHA256 = createHash('sha256').update(DISK).digest('hex');

describe('images', { skip }, () => {
  const folder = mkdtempSync(join(tmpdir(), 'cloudlet-images-'));
  const offered = join(folder, 'offered');
  let cloud: CloudProcess;
  let admin: CheckedClient;
  let user: CheckedClient;
  let web: WebServer;
  before(async () => {
    execFileSync('mkdir', [offered]);
    web = await webServer((request, response) => {
      const path = request.url ?? '';
      if (path.startsWith('/disk')) response.end(DISK);
      else if (path.startsWith('/moved')) response.writeHead(302, { location: '/disk' }).end();
      else if (path.startsWith('/loop')) response.writeHead(302, { location: '/loop' }).end();
      else if (path.startsWith('/slow')) response.write(DISK.subarray(0, 1000));
      else if (path.startsWith('/cut')) cutShort(response);
      else response.writeHead(404).end();
    });
    cloud = await CloudProcess.start({
      env: {
        CLOUDLET_IMAGE_SOURCES: offered,
        CLOUDLET_FETCH_ALLOW: '127.0.0.0/8',
        CLOUDLET_IMAGE_MAX_GB: '64',
      },
    });
    await connect();
  });
  async function connect() {
    admin = await CheckedClient.open(cloud.api, ADMIN_KEY);
    user = admin.as((await admin.register()).api_key);
  }
  after(async () => {
    web.close();
    await cloud.stop();
    rmSync(folder, { recursive: true, force: true });
  });

  // Without the mark that names their owner.
  const kept = () => readdirSync(join(cloud.dataDir, 'images')).filter((name) => name !== '.cloud');
  const add = (json: object) => admin.expect(201, IMAGES, { json: { name: 'an image', ...json } });
  const imageTool = (...words: string[]) => execFileSync('qemu-img', words, { cwd: offered, stdio: 'pipe' });
  async function assertFails(json: object, code: string, message: RegExp): Promise<void> {
    const image = await settled(admin, (await add(json)).image_id);
    assert.equal(image.state, 'failed', JSON.stringify(image));
    assert.equal(image.state_reason.code, code);
    assert.match(image.state_reason.message, message);
    assert.equal(image.size, null);
    await eventually('nothing is left of it', () => kept().every((name) => !name.includes(image.image_id)));
  }

  test('uploaded, listed, made into a machine that boots from it, deleted', async () => {
    const begun = await upload(admin, DISK, { name: ' My Disk ', sha256: SHA256.toUpperCase() });
    assert.equal(begun.name, 'My Disk');
    const image = await settled(admin, begun.image_id);
    assert.equal(image.state, 'ready', JSON.stringify(image.state_reason));
    assert.deepEqual([image.source_format, image.virtual_size, image.sha256], ['raw', DISK.length, SHA256]);
    assert.equal(image.source, 'upload');
    const listed = await user.expect(200, '/api/images');
    const names = listed.map(({ name }: { name: string }) => name);
    assert.deepEqual(names, ['Tiny Linux', 'My Disk']);

    const vm = await newVm(user, { image: image.image_id });
    await user.expect(200, `${vm}/start`, { method: 'POST' });
    await eventually('the hello of the boot sector', async () => {
      const { body } = await user.call(`${vm}/log`);
      return String(body).includes('hello');
    });
    const remove = `${IMAGES}/${image.image_id}`;
    await admin.refused(409, 'image_in_use', [remove, { method: 'DELETE' }]);
    await removeAll(user);
    await admin.expect(200, remove, { method: 'DELETE' });
    await admin.refused(404, 'image_not_found', [remove, { method: 'DELETE' }]);
    await user.refused(404, 'image_not_found', newVmCall(image.image_id));
    assert.deepEqual(kept(), []);
    await admin.refused(409, 'image_in_use', [`${IMAGES}/tiny`, { method: 'DELETE' }]);
  });

  test('by URL, over a redirect, with its sum; a wrong sum, a cut or absent one fail', async () => {
    const image = await settled(
      admin,
      (await add({ url: `${web.url}/moved?secret`, sha256: SHA256 })).image_id,
    );
    assert.equal(image.state, 'ready', JSON.stringify(image.state_reason));
    assert.equal(image.source, `url ${web.url}/moved`);
    await assertFails({ url: `${web.url}/disk`, sha256: 'a'.repeat(64) }, 'invalid_request', /^sha256: /);
    await assertFails({ url: `${web.url}/none` }, 'source_failed', /answered 404/);
    await assertFails({ url: `${web.url}/loop` }, 'source_failed', /redirects/);
    await assertFails({ url: `${web.url}/cut` }, 'source_failed', /connection failed/);
    await admin.expect(200, `${IMAGES}/${image.image_id}`, { method: 'DELETE' });
  });

  test('by path, from the offered folders only', async () => {
    writeFileSync(join(offered, 'disk.raw'), DISK);
    writeFileSync(join(folder, 'private.raw'), DISK);
    symlinkSync(join(folder, 'private.raw'), join(offered, 'link.raw'));
    execFileSync('mkfifo', [join(offered, 'pipe')]);
    const image = await settled(admin, (await add({ path: join(offered, 'disk.raw') })).image_id);
    assert.equal(image.state, 'ready', JSON.stringify(image.state_reason));
    const paths = [
      ...[join(folder, 'private.raw'), join(offered, 'link.raw'), join(offered, '..', 'private.raw')],
      ...[join(offered, 'pipe'), offered, join(offered, 'none'), 'disk.raw', '/dev/zero', 'a\0b', ''],
    ];
    for (const path of paths) {
      const { errors } = await admin.refused(400, 'invalid_request', [IMAGES, { json: { name: 'x', path } }]);
      assert.equal(errors[0].field, 'path', path);
    }
    await admin.expect(200, `${IMAGES}/${image.image_id}`, { method: 'DELETE' });
  });

  test('a file that is too large is refused before a byte of it is copied, be it all holes', async () => {
    const path = join(offered, 'sparse.raw');
    writeFileSync(path, '');
    truncateSync(path, 65 * 2 ** 30);
    const json = { name: 'x', path };
    await admin.refused(413, 'payload_too_large', [IMAGES, { json }]);
    rmSync(path);
  });

  test('images that need other files, or lie, are refused by their header', async () => {
    writeFileSync(join(offered, 'base.raw'), DISK);
    imageTool('create', '-q', '-f', 'qcow2', '-b', 'base.raw', '-F', 'raw', 'backed.qcow2');
    imageTool('create', '-q', '-f', 'qcow2', '-o', 'data_file=data,data_file_raw=on', 'split.qcow2', '1M');
    imageTool('create', '-q', '-f', 'qcow2', 'snapshot.qcow2', '1M');
    imageTool('snapshot', '-c', 'one', 'snapshot.qcow2');
    imageTool('create', '-q', '-f', 'qcow2', 'huge.qcow2', '65G');
    imageTool('convert', '-f', 'raw', '-O', 'vmdk', 'base.raw', 'other.vmdk');
    writeFileSync(join(offered, 'text.qcow2'), 'this is no disk');
    writeFileSync(join(offered, 'backing-name'), 'QFI\xfb', 'latin1');
    const cases = {
      'backed.qcow2': /backing file/,
      'split.qcow2': /data in another file/,
      'snapshot.qcow2': /snapshots/,
      'huge.qcow2': /65 GB, and at most 64 GB/,
      'other.vmdk': /VMDK/,
      'text.qcow2': /neither qcow2 nor/,
      'backing-name': /cut off/,
    };
    for (const [name, message] of Object.entries(cases)) {
      await assertFails({ path: join(offered, name) }, 'invalid_request', message);
    }
    const failed = (await admin.expect(200, IMAGES)).find(
      ({ state }: { state: string }) => state === 'failed',
    );
    const problem = await user.refused(409, 'image_not_ready', newVmCall(failed.image_id));
    assert.equal(problem.state, 'failed');
    const listed = await user.expect(200, '/api/images');
    assert.ok(listed.every(({ image_id }: { image_id: string }) => image_id !== failed.image_id));
  });

  test('an image larger than the disk of a type: 400 that names both', async () => {
    imageTool('create', '-q', '-f', 'qcow2', 'large.qcow2', '40G');
    const image = await settled(admin, (await add({ path: join(offered, 'large.qcow2') })).image_id);
    assert.deepEqual([image.state, image.source_format, image.min_disk_gb], ['ready', 'qcow2', 40]);
    const { detail } = await user.refused(400, 'invalid_request', newVmCall(image.image_id));
    assert.match(detail, /40 GB.*t2\.micro.*30 GB/);
    const json = { name: 'x', instance_type: 't2.small', image: image.image_id };
    await user.expect(201, '/api/vms', { json });
    await removeAll(user);
  });

  test('requests that make no sense', async () => {
    const requests = [
      {},
      { name: 'x' },
      { name: 'x', path: '/a', url: 'http://example.org' },
      { name: '', url: 'http://example.org' },
      { name: 'x', url: 'ftp://example.org/' },
      { name: 'x', url: 'file:///etc/passwd' },
      { name: 'x', url: 'http://user:word@example.org/' },
      { name: 'x', url: 'http://example.org/', sha256: 'abc' },
    ];
    for (const json of requests) await admin.refused(400, 'invalid_request', [IMAGES, { json }]);
    const body = new FormData();
    body.set('name', 'no file');
    await admin.refused(400, 'invalid_request', [`${IMAGES}/upload`, { body }]);
    const wrong = new FormData();
    wrong.set('file', new Blob(['x']), 'x');
    wrong.set('sha256', 'b'.repeat(64));
    await admin.refused(400, 'invalid_request', [`${IMAGES}/upload`, { body: wrong }]);
  });

  test('an import under way can be deleted; one that a kill ends has failed, with nothing left', async () => {
    const gone = await add({ url: `${web.url}/slow` });
    const waiting = await add({ path: join(offered, 'disk.raw') });
    await user.refused(409, 'image_not_ready', newVmCall(gone.image_id));
    await eventually('the request', async () => web.requests.includes('/slow'));
    await admin.expect(200, `${IMAGES}/${gone.image_id}`, { method: 'DELETE' });
    assert.equal((await settled(admin, waiting.image_id)).state, 'ready');

    const broken = await add({ url: `${web.url}/slow2` });
    const staged = () => kept().some((name) => name.includes(broken.image_id));
    await eventually('the first bytes', async () => staged());
    const queued = await upload(admin, DISK, { name: 'waits' });
    await cloud.crash();
    assert.ok(staged());
    await cloud.start();
    await connect();
    const outcome = async ({ image_id }: { image_id: string }) => {
      const { state, state_reason } = await settled(admin, image_id);
      return [state, state_reason?.code];
    };
    assert.deepEqual(await outcome(broken), ['failed', 'shutting_down']);
    // All its bytes were there: it may have been ready before the kill.
    const ended = await outcome(queued);
    if (ended[0] !== 'ready') assert.deepEqual(ended, ['failed', 'shutting_down']);
    await eventually('the sweep', async () => kept().every((name) => !name.startsWith('.')));
    assert.ok(kept().includes(`${waiting.image_id}.qcow2`));
    await newVm(user, { image: waiting.image_id });
    await removeAll(user);
  });

  test('what is kept is read only, plain, and not ours to change by a guest', () => {
    for (const name of kept()) {
      const head = readFileSync(join(cloud.dataDir, 'images', name)).subarray(0, 24);
      assert.equal(head.toString('latin1', 0, 4), 'QFI\xfb');
      assert.equal(head.readBigUInt64BE(8), 0n);
    }
  });
});

describe('URLs of images, when nothing inside is allowed', () => {
  let cloud: CloudProcess;
  let admin: CheckedClient;
  let web: WebServer;
  before(async () => {
    web = await webServer((_request, response) => response.end(DISK));
    cloud = await CloudProcess.start();
    admin = await CheckedClient.open(cloud.api, ADMIN_KEY);
  });
  after(async () => {
    web.close();
    await cloud.stop();
  });

  test('this host is not reached, however it is written, and no path is taken', { skip }, async () => {
    const port = new URL(web.url).port;
    const inside = ['127.0.0.1', '127.1', '2130706433', '0x7f.1', '0177.0.0.1', 'localhost', '0'];
    const ids: string[] = [];
    for (const host of [...inside, '[::1]', '[::ffff:127.0.0.1]', '169.254.169.254', '10.0.0.1']) {
      const json = { name: host, url: `http://${host}:${port}/disk` };
      ids.push((await admin.expect(201, IMAGES, { json })).image_id);
    }
    for (const id of ids) {
      const { name, state_reason } = await settled(admin, id);
      assert.equal(state_reason?.code, 'source_forbidden', name);
    }
    assert.deepEqual(web.requests, []);
    const json = { name: 'x', path: '/etc/passwd' };
    const { detail } = await admin.refused(400, 'invalid_request', [IMAGES, { json }]);
    assert.match(detail, /CLOUDLET_IMAGE_SOURCES/);
  });
});

function newVmCall(image: string): [string, { json: object }] {
  return ['/api/vms', { json: { name: 'x', instance_type: 't2.micro', image } }];
}

function cutShort(response: ServerResponse): void {
  response.writeHead(200, { 'content-length': String(DISK.length) });
  response.write(DISK.subarray(0, 1000), () => response.destroy());
}

/** Images downloaded by name: from a correct mirror, and from a hostile one. */
import assert from 'node:assert/strict';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { CheckedClient } from '../harness/checked-client.ts';
import { ADMIN_KEY, CloudProcess } from '../harness/cloud-process.ts';
import { eventually } from '../harness/waiting.ts';
import { CliUser } from './cli-kit.ts';
import { helloDisk, IMAGES, settled, type WebServer, webServer } from './images-kit.ts';
import {
  DEBIAN_PATH,
  DEBIAN_SUMS,
  fetched,
  fetchImage,
  KNOWN,
  type Mirror,
  openMirror,
  sendPart,
  sendRange,
  sumOf,
} from './images-known-kit.ts';
import { cannotRunGuests, newVm, removeAll } from './vms-kit.ts';

const skip = cannotRunGuests();
const DISK = helloDisk();

describe('images by name', { skip }, () => {
  let cloud: CloudProcess;
  let admin: CheckedClient;
  let user: CheckedClient;
  let mirror: Mirror;
  let inside: WebServer;
  before(async () => {
    mirror = await openMirror();
    inside = await webServer((_request, response) => response.end(DISK));
    cloud = await CloudProcess.start({
      env: { CLOUDLET_IMAGE_MIRROR: mirror.base, CLOUDLET_IMAGE_MAX_GB: '1' },
    });
    admin = await CheckedClient.open(cloud.api, ADMIN_KEY);
    user = admin.as((await admin.register()).api_key);
  });
  after(async () => {
    mirror.close();
    inside.close();
    await cloud.stop();
  });

  const kept = () => readdirSync(join(cloud.dataDir, 'images')).filter((name) => name !== '.cloud');
  const vmCall = (image: string): [string, { json: object }] => [
    '/api/vms',
    { json: { name: 'x', instance_type: 't2.micro', image } },
  ];
  const remove = (imageId: string) => admin.expect(200, `${IMAGES}/${imageId}`, { method: 'DELETE' });
  async function assertFails(code: string, message: RegExp): Promise<void> {
    const image = await settled(admin, (await fetchImage(admin)).image_id);
    assert.deepEqual([image.state, image.state_reason?.code], ['failed', code], JSON.stringify(image));
    assert.match(image.state_reason.message, message);
    await eventually('nothing is left of it', () => kept().length === 0);
    await user.refused(409, 'image_not_ready', vmCall('debian-13'));
  }

  test('the list names makers, sums and users; what is not fetched cannot be used, and who fetches is told', async () => {
    const list = await admin.expect(200, KNOWN);
    const names = list.map(({ short_name }: { short_name: string }) => short_name);
    assert.deepEqual(names, [
      ...['debian-13', 'debian-12', 'ubuntu-26.04', 'ubuntu-24.04'],
      ...['alpine-3.24', 'alpine-3.22', 'fedora-44', 'fedora-43'],
    ]);
    const [debian] = list;
    assert.equal(debian.url, `${mirror.url}${DEBIAN_PATH}`);
    assert.match(debian.checked_by, /^https:\/\/cloud\.debian\.org\/.*SHA512SUMS$/);
    assert.deepEqual([debian.login_user, debian.cloud_init, debian.image], ['debian', true, null]);
    const { hint } = await user.refused(404, 'image_not_found', vmCall('debian-13'));
    assert.match(hint, /cloudlet image fetch debian-13/);
    await admin.refused(404, 'image_not_found', [`${KNOWN}/plan-9`, { method: 'POST' }]);
    await user.refused(403, 'admin_required', [`${KNOWN}/debian-13`, { method: 'POST' }]);
  });

  test('fetched, checked, and a machine of that name boots; while it is used it stays', async () => {
    mirror.offer(DISK);
    const begun = await fetchImage(admin);
    assert.deepEqual(
      [begun.state, begun.short_name, begun.name],
      ['importing', 'debian-13', 'Debian 13 (trixie)'],
    );
    const image = await settled(admin, begun.image_id);
    assert.equal(image.state, 'ready', JSON.stringify(image.state_reason));
    assert.equal(image.sha256, sumOf('sha256', DISK));
    const listed = (await user.expect(200, '/api/images')).at(-1);
    assert.deepEqual([listed.short_name, listed.login_user], ['debian-13', 'debian']);

    const vm = await newVm(user, { image: 'debian-13' });
    assert.equal((await user.expect(200, vm)).image, image.image_id);
    await user.expect(200, `${vm}/start`, { method: 'POST' });
    await eventually('the hello of the boot sector', async () => {
      const { body } = await user.call(`${vm}/log`);
      return String(body).includes('hello');
    });
    await admin.refused(409, 'image_in_use', [`${IMAGES}/${image.image_id}`, { method: 'DELETE' }]);

    // A later download then has the name; the machine keeps its image.
    const later = await settled(admin, (await fetchImage(admin)).image_id);
    assert.equal(later.state, 'ready', JSON.stringify(later.state_reason));
    const named = (await user.expect(200, '/api/images')).filter(
      ({ short_name }: { short_name: string }) => short_name === 'debian-13',
    );
    assert.deepEqual(
      named.map(({ image_id }: { image_id: string }) => image_id),
      [later.image_id],
    );
    assert.equal((await user.expect(200, vm)).image, image.image_id);
    await removeAll(user);
    await remove(image.image_id);
    await remove(later.image_id);
    assert.deepEqual(kept(), []);
  });

  test('a hostile mirror: wrong sum, none, endless, absent, another address: the reason is told', async () => {
    mirror.offer(DISK);
    mirror.set(DEBIAN_PATH, (response, range) => sendRange(response, Buffer.from(DISK).fill(1, 0, 9), range));
    await assertFails(
      'source_failed',
      /SHA512 [0-9a-f]{128}, not [0-9a-f]{128} as its publisher says; .* fetch it again later$/,
    );

    mirror.set(DEBIAN_PATH, (response) => response.writeHead(404).end());
    await assertFails(
      'source_failed',
      /^the server answered 404 for http:\S+\.qcow2; the mirror must contain it$/,
    );

    // Without a length a body could be endless.
    mirror.set(DEBIAN_PATH, (response) => {
      response.writeHead(200);
      response.write(DISK);
    });
    await assertFails('source_failed', /does not say how large/);

    mirror.set(DEBIAN_PATH, (response) => {
      response.writeHead(200, { 'content-length': String(2 ** 40) });
      response.write(DISK);
    });
    await assertFails('source_failed', /larger than \d+ bytes/);

    mirror.set(DEBIAN_PATH, (response) => response.writeHead(302, { location: `${inside.url}/disk` }).end());
    await assertFails('source_forbidden', /is not among the addresses/);
    assert.deepEqual(inside.requests, []);

    mirror.set(DEBIAN_SUMS, (response) => response.end('nothing of it\n'));
    await assertFails('source_failed', /SHA512SUMS: it contains no SHA512 of debian-13/);
    mirror.set(DEBIAN_SUMS, (response) => response.writeHead(500).end());
    await assertFails('source_failed', /SHA512SUMS: the server answered 500/);

    const failed = (await admin.expect(200, IMAGES)).length;
    assert.equal(failed, 1, 'a new fetch takes the place of the failed one');
  });

  test('a connection that breaks goes on where it broke', async () => {
    mirror.offer(DISK);
    mirror.ranges.length = 0;
    mirror.set(DEBIAN_PATH, (response, range) => {
      if (range !== undefined) return sendRange(response, DISK, range);
      sendPart(response, DISK, 300_000);
      setTimeout(() => response.destroy(), 100);
    });
    const image = await settled(admin, (await fetchImage(admin)).image_id);
    assert.equal(image.state, 'ready', JSON.stringify(image.state_reason));
    assert.deepEqual(mirror.ranges, [undefined, 'bytes=300000-']);
    await remove(image.image_id);
  });

  test('a response that always ends early, ends as a failure that says so', async () => {
    mirror.offer(DISK);
    // It does not support ranges: each answer starts at the beginning.
    mirror.set(DEBIAN_PATH, (response) => {
      sendPart(response, DISK, 300_000);
      setTimeout(() => response.destroy(), 50);
    });
    await assertFails(
      'source_failed',
      /^the response ended early, and the server does not support resuming$/,
    );
    // It supports ranges, but makes no progress.
    mirror.set(DEBIAN_PATH, (response, range) => {
      if (range === undefined) sendPart(response, DISK, 300_000);
      else {
        const place = `bytes 300000-${DISK.length - 1}/${DISK.length}`;
        response.writeHead(206, { 'content-length': DISK.length - 300_000, 'content-range': place });
      }
      setTimeout(() => response.destroy(), 50);
    });
    await assertFails('source_failed', /./);
    // It announces less than it has: the connection delivers the announced bytes, and the checksum differs.
    mirror.set(DEBIAN_PATH, (response) => {
      response.writeHead(200, { 'content-length': 300_000 });
      response.end(DISK.subarray(0, 300_000));
    });
    await assertFails('source_failed', /SHA512 [0-9a-f]{128}, not [0-9a-f]{128}/);
  });

  test('a sum of the list that the maker has outdated is named with what to do', async () => {
    const path = '/images/dl.fedoraproject.org/pub/fedora/linux/releases/44/Cloud/x86_64/images/';
    mirror.set(`${path}Fedora-Cloud-Base-Generic-44-1.7.x86_64.qcow2`, (response) => response.end(DISK));
    const image = await settled(admin, (await fetchImage(admin, 'fedora-44')).image_id);
    const { state, state_reason: reason } = image;
    assert.deepEqual([state, reason.code], ['failed', 'source_failed']);
    assert.match(
      reason.message,
      /not 28680fe5\w+ in the list of this Cloudlet; .* newer Cloudlet, or add .* by URL/,
    );
    const found = (await admin.expect(200, KNOWN)).find(
      ({ short_name }: { short_name: string }) => short_name === 'fedora-44',
    );
    assert.equal(found.image.state_reason.message, reason.message, 'where an administrator looks');
    await remove(image.image_id);
  });

  test('a slow one shows its progress, is not begun twice, and is cancelled', async () => {
    mirror.offer(DISK);
    mirror.set(DEBIAN_PATH, (response) => sendPart(response, DISK, 500_000));
    const { image_id } = await fetchImage(admin);
    await admin.refused(409, 'image_not_ready', [`${KNOWN}/debian-13`, { method: 'POST' }]);
    // Another download waits for its turn.
    const second = await fetchImage(admin, 'alpine-3.22');
    assert.deepEqual(await fetched(admin, image_id, 0), { bytes: 0, total_bytes: DISK.length, percent: 0 });
    await remove(second.image_id);
    await remove(image_id);
    assert.deepEqual(kept(), []);
    assert.ok(!mirror.requests.some((path) => path.includes('alpine')));
  });

  test('after a kill it goes on by itself with the bytes that are there, and is checked', async () => {
    mirror.offer(DISK);
    mirror.ranges.length = 0;
    let isSlow = true;
    mirror.set(DEBIAN_PATH, (response, range) => {
      if (!isSlow) return sendRange(response, DISK, range);
      sendPart(response, DISK, 400_000);
      setTimeout(() => response.write(DISK.subarray(400_000, 400_001)), 1500);
    });
    const { image_id } = await fetchImage(admin);
    await fetched(admin, image_id, 400_000);
    await cloud.crash();
    isSlow = false;
    await cloud.start();
    admin = await CheckedClient.open(cloud.api, ADMIN_KEY);
    const image = await settled(admin, image_id);
    assert.equal(image.state, 'ready', JSON.stringify(image.state_reason));
    assert.equal(image.sha256, sumOf('sha256', DISK));
    assert.equal(mirror.ranges.at(-1), 'bytes=400001-');
  });

  test('the client fetches with progress, makes a machine by the name, and deletes', async () => {
    mirror.offer(DISK);
    const operator = new CliUser();
    const someone = await CliUser.signedIn(cloud.api);
    try {
      await operator.ok(['login', cloud.api, '--key', '-'], { input: ADMIN_KEY });
      for (const { image_id } of await admin.expect(200, IMAGES)) await remove(image_id);
      assert.match(
        await operator.ok(['image', 'ls']),
        /^debian-13 +Debian 13 \(trixie\) +not fetched +about/m,
      );
      mirror.set(DEBIAN_PATH, (response) => {
        sendPart(response, DISK, DISK.length / 2);
        setTimeout(() => response.end(DISK.subarray(DISK.length / 2)), 3000);
      });
      const { stderr, stdout } = await operator.run(['image', 'fetch', 'debian-13']);
      assert.match(stdout, /debian-13 is ready: cloudlet vm create NAME --image debian-13/);
      assert.match(stderr, /^0 %: 0 B of 1\.0 MiB$/m);
      await operator.fails(5, ['image', 'fetch', 'plan-9']);
      assert.match(await someone.ok(['vm', 'images']), /^debian-13 +Debian 13 \(trixie\) +debian /m);
      await someone.fails(4, ['image', 'fetch', 'debian-13']);
      await someone.ok(['vm', 'create', 'web', '--image', 'debian-13']);
      await operator.fails(6, ['image', 'rm', '-y', 'debian-13']);
      await someone.ok(['vm', 'stop', 'web']);
      await someone.ok(['vm', 'rm', '-y', 'web']);
      await operator.ok(['image', 'rm', '-y', 'debian-13']);
      mirror.set(DEBIAN_PATH, (response) => response.writeHead(404).end());
      const words = await operator.fails(1, ['image', 'fetch', 'debian-13']);
      assert.match(words, /debian-13 could not be downloaded: the server answered 404/);
    } finally {
      operator.remove();
      someone.remove();
    }
  });
});

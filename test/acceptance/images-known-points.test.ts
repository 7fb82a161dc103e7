/**
 * Images downloaded by name in recovery points: a restored cloud has them by name, or continues the download.
 */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { eventually } from '../harness/waiting.ts';
import { helloDisk, IMAGES, settled } from './images-kit.ts';
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
import { LosableCloud, POST } from './recovery-kit.ts';
import { cannotRunGuests, newVm, removeAll } from './vms-kit.ts';

const skip = cannotRunGuests();
const [FIRST, SECOND] = [helloDisk('first'), helloDisk('second')];

let mirror: Mirror;
let lost: LosableCloud;
before(async () => {
  if (skip) return;
  mirror = await openMirror();
  lost = await LosableCloud.start({ CLOUDLET_IMAGE_MIRROR: mirror.base, CLOUDLET_IMAGE_MAX_GB: '1' });
});
after(async () => {
  if (skip) return;
  mirror.close();
  await removeAll(lost.user);
  await lost.end();
});

async function says(vm: string, word: string): Promise<void> {
  await lost.user.expect(200, `${vm}/start`, POST);
  await eventually(`the ${word}`, async () =>
    String((await lost.user.call(`${vm}/log`)).body).includes(word),
  );
  await lost.user.expect(200, `${vm}/stop?force=true`, POST);
}

test('a point has the images of a name, its machines go on, and new ones are made by the name', {
  skip,
}, async () => {
  mirror.offer(FIRST);
  const first = await settled(lost.admin, (await fetchImage(lost.admin)).image_id);
  const old = await newVm(lost.user, { name: 'old', image: 'debian-13' });
  mirror.offer(SECOND);
  const second = await settled(lost.admin, (await fetchImage(lost.admin)).image_id);
  assert.deepEqual([first.state, second.state], ['ready', 'ready']);
  const point = await lost.point();
  assert.deepEqual([point.state, point.gaps], ['complete', []]);
  await lost.keepKey();
  mirror.set(DEBIAN_PATH, (response) => response.writeHead(404).end());
  await lost.lose();
  const images = await lost.admin.expect(200, IMAGES);
  assert.deepEqual(
    images.map(({ image_id, state, sha256 }: Record<string, string>) => [image_id, state, sha256]),
    [
      [first.image_id, 'ready', sumOf('sha256', FIRST)],
      [second.image_id, 'ready', sumOf('sha256', SECOND)],
    ],
  );
  await says(old, 'first');
  await says(await newVm(lost.user, { name: 'new', image: 'debian-13' }), 'second');
});

test('a fetch that went on during the point goes on in the restored cloud, and is checked', {
  skip,
}, async () => {
  mirror.offer(SECOND);
  let isSlow = true;
  mirror.set(DEBIAN_PATH, (response, range) => {
    if (isSlow) sendPart(response, SECOND, 500_000);
    else sendRange(response, SECOND, range);
  });
  const { image_id: id } = await fetchImage(lost.admin);
  await fetched(lost.admin, id, 0);
  const point = await lost.point();
  assert.deepEqual([point.state, point.gaps], ['complete', []]);
  isSlow = false;
  await lost.lose();
  const image = await settled(lost.admin, id);
  assert.deepEqual([image.state, image.sha256], ['ready', sumOf('sha256', SECOND)]);
});

test('one whose mirror is gone in the restored cloud fails with the reason, and the others stay', {
  skip,
}, async () => {
  mirror.set(DEBIAN_PATH, (response) => sendPart(response, SECOND, 500_000));
  const { image_id: id } = await fetchImage(lost.admin);
  await fetched(lost.admin, id, 0);
  await lost.point();
  mirror.set(DEBIAN_SUMS, (response) => response.writeHead(503).end());
  await lost.lose();
  const image = await settled(lost.admin, id);
  assert.equal(image.state, 'failed');
  assert.match(image.state_reason.message, /SHA512SUMS: the server answered 503/);
  const [debian] = await lost.admin.expect(200, KNOWN);
  assert.equal(debian.image.state_reason.message, image.state_reason.message);
  await says(await newVm(lost.user, { name: 'still', image: 'debian-13' }), 'second');
});

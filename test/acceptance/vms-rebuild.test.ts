/** A guest that boots from another disk after a rebuild, with the API and with the client. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { CheckedClient } from '../harness/checked-client.ts';
import { ADMIN_KEY, CloudProcess } from '../harness/cloud-process.ts';
import { eventually } from '../harness/waiting.ts';
import { CliUser } from './cli-kit.ts';
import { helloDisk, settled, upload } from './images-kit.ts';
import { cannotRunGuests, newVm, removeAll } from './vms-kit.ts';

const skip = cannotRunGuests();
let cloud: CloudProcess;
let client: CliUser & { readonly key: string };
let user: CheckedClient;
let vm = '';
let [first, second] = ['', ''];
before(async () => {
  if (skip) return;
  cloud = await CloudProcess.start();
  client = await CliUser.signedIn(cloud.api);
  const admin = await CheckedClient.open(cloud.api, ADMIN_KEY);
  user = admin.as(client.key);
  const add = async (word: string) => {
    const { image_id } = await upload(admin, helloDisk(word), { name: word });
    assert.equal((await settled(admin, image_id)).state, 'ready');
    return image_id;
  };
  [first, second] = [await add('first'), await add('second')];
  vm = await newVm(user, { name: 'shop', image: first });
});
after(async () => {
  if (skip) return;
  await removeAll(user);
  client.remove();
  await cloud.stop();
});

const post = (path: string) => user.expect(200, `${vm}${path}`, { method: 'POST' });
/**
 * Waits until its disk has printed these words, one in each run; the log of the old disk is removed with it.
 */
const hasSaid = (...words: readonly string[]) =>
  eventually(words.join(), async () => {
    const said = String((await user.call(`${vm}/log`)).body).match(/first|second/g) ?? [];
    return said.join() === words.join();
  });

test('a rebuilt machine boots from the new disk, and keeps its address and size', { skip }, async () => {
  await post('/start');
  await hasSaid('first');
  await user.refused(409, 'vm_not_stopped', [`${vm}/rebuild`, { json: { image: second } }]);
  await post('/stop?force=true');
  await user.refused(404, 'image_not_found', [`${vm}/rebuild`, { json: { image: 'plan-9' } }]);
  const { ip_address, disk_gb } = await user.expect(200, vm);
  const rebuilt = await user.expect(200, `${vm}/rebuild`, { json: { image: second } });
  assert.deepEqual(
    [rebuilt.state, rebuilt.ip_address, rebuilt.disk_gb, rebuilt.image],
    ['stopped', ip_address, disk_gb, second],
  );
  await post('/start');
  await hasSaid('second');
});

test('the client rebuilds it, once that is meant', { skip }, async () => {
  assert.match(await client.fails(6, ['vm', 'rebuild', 'shop', '--yes']), /stopped/);
  await post('/stop?force=true');
  assert.match(await client.fails(2, ['vm', 'rebuild', 'shop', '--image', first]), /nothing was deleted/);
  await client.fails(5, ['vm', 'rebuild', 'shop', '--yes', '--image', 'plan-9']);
  const words = await client.ok(['vm', 'rebuild', 'shop', '--yes', '--image', first]);
  assert.equal(words, `shop has a new disk from ${first}; cloudlet vm start shop starts it\n`);
  await client.ok(['vm', 'start', 'shop']);
  await hasSaid('first');
  await post('/stop?force=true');
  // Its original image again.
  await client.ok(['vm', 'rebuild', 'shop', '--yes']);
  await hasSaid();
  await client.ok(['vm', 'start', 'shop']);
  await hasSaid('first');
});

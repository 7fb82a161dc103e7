/** Restores from recovery points, with the client. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { ADMIN_KEY } from '../harness/cloud-process.ts';
import { CliUser } from './cli-kit.ts';
import { LosableCloud, POST } from './recovery-kit.ts';
import { cannotRunGuests, newVm, removeAll } from './vms-kit.ts';

const skip = cannotRunGuests();
let lost: LosableCloud;
let user: CliUser & { readonly key: string };
before(async () => {
  lost = await LosableCloud.start();
  user = await CliUser.signedIn(lost.cloud.api);
});
after(async () => {
  user.remove();
  await lost.end();
});

test('an object, a bucket with all versions, and the machine of a point', { skip }, async () => {
  const owner = lost.user.as(user.key);
  await owner.expect(201, '/api/buckets', { json: { name: 'photos', versioning: true } });
  for (const text of ['first', 'second']) await owner.upload('photos', 'note.txt', text);
  const vm = await newVm(owner, { name: 'web' });
  const { point_id: point } = await lost.point();
  await owner.expect(200, '/api/buckets/photos?force=true', { method: 'DELETE' });
  assert.match(await user.ok(['bucket', 'points', 'photos']), new RegExp(`^POINT +CREATED\n${point} `));
  const one = ['bucket', 'restore', 'photos/note.txt', '--point', point];
  await user.fails(2, one.slice(0, 3));
  assert.match(await user.ok([...one, '--preview']), /^1 object \(6.00 B\) would be restored to photos\n$/);
  assert.match(await user.ok(one), /^1 object \(6.00 B\) restored to photos\n$/);
  const all = ['bucket', 'restore', 'photos', '--point', point, '--versions', '--to', 'photos-then'];
  assert.match(
    await user.ok(all),
    /^2 objects \(11.00 B\) restored to photos-then\nNot restored: public_access \(1\)\. Access for everyone /,
  );
  assert.match(await user.ok(all), /^0 objects .* 2 unchanged/);
  assert.match(await user.ok(['vm', 'points', 'web']), new RegExp(point));
  await user.fails(2, ['vm', 'restore', 'web', 'web-then']);
  const made = await user.ok(['vm', 'restore', 'web', 'web-then', '--point', point]);
  assert.match(made, /^web-then is (?:created|stopped): vm-\w+\n$/);
  await owner.expect(200, `${vm}/stop?force=true`, POST);
  await owner.expect(200, vm, { method: 'DELETE' });
  const deleted = ['vm', 'restore', vm.split('/').at(-1) ?? '', 'web-again', '--point', point];
  assert.match(await user.ok([...deleted, '--type', 't2.micro']), /^web-again is /);
  await removeAll(owner);
});

test('an account, by an administrator only', async () => {
  const { username } = await lost.user.as(user.key).expect(200, '/api/profile');
  const { point_id: point } = await lost.point();
  const words = ['recovery', 'account', point, username, '--as', 'then', '--email', 'then@example.org'];
  await user.fails(2, words.slice(0, 4));
  await user.fails(4, words);
  const admin = new CliUser();
  await admin.ok(['login', lost.cloud.api, '--key', '-'], { input: ADMIN_KEY });
  assert.match(
    await admin.ok([...words, '--preview']),
    /^(?:\w+ \S+ would be restored\n)+nothing was changed\n$/,
  );
  const done = await admin.ok(words);
  const key = /^api key (\S+)$/m.exec(done)?.[1] ?? '';
  assert.equal((await lost.user.as(key).expect(200, '/api/profile')).username, 'then');
  assert.match(done, /^then is complete$/m);
  assert.doesNotMatch(await admin.ok(words), /api key/);
  admin.remove();
});

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { Call } from '../../calls/principal.ts';
import { AppError, type ErrorCode, isAppError } from '../../platform/errors.ts';
import { by } from '../../testing/account-fixture.ts';
import { type Compute, type ComputeFixture, openComputeFixture } from '../../testing/compute-fixture.ts';

const ED = 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI';
const lineOf = (letter: string) => `${ED}${letter.repeat(43)}`;

let fixture: ComputeFixture;
let cloud: Compute;
let ann: Call;
let bob: Call;
before(async () => {
  fixture = await openComputeFixture();
  cloud = await fixture.open();
  ann = await fixture.newCall('ann');
  bob = await fixture.newCall('bob');
});
after(() => fixture.close());

const code = (wanted: ErrorCode) => (error: unknown) => isAppError(error, wanted);
const add = (name: string, public_key: string, call = ann) =>
  cloud.sshKeys.add(by(call.principal), { name, public_key });

test('a key is kept by its name, once for each account', async () => {
  const made = await add('laptop', ` ${lineOf('A')} ann@laptop\n`);
  assert.equal(made.public_key, `${lineOf('A')} ann@laptop`);
  assert.match(made.fingerprint, /^SHA256:[\w+/]{43}$/);
  await assert.rejects(add('laptop', lineOf('B')), code('ssh_key_exists'));
  await add('laptop', lineOf('B'), bob);
  for (const wrong of ['x', '-----BEGIN OPENSSH PRIVATE KEY-----', `${lineOf('A')}\n${lineOf('B')}`]) {
    await assert.rejects(add('other', wrong), code('invalid_request'), wrong);
  }
  assert.deepEqual(
    (await cloud.sshKeys.list(ann.principal)).map(({ name }) => name),
    ['laptop'],
  );
});

test('a machine is created with keys by name, beside others, each once', async () => {
  await add('desk', lineOf('C'));
  const create = (ssh_key_names: string[]) =>
    cloud.machines.create(by(ann.principal), {
      name: 'web',
      instance_type: 't2.micro',
      ssh_keys: [lineOf('D'), lineOf('C')],
      ssh_key_names,
    });
  const { vm_id } = await create(['desk', 'laptop']);
  const wanted = [lineOf('D'), lineOf('C'), `${lineOf('A')} ann@laptop`];
  assert.deepEqual(fixture.engine.guests.get(vm_id)?.spec.sshKeys, wanted);
  await assert.rejects(create(['desk', 'none', 'nor this']), (error) => {
    assert.ok(error instanceof AppError);
    assert.deepEqual(
      error.fields?.map(({ field }) => field),
      ['ssh_key_names.1', 'ssh_key_names.2'],
    );
    return true;
  });
  assert.deepEqual(await cloud.sshKeys.remove(by(ann.principal), 'desk'), { name: 'desk', deleted: true });
  await assert.rejects(cloud.sshKeys.remove(by(bob.principal), 'desk'), code('ssh_key_not_found'));
  await assert.rejects(create(['desk']), code('invalid_request'));
  // Existing machines keep the key.
  assert.deepEqual(fixture.engine.guests.get(vm_id)?.spec.sshKeys, wanted);
});

test('an account keeps at most a hundred, also of many requests at once', async () => {
  const eve = await fixture.newCall('eve');
  const made = await Promise.allSettled(
    Array.from({ length: 105 }, (_, index) => add(`key-${index}`, lineOf('E'), eve)),
  );
  const refused = made.flatMap((one) => (one.status === 'rejected' ? [one.reason] : []));
  assert.equal(refused.length, 5);
  assert.ok(refused.every(code('quota_exceeded')));
  assert.equal((await cloud.sshKeys.list(eve.principal)).length, 100);
});

/** Valid and invalid requests for machines. No guest runs here. */
import assert from 'node:assert/strict';
import { before, test } from 'node:test';
import { CheckedClient } from '../harness/checked-client.ts';
import { ADMIN_KEY, type CloudProcess } from '../harness/cloud-process.ts';
import { sharedCloud } from '../harness/shared-cloud.ts';
import { TIME } from './storage-kit.ts';
import { NEW_VM, newVm } from './vms-kit.ts';

let cloud: CloudProcess;
let anyone: CheckedClient;
let user: CheckedClient;
before(async () => {
  cloud = await sharedCloud();
  anyone = await CheckedClient.open(cloud.api);
  user = anyone.as((await anyone.register()).api_key);
});

test('an account without credits but those of its registration publishes five ports', async () => {
  const account = await anyone.register();
  const own = anyone.as(account.api_key);
  const { vm_id: vm } = await own.expect(201, '/api/vms', { json: NEW_VM });
  const publish = { json: { port: 80 } };
  for (let i = 0; i < 5; i++) await own.expect(201, `/api/vms/${vm}/ports`, publish);
  const { detail } = await own.refused(409, 'too_many_ports', [`/api/vms/${vm}/ports`, publish]);
  assert.match(detail, /at most 5 .* grants, 20/);
  const credits = { json: { amount: 1, reason: 'a customer' } };
  await anyone.as(ADMIN_KEY).expect(200, `/api/admin/accounts/${account.id}/credits`, credits);
  await own.expect(201, `/api/vms/${vm}/ports`, publish);
});

test('a new machine says all of itself', async () => {
  const vm = await user.expect(201, '/api/vms', { json: NEW_VM });
  const { vm_id, ip_address, private_ip, created_at, ports, ...rest } = vm;
  assert.match(vm_id, /^vm-[0-9a-z]{26}$/);
  assert.match(ip_address, /^127\.\d+\.\d+\.\d+$/);
  assert.match(private_ip, /^10\.(8\d|9[0-5])\.\d+\.\d+$/);
  assert.match(created_at, TIME);
  assert.deepEqual(rest, {
    ...NEW_VM,
    internal_name: 'web.internal',
    image: 'tiny',
    state: 'created',
    state_reason: null,
    vcpus: 1,
    memory_mb: 1024,
    disk_gb: 30,
    price_per_hour: 0.0116,
    price_per_month: 8.468,
    disk_price_per_hour: 0,
    total_price_per_hour: 0.0116,
    total_price_per_month: 8.468,
    ssh_command: null,
    outbound: false,
    accel: null,
    accel_reason: null,
    started_at: null,
    ready_at: null,
    uptime_seconds: 0,
  });
  const [one, ...others] = ports;
  assert.deepEqual(one, {
    port: 22,
    guest_port: 22,
    open: false,
    reason: 'the virtual machine is not running',
  });
  assert.deepEqual(
    others.map(({ port, guest_port }: { port: number; guest_port: number }) => [port, guest_port]),
    [80, 443, 8080].map((port) => [port, port]).concat([[2222, 22]]),
  );
  assert.deepEqual(await user.expect(200, `/api/vms/${vm_id}`), vm);
});

test('bad input is refused with the field that is wrong', async () => {
  const cases: readonly (readonly [object, string])[] = [
    [{ name: 'web' }, 'instance_type'],
    [{ instance_type: 't2.micro' }, 'name'],
    [{ ...NEW_VM, name: '' }, 'name'],
    [{ ...NEW_VM, name: 'a\nb' }, 'name'],
    [{ ...NEW_VM, instance_type: 'm1.tiny' }, 'instance_type'],
    [{ ...NEW_VM, tags: ['a'] }, 'tags'],
    [{ ...NEW_VM, region: 'US' }, 'region'],
    [{ ...NEW_VM, ssh_keys: ['ssh-rsa nonsense'] }, 'ssh_keys.0'],
    [{ ...NEW_VM, user_data: 'x'.repeat(65_537) }, 'user_data'],
    [{ ...NEW_VM, user_data: 'echo hi' }, 'user_data'],
    [{ ...NEW_VM, ports: [70_000] }, 'ports.0'],
  ];
  for (const [json, field] of cases) {
    const { errors } = await user.refused(400, 'invalid_request', ['/api/vms', { json }]);
    assert.ok(
      errors.some((problem: { field: string }) => problem.field === field),
      `${field}: ${JSON.stringify(errors)}`,
    );
  }
  await user.refused(404, 'image_not_found', ['/api/vms', { json: { ...NEW_VM, image: 'img-none' } }]);
});

test('hostile names are names', async () => {
  const names = ['a,b=c', '"; rm -rf /', '$(id)', '-display gtk', 'ü😀', "o'clock", '../../etc', 'x,x=y\\'];
  for (const name of names) {
    const vm = await user.expect(201, '/api/vms', { json: { ...NEW_VM, name } });
    assert.equal(vm.name, name);
  }
});

test('100 at once: 100 machines with 100 addresses', async () => {
  const { id, api_key } = await anyone.register();
  const quotas = { method: 'PATCH', json: { quotas: { vms: 100 } } };
  await anyone.as(ADMIN_KEY).expect(200, `/api/admin/accounts/${id}`, quotas);
  const other = anyone.as(api_key);
  const made = await Promise.all(
    Array.from({ length: 100 }, () => other.expect(201, '/api/vms', { json: NEW_VM })),
  );
  assert.equal(new Set(made.map(({ ip_address }) => ip_address)).size, 100);
  assert.equal((await other.expect(200, '/api/vms')).length, 100);
});

test('one that was never stopped is not deleted; then it is, and its address goes on to others', async () => {
  const vm = await newVm(user);
  const problem = await user.refused(409, 'vm_not_stopped', [vm, { method: 'DELETE' }]);
  assert.deepEqual(
    [problem.state, problem.action, problem.allowed],
    ['created', 'delete', ['start', 'stop']],
  );
  for (let i = 0; i < 2; i++) {
    assert.equal((await user.expect(200, `${vm}/stop`, { method: 'POST' })).state, 'stopped');
  }
  await user.expect(200, vm, { method: 'DELETE' });
  for (const [path, method] of [
    [vm, 'GET'],
    [vm, 'DELETE'],
    [`${vm}/start`, 'POST'],
    [`${vm}/stop`, 'POST'],
  ] as const) {
    await user.refused(404, 'vm_not_found', [path, { method }]);
  }
});

test("another account's machine is not there", async () => {
  const vm = await newVm(user);
  const other = anyone.as((await anyone.register()).api_key);
  const missing = '/api/vms/vm-00000000000000000000000000';
  for (const [path, method] of [
    ['', 'GET'],
    ['', 'DELETE'],
    ['/start', 'POST'],
    ['/stop', 'POST'],
  ] as const) {
    const [theirs, nobodys] = [
      await other.call(vm + path, { method }),
      await other.call(missing + path, { method }),
    ];
    assert.equal(theirs.status, 404);
    const bodies = [theirs.body, nobodys.body].map((body) => ({ ...body, request_id: '' }));
    assert.deepEqual(bodies[0], bodies[1]);
  }
  assert.deepEqual(await other.expect(200, '/api/vms'), []);
});

test('the catalogue and the images are listed', async () => {
  const types = await user.expect(200, '/api/instance-types');
  assert.equal(types.length, 7);
  assert.ok(
    (await user.expect(200, '/api/images')).some(({ image_id }: { image_id: string }) => image_id === 'tiny'),
  );
});

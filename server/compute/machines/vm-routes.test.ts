import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { Idempotency } from '../../calls/idempotency.ts';
import { IdempotencyStore } from '../../calls/idempotency-store.ts';
import { BodyMemory } from '../../http/bodies/body-memory.ts';
import { createEdge } from '../../http/edge.ts';
import { systemClock } from '../../platform/clock.ts';
import { testSealer } from '../../testing/account-fixture.ts';
import { type Compute, type ComputeFixture, openComputeFixture } from '../../testing/compute-fixture.ts';
import { testDoor } from '../../testing/test-door.ts';
import { imageRoutes } from '../images/image-routes.ts';
import { vmRoutes } from './vm-routes.ts';

let fixture: ComputeFixture;
let cloud: Compute;
let app: ReturnType<typeof createEdge>;
let key: string;
before(async () => {
  fixture = await openComputeFixture();
  cloud = await fixture.open();
  const { metadata, clock } = fixture;
  const store = new IdempotencyStore(metadata);
  const kept = { metadata, store, maxKept: 1000, ownKeyState: async () => null };
  app = createEdge({
    bodies: new BodyMemory(2 ** 26, systemClock),
    clock,
    door: testDoor(),
    limitsCalls: true,
    accounts: fixture.authenticator,
    idempotency: new Idempotency({ ...kept, sealer: testSealer(), clock }),
    operations: undefined as never, // no request of these tests prefers to be answered early
    control: new WeakSet(),
    publicUrl: '',
    routeLimiters: new Map(),
    trustedProxies: [],
    routes: [...vmRoutes({ ...cloud, lentKeys: undefined as never }), ...imageRoutes(cloud)],
  });
  key = await fixture.newKey('ann');
});
after(async () => {
  await app.close();
  await fixture.close();
});

async function call(line: string, body?: unknown, headers: Record<string, string> = {}) {
  const [method = '', url = ''] = line.split(' ');
  const response = await app.inject({
    method: method as 'GET' | 'POST' | 'DELETE',
    url,
    headers: { 'x-api-key': key, ...headers },
    ...(body === undefined ? {} : { payload: body as object }),
  });
  return { status: response.statusCode, headers: response.headers, body: JSON.parse(response.body) };
}

const NEW = { name: 'web', instance_type: 't2.micro', region: 'us-east-1', tags: 'a,b' };

test('a whole life', async () => {
  const made = await call('POST /api/vms', NEW);
  assert.equal(made.status, 201);
  const vm = `/api/vms/${made.body.vm_id}`;
  assert.deepEqual((await call(`GET ${vm}`)).body, made.body);
  assert.deepEqual((await call('GET /api/vms')).body, [made.body]);
  assert.equal((await call(`DELETE ${vm}`)).body.code, 'vm_not_stopped');
  const running = await call(`POST ${vm}/start`);
  assert.deepEqual([running.status, running.body.state], [200, 'running']);
  const refused = await call(`DELETE ${vm}`);
  assert.equal(refused.status, 409);
  const { state, action, allowed, code, error, detail } = refused.body;
  assert.deepEqual(
    [state, action, allowed, code],
    ['running', 'delete', ['start', 'stop'], 'vm_not_stopped'],
  );
  assert.equal(error, detail);
  const stopped = await call(`POST ${vm}/stop?grace=3`);
  assert.deepEqual([stopped.status, stopped.body.state], [200, 'stopped']);
  await call(`POST ${vm}/start`);
  await call(`POST ${vm}/stop?force=true&grace=3`);
  assert.deepEqual(cloud.scripted.graces, [3000, 0]);
  const deleted = await call(`DELETE ${vm}`);
  assert.deepEqual(deleted.body, { vm_id: made.body.vm_id, name: 'web', deleted: true, state: 'deleted' });
  for (const line of [`GET ${vm}`, `POST ${vm}/start`, `POST ${vm}/stop`, `DELETE ${vm}`]) {
    const { status, body } = await call(line);
    assert.deepEqual([status, body.code], [404, 'vm_not_found'], line);
  }
});

test('bad input is refused with the field, and nothing is made', async () => {
  const cases: readonly (readonly [object, string])[] = [
    [{ instance_type: 't2.micro' }, 'name'],
    [{ ...NEW, name: '' }, 'name'],
    [{ ...NEW, name: ' \t ' }, 'name'],
    [{ ...NEW, name: 7 }, 'name'],
    [{ ...NEW, name: 'x'.repeat(129) }, 'name'],
    [{ name: 'web' }, 'instance_type'],
    [{ ...NEW, instance_type: 't2.nano' }, 'instance_type'],
    [{ ...NEW, tags: ['a'] }, 'tags'],
    [{ ...NEW, tags: 'x'.repeat(1025) }, 'tags'],
    [{ ...NEW, region: 'US East' }, 'region'],
    [{ ...NEW, ssh_keys: 'ssh-ed25519 AAAA' }, 'ssh_keys'],
    [{ ...NEW, ssh_keys: ['ssh-ed25519 AAAA'] }, 'ssh_keys.0'],
    [{ ...NEW, ssh_keys: Array(21).fill('x') }, 'ssh_keys'],
    [{ ...NEW, user_data: 'x'.repeat(65_537) }, 'user_data'],
    [{ ...NEW, ports: [0] }, 'ports.0'],
    [{ ...NEW, ports: [80.5] }, 'ports.0'],
    [{ ...NEW, ports: Array(17).fill(81) }, 'ports'],
  ];
  const rows = (await fixture.store.list(0, 1000)).length;
  for (const [body, field] of cases) {
    const answer = await call('POST /api/vms', body);
    assert.equal(answer.status, 400, field);
    assert.ok(
      answer.body.errors.some((problem: { field: string }) => problem.field === field),
      `${field}: ${JSON.stringify(answer.body)}`,
    );
  }
  const image = await call('POST /api/vms', { ...NEW, image: 'img-x' });
  assert.deepEqual([image.status, image.body.code], [404, 'image_not_found']);
  assert.equal((await fixture.store.list(0, 1000)).length, rows);
});

test('pages, and cursors and queries that are none', async () => {
  const other = await fixture.newKey('pager');
  const ids = new Set<string>();
  for (let i = 0; i < 5; i++) ids.add((await call('POST /api/vms', NEW, { 'x-api-key': other })).body.vm_id);
  let url = '/api/vms?limit=2';
  const seen: string[] = [];
  while (url !== '') {
    const { body, headers } = await call(`GET ${url}`, undefined, { 'x-api-key': other });
    assert.ok(body.length <= 2);
    seen.push(...body.map((vm: { vm_id: string }) => vm.vm_id));
    url = /<([^>]+)>/.exec(String(headers.link ?? ''))?.[1] ?? '';
  }
  assert.deepEqual(seen, [...ids]);
  assert.equal((await call('GET /api/vms?cursor=x')).body.code, 'invalid_cursor');
  for (const query of ['grace=301', 'grace=-1', 'grace=x', 'force=yes']) {
    assert.equal((await call(`POST /api/vms/${seen[0]}/stop?${query}`)).status, 400, query);
  }
});

test('a repeated creation under one Idempotency-Key makes one machine', async () => {
  const headers = { 'idempotency-key': 'once' };
  const both = [await call('POST /api/vms', NEW, headers), await call('POST /api/vms', NEW, headers)];
  assert.equal(both[0]?.body.vm_id, both[1]?.body.vm_id);
  assert.deepEqual(
    both.map(({ status }) => status),
    [201, 201],
  );
});

test('the catalogue is the one of the specification; the tiny image is there', async () => {
  const { body } = await call('GET /api/instance-types');
  const table = body.map((entry: Record<string, unknown>) => Object.values(entry).slice(0, 6).join(' '));
  assert.deepEqual(table, [
    't2.micro 1 1024 30 0.0116 8.468',
    't2.small 1 2048 50 0.023 16.79',
    't2.medium 2 4096 100 0.0464 33.872',
    'c5.large 2 4096 200 0.085 62.05',
    'c5.xlarge 4 8192 400 0.17 124.1',
    'r5.large 2 16384 500 0.126 91.98',
    'p3.2xlarge 8 65536 1024 3.06 2233.8',
  ]);
  const largest = body.pop();
  assert.deepEqual(
    body.filter(
      ({ startable, reason }: { startable: boolean; reason: string | null }) => !startable || reason !== null,
    ),
    [],
  );
  assert.equal(largest.startable, false);
  const why = 'It needs 64 GB of memory, and all virtual machines of this host together may have 36 GB';
  assert.equal(largest.reason, why);
  const images = await call('GET /api/images');
  assert.equal(images.body[0].image_id, 'tiny');
});

test('that its state forbids it now is not kept under an Idempotency-Key; what was done is', async () => {
  const { vm_id } = (await call('POST /api/vms', NEW)).body;
  const vm = `/api/vms/${vm_id}`;
  const headers = { 'idempotency-key': 'later' };
  const write = async (state: 'stopping' | 'created') => {
    const row = await fixture.store.find(vm_id);
    assert.ok(row);
    await fixture.metadata.commit([fixture.store.update({ ...row, state, generation: row.generation + 1 })]);
  };
  await write('stopping');
  const early = await call(`POST ${vm}/start`, undefined, headers);
  assert.deepEqual([early.status, early.body.code], [409, 'vm_invalid_state']);
  await write('created');
  const started = await call(`POST ${vm}/start`, undefined, headers);
  assert.deepEqual([started.status, started.body.state], [200, 'running']);
  await call(`POST ${vm}/stop`);
  const again = await call(`POST ${vm}/start`, undefined, headers);
  assert.equal(again.headers['idempotent-replayed'], 'true');
  assert.deepEqual(again.body, started.body);
});

/** Published ports of stopped machines are reassigned after a day to machines that need them. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { afterEach, before, beforeEach, test } from 'node:test';
import type { Call } from '../../calls/principal.ts';
import { type ErrorCode, isAppError } from '../../platform/errors.ts';
import { type Compute, type ComputeFixture, openComputeFixture } from '../../testing/compute-fixture.ts';

const HOUR_MS = 3_600_000;
const PORTS = 3;
let fixture: ComputeFixture;
let cloud: Compute;
let first: number;
let owner: Call;
let other: Call;

/** The first of several free ports of this host. */
async function freeRange(): Promise<number> {
  for (;;) {
    const probe = createServer().listen(0, '127.0.0.1');
    await once(probe, 'listening');
    const { port } = probe.address() as AddressInfo;
    const servers = [probe];
    let isFree = port + PORTS < 65_536;
    for (let next = 1; next < PORTS && isFree; next++) {
      const server = createServer().listen(port + next, '127.0.0.1');
      servers.push(server);
      isFree = await Promise.race([
        once(server, 'listening').then(() => true),
        new Promise<boolean>((resolve) => server.once('error', () => resolve(false))),
      ]);
    }
    await Promise.all(servers.map((server) => new Promise((resolve) => server.close(resolve))));
    if (isFree) return port;
  }
}

before(async () => {
  first = await freeRange();
});
beforeEach(async () => {
  fixture = await openComputeFixture();
  const range = { first, last: first + PORTS - 1 };
  const publishing = { range, reserved: new Set<number>(), domain: '', max: 20, maxConnections: 100 };
  cloud = await fixture.open({ publishing });
  cloud.supervisor.start();
  await cloud.supervisor.recovered();
  [owner, other] = [await fixture.newCall('owner'), await fixture.newCall('other')];
});
afterEach(async () => {
  await cloud.published.close();
  await fixture.close();
});

const code = (wanted: ErrorCode) => (error: unknown) => isAppError(error, wanted);
const newVm = async (call: Call) =>
  (await cloud.machines.create(call, { name: 'm', instance_type: 't2.micro' })).vm_id;
const publish = (call: Call, vmId: string) => cloud.published.publish(call, vmId, { port: 80 });

async function portsOf(call: Call, vmId: string) {
  const rows = await cloud.published.list(call.principal, vmId);
  return rows.map(({ public_port, former_port, open }) => ({ public_port, former_port, open }));
}

/** A machine of the owner that holds all ports. */
async function hoard(): Promise<string> {
  const vmId = await newVm(owner);
  for (let n = 0; n < PORTS; n++) await publish(owner, vmId);
  return vmId;
}

test('a port stays with a machine that stopped a moment ago, and goes to who asks a day later', async () => {
  const idle = await hoard();
  const vmId = await newVm(other);
  await assert.rejects(publish(other, vmId), code('no_free_port'));
  fixture.clock.advance(23 * HOUR_MS);
  await assert.rejects(publish(other, vmId), code('no_free_port'), 'less than a day');
  fixture.clock.advance(HOUR_MS);
  const wanted = cloud.published.publish(other, vmId, { port: 80, public_port: first + 1 });
  await assert.rejects(wanted, code('port_taken'), 'nobody chooses whose port goes');
  assert.equal((await publish(other, vmId)).public_port, first);
  assert.deepEqual(await portsOf(owner, idle), [
    { public_port: null, former_port: first, open: false },
    { public_port: first + 1, former_port: null, open: false },
    { public_port: first + 2, former_port: null, open: false },
  ]);
  const [given] = await cloud.published.list(owner.principal, idle);
  assert.equal(given?.address, '127.0.0.1:');
  assert.match(given?.reason ?? '', /was reassigned to another machine.*gets a port at its next start/);
});

test('a machine that runs, and one that ran within the day, keep their ports', async () => {
  const vmId = await hoard();
  await cloud.power.start(owner, vmId);
  const theirs = await newVm(other);
  fixture.clock.advance(72 * HOUR_MS);
  await assert.rejects(publish(other, theirs), code('no_free_port'));
  assert.ok((await portsOf(owner, vmId)).every(({ open }) => open));
  await cloud.power.stop(owner, vmId);
  fixture.clock.advance(HOUR_MS);
  await assert.rejects(publish(other, theirs), code('no_free_port'));
  fixture.clock.advance(24 * HOUR_MS);
  assert.equal((await publish(other, theirs)).public_port, first);
});

test('a start gives the old port back if it is free, else another, and tells the owner', async () => {
  await fixture.metadata.commit([
    {
      sql: `INSERT INTO webhooks (webhook_id, account_id, url, description, events, sealed_secret,
              created_at)
            VALUES ('whk-1', ?, 'http://127.0.0.1/', '', '["*"]', ?, 0)`,
      params: [owner.principal.accountId, Buffer.from('x')],
    },
  ]);
  const idle = await hoard();
  fixture.clock.advance(24 * HOUR_MS);
  const theirs = await newVm(other);
  const taken = await publish(other, theirs);
  await cloud.published.withdraw(other, theirs, taken.port_id);
  fixture.clock.advance(1000);
  await cloud.power.start(owner, idle);
  assert.deepEqual((await portsOf(owner, idle))[0], { public_port: first, former_port: null, open: true });
  await cloud.power.stop(owner, idle);
  fixture.clock.advance(25 * HOUR_MS);
  await publish(other, theirs);
  const [, second] = await cloud.published.list(owner.principal, idle);
  await cloud.published.withdraw(owner, idle, second?.port_id ?? '');
  fixture.clock.advance(1000);
  await cloud.power.start(owner, idle);
  assert.deepEqual(await portsOf(owner, idle), [
    { public_port: first + 1, former_port: first, open: true },
    { public_port: first + 2, former_port: null, open: true },
  ]);
  const events = await fixture.metadata.all<{ body: string }>(
    "SELECT body FROM webhook_events WHERE type = 'vm.port_changed' ORDER BY event_id",
  );
  const data = events.map(({ body }) => JSON.parse(body).data);
  const seen = data.map(({ port, public_port, former_port }) => [port, public_port, former_port]);
  assert.deepEqual(seen, [
    [80, null, first],
    [80, first, first],
    [80, null, first],
    [80, first + 1, first],
  ]);
});

test('the account that hoards most gives first, and each of many who ask at once gets one of its own', async () => {
  const small = await newVm(owner);
  await publish(owner, small);
  fixture.clock.advance(HOUR_MS);
  const hoarder = await fixture.newCall('hoarder');
  const hoarded = await newVm(hoarder);
  await publish(hoarder, hoarded);
  await publish(hoarder, hoarded);
  fixture.clock.advance(24 * HOUR_MS);
  const theirs = await newVm(other);
  const made = await Promise.all([publish(other, theirs), publish(other, theirs)]);
  assert.deepEqual(made.map(({ public_port }) => public_port).sort(), [first + 1, first + 2]);
  assert.deepEqual((await portsOf(owner, small))[0]?.public_port, first, 'who has one keeps it longest');
  // A machine that starts when no port is free runs without one, and reports it.
  await fixture.metadata.commit([
    { sql: 'UPDATE vms SET state_changed_at = ?', params: [fixture.clock.now()] },
  ]);
  await cloud.power.start(hoarder, hoarded);
  const rows = await cloud.published.list(hoarder.principal, hoarded);
  assert.deepEqual(
    rows.map(({ public_port }) => public_port),
    [null, null],
  );
  assert.match(rows[0]?.reason ?? '', /no port is free/);
});

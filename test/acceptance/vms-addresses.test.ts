/** A machine's address belongs to it alone, and the answer shows which of its ports really respond. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { connect, createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { CheckedClient } from '../harness/checked-client.ts';
import { type CloudOptions, CloudProcess } from '../harness/cloud-process.ts';
import { eventually } from '../harness/waiting.ts';
import { cannotRunGuests, newVm, removeAll, sshBanner } from './vms-kit.ts';

const skip = cannotRunGuests();
/** The maximum number for a machine. */
const PORTS = Array.from({ length: 16 }, (_, at) => 9000 + at);

interface Port {
  readonly port: number;
  readonly guest_port: number;
  readonly open: boolean;
  readonly reason: string | null;
}

async function open(t: TestContext, options: CloudOptions = {}) {
  const cloud = await CloudProcess.start(options);
  const anyone = await CheckedClient.open(cloud.api);
  const user = anyone.as((await anyone.register()).api_key);
  t.after(async () => {
    await removeAll(user);
    await cloud.stop();
  });
  return { cloud, user };
}

/** Runs the given command with at most this many open files. */
const withFiles = (count: number) => ['sh', '-c', `ulimit -n ${count} && exec "$0" "$@"`];

const portOf = (vm: { ports: Port[] }, port: number) => vm.ports.find((one) => one.port === port);

function refused(host: string, port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ host, port }, () => resolve(false));
    socket.on('error', () => resolve(true)).once('close', () => socket.destroy());
  });
}

test('two clouds with the same network give out different addresses, also of machines that do not run', async (t) => {
  const [one, two] = [await open(t), await open(t)];
  const all: string[] = [];
  for (const { user } of [one, two, one, two]) {
    all.push((await user.expect(200, await newVm(user))).ip_address);
  }
  assert.equal(new Set(all).size, all.length, all.join(' '));
});

test('an address where another program listens is not given out', async (t) => {
  const { user } = await open(t);
  const { ip_address: first } = await user.expect(200, await newVm(user));
  const next = first.replace(/\d+$/, (last: string) => String(Number(last) + 1));
  const other = createServer().listen(2222, next);
  await once(other, 'listening');
  t.after(() => other.close());
  assert.notEqual((await user.expect(200, await newVm(user))).ip_address, next);
});

test('a machine that does not run has no open port, and a thousand of them cost no file', async (t) => {
  const { cloud, user } = await open(t, { wrapper: withFiles(300) });
  for (let at = 0; at < 40; at++) {
    const vm = await user.expect(200, await newVm(user, { ports: PORTS }));
    assert.equal(vm.ssh_command, null);
    assert.ok(vm.ports.every((port: Port) => !port.open && /is not running/.test(port.reason ?? '')));
    assert.ok(await refused(vm.ip_address, 2222));
  }
  assert.match(cloud.output, /Ready in/);
  assert.equal((await user.call('/readyz')).status, 200);
});

test('a machine that runs says what is open, why the rest is not, and how to reach it', {
  skip,
}, async (t) => {
  const { user } = await open(t);
  const vm = await newVm(user, { ports: [9000, 9001] });
  const { ip_address } = await user.expect(200, vm);
  let strangers = 0;
  const taken = createServer(() => void strangers++).listen(9001, ip_address);
  await once(taken, 'listening');
  t.after(() => taken.close());
  const running = await user.expect(200, `${vm}/start`, { method: 'POST' });
  assert.deepEqual(portOf(running, 9000), { port: 9000, guest_port: 9000, open: true, reason: null });
  // Root, where it may create rules, leads connections past that program; other users see which program
  // answers.
  const led = portOf(running, 9001)?.open === true;
  if (led) assert.equal(await refused(ip_address, 9001), false);
  else assert.match(portOf(running, 9001)?.reason ?? '', /another program/);
  // Root has 22, others only 2222.
  const option = portOf(running, 22)?.open ? '' : '-p 2222 ';
  assert.equal(running.ssh_command, `ssh ${option}root@${ip_address}`);
  assert.deepEqual((await user.expect(200, vm)).ports, running.ports);
  assert.match(await sshBanner(ip_address), /^SSH-2\.0-/);
  assert.equal(strangers, 0);
  const stopped = await user.expect(200, `${vm}/stop?force=true`, { method: 'POST' });
  assert.deepEqual([stopped.ssh_command, portOf(stopped, 9000)?.open], [null, false]);
  assert.ok(await refused(ip_address, 9000));
});

test('with few files left machines are refused, the API goes on, and they are made when there are more', async (t) => {
  const { cloud, user } = await open(t, { wrapper: withFiles(512) });
  const { hostname, port } = new URL(cloud.api);
  const idle: Socket[] = [];
  t.after(() => idle.forEach((socket) => void socket.destroy()));
  // An idle connection is closed for new ones, possibly while the next request is sent.
  const headers = { connection: 'close' };
  const create = { json: { name: 'web', instance_type: 't2.micro' }, headers };
  const refusal = await eventually('the refusal', async () => {
    // One address has only its share of connections.
    const more = Array.from({ length: 20 }, (_, i) =>
      connect({ host: hostname, port: Number(port), localAddress: `127.0.1.${i + 1}` }),
    );
    for (const socket of more) socket.on('error', () => undefined);
    await Promise.all(more.map((socket) => once(socket, 'connect')));
    idle.push(...more);
    const { status, body } = await user.call('/api/vms', create);
    if (status === 201) return null;
    assert.equal(status, 503);
    return body;
  });
  assert.equal(refusal.code, 'insufficient_capacity');
  assert.match(refusal.hint, /LimitNOFILE/);
  await user.expect(201, '/api/buckets', { json: { name: 'goes-on' }, headers });
  for (const socket of idle) socket.destroy();
  await eventually('enough files again', async () => (await user.call('/api/vms', create)).status === 201);
});

test('a cloud that may open fewer files than its machines have ports comes up and says so', {
  skip,
}, async (t) => {
  const dataDir = mkdtempSync(join(tmpdir(), 'cloudlet-few-'));
  t.after(() => rmSync(dataDir, { recursive: true, force: true }));
  const first = await CloudProcess.start({ dataDir });
  const account = await (await CheckedClient.open(first.api)).register();
  const path = await newVm((await CheckedClient.open(first.api)).as(account.api_key), { ports: PORTS });
  const before = (await CheckedClient.open(first.api)).as(account.api_key);
  await before.expect(200, `${path}/start`, { method: 'POST' });
  await first.crash();
  const second = await CloudProcess.start({ dataDir, wrapper: withFiles(80) });
  const user = (await CheckedClient.open(second.api)).as(account.api_key);
  t.after(async () => {
    await removeAll(user);
    await second.stop();
  });
  const vm = await eventually('the reasons', async () => {
    const now = await user.expect(200, path);
    return now.ports.some(({ reason }: Port) => /too many files/.test(reason ?? '')) ? now : null;
  });
  assert.equal(vm.state, 'running');
  const { alarms } = await eventually('the alarm', async () => {
    const { body } = await user.call('/api/system/status');
    return body.alarms.length === 0 ? null : body;
  });
  assert.equal(alarms[0].code, 'few_files_left');
});

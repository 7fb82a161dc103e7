/** Machines with their own addresses, on a bridge, in a separate network of the test. */
import assert from 'node:assert/strict';
import { execFile, spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { networkInterfaces, tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { notInstalled } from '../../scripts/installed.ts';
import * as net from '../acceptance/private-network.ts';
import { cannotRunGuests, firstLine, newVm, removeAll } from '../acceptance/vms-kit.ts';
import { CheckedClient } from '../harness/checked-client.ts';
import { CloudProcess } from '../harness/cloud-process.ts';
import { eventually } from '../harness/waiting.ts';

const skip = cannotRunGuests() || notInstalled('ssh') || net.cannotMakeNetworks();
const UID_BASE = 710_000_000;
const BRIDGE = `clbr${UID_BASE}`;
const GATEWAY = '10.80.0.1';
const SETTINGS = {
  CLOUDLET_VM_NETWORK: 'bridge',
  CLOUDLET_VM_POOL: '10.80.0.0/24',
  CLOUDLET_VM_OUTBOUND: 'on',
  CLOUDLET_VM_UID_BASE: String(UID_BASE),
  CLOUDLET_HOST: '0.0.0.0',
};

const taps = () => Object.keys(networkInterfacesOfLinux()).filter((name) => name.startsWith('clt'));

/** Also interfaces without an address, which Node omits. */
function networkInterfacesOfLinux(): Record<string, unknown> {
  const lines = spawnSync('ip', ['-o', 'link'], { encoding: 'utf8' }).stdout;
  const names = [...lines.matchAll(/^\d+: ([^:@]+)/gm)].map(([, name]) => [name, true]);
  return { ...networkInterfaces(), ...Object.fromEntries(names) };
}

let directory = '';
let keyFile = '';
const local = createServer((_request, answer) => answer.end('secret of the host'));
const machines: { path: string; address: string }[] = [];
let cloud: CloudProcess;
let user: CheckedClient;
let takeDown = () => {};

const banner = (address: string) => eventually(`SSH of ${address}`, () => firstLine(address, 22));
const machine = (at: number) => machines[at] ?? { path: '', address: '' };

function guest(script: string): Promise<string> {
  const options = ['StrictHostKeyChecking=no', 'UserKnownHostsFile=/dev/null', 'LogLevel=ERROR'];
  const all = [...options.flatMap((one) => ['-o', one]), '-i', keyFile, `root@${machine(0).address}`, 'sh'];
  return new Promise((resolve, reject) => {
    const child = execFile('ssh', all, { timeout: 60_000 }, (error, stdout, stderr) => {
      if (error === null) resolve(stdout);
      else reject(new Error(`${error.message}\n${stdout}\n${stderr}`));
    });
    child.stdin?.end(script);
  });
}

/** The first answer to the first machine's TCP connection there. */
async function heard(host: string, port: number): Promise<string> {
  const ask = `(printf 'GET / HTTP/1.0\\r\\n\\r\\n'; sleep 3) | timeout 4 nc ${host} ${port} >/tmp/said 2>/dev/null`;
  return (await guest(`${ask}\ntail -n 1 /tmp/said | head -c 40\n`)).trim();
}

/** Without those of our tables, which are restored periodically: then it retries. */
const without = (families: readonly string[], wanted: () => Promise<boolean>) =>
  eventually(`what needs no table ${families}`, async () => {
    for (const family of families) spawnSync('nft', ['delete', 'table', family, BRIDGE]);
    return wanted();
  });
const rulesAreBack = () =>
  eventually('the rules', async () =>
    ['bridge', 'inet'].every((family) => spawnSync('nft', ['list', 'table', family, BRIDGE]).status === 0),
  );

async function join2(): Promise<void> {
  const anyone = await CheckedClient.open(cloud.api);
  user = anyone.as((await anyone.register()).api_key);
  for (const name of ['one', 'two']) {
    const ssh_keys = [readFileSync(`${keyFile}.pub`, 'utf8').trim()];
    const path = await newVm(user, { name, ssh_keys });
    const { ip_address } = await user.expect(200, `${path}/start`, { method: 'POST' });
    machines.push({ path, address: ip_address });
  }
  for (const { address } of machines) assert.match(await banner(address), /^SSH-2/);
}

function common(): void {
  before(async () => {
    directory = mkdtempSync(join(tmpdir(), 'cloudlet-bridge-'));
    keyFile = join(directory, 'key');
    takeDown = await net.makeOutside();
    writeFileSync('/proc/sys/net/ipv4/ip_forward', '1');
    await new Promise<void>((resolve) => local.listen(0, '0.0.0.0', resolve));
    spawnSync('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-f', keyFile]);
    cloud = await CloudProcess.start({ env: SETTINGS });
    await join2();
  });

  after(async () => {
    await removeAll(user);
    assert.deepEqual(taps(), [], 'no device is left of a deleted machine');
    await cloud.stop();
    local.close();
    takeDown();
    rmSync(directory, { recursive: true });
  });

  test('the address is the machine’s own, and its first sign of life is noticed', async () => {
    assert.notEqual(machine(0).address, GATEWAY);
    assert.match(await guest('ip addr show dev eth0'), new RegExp(`inet ${machine(0).address}/24`));
    await eventually('ready_at', async () => (await user.expect(200, machine(0).path)).ready_at);
    assert.equal(taps().length, 2);
  });

  test('it reaches the outside, and no private network and no metadata', async () => {
    assert.equal(await heard(net.OUTSIDE, net.OUTSIDE_PORT), net.OUTSIDE_SAYS);
    assert.match(await guest('ping -c 1 -W 1 some.name.test || true'), new RegExp(net.OUTSIDE));
    assert.equal(await heard(net.NEIGHBOUR, net.OUTSIDE_PORT), '');
    assert.equal(await heard(net.METADATA, net.OUTSIDE_PORT), '');
  });
}

function further(): void {
  test('it does not reach this host, and would without the rules', async () => {
    const { port } = local.address() as AddressInfo;
    const api = Number(new URL(cloud.api).port);
    for (const host of [GATEWAY, ...net.HOST_ADDRESSES]) assert.equal(await heard(host, port), '');
    assert.equal(await heard(GATEWAY, api), '');
    await without(['inet'], async () => (await heard(GATEWAY, port)) === 'secret of the host');
    await rulesAreBack();
  });

  test('an address that is not its own is of no use to it', async () => {
    const stolen = '10.80.0.77';
    await guest(`ip addr add ${stolen}/24 dev eth0`);
    assert.equal(await firstLine(stolen, 22), null);
    await without(['bridge'], async () => {
      spawnSync('ip', ['neigh', 'flush', 'dev', BRIDGE]);
      return (await firstLine(stolen, 22)) !== null;
    });
    await rulesAreBack();
    await guest(`ip addr del ${stolen}/24 dev eth0`);
  });

  test('machines do not reach each other', async () => {
    const other = machine(1).address;
    assert.equal(await heard(other, 22), '');
    for (const tap of taps()) net.ip(`link set dev ${tap} type bridge_slave isolated off`);
    assert.equal(await heard(other, 22), '', 'the rules alone would do');
    // Some kernels also pass frames between guests to the rules for packets.
    await without(['bridge', 'inet'], async () => (await heard(other, 22)) !== '');
    await rulesAreBack();
  });

  test('stop and start keep the address, and so does a new Cloudlet', async () => {
    const { path, address } = machine(1);
    await user.expect(200, `${path}/stop?force=true`, { method: 'POST' });
    await eventually('one device', async () => taps().length === 1);
    const again = await user.expect(200, `${path}/start`, { method: 'POST' });
    assert.equal(again.ip_address, address);
    assert.match(await banner(address), /^SSH-2/);
    await cloud.crash();
    assert.match(await banner(address), /^SSH-2/);
    await cloud.start();
    const anew = await CheckedClient.open(cloud.api);
    user = anew.as(user.key);
    await eventually('the machine', async () => (await user.expect(200, path)).state === 'running');
    assert.equal(taps().length, 2);
    assert.match(await banner(address), /^SSH-2/);
  });
}

if (net.isInside())
  describe('in its own network', () => {
    common();
    further();
  });
else {
  test('machines on a bridge have their addresses, and reach what they may', { skip }, () => {
    const { status, output } = net.runInside(import.meta.filename);
    assert.equal(status, 0, output);
  });
}

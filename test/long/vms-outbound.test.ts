/**
 * Addresses that a machine can reach when the operator allows outbound connections, tried from inside one.
 */
import assert from 'node:assert/strict';
import { execFile, spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { notInstalled } from '../../scripts/installed.ts';
import * as net from '../acceptance/private-network.ts';
import { cannotRunGuests, guestPids, newVm, removeAll, sshBanner } from '../acceptance/vms-kit.ts';
import { CheckedClient } from '../harness/checked-client.ts';
import { CloudProcess } from '../harness/cloud-process.ts';
import { eventually } from '../harness/waiting.ts';

const skip = cannotRunGuests() || notInstalled('ssh') || net.cannotMakeNetworks();
const UID_BASE = 700_000_000;
const TABLE = `cloudlet_${UID_BASE}`;
const LOCAL_SAYS = 'secret of the host';
const SETTINGS = {
  CLOUDLET_VM_OUTBOUND: 'on',
  CLOUDLET_VM_UID_BASE: String(UID_BASE),
  CLOUDLET_HOST: '0.0.0.0',
};

let directory = '';
let keyFile = '';
const local = createServer((_request, answer) => answer.end(LOCAL_SAYS));
let cloud: CloudProcess;
let user: CheckedClient;
let takeDown = () => {};
let localPort = 0;
const machines: { path: string; address: string }[] = [];

/** Runs a shell script in the first machine and resolves with its output. */
function guest(script: string): Promise<string> {
  const options = ['StrictHostKeyChecking=no', 'UserKnownHostsFile=/dev/null', 'LogLevel=ERROR'];
  // A connection started without rules gets no answer when they are restored: it hangs.
  options.push('ServerAliveInterval=3', 'ServerAliveCountMax=4');
  const words = [...options.flatMap((option) => ['-o', option]), '-i', keyFile, '-p', '22'];
  const all = [...words, `root@${machines[0]?.address}`, 'sh'];
  return new Promise((resolve, reject) => {
    const child = execFile('ssh', all, { timeout: 100_000 }, (error, stdout, stderr) => {
      if (error === null) resolve(stdout);
      else reject(new Error(`${error.message}\n${stdout}\n${stderr}`));
    });
    child.stdin?.end(script);
  });
}

/** The machine's response from each address, all requested at once; `nothing` where none arrives. */
async function fetched(endpoints: readonly string[]): Promise<string[]> {
  const get = (endpoint: string, at: number) =>
    `(printf 'GET / HTTP/1.0\\r\\n\\r\\n' | timeout 7 nc ${endpoint.replace(':', ' ')} >/tmp/said.${at}) 2>/dev/null &`;
  const ask = endpoints.map(get).join('\n');
  const show = endpoints.map((_, at) => `tail -n 1 /tmp/said.${at} | grep . || echo nothing`);
  const said = await guest(`${ask}\nwait\n${show.join('\n')}\n`);
  return said.trim().split('\n');
}

const withoutRules = async (endpoints: readonly string[], wanted: (said: readonly string[]) => boolean) =>
  // Cloudlet restores its rules periodically: then it retries.
  eventually('what the machine reaches without rules', async () => {
    spawnSync('nft', ['delete', 'table', 'inet', TABLE]);
    const said = await fetched(endpoints).catch(() => []);
    return said.length > 0 && wanted(said) && said;
  });

const rulesAreBack = () =>
  eventually('the rules', async () => spawnSync('nft', ['list', 'table', 'inet', TABLE]).status === 0);

function common(): void {
  before(async () => {
    directory = mkdtempSync(join(tmpdir(), 'cloudlet-outbound-'));
    keyFile = join(directory, 'key');
    takeDown = await net.makeOutside();
    await new Promise<void>((resolve) => local.listen(0, '0.0.0.0', resolve));
    localPort = (local.address() as AddressInfo).port;
    spawnSync('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-f', keyFile]);
    cloud = await CloudProcess.start({ env: SETTINGS });
    const anyone = await CheckedClient.open(cloud.api);
    user = anyone.as((await anyone.register()).api_key);
    for (const name of ['one', 'two']) {
      const ssh_keys = [readFileSync(`${keyFile}.pub`, 'utf8').trim()];
      const path = await newVm(user, { name, ssh_keys });
      const { ip_address, outbound } = await user.expect(200, `${path}/start`, { method: 'POST' });
      assert.equal(outbound, true);
      machines.push({ path, address: ip_address });
    }
    for (const { address } of machines) await sshBanner(address);
  });

  after(async () => {
    await removeAll(user);
    await cloud.stop();
    local.close();
    takeDown();
    rmSync(directory, { recursive: true });
  });

  test('a machine reaches the outside, by number and by name', async () => {
    assert.deepEqual(await fetched([`${net.OUTSIDE}:${net.OUTSIDE_PORT}`]), [net.OUTSIDE_SAYS]);
    assert.match(
      await guest('ping -c 1 -W 1 some.name.test || true'),
      new RegExp(`some\\.name\\.test[\\s\\S]*${net.OUTSIDE}`),
    );
  });

  test('it does not reach this host by any of its addresses, and would without the rules', async () => {
    const hosts = ['10.0.2.2', ...net.HOST_ADDRESSES];
    const endpoints = hosts.map((host) => `${host}:${localPort}`);
    assert.deepEqual(await fetched(endpoints), ['nothing', 'nothing', 'nothing']);
    const api = `10.0.2.2:${new URL(cloud.api).port}`;
    assert.deepEqual(await fetched([api]), ['nothing']);
    await withoutRules([...endpoints, api], (said) => said.every((text) => text !== 'nothing'));
    await rulesAreBack();
    assert.deepEqual(await fetched(endpoints), ['nothing', 'nothing', 'nothing']);
  });
}

function further(): void {
  test('nor private networks and the metadata of a cloud around it', async () => {
    const endpoints = [net.NEIGHBOUR, net.METADATA].map((host) => `${host}:${net.OUTSIDE_PORT}`);
    assert.deepEqual(await fetched(endpoints), ['nothing', 'nothing']);
    await withoutRules(endpoints, (said) => said.every((text) => text === net.OUTSIDE_SAYS));
    await rulesAreBack();
  });

  test('nor another machine, by its address or where its engine listens', async () => {
    const other = machines[1] as { path: string; address: string };
    const [pid = 0] = guestPids(other.path.split('/').at(-1) ?? '');
    const run = JSON.parse(readFileSync(`/proc/${pid}/cwd/../run.json`, 'utf8'));
    const { host: address, port } = run.forwards['22'];
    assert.match(address, /^127\./);
    // A machine that may send anything: to its kernel 127.0.0.0/8 is no longer its own.
    await guest(
      'ip route del local 127.0.0.0/8 dev lo table local; ip route del local 127.0.0.1 dev lo table local\n' +
        'for one in all eth0; do echo 1 >/proc/sys/net/ipv4/conf/$one/route_localnet; done\n' +
        'ip route add 127.0.0.0/8 via 10.0.2.2\n',
    );
    const endpoints = [`${address} ${port}`, `${other.address} 22`];
    // SSH speaks first; the rest of its output is not waited for.
    const ask = endpoints.map(
      (endpoint, at) => `(sleep 5 | timeout 6 nc ${endpoint} >/tmp/said.${at}) 2>/dev/null &`,
    );
    const show = endpoints.map((_, at) => `head -c 3 /tmp/said.${at}; echo`);
    const banners = async () => guest([...ask, 'wait', ...show, ''].join('\n'));
    assert.equal(await banners(), '\n\n');
    await eventually('the machine next door without rules', async () => {
      spawnSync('nft', ['delete', 'table', 'inet', TABLE]);
      return (await banners().catch(() => '')) === 'SSH\nSSH\n';
    });
    await rulesAreBack();
  });

  test('without nftables no such machine starts, and status says why', async () => {
    await user.expect(200, `${machines[1]?.path}/stop?force=true`, { method: 'POST' });
    // An idle cloud with only itself in its PATH still knows where programs are, so they are removed.
    spawnSync('mount', ['--bind', '/dev/null', '/usr/sbin/nft']);
    try {
      const refused = await user.expect(503, `${machines[1]?.path}/start`, { method: 'POST' });
      assert.equal(refused.code, 'engine_unavailable');
      const { components } = await user.expect(200, '/api/system/status');
      assert.match(
        `${components.compute.problem} ${components.compute.fix}`,
        /nft.*CLOUDLET_VM_OUTBOUND=off/,
      );
    } finally {
      spawnSync('umount', ['/usr/sbin/nft']);
    }
    await user.expect(200, `${machines[1]?.path}/start`, { method: 'POST' });
    const { components } = await user.expect(200, '/api/system/status');
    assert.equal(components.compute.problem, null);
  });
}

if (net.isInside())
  describe('in its own network', () => {
    common();
    further();
  });
else {
  test('machines reach the outside, and nothing of this host', { skip }, () => {
    const { status, output } = net.runInside(import.meta.filename);
    assert.equal(status, 0, output);
  });
}

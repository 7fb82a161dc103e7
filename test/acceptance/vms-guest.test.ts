/** A machine of the built-in image from inside, with SSH, its console and its metrics. */
import assert from 'node:assert/strict';
import { execFile, spawnSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { WebSocket } from 'ws';
import { notInstalled } from '../../scripts/installed.ts';
import { CheckedClient } from '../harness/checked-client.ts';
import { CloudProcess } from '../harness/cloud-process.ts';
import { eventually } from '../harness/waiting.ts';
import { cannotRunGuests, newVm, removeAll, sshBanner } from './vms-kit.ts';

const skip = cannotRunGuests() || notInstalled('ssh', 'sftp');
const directory = mkdtempSync(join(tmpdir(), 'cloudlet-guest-'));
const keyFile = join(directory, 'key');
const cloud = await CloudProcess.start();
const anyone = await CheckedClient.open(cloud.api);
let user: CheckedClient;
let vm = '';
let address = '';

interface Spoken {
  readonly code: number;
  readonly output: string;
}

/** Runs `command` in the guest. */
function ssh(command: string, options: readonly string[] = []): Promise<Spoken> {
  const fixed = ['StrictHostKeyChecking=accept-new', `UserKnownHostsFile=${keyFile}.hosts`, 'LogLevel=ERROR'];
  const args = [...fixed, 'ConnectTimeout=100', ...options].flatMap((option) => ['-o', option]);
  return new Promise((resolve) => {
    const all = [...args, '-i', keyFile, '-p', '2222', `root@${address}`, command];
    execFile('ssh', all, { timeout: 110_000 }, (error, stdout, stderr) => {
      resolve({ code: typeof error?.code === 'number' ? error.code : 0, output: stdout + stderr });
    });
  });
}

const post = (path: string) => user.expect(200, `${vm}${path}`, { method: 'POST' });

before(async () => {
  if (skip) return;
  spawnSync('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-f', keyFile]);
  user = anyone.as((await anyone.register()).api_key);
  vm = await newVm(user, {
    name: 'Web One!',
    ssh_keys: [readFileSync(`${keyFile}.pub`, 'utf8').trim()],
    user_data: '#!/bin/sh\necho hello from the script\necho once >>~/runs\n',
  });
  address = (await post('/start')).ip_address;
  // On a busy host a guest may boot for longer than a connection waits for it.
  await sshBanner(address);
});

after(async () => {
  if (!skip) await removeAll(user);
  await cloud.stop();
  rmSync(directory, { recursive: true });
});

test('SSH with the given key reaches a Linux of that name and size', { skip }, async () => {
  const { output, code } = await ssh('uname -a; hostname; df -k / | tail -n 1; id -u');
  assert.equal(code, 0, output);
  assert.match(output, /^Linux web-one .*x86_64.*\nweb-one\n\/dev\/vda +(?:29|3\d)\d{6} .*\n0\n$/);
  assert.notEqual((await user.expect(200, vm)).ready_at, null);
});

test('a password is of no use', { skip }, async () => {
  const only = ['PubkeyAuthentication=no', 'PreferredAuthentications=password', 'BatchMode=yes'];
  const { output, code } = await ssh('true', only);
  assert.equal(code, 255);
  assert.match(output, /Permission denied \(publickey\)/);
});

test('user_data ran once, and what it printed is kept', { skip }, async () => {
  const wait = 'until grep -q ended /var/log/cloud-init-output.log; do sleep 1; done';
  const { output } = await ssh(`${wait}; cat /var/log/cloud-init-output.log ~/runs`);
  assert.match(output, /^hello from the script\n/m);
  assert.match(output, /^once\n$/m);
});

test('the guest reaches neither this host nor its neighbours', { skip }, async () => {
  const port = new URL(cloud.api).port;
  const reach = (host: string, at = port) =>
    `nc -w 3 ${host} ${at} </dev/null >/dev/null && echo reached ${host};`;
  const outside = ['10.0.2.2', '127.0.0.1', '169.254.169.254'];
  // Finally its own address: the test shows that the attempts can succeed.
  const { output } = await ssh(`${outside.map((host) => reach(host)).join(' ')} ${reach('10.0.2.15', '22')}`);
  const reached = [...output.matchAll(/^reached (\S+)$/gm)].map(([, host]) => host);
  assert.deepEqual(reached, ['10.0.2.15'], output);
  assert.equal((await anyone.call('/api/openapi.json')).status, 200, 'there was something to reach');
});

test('files are copied in and out by SFTP', { skip }, async () => {
  const [there, back] = [join(directory, 'there'), join(directory, 'back')];
  const bytes = randomBytes(300_000);
  writeFileSync(there, bytes);
  const fixed = ['StrictHostKeyChecking=accept-new', `UserKnownHostsFile=${keyFile}.hosts`];
  const options = [...fixed, 'LogLevel=ERROR'].flatMap((option) => ['-o', option]);
  const args = [...options, '-i', keyFile, '-P', '2222', '-b', '-', `root@${address}`];
  const input = `put ${there} copied\nget copied ${back}\n`;
  const { status, stderr } = spawnSync('sftp', args, { input, timeout: 110_000, encoding: 'utf8' });
  assert.equal(status, 0, stderr);
  assert.deepEqual(readFileSync(back), bytes);
});

test('metrics move while the guest works, and are kept', { skip }, async () => {
  const idle = await eventually('figures', async () => {
    const { body } = await user.call(`${vm}/metrics`);
    return body.cpu_percent !== null && body.memory_used_mb > 0 ? body : null;
  });
  const { code, output } = await ssh('dd if=/dev/zero of=work bs=1M count=32 conv=fsync');
  assert.equal(code, 0, output);
  const busy = await eventually('moved figures', async () => {
    const { body } = await user.call(`${vm}/metrics`);
    return body.disk_write_bytes >= idle.disk_write_bytes + 32 * 2 ** 20 ? body : null;
  });
  assert.ok(busy.memory_percent > 0 && busy.memory_percent < 100);
  assert.ok(busy.network_rx_bytes > 0 && busy.network_tx_bytes > 0);
  await eventually('two kept figures', async () => {
    const { history } = await user.expect(200, `${vm}/metrics?step=5`);
    return history.length >= 2;
  });
});

test('the console takes what is typed and shows what comes', { skip }, async () => {
  const { url } = await user.expect(201, `${vm}/console-tickets`, { json: {} });
  const socket = new WebSocket(url);
  let seen = '';
  socket.on('message', (bytes) => {
    seen += String(bytes);
  });
  await new Promise((resolve, reject) => socket.once('open', resolve).once('error', reject));
  socket.send('\necho $((6 * 7)) is the answer\n');
  await eventually('the answer', async () => seen.includes('42 is the answer'));
  socket.close();
  const { status } = await new Promise<{ status: number | undefined }>((resolve) => {
    const again = new WebSocket(url);
    again.on('unexpected-response', (_request, response) => resolve({ status: response.statusCode }));
    again.on('open', () => resolve({ status: 101 }));
    again.on('error', () => {});
  });
  assert.equal(status, 401, 'a ticket is good once');
  const log = await eventually('the log', async () => {
    const { body } = await user.call(`${vm}/log`);
    return String(body).includes('42 is the answer') ? String(body) : null;
  });
  assert.match(log, /tiny ready/);
});

test('what was written is there after a stop and a start, and the host key is the same', {
  skip,
}, async () => {
  await ssh('echo kept >~/file');
  assert.equal((await post('/stop?grace=30')).state_reason.code, 'shut_down');
  assert.equal((await user.expect(200, `${vm}/metrics`)).cpu_percent, 0);
  await post('/start');
  await sshBanner(address);
  const { output, code } = await ssh('cat ~/file ~/runs');
  assert.deepEqual([code, output], [0, 'kept\nonce\n']);
});

test('a guest that powers itself off is stopped, with the reason', { skip }, async () => {
  await ssh('poweroff');
  const row = await eventually('the end', async () => {
    const { body } = await user.call(vm);
    return body.state === 'stopped' ? body : null;
  });
  assert.equal(row.state_reason.code, 'guest_shutdown');
});

/** A real Debian as an ordinary cloud image, from its file to a shell in the guest. Takes minutes. */
import assert from 'node:assert/strict';
import { execFile, execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { after, before, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { notInstalled } from '../../scripts/installed.ts';
import { CliUser } from '../acceptance/cli-kit.ts';
import { IMAGES } from '../acceptance/images-kit.ts';
import { cannotRunGuests, newVm, removeAll } from '../acceptance/vms-kit.ts';
import { CheckedClient } from '../harness/checked-client.ts';
import { ADMIN_KEY, CloudProcess } from '../harness/cloud-process.ts';
import { eventually } from '../harness/waiting.ts';
import { buildDebian, cannotBuildDebian } from './debian-image.ts';

const run = promisify(execFile);
const skip = cannotRunGuests() || cannotBuildDebian() || notInstalled('rsync');
const BOOT_MS = 900_000;
const GIB = 2 ** 30;
const folder = mkdtempSync(join(tmpdir(), 'cloudlet-debian-'));
const key = join(folder, 'key');
let cloud: CloudProcess | undefined;
let admin: CheckedClient;
let user: CheckedClient;
let userKey = '';
let vm = '';
let disk = '';
let builtIn = '';
const others: CheckedClient[] = [];

before(async () => {
  if (skip !== false) return;
  const began = performance.now();
  disk = buildDebian(folder);
  builtIn = since(began);
  cloud = await CloudProcess.start({ env: { CLOUDLET_IMAGE_SOURCES: folder } });
  admin = await CheckedClient.open(cloud.api, ADMIN_KEY);
  userKey = (await admin.register()).api_key;
  user = admin.as(userKey);
  execFileSync('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-C', 'long test', '-f', key]);
});
after(async () => {
  if (skip === false) {
    if (vm !== '') {
      await user.call(`${vm}/stop?force=true`, { method: 'POST' });
      await user.call(vm, { method: 'DELETE' });
    }
    for (const who of others) await removeAll(who);
    await cloud?.stop();
  }
  rmSync(folder, { recursive: true, force: true });
});

/** Seconds since `from`, for the log of this test. */
function since(from: number): string {
  return ((performance.now() - from) / 1000).toFixed(1);
}

const SSH_FAILED = 255;
const SSH_TRIES = 20;

function sshArguments(address: string, identity: string, command: string): string[] {
  const options = ['UserKnownHostsFile=/dev/null', 'StrictHostKeyChecking=no', 'BatchMode=yes'];
  const words = [...options, 'IdentitiesOnly=yes', 'ConnectTimeout=60'].flatMap((option) => ['-o', option]);
  return ['-q', '-i', identity, '-p', '2222', ...words, `root@${address}`, command];
}

/** The output of a command in the guest. An emulated guest on a busy host may miss a handshake. */
async function inGuest(address: string, command: string): Promise<string> {
  const args = sshArguments(address, key, command);
  for (let tries = 1; ; tries++) {
    try {
      return (await run('ssh', args)).stdout.trim();
    } catch (error) {
      if ((error as { code?: unknown }).code !== SSH_FAILED || tries === SSH_TRIES) throw error;
      await sleep(3000);
    }
  }
}

/** Waits until the guest accepts us and cloud-init is done, which restarts its SSH server meanwhile. */
async function settledGuest(address: string): Promise<string> {
  const deadline = performance.now() + BOOT_MS;
  for (;;) {
    try {
      return await inGuest(address, 'test -e /run/cloud-init/result.json && uname -srm');
    } catch (error) {
      if (performance.now() > deadline) throw error;
      await sleep(2000);
    }
  }
}

/** It reaches a database and a neighbour by name, and a machine of another account does not. */
async function inNetwork(address: string): Promise<void> {
  await user.expect(201, '/api/databases', { json: { name: 'shop' } });
  assert.match(await inGuest(address, 'getent ahostsv4 shop.db.internal'), /^10\.64\.0\.\d+ /);
  const request =
    "exec 3<>/dev/tcp/shop.db.internal/80; printf 'GET / HTTP/1.0\\r\\n\\r\\n' >&3; head -c 8 <&3";
  assert.equal(await inGuest(address, request), 'HTTP/1.1');
  const { private_ip } = await user.expect(200, vm);
  const user_data = `#!/bin/sh
nc -ll -p 7777 -e echo it is near &
echo "bytes of SSH: $(nc -w 5 ${private_ip} 22 </dev/null 2>/dev/null | head -c 4 | wc -c)" >/dev/console
`;
  const stranger = admin.as((await admin.register()).api_key);
  const bytesFor = async (who: CheckedClient) => {
    const near = await newVm(who, { name: 'near', user_data });
    others.push(who);
    await who.expect(200, `${near}/start`, { method: 'POST' });
    return eventually('what the neighbour got', async () => {
      const { body } = await who.call(`${near}/log`);
      return /bytes of SSH: (\d)/.exec(String(body))?.[1];
    });
  };
  assert.equal(await bytesFor(user), '4');
  assert.equal(await bytesFor(stranger), '0');
  assert.equal(await inGuest(address, 'timeout 20 cat </dev/tcp/near.internal/7777'), 'it is near');
}

/** A key that is not among the machine's gives access while it is lent. */
async function lent(address: string): Promise<void> {
  const later = join(folder, 'later');
  execFileSync('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-f', later]);
  const login = () => run('ssh', sshArguments(address, later, 'whoami'));
  await assert.rejects(login());
  const scopes = ['compute:*'];
  const { id, api_key } = await user.expect(201, '/api/account/access-keys', { json: { name: 'k', scopes } });
  const public_key = readFileSync(`${later}.pub`, 'utf8').trim();
  await user.as(api_key).expect(200, `${vm}/ssh-keys`, { json: { public_key } });
  assert.equal((await login()).stdout, 'root\n');
  // Without bash, curl and wget, Python sends the request.
  const shell = (from: string, to: string) => `sed -i 's|:/bin/${from}$|:/bin/${to}|' /etc/passwd`;
  await inGuest(address, `${shell('bash', 'sh')} && mv /usr/bin/bash /usr/bin/bash.away`);
  assert.equal((await login()).stdout, 'root\n');
  await inGuest(address, `mv /usr/bin/bash.away /usr/bin/bash && ${shell('sh', 'bash')}`);
  await user.expect(200, `/api/account/access-keys/${id}`, { method: 'DELETE' });
  await assert.rejects(login());
}

/** The client on a computer unknown to the machine copies folders in both directions with rsync. */
async function rsynced(api: string, apiKey: string): Promise<void> {
  const computer = new CliUser();
  try {
    await computer.ok(['login', api, '--key', '-'], { input: apiKey });
    const id = basename(vm);
    writeFileSync(join(computer.home, 'config'), await computer.ok(['vm', 'ssh-config', id]));
    mkdirSync(join(computer.home, 'a folder'));
    writeFileSync(join(computer.home, 'a folder/a file'), 'by rsync');
    const env = { PATH: process.env.PATH, HOME: computer.home };
    const rsync = (...words: string[]) =>
      run('rsync', ['-a', '-e', 'ssh -F config -o BatchMode=yes', ...words], { cwd: computer.home, env });
    await rsync('a folder', `${id}:`);
    await rsync(`${id}:a folder/`, 'back');
    assert.equal(readFileSync(join(computer.home, 'back/a file'), 'utf8'), 'by rsync');
  } finally {
    computer.remove();
  }
}

test('Debian by mmdebstrap: imported, booted, reached by SSH, stopped by ACPI, booted again', {
  skip,
}, async (t) => {
  t.diagnostic(`image built in ${builtIn} s`);

  const importing = performance.now();
  const { image_id } = await admin.expect(201, IMAGES, { json: { name: 'Debian 12', path: disk } });
  let image = { state: 'importing', state_reason: null, size: 0 };
  while (image.state === 'importing') {
    await sleep(200);
    const list = await admin.expect(200, IMAGES);
    image = list.find((one: { image_id: string }) => one.image_id === image_id);
  }
  assert.equal(image.state, 'ready', JSON.stringify(image.state_reason));
  t.diagnostic(`imported in ${since(importing)} s, ${image.size} bytes`);

  const json = {
    name: 'Debian Box',
    instance_type: 't2.micro',
    image: image_id,
    ssh_keys: [readFileSync(`${key}.pub`, 'utf8').trim()],
    user_data: '#!/bin/sh\necho ran >> /var/lib/user-data-ran\n',
  };
  const { vm_id, ip_address } = await user.expect(201, '/api/vms', { json });
  vm = `/api/vms/${vm_id}`;

  const firstBoot = performance.now();
  const { accel } = await user.expect(200, `${vm}/start`, { method: 'POST' });
  const system = await settledGuest(ip_address);
  t.diagnostic(`first boot to cloud-init done in ${since(firstBoot)} s (${accel}): ${system}`);
  assert.match(system, /^Linux 6\..* x86_64$/);
  assert.equal(await inGuest(ip_address, 'hostname'), 'debian-box');
  assert.equal(await inGuest(ip_address, 'cat /var/lib/cloud/data/instance-id'), vm_id);
  assert.match(await inGuest(ip_address, 'cloud-init status'), /status: done/);
  assert.equal(await inGuest(ip_address, 'cat /var/lib/user-data-ran'), 'ran');
  assert.equal(Number(await inGuest(ip_address, 'blockdev --getsize64 /dev/vda')), 30 * GIB);
  const rootBytes = Number(await inGuest(ip_address, 'df -B1 --output=size / | tail -1'));
  assert.ok(rootBytes > 27 * GIB, `the file system has ${rootBytes} bytes`);
  await inNetwork(ip_address);
  await lent(ip_address);
  await rsynced(cloud?.api ?? '', userKey);
  await inGuest(ip_address, 'echo kept > /var/lib/kept; sync');
  const hostKey = await inGuest(ip_address, 'cat /etc/ssh/ssh_host_ed25519_key.pub');

  const stopping = performance.now();
  const stopped = await user.expect(200, `${vm}/stop?grace=300`, { method: 'POST' });
  assert.deepEqual([stopped.state, stopped.state_reason.code], ['stopped', 'shut_down']);
  t.diagnostic(`stopped by ACPI in ${since(stopping)} s`);

  const secondBoot = performance.now();
  await user.expect(200, `${vm}/start`, { method: 'POST' });
  await settledGuest(ip_address);
  t.diagnostic(`second boot to cloud-init done in ${since(secondBoot)} s`);
  assert.equal(await inGuest(ip_address, 'cat /var/lib/user-data-ran'), 'ran', 'cloud-init ran again');
  assert.equal(await inGuest(ip_address, 'cat /var/lib/kept'), 'kept');
  assert.equal(await inGuest(ip_address, 'cat /etc/ssh/ssh_host_ed25519_key.pub'), hostKey);
  assert.equal(await inGuest(ip_address, 'cat /var/lib/cloud/data/instance-id'), vm_id);
});

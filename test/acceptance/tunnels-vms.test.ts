/** Tunnels to machines: the reachable ports, the transferred data, and their end. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { after, before, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { CheckedClient } from '../harness/checked-client.ts';
import { CloudProcess } from '../harness/cloud-process.ts';
import { eventually } from '../harness/waiting.ts';
import { openTunnel, refusedTunnel, type Tunnel } from './tunnel-kit.ts';
import { cannotRunGuests, newVm, removeAll, sshBanner } from './vms-kit.ts';

const skip = cannotRunGuests();
/** The guest's port, and none that `ports` lists. */
const [ECHO, SOURCE, WEB] = [9000, 9001, 8080];
const GUEST = `#!/bin/sh
mkdir -p /srv && echo 'a page' >/srv/index.html
httpd -p ${WEB} -h /srv
nc -ll -p ${ECHO} -e cat &
nc -ll -p ${SOURCE} -e dd if=/dev/zero bs=65536 count=1000 &
`;
const cloud = await CloudProcess.start();
const anyone = await CheckedClient.open(cloud.api);
let owner: CheckedClient;
let key = '';
let stranger: CheckedClient;
let strangersKey = '';
let vm = '';

before(async () => {
  if (skip) return;
  ({ api_key: key } = await anyone.register());
  ({ api_key: strangersKey } = await anyone.register());
  [owner, stranger] = [anyone.as(key), anyone.as(strangersKey)];
  vm = await newVm(owner, { user_data: GUEST });
  const { ip_address } = await owner.expect(200, `${vm}/start`, { method: 'POST' });
  await sshBanner(ip_address);
  await eventually('the programs of the guest', async () => {
    const tunnel = await to(ECHO);
    tunnel.socket.send(Buffer.from('?'));
    // While no program listens there it may end before, or never answer.
    const isSettled = () => tunnel.text !== '' || tunnel.code !== 0;
    for (let waitedMs = 0; waitedMs < 3000 && !isSettled(); waitedMs += 50) await sleep(50);
    tunnel.socket.terminate();
    return tunnel.text === '?';
  });
});
after(async () => {
  if (!skip) await removeAll(owner);
  await cloud.stop();
});

const pathTo = (port: number | string) => `${vm}/tunnel?port=${port}`;
const to = (port: number, by = key) => openTunnel(cloud.api, { path: pathTo(port), key: by });
const refused = (path: string, by = key) => refusedTunnel(cloud.api, { path, key: by });

async function newKey(scopes: readonly string[]): Promise<{ id: string; api_key: string }> {
  return owner.expect(201, '/api/account/access-keys', { json: { name: scopes.join(), scopes } });
}

interface Item {
  readonly meter: string;
  /** GB */
  readonly quantity: number;
}

/** Memory of the cloud. */
function residentBytes(): number {
  const status = readFileSync(`/proc/${cloud.pid}/status`, 'utf8');
  return Number(/^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1]) * 1024;
}

/** Until all of it has come back. */
async function echoed(tunnel: Tunnel, text: string): Promise<void> {
  tunnel.socket.send(Buffer.from(text, 'latin1'));
  await eventually(`${text.length} bytes back`, () => tunnel.text.endsWith(text));
}

test('bytes go both ways, and each side ends by itself', { skip }, async () => {
  const tunnel = await to(ECHO);
  await echoed(tunnel, 'x'.repeat(300_000).slice(0, 60_000));
  tunnel.socket.send('');
  await eventually('the end of the other side', () => tunnel.isEnded && tunnel.code === 1000);
});

test('a port that the machine lists is reached as well, and SSH', { skip }, async () => {
  const web = await to(WEB);
  web.socket.send(Buffer.from('GET /index.html HTTP/1.0\r\n\r\n'));
  await eventually('the page', () => web.code === 1000 || web.isEnded);
  assert.match(web.text, /^HTTP\/1\.\d 200.*a page\n$/s);
  web.socket.terminate();
  const ssh = await to(22);
  await eventually('the banner', () => ssh.text.startsWith('SSH-2.0-'));
  ssh.socket.terminate();
});

test('50 tunnels at once are 50 connections', { skip }, async () => {
  const tunnels: Tunnel[] = [];
  for (let i = 0; i < 50; i++) {
    // One by one: the guest's program has a backlog of ten.
    tunnels.push(await to(ECHO));
    await echoed(tunnels[i] as Tunnel, `number ${i};`);
  }
  for (const [i, { text, socket }] of tunnels.entries()) {
    assert.equal(text, `number ${i};`);
    socket.terminate();
  }
});

test('whoever may not is told so before the upgrade', { skip }, async () => {
  const reader = await newKey(['compute:read', 'compute:write', 'databases:connect']);
  const own = await newKey(['compute:connect']);
  assert.deepEqual(await refused(pathTo(ECHO), reader.api_key), [403, 'scope_required']);
  assert.deepEqual(await refused(pathTo(ECHO), strangersKey), [404, 'vm_not_found']);
  assert.deepEqual(await refused(pathTo(ECHO), 'clk_none'), [401, 'invalid_api_key']);
  assert.deepEqual(await refused(`${pathTo(ECHO)}&ticket=t`), [401, 'invalid_ticket']);
  const tunnel = await to(ECHO, own.api_key);
  await echoed(tunnel, 'its scope is enough');
  tunnel.socket.terminate();
  assert.equal((await owner.expect(426, pathTo(ECHO))).code, 'upgrade_required');
  await stranger.refused(404, 'vm_not_found', [pathTo(ECHO)]);
});

test('no other address and no other port is ever meant', { skip }, async () => {
  const api = new URL(cloud.api).port;
  for (const port of ['', '0', '65536', '-1', '22.0', '0x16', '127.0.0.1:22', `9000&port=${api}`]) {
    assert.deepEqual(await refused(pathTo(port)), [400, 'invalid_request'], port);
  }
  for (const id of ['127.0.0.1', 'localhost', 'vm-none', '..%2f..%2fapi', '%00']) {
    assert.deepEqual(await refused(`/api/vms/${id}/tunnel?port=22`), [404, 'vm_not_found'], id);
  }
  // The cloud listens there on this host, but no program in the guest.
  const tunnel = await to(Number(api));
  tunnel.socket.send(Buffer.from('GET /healthz HTTP/1.0\r\n\r\n'));
  await eventually('its end', () => tunnel.code !== 0 || tunnel.isEnded);
  assert.equal(tunnel.text, '');
});

test('a thousand frames of rubbish harm nobody', { skip }, async () => {
  const [tunnel, bystander] = [await to(ECHO), await to(ECHO)];
  for (let i = 0; i < 1000; i++) tunnel.socket.send(`rubbish ${i}`);
  await eventually('its end', () => tunnel.code === 1003);
  const large = await to(ECHO);
  large.socket.send(Buffer.alloc(65_537));
  await eventually('its end', () => large.code === 1009);
  await echoed(bystander, 'still here');
  bystander.socket.terminate();
});

test('a client that does not read holds up its own tunnel, in bounded memory', { skip }, async () => {
  const before = residentBytes();
  const slow = await to(SOURCE);
  slow.socket.pause();
  const other = await to(ECHO);
  for (let i = 0; i < 20; i++) await echoed(other, `${i};`);
  const grown = residentBytes() - before;
  assert.ok(grown < 32 * 2 ** 20, `${grown} bytes more for 62 MiB that nobody reads`);
  other.socket.terminate();
  slow.socket.resume();
  await eventually('all of it', () => slow.text.length === 1000 * 65_536);
  slow.socket.terminate();
});

test('a tunnel ends within three seconds after its key', { skip }, async () => {
  const { id, api_key } = await newKey(['compute:connect']);
  const tunnel = await to(ECHO, api_key);
  await echoed(tunnel, 'before');
  const began = performance.now();
  await owner.expect(200, `/api/account/access-keys/${id}`, { method: 'DELETE' });
  const typing = setInterval(
    () => tunnel.socket.readyState === 1 && tunnel.socket.send(Buffer.from('.')),
    50,
  );
  await eventually('its end', () => tunnel.code === 1008);
  clearInterval(typing);
  assert.ok(performance.now() - began < 3000, `${performance.now() - began} ms`);
});

test('what came out is charged as egress', { skip }, async () => {
  const sum = await eventually('the egress of the machine', async () => {
    const { items } = await owner.expect(200, '/api/billing/usage');
    return items.find(({ meter, quantity }: Item) => meter === 'egress' && quantity > 0.06);
  });
  assert.equal(sum.resource_type, 'vm');
  assert.equal(sum.resource_id, vm.slice('/api/vms/'.length));
});

test('a tunnel ends with the run of its machine, and a stopped machine has none', { skip }, async () => {
  const tunnel = await to(ECHO);
  await owner.expect(200, `${vm}/stop?force=true`, { method: 'POST' });
  await eventually('its end', () => tunnel.code !== 0);
  assert.ok([4001, 4002].includes(tunnel.code), String(tunnel.code));
  assert.deepEqual(await refused(pathTo(ECHO)), [409, 'vm_not_running']);
  assert.equal((await owner.call(pathTo(ECHO))).status, 409);
});

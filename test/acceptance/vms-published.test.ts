/** Ports of machines that answer on a port of the host, and under host names. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type IncomingMessage, request as requestOf } from 'node:http';
import { connect, createServer } from 'node:net';
import { text } from 'node:stream/consumers';
import { after, before, test } from 'node:test';
import { CheckedClient } from '../harness/checked-client.ts';
import { CloudProcess } from '../harness/cloud-process.ts';
import { freePort } from '../harness/free-port.ts';
import { eventually } from '../harness/waiting.ts';
import { cannotRunGuests, newVm, removeAll } from './vms-kit.ts';

const skip = cannotRunGuests();
const DOMAIN = 'apps.example.org';
/** A web server that shows the caller, and a server that switches protocols and then echoes. */
const USER_DATA = `#!/bin/sh
mkdir -p /www/cgi-bin
echo hello >/www/index.html
printf '#!/bin/sh\\nprintf "Content-Type: text/plain\\\\r\\\\n\\\\r\\\\n"; env' >/www/cgi-bin/env
chmod +x /www/cgi-bin/env
httpd -p 80 -h /www
httpd -p 3000 -h /www
printf '#!/bin/sh\\nprintf "HTTP/1.1 101 Switching Protocols\\\\r\\\\nConnection: Upgrade\\\\r\\\\nUpgrade: echo\\\\r\\\\n\\\\r\\\\n"\\ncat' >/echo
chmod +x /echo
while :; do nc -l -p 8080 -e /echo; done >/dev/null 2>&1 &
`;

let cloud: CloudProcess;
let ann: CheckedClient;
let bob: CheckedClient;
let vm: string;
let first: number;

before(async () => {
  first = await freePort();
  cloud = await CloudProcess.start({
    env: {
      CLOUDLET_PUBLISHED_PORTS: `${first}-${first + 9}`,
      CLOUDLET_MAX_PUBLISHED_PORTS: '4',
      CLOUDLET_APPS_DOMAIN: DOMAIN,
    },
  });
  const anyone = await CheckedClient.open(cloud.api);
  ann = anyone.as((await anyone.register()).api_key);
  bob = anyone.as((await anyone.register()).api_key);
  vm = await newVm(ann, { name: 'web-1', user_data: USER_DATA });
});
after(async () => {
  await removeAll(ann);
  await removeAll(bob);
  await cloud.stop();
});

const publish = (user: CheckedClient, path: string, json: object) => user.call(`${path}/ports`, { json });

async function ask(name: string, path = '/', headers: Record<string, string> = {}) {
  const { hostname, port } = new URL(cloud.data);
  const request = requestOf({ hostname, port, path, headers: { host: `${name}.${DOMAIN}`, ...headers } });
  request.end();
  const [response] = (await once(request, 'response')) as [IncomingMessage];
  return { status: response.statusCode, body: await text(response) };
}

function fetchAt(port: number): Promise<string | null> {
  return fetch(`http://127.0.0.2:${port}/`, { signal: AbortSignal.timeout(5000) }).then(
    (response) => response.text(),
    () => null,
  );
}

test('a port is published on a free port of the host, or on the one that is asked for', async () => {
  const made = await ann.expect(201, `${vm}/ports`, { json: { port: 80 } });
  assert.deepEqual(
    [made.port, made.public_port, made.hostname, made.open, made.address],
    [80, first, null, false, `127.0.0.2:${first}`],
  );
  assert.match(made.reason, /not running/);
  const asked = await ann.expect(201, `${vm}/ports`, { json: { port: 8080, public_port: first + 3 } });
  assert.equal(asked.public_port, first + 3);
  const named = await ann.expect(201, `${vm}/ports`, { json: { port: 80, hostname: 'web-1' } });
  assert.equal(named.address, `http://web-1.${DOMAIN}:${new URL(cloud.data).port}`);
  assert.deepEqual(
    (await ann.expect(200, `${vm}/ports`)).map((port: { port_id: string }) => port.port_id),
    [made.port_id, asked.port_id, named.port_id],
  );
});

test('a port or a name of someone else, of the host and of this cloud is refused', async (t) => {
  const other = await newVm(bob);
  const program = createServer().listen(first + 5, '127.0.0.2');
  await once(program, 'listening');
  t.after(() => program.close());
  for (const json of [
    { port: 80, public_port: first },
    { port: 80, public_port: first + 5 },
    { port: 80, hostname: 'web-1' },
    { port: 80, hostname: 'console' },
    { port: 80, hostname: 'wpad' },
    { port: 80, hostname: 'mta-sts' },
    { port: 80, hostname: 'auth' },
    { port: 80, hostname: 'xn--wb-1-coa' },
  ]) {
    const { status, body } = await publish(bob, other, json);
    assert.deepEqual([status, body.code], [409, 'port_taken'], JSON.stringify(json));
  }
  for (const [json, field] of [
    [{ port: 80, public_port: first - 1 }, 'public_port'],
    [{ port: 80, public_port: 22 }, 'public_port'],
    [{ port: 0 }, 'port'],
    [{ port: '80' }, 'port'],
    [{}, 'port'],
    [{ port: 80, hostname: 'a.b' }, 'hostname'],
    [{ port: 80, hostname: '-a' }, 'hostname'],
    [{ port: 80, hostname: 'UPPER' }, 'hostname'],
    [{ port: 80, hostname: 'x', public_port: first + 1 }, 'hostname'],
  ] as const) {
    const { status, body } = await publish(bob, other, json);
    assert.deepEqual([status, body.code], [400, 'invalid_request'], JSON.stringify(json));
    assert.ok(JSON.stringify(body.errors).includes(`"${field}"`), JSON.stringify(body));
  }
  assert.deepEqual(await bob.expect(200, `${other}/ports`), []);
});

test('the ports of another account are neither seen, nor added to, nor removed', async () => {
  const [one] = await ann.expect(200, `${vm}/ports`);
  for (const call of [
    bob.call(`${vm}/ports`),
    publish(bob, vm, { port: 22 }),
    bob.call(`${vm}/ports/${one.port_id}`, { method: 'DELETE' }),
  ]) {
    assert.equal((await call).body.code, 'vm_not_found');
  }
  const own = await newVm(bob);
  const { body } = await bob.call(`${own}/ports/${one.port_id}`, { method: 'DELETE' });
  assert.equal(body.code, 'port_not_found');
});

test('an account has at most as many as it may, also when it asks for all at once, and others go on', async () => {
  const path = await newVm(bob);
  const answers = await Promise.all(
    Array.from({ length: 12 }, (_, i) => publish(bob, path, { port: 80, hostname: `many-${i}` })),
  );
  const made = answers.filter(({ status }) => status === 201);
  assert.equal(made.length, 4);
  assert.ok(answers.every(({ status, body }) => status === 201 || body.code === 'too_many_ports'));
  await ann.expect(201, `${vm}/ports`, { json: { port: 8080, hostname: 'chat' } });
  for (const { body } of made) await bob.expect(200, `${path}/ports/${body.port_id}`, { method: 'DELETE' });
});

test('a machine that does not run has a page that says so, and a closed port', { skip }, async () => {
  assert.deepEqual(await ask('web-1').then(({ status, body }) => [status, /not running/.test(body)]), [
    503,
    true,
  ]);
  assert.equal((await ask('nobody')).status, 404);
  assert.equal(await fetchAt(first), null);
});

test('a machine that runs answers on its ports and names, and is told who asks', { skip }, async () => {
  await ann.expect(200, `${vm}/start`, { method: 'POST' });
  await eventually('its web server answers', async () => (await fetchAt(first)) === 'hello\n');
  assert.deepEqual(await ask('web-1'), { status: 200, body: 'hello\n' });
  const told = await ask('web-1', '/cgi-bin/env', { 'x-forwarded-for': '6.6.6.6' });
  assert.match(told.body, /127\.0\.0\.1/);
  assert.doesNotMatch(told.body, /6\.6\.6\.6/);
  const ports = await ann.expect(200, `${vm}/ports`);
  assert.ok(ports.every((port: { open: boolean; reason: null }) => port.open && port.reason === null));
});

test('a connection that switches protocols passes both ways', { skip }, async () => {
  const { hostname, port } = new URL(cloud.data);
  const socket = connect({ host: hostname, port: Number(port) });
  socket.write(`GET / HTTP/1.1\r\nHost: chat.${DOMAIN}\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n`);
  let got = '';
  socket.setEncoding('latin1').on('data', (bytes: string) => (got += bytes));
  await eventually('the switch', () => got.startsWith('HTTP/1.1 101'));
  socket.write('over here\n');
  await eventually('the echo', () => got.endsWith('over here\n'));
  socket.destroy();
});

test('a port that is added while the machine runs answers at once, and one that is removed no more', {
  skip,
}, async () => {
  const [old] = await ann.expect(200, `${vm}/ports`);
  await ann.expect(200, `${vm}/ports/${old.port_id}`, { method: 'DELETE' });
  await eventually('it is closed', async () => (await fetchAt(first)) === null);
  // A port that is not in the machine's `ports`.
  const added = await ann.expect(201, `${vm}/ports`, { json: { port: 3000, public_port: first + 7 } });
  await eventually('it answers', async () => (await fetchAt(first + 7)) === 'hello\n');
  await ann.expect(200, `${vm}/ports/${added.port_id}`, { method: 'DELETE' });
});

test('what passes is charged as egress', { skip }, async () => {
  await eventually('a line of egress', async () => {
    const usage = await ann.expect(200, '/api/billing/usage');
    return JSON.stringify(usage).includes('egress');
  });
});

test('an account that holds hundreds of connections holds up nobody else', { skip }, async (t) => {
  const victim = await newVm(bob, { user_data: USER_DATA });
  const { public_port: port } = await bob.expect(201, `${victim}/ports`, { json: { port: 80 } });
  await bob.expect(200, `${victim}/start`, { method: 'POST' });
  const { public_port: flooded } = await ann.expect(201, `${vm}/ports`, { json: { port: 8080 } });
  await eventually('the neighbour answers', async () => (await fetchAt(port)) === 'hello\n');
  const sockets = Array.from({ length: 400 }, () => connect({ host: '127.0.0.1', port: flooded }));
  t.after(() => {
    for (const socket of sockets) socket.destroy();
  });
  for (const socket of sockets) socket.on('error', () => {});
  await eventually('most are refused', () => sockets.filter(({ destroyed }) => destroyed).length > 100);
  assert.equal(await fetchAt(port), 'hello\n');
  assert.equal((await ask('web-1')).status, 200);
});

test('they are closed with the machine, back after a restart of Cloudlet, and gone with its deletion', {
  skip,
}, async () => {
  await cloud.crash();
  await cloud.start();
  const anyone = await CheckedClient.open(cloud.api);
  ann = anyone.as(ann.key);
  bob = anyone.as(bob.key);
  await eventually('it answers again', async () => (await ask('web-1')).body === 'hello\n');
  await ann.expect(200, `${vm}/stop?force=true`, { method: 'POST' });
  assert.equal((await ask('web-1')).status, 503);
  await ann.expect(200, vm, { method: 'DELETE' });
  assert.equal((await ask('web-1')).status, 404);
  const other = await newVm(bob);
  // The name stays reserved for its previous account.
  const json = { port: 80, hostname: 'web-1' };
  const { status, body } = await publish(bob, other, json);
  assert.deepEqual([status, body.code], [409, 'port_taken']);
  const again = await newVm(ann);
  const { port_id } = await ann.expect(201, `${again}/ports`, { json });
  await ann.expect(200, `${again}/ports/${port_id}`, { method: 'DELETE' });
  assert.equal((await publish(bob, other, json)).status, 409);
  await ann.expect(201, `${again}/ports`, { json });
});

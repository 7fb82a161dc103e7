/** The host and the origin named by a request. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { CheckedClient } from '../harness/checked-client.ts';
import { Client, sessionOf } from '../harness/client.ts';
import { CloudProcess } from '../harness/cloud-process.ts';
import { freePort } from '../harness/free-port.ts';
import { parseResponse, sendRaw } from '../harness/raw-http.ts';

const [port, dataPort] = [String(await freePort()), String(await freePort())];
const env = {
  CLOUDLET_PUBLIC_URL: 'https://cloud.example.org',
  CLOUDLET_DATA_URL: 'http://files.example.org',
  CLOUDLET_PORT: port,
  CLOUDLET_DATA_PORT: dataPort,
};
const cloud = await CloudProcess.start();
const proxied = await CloudProcess.start({ env });
const open = await CloudProcess.start({ env: { CLOUDLET_HOST: '0.0.0.0' } });
after(async () => {
  for (const each of [cloud, proxied, open]) await each.stop();
});
const client = await CheckedClient.open(cloud.api);

async function ask(base: string, path: string, ...hosts: string[]) {
  const lines = hosts.map((host) => `Host: ${host}\r\n`).join('');
  return parseResponse(await sendRaw(base, `GET ${path} HTTP/1.1\r\n${lines}Connection: close\r\n\r\n`));
}

test('on loopback both ports refuse a host name that is not theirs', async () => {
  for (const [base, path] of [
    [cloud.api, '/healthz'],
    [cloud.api, '/api/nothing'],
    [cloud.data, '/cdn/obj-x/y'],
  ] as const) {
    const answer = await ask(base, path, 'evil.example:8080');
    client.declaration.checkProblem('a foreign host', answer);
    assert.deepEqual([answer.status, answer.body.code], [421, 'misdirected_request']);
    assert.match(answer.body.hint, /CLOUDLET_PUBLIC_URL/);
    for (const host of ['localhost', '127.0.0.1:1', '[::1]']) {
      assert.notEqual((await ask(base, path, host)).status, 421, host);
    }
  }
});

test('a WebSocket too', async () => {
  const upgrade = 'Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n';
  const head = `GET /api/vms/vm-x/console HTTP/1.1\r\nHost: evil.example\r\nOrigin: http://evil.example\r\n`;
  const key = 'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n';
  assert.equal(parseResponse(await sendRaw(cloud.api, head + upgrade + key)).status, 421);
});

test('the hosts of CLOUDLET_PUBLIC_URL and CLOUDLET_DATA_URL pass, for a proxy in front', async () => {
  const [api, data] = [`http://127.0.0.1:${port}`, `http://127.0.0.1:${dataPort}`];
  for (const host of ['cloud.example.org', 'files.example.org:80']) {
    assert.equal((await ask(api, '/healthz', host)).status, 200, host);
    assert.equal((await ask(data, '/cdn/obj-x/y', host)).status, 403, host);
  }
  assert.equal((await ask(api, '/healthz', 'example.org')).status, 421);
});

test('beyond loopback every host passes', async () => {
  assert.equal((await ask(open.api, '/healthz', 'any.example')).status, 200);
});

test('two Host headers are refused everywhere', async () => {
  for (const base of [cloud.api, cloud.data, open.api]) {
    const answer = await ask(base, '/cdn/obj-x/y', 'localhost', 'localhost');
    assert.deepEqual([answer.status, answer.body.code], [400, 'bad_http']);
  }
});

test('the origin of CLOUDLET_PUBLIC_URL is our own, whatever host a proxy calls; others are not', async () => {
  const behind = new Client(`http://127.0.0.1:${port}`);
  const { username } = await behind.register();
  const json = { username, password: 'correct horse battery' };
  const login = (origin: string) => behind.call('/api/login', { json, headers: { origin } });
  assert.equal((await login('https://cloud.example.org')).status, 200);
  for (const origin of ['http://cloud.example.org', 'https://files.example.org', 'https://evil.example']) {
    const { status, body } = await login(origin);
    assert.deepEqual([status, body.code], [403, 'cross_site_request'], origin);
  }
});

test('another site cannot log anybody out', async () => {
  const { username } = await client.register();
  const json = { username, password: 'correct horse battery' };
  const { cookie, 'cloudlet-session': token } = sessionOf(await client.call('/api/login', { json }));
  const session = { cookie, 'cloudlet-session': token };
  const logout = (headers: Record<string, string>) =>
    client.call('/api/logout', { method: 'POST', headers: { ...session, ...headers } });
  const me = async () => (await client.call('/api/account', { headers: session })).status;
  for (const foreign of [{ 'sec-fetch-site': 'cross-site' }, { origin: 'http://evil.example' }]) {
    for (const headers of [foreign, { ...foreign, cookie: '' }]) {
      const answer = await logout(headers);
      assert.deepEqual([answer.status, answer.body.code], [403, 'cross_site_request']);
      assert.equal(answer.headers.get('set-cookie'), null);
    }
  }
  assert.equal((await logout({})).body.code, 'cross_site_request', 'says nothing of its page');
  assert.equal(await me(), 200);
  assert.equal((await logout({ origin: cloud.api, 'sec-fetch-site': 'same-origin' })).status, 200);
  assert.equal(await me(), 401);
});

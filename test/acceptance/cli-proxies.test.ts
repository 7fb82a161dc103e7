/** The client uses the proxy from the environment, and bypasses it where it should. */
import assert from 'node:assert/strict';
import { createServer, request } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, test } from 'node:test';
import { CloudProcess } from '../harness/cloud-process.ts';
import { freePort } from '../harness/free-port.ts';
import { CliUser } from './cli-kit.ts';

const CLOUD = 'http://cloud.test';
const [port, dataPort] = [await freePort(), await freePort()];
const [API, DATA] = [`http://127.0.0.1:${port}`, `http://127.0.0.1:${dataPort}`];
const cloud = await CloudProcess.start({
  env: {
    CLOUDLET_PORT: String(port),
    CLOUDLET_DATA_PORT: String(dataPort),
    CLOUDLET_PUBLIC_URL: CLOUD,
    CLOUDLET_DATA_URL: 'http://data.test',
  },
});
after(() => cloud.stop());

/** Absolute addresses requested from the proxy. */
const asked: string[] = [];
const proxy = createServer((incoming, answer) => {
  const { pathname, search, host } = new URL(incoming.url ?? '');
  asked.push(host);
  const { hostname, port } = new URL(host === 'data.test' ? DATA : API);
  const headers = { ...incoming.headers, host };
  const onward = request({ hostname, port, path: pathname + search, method: incoming.method, headers });
  onward.on('response', (response) => {
    answer.writeHead(response.statusCode ?? 0, response.headers);
    response.pipe(answer);
  });
  incoming.pipe(onward);
}).listen(0, '127.0.0.1');
after(() => proxy.close());
await new Promise((resolve) => proxy.once('listening', resolve));
const PROXY = `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`;

test('calls and files go through HTTP_PROXY', async () => {
  const user = await CliUser.signedIn(API);
  after(() => user.remove());
  const env = { CLOUDLET_URL: CLOUD, CLOUDLET_API_KEY: user.key, HTTP_PROXY: PROXY };
  assert.match(await user.ok(['whoami'], { env }), /@/);
  await user.ok(['mb', 'photos'], { env });
  assert.match(await user.ok(['ls'], { env }), /photos/);
  assert.ok(asked.length >= 3, asked.join(' '));
});

test('a cloud on this computer, and one in NO_PROXY, are reached directly', async () => {
  const user = await CliUser.signedIn(API);
  after(() => user.remove());
  const before = asked.length;
  await user.ok(['whoami'], { env: { HTTP_PROXY: PROXY } });
  const env = { CLOUDLET_URL: CLOUD, CLOUDLET_API_KEY: user.key, http_proxy: PROXY, NO_PROXY: '.test' };
  assert.match(await user.fails(8, ['whoami'], { env }), /does not answer|getaddrinfo/);
  assert.equal(asked.length, before);
});

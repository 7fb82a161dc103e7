/** A cloud behind each reverse proxy with a configuration in deploy/, with TLS. */
import assert from 'node:assert/strict';
import type { ChildProcess } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer, type IncomingHttpHeaders } from 'node:http';
import { request } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { after, before, describe, test } from 'node:test';
import { MongoClient } from 'mongodb';
import { WebSocket } from 'ws';
import { notInstalled } from '../../scripts/installed.ts';
import { Client } from '../harness/client.ts';
import { CloudProcess } from '../harness/cloud-process.ts';
import { blobFiles, eventually } from '../harness/waiting.ts';
import { launchBrowser, noBrowser } from './browser-kit.ts';
import { APPS, CLOUD, DATA, type Ports, portsOfProxy, startCaddy, startNginx } from './proxy-kit.ts';
import { completion, newS3, type Prepared, S3Client, textOf } from './s3-kit.ts';
import { BOUNDARY } from './storage-kit.ts';
import { listenThrough, openTunnel } from './tunnel-kit.ts';
import { cannotRunGuests, NEW_VM } from './vms-kit.ts';

const MIB = 2 ** 20;
const HALF = 24 * MIB;

/** A server that answers each request, and never switches protocols. */
const EVIL = `#!/bin/sh
cat >/evil <<'END'
#!/bin/sh
while read -r line; do
  case "$line" in GET*) printf 'HTTP/1.1 200 OK\\r\\nContent-Length: 4\\r\\n\\r\\nevil' ;; esac
done
END
chmod +x /evil
while :; do nc -l -p 8080 -e /evil; done >/dev/null 2>&1 &
`;

interface Sending {
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly json?: unknown;
  readonly body?: Readable;
  /** The client's own address. */
  readonly from?: string;
}

interface Answer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly bytes: Buffer;
  // biome-ignore lint/suspicious/noExplicitAny: answers of every shape
  readonly json: () => any;
}

/** A request to the proxy, which has its own certificate. */
function send(port: number, url: string, sending: Sending = {}): Promise<Answer> {
  const { json, body, from, headers = {} } = sending;
  const { hostname, pathname, search } = new URL(url);
  const method = sending.method ?? (json === undefined && body === undefined ? 'GET' : 'POST');
  const type = json === undefined ? {} : { 'content-type': 'application/json' };
  return new Promise((resolve, reject) => {
    const call = request({
      host: '127.0.0.1',
      port,
      path: pathname + search,
      method,
      servername: hostname,
      rejectUnauthorized: false,
      agent: false,
      headers: { host: `${hostname}:${port}`, ...type, ...headers },
      ...(from === undefined ? {} : { localAddress: from }),
    });
    call.on('error', reject).on('response', async (response) => {
      const pieces: Buffer[] = [];
      for await (const piece of response) pieces.push(piece);
      const bytes = Buffer.concat(pieces);
      const { statusCode: status = 0, headers } = response;
      resolve({ status, headers, bytes, json: () => JSON.parse(bytes.toString()) });
    });
    if (body) body.on('error', reject).pipe(call);
    else call.end(json === undefined ? undefined : JSON.stringify(json));
  });
}

/** A client's own key (SSE-C). */
const OWN_KEY = keyHeaders(randomBytes(32));

function keyHeaders(key: Buffer): Record<string, string> {
  const name = 'x-amz-server-side-encryption-customer-';
  return {
    [`${name}algorithm`]: 'AES256',
    [`${name}key`]: key.toString('base64'),
    [`${name}key-MD5`]: createHash('md5').update(key).digest('base64'),
  };
}

/** A signed request, sent unchanged. */
function sendS3(port: number, { method, target, headers, body }: Prepared): Promise<Omit<Answer, 'json'>> {
  return new Promise((resolve, reject) => {
    const where = { host: '127.0.0.1', port, path: target, servername: DATA, rejectUnauthorized: false };
    const call = request({ ...where, method, headers, agent: false, setDefaultHeaders: false });
    call.on('error', reject).on('response', async (response) => {
      const pieces: Buffer[] = [];
      for await (const piece of response) pieces.push(piece);
      resolve({
        status: response.statusCode ?? 0,
        headers: response.headers,
        bytes: Buffer.concat(pieces),
      });
    });
    call.end(body);
  });
}

type CallS3 = (...asked: Parameters<S3Client['prepare']>) => Promise<Omit<Answer, 'json'>>;

/** An upload of one part. */
async function post(call: CallS3) {
  const path = '/by-s3/parts';
  const begun = await call('POST', path, { query: 'uploads' });
  const uploadId = textOf(begun.bytes.toString(), 'UploadId');
  const part = await call('PUT', path, { query: `partNumber=1&uploadId=${uploadId}`, body: 'x' });
  const body = completion([{ number: 1, etag: String(part.headers.etag) }]);
  const { bytes, headers } = await call('POST', path, { query: `uploadId=${uploadId}`, body });
  return { text: bytes.toString(), headers };
}

test('keys of clients are accepted without TLS where the operator says so', async () => {
  const env = { CLOUDLET_TRUSTED_PROXIES: '127.0.0.1', CLOUDLET_S3_INSECURE_SSE_C: 'true' };
  const cloud = await CloudProcess.start({ env });
  try {
    const s3 = await newS3(cloud.data, await new Client(cloud.api).newUser());
    await s3.ok('PUT', '/open');
    await s3.ok('PUT', '/open/a', { headers: OWN_KEY, body: 'sealed' });
    assert.equal((await s3.ok('GET', '/open/a', { headers: OWN_KEY })).text, 'sealed');
  } finally {
    await cloud.stop();
  }
});

const PROXIES = [
  { name: 'nginx', start: startNginx, skip: notInstalled('nginx', 'openssl') },
  { name: 'Caddy', start: startCaddy, skip: notInstalled('caddy') },
];

for (const { name, start, skip } of PROXIES)
  describe(`behind ${name}`, { skip }, () => {
    const folder = mkdtempSync(join(tmpdir(), 'cloudlet-proxy-'));
    let ports: Ports;
    let cloud: CloudProcess;
    let proxy: ChildProcess;
    let auth: Readonly<Record<string, string>> = {};
    let users = 0;
    const api = (path: string, sending: Sending = {}) =>
      send(ports.https, `https://${CLOUD}${path}`, { ...sending, headers: { ...auth, ...sending.headers } });
    const register = (sending: Sending) => {
      const user = `user-${++users}`;
      const json = { username: user, email: `${user}@example.org`, password: 'correct horse battery' };
      return send(ports.https, `https://${CLOUD}/api/register`, { json, ...sending });
    };

    before(async () => {
      ports = await portsOfProxy();
      const env = {
        CLOUDLET_PORT: String(ports.api),
        CLOUDLET_DATA_PORT: String(ports.data),
        CLOUDLET_PUBLIC_URL: `https://${CLOUD}:${ports.https}`,
        CLOUDLET_DATA_URL: `https://${DATA}:${ports.https}`,
        CLOUDLET_TRUSTED_PROXIES: '127.0.0.1',
        CLOUDLET_APPS_DOMAIN: APPS,
        CLOUDLET_RATE_REGISTRATIONS: '1',
      };
      cloud = await CloudProcess.start({ env });
      proxy = start(folder, ports);
      await eventually(name, async () => {
        assert.equal(proxy.exitCode, null);
        const answer = send(ports.https, `https://${CLOUD}/healthz`);
        return (await answer.catch(() => ({ status: 0 }))).status === 200;
      });
      const account = await register({ from: '127.0.0.2' });
      assert.equal(account.status, 201, account.bytes.toString());
      auth = { 'x-api-key': account.json().api_key };
    });
    after(async () => {
      proxy?.kill('SIGKILL');
      await cloud?.stop();
      rmSync(folder, { recursive: true, force: true });
    });

    test("limits are by the client's address, whatever it claims", async () => {
      assert.equal((await register({ from: '127.0.0.3' })).status, 201);
      const headers = { 'x-forwarded-for': '192.0.2.7' };
      const again = await register({ from: '127.0.0.3', headers });
      assert.equal(again.status, 429, again.bytes.toString());
      assert.equal((await register({ from: '127.0.0.4' })).status, 201);
    });

    const noName = name === 'Caddy' && 'its wildcard needs a module of a DNS provider';
    test('a host name of a machine leads to it', { skip: noName || cannotRunGuests() }, async () => {
      const { vm_id } = (await api('/api/vms', { json: NEW_VM })).json();
      const json = { port: 80, hostname: 'web-1' };
      const { address } = (await api(`/api/vms/${vm_id}/ports`, { json })).json();
      assert.equal(address, `https://web-1.${APPS}:${ports.https}`);
      const page = await send(ports.https, address, { headers: { accept: 'text/html' } });
      assert.equal(page.status, 503);
      assert.match(page.bytes.toString(), /not running/);
    });

    test('a machine hears nothing of what others send through the same proxy', {
      skip: noName || cannotRunGuests(),
    }, async () => {
      const { vm_id } = (await api('/api/vms', { json: { ...NEW_VM, user_data: EVIL } })).json();
      await api(`/api/vms/${vm_id}/ports`, { json: { port: 8080, hostname: 'evil' } });
      assert.equal((await api(`/api/vms/${vm_id}/start`, { method: 'POST' })).status, 200);
      const headers = { connection: 'Upgrade', upgrade: 'websocket' };
      const ask = () => send(ports.https, `https://evil.${APPS}/`, { headers });
      for (let round = 0; round < 5; round++) {
        await eventually('the machine', async () => (await ask()).bytes.toString() === 'evil');
        // The proxy keeps connections to the cloud open, and uses the most recent one.
        for (let other = 0; other < 4; other++) {
          const { status } = await send(ports.https, `https://${DATA}/cdn/of-somebody`);
          assert.equal(status, 404, 'the machine answered for the cloud');
        }
      }
      await api(`/api/vms/${vm_id}/stop`, { method: 'POST' });
      await api(`/api/vms/${vm_id}`, { method: 'DELETE' });
    });

    test('an upload is stored as it comes, and comes down the same', async () => {
      assert.equal((await api('/api/buckets', { json: { name: 'large' } })).status, 201);
      const head = 'Content-Disposition: form-data; name="file"; filename="a.bin"';
      const halves = [randomBytes(HALF), randomBytes(HALF)];
      const stored = () => blobFiles(cloud.dataDir).length;
      const none = stored();
      async function* form() {
        yield `--${BOUNDARY}\r\n${head}\r\n\r\n`;
        yield halves[0];
        // A proxy that buffers the whole body never passes this half to the cloud.
        await eventually('the first half', () => stored() > none);
        yield halves[1];
        yield `\r\n--${BOUNDARY}--\r\n`;
      }
      const headers = { 'content-type': `multipart/form-data; boundary=${BOUNDARY}` };
      const body = Readable.from(form());
      const answer = await api('/api/buckets/large/upload', { body, headers });
      assert.equal(answer.status, 200, answer.bytes.toString());
      const { object_id, size, etag } = answer.json();
      const md5 = createHash('md5').update(Buffer.concat(halves)).digest('hex');
      assert.deepEqual([size, etag], [2 * HALF, md5]);
      const { bytes } = await api(`/api/storage/${object_id}/download`);
      assert.equal(createHash('md5').update(bytes).digest('hex'), md5);
    });

    test('a signed link leads through the data name, whatever characters are in it', async () => {
      const form = new FormData();
      form.set('file', new Blob(['shown']), 'x.txt');
      form.set('name', 'a b/ü%2F+&.txt');
      const sent = new Response(form);
      const type = sent.headers.get('content-type') ?? '';
      assert.equal((await api('/api/buckets', { json: { name: 'shown' } })).status, 201);
      const body = Readable.from(Buffer.from(await sent.arrayBuffer()));
      const stored = await api('/api/buckets/shown/upload', { body, headers: { 'content-type': type } });
      const link = (await api(`/api/storage/${stored.json().object_id}/cdn-url`)).json().cdn_url;
      assert.equal(new URL(link).origin, `https://${DATA}:${ports.https}`);
      const shown = await send(ports.https, link);
      assert.deepEqual([shown.status, shown.bytes.toString()], [200, 'shown']);
      assert.equal((await send(ports.https, `https://${DATA}/api/account`)).status, 404);
    });

    test('an upload that may not be is told so, not cut off', async () => {
      const headers = { 'content-type': `multipart/form-data; boundary=${BOUNDARY}`, 'x-api-key': 'wrong' };
      const body = Readable.from([Buffer.alloc(MIB), Buffer.alloc(MIB)]);
      assert.equal((await api('/api/buckets/large/upload', { body, headers })).status, 401);
    });

    test('S3 clients upload through the data name, and may send keys of their own', async () => {
      const json = { name: 's3', scopes: ['storage:*'] };
      const pair = (await api('/api/account/access-keys', { json })).json();
      const s3 = new S3Client(`https://${DATA}:${ports.https}`, pair);
      const call = (...asked: Parameters<S3Client['prepare']>) => sendS3(ports.https, s3.prepare(...asked));
      assert.equal((await call('PUT', '/by-s3')).status, 200);
      const body = randomBytes(3 * MIB);
      for (const path of ['/by-s3/large', '/by-s3/a//b%2Fc%20%2B', '/by-s3/./x']) {
        const put = await call('PUT', path, { body, mode: 'unsigned-trailer' });
        assert.equal(put.status, 200, put.bytes.toString());
        assert.ok((await call('GET', path)).bytes.equals(body), path);
      }
      const { text, headers } = await post(call);
      assert.match(text, new RegExp(`<Location>https://${DATA}:${ports.https}/by-s3/parts<`));
      assert.equal(headers['content-type'], 'application/xml');
      const sealed = await call('PUT', '/by-s3/sealed', { headers: OWN_KEY, body: 'sealed' });
      assert.equal(sealed.status, 200, sealed.bytes.toString());
      assert.equal((await call('GET', '/by-s3/sealed', { headers: OWN_KEY })).bytes.toString(), 'sealed');
      // After the proxy has ended TLS, no header says that the connection is encrypted.
      const plain = new S3Client(cloud.data.replace(/\/\/.*/, `//127.0.0.1:${ports.data}`), pair);
      await plain.refused(400, 'InvalidRequest', ['GET', '/by-s3/sealed', { headers: OWN_KEY }]);
    });

    test('a program signs in through a browser', { skip: noBrowser }, async () => {
      const verifier = randomBytes(32).toString('base64url');
      const challenge = createHash('sha256').update(verifier).digest('base64url');
      const listener = createServer((_, response) => response.end('back')).listen(0, '127.0.0.1');
      await once(listener, 'listening');
      const address = listener.address();
      assert.ok(address !== null && typeof address === 'object');
      const redirect = `http://127.0.0.1:${address.port}/callback`;
      const fields = { redirect, challenge, state: 'state', name: 'CLI on laptop', scopes: '*', days: '30' };
      const arrived = once(listener, 'request');
      const browser = await launchBrowser();
      try {
        const page = await browser.newPage({ ignoreHTTPSErrors: true });
        await page.goto(`https://${CLOUD}:${ports.https}/connect#${new URLSearchParams(fields)}`);
        await page.getByLabel('User name').fill('user-1');
        await page.getByLabel('Password', { exact: true }).fill('correct horse battery');
        await page.getByRole('button', { name: 'Sign in' }).click();
        await page.getByRole('button', { name: 'Allow' }).click();
        const [{ url, headers }] = await arrived;
        assert.equal(headers.referer, undefined);
        const { searchParams } = new URL(url, redirect);
        assert.equal(searchParams.get('state'), 'state');
        const json = { code: searchParams.get('code'), code_verifier: verifier, redirect_uri: redirect };
        const key = await send(ports.https, `https://${CLOUD}/api/login/key`, { json });
        assert.deepEqual([key.status, key.json().username], [201, 'user-1'], key.bytes.toString());
      } finally {
        await browser.close();
        listener.close();
      }
      const device = { name: 'CLI on laptop', scopes: ['*'] };
      const codes = await send(ports.https, `https://${CLOUD}/api/login/device`, {
        json: device,
        from: '127.0.0.9',
      });
      assert.equal(codes.json().verification_uri, `https://${CLOUD}:${ports.https}/device`);
      const found = await api('/api/login/device/find', { json: { user_code: codes.json().user_code } });
      assert.equal(found.json().address, '127.0.0.9', 'the address of the proxy is shown');
    });

    test('browsers are told to stay with TLS', async () => {
      const { headers } = await api('/api/account');
      assert.match(String(headers['strict-transport-security']), /max-age=/);
    });

    test('a tunnel leads to a database, and ends with it', async () => {
      const json = { name: 'shop', engine: 'mongodb' };
      const { database_id, connection } = (await api('/api/databases', { json })).json();
      const by = {
        headers: { host: `${CLOUD}:${ports.https}` },
        servername: CLOUD,
        rejectUnauthorized: false,
      };
      const call = { path: `/api/databases/${database_id}/tunnel`, key: String(auth['x-api-key']), by };
      const nearest = await listenThrough(`https://127.0.0.1:${ports.https}`, call);
      const uri = new URL(connection.uri);
      uri.host = `127.0.0.1:${nearest.port}`;
      const client = await MongoClient.connect(uri.href);
      const text = 'x'.repeat(8 * MIB);
      await client.db().collection<{ text: string }>('t').insertOne({ text });
      assert.equal((await client.db().collection('t').findOne())?.text, text);
      await client.close();
      nearest.close();
      const open = await openTunnel(`https://127.0.0.1:${ports.https}`, call);
      await api(`/api/databases/${database_id}`, { method: 'DELETE' });
      await eventually('the end of the tunnel', () => open.code !== 0);
    });

    test('a console is a WebSocket', { skip: cannotRunGuests() }, async () => {
      const { vm_id } = (await api('/api/vms', { json: NEW_VM })).json();
      const vm = `/api/vms/${vm_id}`;
      assert.equal((await api(`${vm}/start`, { method: 'POST' })).status, 200);
      try {
        const ticket = (await api(`${vm}/console-tickets`, { json: {} })).json();
        const url = new URL(ticket.url);
        assert.equal(url.origin, `wss://${CLOUD}:${ports.https}`);
        url.hostname = '127.0.0.1';
        const headers = { host: `${CLOUD}:${ports.https}`, origin: `https://${CLOUD}:${ports.https}` };
        const options = { headers, servername: CLOUD, rejectUnauthorized: false };
        const viewer = new WebSocket(url, [], options);
        let seen = '';
        viewer.on('message', (data: Buffer) => {
          seen += data.toString('latin1');
        });
        await eventually('its guest', () => seen.includes('tiny ready'));
        viewer.send('\necho $((6 * 7)) is the answer\n');
        await eventually('the answer', () => seen.includes('42 is the answer'));
        viewer.terminate();
      } finally {
        await api(`${vm}/stop?force=true`, { method: 'POST' });
        await api(vm, { method: 'DELETE' });
      }
    });
  });

/**
 * An operator's S3 with TLS, a certificate of its own CA, and buckets in host names. Another Cloudlet is that
 * S3: s3rver accepts no AWS signature of version 4 for such names.
 */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { type AddressInfo, connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, type TestContext, test } from 'node:test';
import { createServer, type Server } from 'node:tls';
import { notInstalled } from '../../scripts/installed.ts';
import { Client } from '../harness/client.ts';
import { CloudProcess } from '../harness/cloud-process.ts';

const MIB = 2 ** 20;
const HOST = 's3.example.test';
const folder = mkdtempSync(join(tmpdir(), 'cloudlet-blobs-tls-'));
after(() => rmSync(folder, { recursive: true, force: true }));

const [key, certificate, hosts] = ['key.pem', 'certificate.pem', 'hosts'].map((name) =>
  join(folder, name),
) as [string, string, string];

function makeFiles(): void {
  const made = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', '2'];
  const names = ['-subj', `/CN=${HOST}`, '-addext', `subjectAltName=DNS:${HOST},DNS:*.${HOST}`];
  const files = ['-keyout', key, '-out', certificate];
  execFileSync('openssl', ['req', '-x509', ...made, ...names, ...files], { stdio: 'pipe' });
  writeFileSync(hosts, `127.0.0.1 localhost ${HOST} tests.${HOST}\n`);
}

/** TLS in front of the S3, like an operator's proxy. Records the name requested by each connection. */
async function startTls(port: number, asked: Set<string>): Promise<Server> {
  const options = { key: readFileSync(key), cert: readFileSync(certificate) };
  const server = createServer(options, (client) => {
    if (typeof client.servername === 'string') asked.add(client.servername);
    const behind = connect(port, '127.0.0.1');
    for (const [from, to] of [
      [client, behind],
      [behind, client],
    ] as const) {
      from.on('error', () => to.destroy());
      from.on('close', () => to.destroy());
      from.pipe(to);
    }
  });
  server.unref();
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return server;
}

/** A bucket `tests` in another Cloudlet; the port of its S3, and KEY:SECRET. */
async function startS3(t: TestContext): Promise<{ readonly port: number; readonly keys: string }> {
  const cloud = await CloudProcess.start({ env: { CLOUDLET_S3_DOMAIN: HOST } });
  t.after(() => cloud.stop());
  const owner = new Client(cloud.api, (await new Client(cloud.api).newUser()).key);
  assert.equal((await owner.call('/api/buckets', { json: { name: 'tests' } })).status, 201);
  const json = { name: 'cloud', scopes: ['storage:*'] };
  const { body } = await owner.call('/api/account/access-keys', { json });
  const keys = [body.access_key_id, body.secret_access_key].map(encodeURIComponent).join(':');
  return { port: Number(new URL(cloud.data).port), keys };
}

const isRoot = process.getuid?.() === 0;
test('objects go to an S3 with TLS and the bucket in the host name, and come back', {
  skip: isRoot ? notInstalled('openssl') : 'a hosts file of its own needs root',
}, async (t) => {
  makeFiles();
  const { port: s3Port, keys } = await startS3(t);
  const asked = new Set<string>();
  const tls = await startTls(s3Port, asked);
  t.after(() => tls.close());
  const { port } = tls.address() as AddressInfo;
  const urlOf = (style: string) => `s3://${keys}@${HOST}:${port}/tests/${style}?style=${style}`;
  const mount = 'mount --bind "$0" /etc/hosts && exec "$@"';
  const wrapper = ['unshare', '--mount', 'sh', '-c', mount, hosts];
  for (const style of ['host', 'path']) {
    const env = { CLOUDLET_BLOBS_URL: urlOf(style), NODE_EXTRA_CA_CERTS: certificate };
    const cloud = await CloudProcess.start({ env, wrapper });
    t.after(() => cloud.stop());
    const client = new Client(cloud.api, (await new Client(cloud.api).newUser()).key);
    assert.equal((await client.call('/api/buckets', { json: { name: 'plain' } })).status, 201);
    for (const size of [100_000, 20 * MIB]) {
      const content = Buffer.alloc(size, style);
      const { status, body } = await client.upload('plain', `of-${size}`, content);
      assert.equal(status, 200, JSON.stringify(body));
      assert.ok((await client.download(body.object_id)).equals(content), `${style}, ${size} bytes`);
      assert.equal((await client.call(`/api/storage/${body.object_id}`, { method: 'DELETE' })).status, 200);
    }
    assert.ok(asked.has(style === 'host' ? `tests.${HOST}` : HOST), [...asked].join(', '));
  }
  const withoutCa = CloudProcess.start({ env: { CLOUDLET_BLOBS_URL: urlOf('host') }, wrapper });
  await assert.rejects(withoutCa, /of your own CA set NODE_EXTRA_CA_CERTS/);
});

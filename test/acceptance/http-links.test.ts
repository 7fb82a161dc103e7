/**
 * Links use the address at which the caller reached this cloud, unless the operator has set its addresses.
 */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type IncomingMessage, request } from 'node:http';
import { after, before, describe, test } from 'node:test';
import { Client } from '../harness/client.ts';
import { CloudProcess } from '../harness/cloud-process.ts';
import { freePort } from '../harness/free-port.ts';

const PROXY = '127.0.0.2';
const STRANGER = '127.0.0.3';

interface Asking {
  readonly base: string;
  readonly headers: Readonly<Record<string, string>>;
  /** The address from which the call comes. */
  readonly from?: string;
}

async function get(path: string, { base, headers, from = STRANGER }: Asking) {
  const outgoing = request(`${base}${path}`, { headers, localAddress: from, agent: false }).end();
  const [response] = (await once(outgoing, 'response')) as [IncomingMessage];
  let text = '';
  for await (const piece of response.setEncoding('utf8')) text += piece;
  return { headers: response.headers, text };
}

describe('without addresses in the settings', () => {
  let cloud: CloudProcess;
  let key = '';
  let objectId = '';
  let databaseId = '';
  before(async () => {
    const env = { CLOUDLET_HOST: '0.0.0.0', CLOUDLET_TRUSTED_PROXIES: PROXY };
    cloud = await CloudProcess.start({ env });
    const client = new Client(cloud.api);
    key = (await client.register()).api_key;
    const user = client.as(key);
    await user.call('/api/buckets', { json: { name: 'papers' } });
    const pdf = new FormData();
    pdf.set('file', new Blob(['%PDF-1.4'], { type: 'application/pdf' }), 'a.pdf');
    objectId = (await user.call('/api/buckets/papers/upload', { body: pdf })).body.object_id;
    databaseId = (await user.call('/api/databases', { json: { name: 'shop' } })).body.database_id;
  });
  after(() => cloud?.stop());

  const port = (url: string) => new URL(url).port;
  const ask = async (path: string, headers: Readonly<Record<string, string>>, from?: string) => {
    const asking = { base: cloud.api, headers: { 'x-api-key': key, ...headers } };
    return get(path, from === undefined ? asking : { ...asking, from });
  };
  const link = async (headers: Readonly<Record<string, string>>, from?: string): Promise<URL> =>
    new URL(JSON.parse((await ask(`/api/storage/${objectId}/cdn-url`, headers, from)).text).cdn_url);

  test('a link has the host of the call, and the port of the data origin', async () => {
    for (const name of ['192.168.7.9', 'nas.lan', '[fd00::7]', '127.0.0.1', 'localhost']) {
      const { origin } = await link({ host: `${name}:${port(cloud.api)}` });
      assert.equal(origin, `http://${name}:${port(cloud.data)}`);
    }
  });

  test('so has the address of a SQLite database, and the snippets', async () => {
    const headers = { host: `nas.lan:${port(cloud.api)}` };
    const { text } = await ask(`/api/databases/${databaseId}/credentials`, headers);
    const { connection, snippets } = JSON.parse(text);
    const wanted = `http://nas.lan:${port(cloud.data)}/db/`;
    assert.equal(connection.host, 'nas.lan');
    for (const said of [connection.uri, snippets.node]) assert.ok(said.includes(wanted), said);
  });

  test('pages may show what comes from there, and what comes from there may be shown by these pages', async () => {
    const host = `nas.lan:${port(cloud.api)}`;
    const page = await ask('/storage', { host, accept: 'text/html' });
    const policy = String(page.headers['content-security-policy']);
    assert.ok(policy.includes(`frame-src 'self' http://nas.lan:${port(cloud.data)};`), policy);
    const { pathname, search } = await link({ host });
    const data = { host: `nas.lan:${port(cloud.data)}` };
    const shown = await get(pathname + search, { base: cloud.data, headers: data });
    const framers = String(shown.headers['content-security-policy']);
    assert.ok(framers.includes(`frame-ancestors http://${host}`), framers);
  });

  test('what a proxy forwards counts when it is trusted', async () => {
    const host = `127.0.0.1:${port(cloud.api)}`;
    const forwarded = { host, 'x-forwarded-host': 'cloud.example.org', 'x-forwarded-proto': 'https' };
    assert.equal((await link(forwarded, PROXY)).hostname, 'cloud.example.org');
    assert.equal((await link(forwarded)).hostname, '127.0.0.1');
    const index = await ask('/api', { ...forwarded, accept: 'text/html' }, PROXY);
    assert.ok(index.text.includes('curl https://cloud.example.org/api/register'), index.text);
    assert.ok(!(await ask('/api', { ...forwarded, accept: 'text/html' })).text.includes('example.org'));
  });

  test('a host that is none is no part of a link or of a policy', async () => {
    for (const host of ['a b', "x;script-src'", 'x"y', 'u@h', 'a/b', 'x:99:1']) {
      assert.equal((await link({ host })).origin, `http://localhost:${port(cloud.data)}`, host);
      const page = await ask('/storage', { host, accept: 'text/html' });
      assert.ok(!String(page.headers['content-security-policy']).includes(host), host);
    }
  });
});

test('addresses of the settings count, whatever a caller says', async () => {
  const port = await freePort();
  const env = {
    CLOUDLET_PORT: String(port),
    CLOUDLET_PUBLIC_URL: 'https://cloud.example.org',
    CLOUDLET_DATA_URL: 'https://data.example.org',
  };
  const cloud = await CloudProcess.start({ env });
  try {
    const client = new Client(`http://127.0.0.1:${port}`);
    const user = await client.newUser();
    await user.call('/api/buckets', { json: { name: 'papers' } });
    const { object_id: id } = (await user.upload('papers', 'a.txt', 'a')).body;
    const { cdn_url: link } = (await user.call(`/api/storage/${id}/cdn-url`)).body;
    assert.equal(new URL(link).origin, 'https://data.example.org');
  } finally {
    await cloud.stop();
  }
});

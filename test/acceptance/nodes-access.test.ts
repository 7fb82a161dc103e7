/**
 * Access and content on two nodes: after one ends or replaces them, the other no longer accepts or serves
 * them.
 */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { GetObjectCommand, HeadObjectCommand, S3Client } from '@aws-sdk/client-s3';
import { WebSocket } from 'ws';
import { Client, sessionOf } from '../harness/client.ts';
import { ADMIN_KEY, type CloudProcess } from '../harness/cloud-process.ts';
import { Cluster, noCluster } from '../harness/cluster.ts';
import { eventually } from '../harness/waiting.ts';

describe('two nodes', { skip: noCluster }, () => {
  let cluster: Cluster;
  let host: CloudProcess;
  let front: CloudProcess;
  let admin: Client;
  before(async () => {
    cluster = await Cluster.start(2);
    [host, front] = cluster.nodes as [CloudProcess, CloudProcess];
    admin = new Client(host.api, ADMIN_KEY);
  });
  after(() => cluster?.stop());

  /** An account, with its main key at both nodes. */
  async function newUser() {
    const account = await new Client(host.api).register();
    const here = new Client(host.api, account.api_key);
    return { account, here, there: new Client(front.api, account.api_key) };
  }

  function s3Of(node: CloudProcess, key: { access_key_id: string; secret_access_key: string }): S3Client {
    const { access_key_id: accessKeyId, secret_access_key: secretAccessKey } = key;
    const credentials = { accessKeyId, secretAccessKey };
    return new S3Client({ endpoint: node.data, region: 'us-east-1', forcePathStyle: true, credentials });
  }

  test('keys, pairs, sessions and accounts that one node ends are refused by the other', async () => {
    const { account, here, there } = await newUser();
    const json = { name: 'k', scopes: ['*'] };
    const { body: key } = await here.call('/api/account/access-keys', { json });
    const login = { json: { username: account.username, password: 'correct horse battery' } };
    const session = sessionOf(await here.call('/api/login', login));
    await here.call('/api/buckets', { json: { name: 'of-keys' } });
    const { body: object } = await here.upload('of-keys', 'a', 'x');
    const byKey = new Client(front.api, key.api_key);
    const s3 = s3Of(front, key);
    const uses = {
      key: async () => (await byKey.call('/api/account')).status,
      pair: () =>
        s3.send(new HeadObjectCommand({ Bucket: 'of-keys', Key: 'a' })).then(
          () => 200,
          (error) => error.$metadata.httpStatusCode as number,
        ),
      session: async () => (await new Client(front.api).call('/api/account', { headers: session })).status,
      account: async () => (await there.call(`/api/storage/${object.object_id}/download`)).status,
    };
    for (const [name, use] of Object.entries(uses)) assert.equal(await use(), 200, name);
    const refused = async (names: readonly (keyof typeof uses)[]) => {
      for (const name of names) await eventually(name, async () => (await uses[name]()) !== 200 || null);
    };
    await here.call(`/api/account/access-keys/${key.id}`, { method: 'DELETE' });
    await refused(['key', 'pair']);
    await here.call('/api/logout', { method: 'POST', headers: session });
    await refused(['session']);
    const suspended = await admin.call(`/api/admin/accounts/${account.id}/suspend`, {
      json: { reason: 'r' },
    });
    assert.equal(suspended.status, 200);
    await refused(['account']);
    s3.destroy();
    const { body: figures } = await new Client(front.api, ADMIN_KEY).call('/metrics');
    assert.match(figures, /^cloudlet_rereads_total \d+$/m);
  });

  test('a node that hears no message of the other refuses what that ends within three seconds', async (t) => {
    const { account, here, there } = await newUser();
    cluster.deafen(front);
    t.after(() => cluster.hear(front));
    const socket = new WebSocket(`${front.api.replace('http', 'ws')}/api/updates`, {
      headers: { 'x-api-key': there.key ?? '' },
    });
    const told: string[] = [];
    await new Promise((resolve, reject) => {
      socket.on('error', reject);
      socket.on('message', (data) => {
        told.push(String(data));
        resolve(undefined);
      });
    });
    const began = told.length;
    let worst = 0;
    for (let round = 0; round < 5; round++) {
      const json = { name: `k-${round}`, scopes: ['*'] };
      const { body: key } = await here.call('/api/account/access-keys', { json });
      const byKey = new Client(front.api, key.api_key);
      assert.equal((await byKey.call('/api/account')).status, 200);
      const end = await here.call(`/api/account/access-keys/${key.id}`, { method: 'DELETE' });
      assert.equal(end.status, 200);
      const startMs = performance.now();
      await eventually('a refusal', async () => (await byKey.call('/api/account')).status === 401);
      worst = Math.max(worst, performance.now() - startMs);
    }
    const json = { amount: 1, reason: 'test' };
    await admin.call(`/api/admin/accounts/${account.id}/credits`, { json });
    assert.equal((await there.call('/api/account')).body.credits, 11);
    t.diagnostic(`refused after ${Math.round(worst)} ms`);
    assert.ok(worst <= 3000, `${worst} ms`);
    assert.deepEqual(told.slice(began), [], 'no message came');
    socket.close();
  });

  test('what one node overwrites or deletes the other serves so at once, by every way', async () => {
    const { here, there } = await newUser();
    await here.call('/api/buckets', { json: { name: 'of-contents' } });
    const { body: key } = await here.call('/api/account/access-keys', { json: { name: 'k', scopes: ['*'] } });
    const { body: object } = await here.upload('of-contents', 'a', 'text 0');
    const { body: link } = await here.call(`/api/storage/${object.object_id}/cdn-url`);
    const signed = String(link.cdn_url).replace(host.data, front.data);
    const s3 = s3Of(front, key);
    const gone = (error: { $metadata: { httpStatusCode: number } }) => String(error.$metadata.httpStatusCode);
    const path = `/api/storage/${object.object_id}/download`;
    const text = async (answer: Promise<Response>) => {
      const response = await answer;
      return response.ok ? response.text() : String(response.status);
    };
    const ways = {
      rest: () => text(there.fetch(path)),
      range: () => text(there.fetch(path, { headers: { range: 'bytes=5-' } })).then((end) => `text ${end}`),
      link: () => text(fetch(signed)),
      s3: () =>
        s3
          .send(new GetObjectCommand({ Bucket: 'of-contents', Key: 'a' }))
          .then(({ Body }) => Body?.transformToString() ?? '', gone),
    };
    const etagOf = async () => (await there.fetch(path, { method: 'HEAD' })).headers.get('etag') ?? '';
    for (let round = 0; round < 10; round++) {
      await here.upload('of-contents', 'a', `text ${round}`);
      for (const [name, way] of Object.entries(ways)) assert.equal(await way(), `text ${round}`, name);
      const etag = await etagOf();
      const conditional = { headers: { 'if-none-match': etag } };
      assert.equal((await there.fetch(path, conditional)).status, 304);
      await here.upload('of-contents', 'a', `next ${round}`);
      assert.equal((await there.fetch(path, conditional)).status, 200);
      assert.notEqual(await etagOf(), etag);
    }
    await here.call(`/api/storage/${object.object_id}`, { method: 'DELETE' });
    for (const [name, way] of Object.entries(ways)) assert.match(await way(), /404$/, name);
    s3.destroy();
  });

  test('update streams at one node tell what the other changes', async () => {
    const { account, here, there } = await newUser();
    const socket = new WebSocket(`${front.api.replace('http', 'ws')}/api/updates`, {
      headers: { 'x-api-key': there.key ?? '' },
    });
    const things: string[] = [];
    await new Promise((resolve, reject) => {
      socket.on('error', reject);
      socket.on('message', (data) => {
        const message = JSON.parse(String(data));
        if (message.type === 'sync') resolve(undefined);
        for (const { kind, id } of message.things ?? []) things.push(`${kind} ${id}`);
      });
    });
    const json = { amount: 1, reason: 'test' };
    await admin.call(`/api/admin/accounts/${account.id}/credits`, { json });
    await eventually('the balance', async () => things.includes(`balance ${account.id}`) || null);
    const later = { json: { name: 'told-of' }, headers: { prefer: 'respond-async' } };
    const { body } = await here.call('/api/buckets', later);
    await eventually('an operation', async () => things.includes(`operation ${body.operation_id}`) || null);
    socket.close();
  });
});

/** The same call at two nodes at once, or started at one and completed at the other. */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { CreateMultipartUploadCommand, DeleteBucketCommand, S3Client } from '@aws-sdk/client-s3';
import type { Answer, Call } from '../harness/client.ts';
import { Client } from '../harness/client.ts';
import { Cluster, noCluster } from '../harness/cluster.ts';

const ROUNDS = 10;

describe('two nodes at once', { skip: noCluster }, () => {
  let cluster: Cluster;
  /** The same account at both. */
  let nodes: readonly [Client, Client];
  before(async () => {
    cluster = await Cluster.start(2);
    const [host, front] = cluster.nodes.map(({ api }) => new Client(api)) as [Client, Client];
    const { api_key: key } = await host.register();
    nodes = [host.as(key), front.as(key)];
  });
  after(() => cluster?.stop());

  const atBoth = (path: string, call: () => Call): Promise<Answer[]> =>
    Promise.all(nodes.map((node) => node.call(path, call())));

  test('20 registrations: all are accepted', async () => {
    const answers = await Promise.all(
      Array.from({ length: 20 }, (_, i) => {
        const [username, email] = [`at-once-${i}`, `at-once-${i}@example.com`];
        const call = { json: { username, email, password: 'a good password' } };
        return nodes[i % 2]?.as(undefined).call('/api/register', call);
      }),
    );
    const seen = answers.map((answer) => answer?.status);
    assert.deepEqual(seen, Array(20).fill(201), JSON.stringify(answers.map((answer) => answer?.body.code)));
    assert.equal(new Set(answers.map((answer) => answer?.body.id)).size, 20);
  });

  test('one key, one bucket: one effect, and the same response twice', async () => {
    for (let i = 0; i < ROUNDS; i++) {
      const name = `once-${i}`;
      const answers = await atBoth('/api/buckets', () => ({
        json: { name },
        headers: { 'idempotency-key': name },
      }));
      assert.deepEqual(statuses(answers), [201, 201], JSON.stringify(answers.map(({ body }) => body)));
      assert.deepEqual(answers[0]?.body, answers[1]?.body);
    }
  });

  test('one key, one upload: one version, and the same response twice', async () => {
    const made = { json: { name: 'uploads', versioning: true } };
    assert.equal((await nodes[0].call('/api/buckets', made)).status, 201);
    for (let i = 0; i < ROUNDS; i++) {
      const answers = await atBoth('/api/buckets/uploads/upload', () => {
        const form = new FormData();
        form.set('name', `file-${i}`);
        form.set('file', new Blob(['the same bytes']), 'upload.bin');
        return { body: form, headers: { 'idempotency-key': `upload-${i}` } };
      });
      assert.deepEqual(statuses(answers), [200, 200], JSON.stringify(answers.map(({ body }) => body)));
      assert.deepEqual(answers[0]?.body, answers[1]?.body);
    }
    const { body } = await nodes[0].call('/api/buckets/uploads/files?include_versions=true');
    assert.equal(body.length, ROUNDS, JSON.stringify(body));
  });

  test('what an account may have in all is had by nobody at both, also at the edge', async () => {
    const of = { url: 'https://example.org/', scopes: ['storage:read'] };
    const limits = [
      ['/api/account/access-keys', 200, (name: string) => ({ name, scopes: of.scopes })],
      ['/api/encryption-keys', 100, (id: string) => ({ id })],
      ['/api/webhooks', 20, (name: string) => ({ url: of.url + name })],
    ] as const;
    for (const [path, most, json] of limits) {
      const { api_key: key } = await nodes[0].register();
      const make = (count: number, prefix: string) =>
        Promise.all(
          Array.from({ length: count }, (_, i) =>
            nodes[i % 2]?.as(key).call(path, { json: json(`${prefix}-${i}`) }),
          ),
        );
      await make(most - 1, 'early');
      const late = await make(12, 'late');
      const made = late.filter((answer) => answer?.status === 201);
      assert.equal(made.length, 1, `${path}: ${late.map((answer) => answer?.status)}`);
    }
  });

  test('a bucket that is deleted at one leaves no upload that begins at the other', async () => {
    const { api_key: key } = await nodes[0].register();
    const owner = nodes[0].as(key);
    const { access_key_id: accessKeyId, secret_access_key: secretAccessKey } = (
      await owner.call('/api/account/access-keys', { json: { name: 'S3', scopes: ['*'] } })
    ).body;
    const credentials = { accessKeyId, secretAccessKey };
    const ends = cluster.nodes.map(
      ({ data }) =>
        new S3Client({
          endpoint: data,
          region: 'us-east-1',
          forcePathStyle: true,
          maxAttempts: 1,
          credentials,
        }),
    ) as [S3Client, S3Client];
    const free = await storedBytes(owner);
    for (let i = 0; i < 3 * ROUNDS; i++) {
      const Bucket = `brief-${i}`;
      await owner.call('/api/buckets', { json: { name: Bucket } });
      const begun = new CreateMultipartUploadCommand({ Bucket, Key: 'file', Metadata: { note: 'x' } });
      await Promise.all([
        sleep(i % 8).then(() => ends[0].send(new DeleteBucketCommand({ Bucket }))),
        ends[1].send(begun).catch(({ name }: Error) => assert.equal(name, 'NoSuchBucket')),
      ]);
    }
    for (const end of ends) end.destroy();
    assert.equal(await storedBytes(owner), free, 'an upload without a bucket counts for ever');
  });

  test('what both delete is deleted by one, and unknown to the other', async () => {
    for (let i = 0; i < ROUNDS; i++) {
      await nodes[0].call('/api/encryption-keys', { json: { id: `key-${i}` } });
      const answers = await atBoth(`/api/encryption-keys/key-${i}`, () => ({ method: 'DELETE' }));
      assert.deepEqual(statuses(answers), [200, 404], JSON.stringify(answers.map(({ body }) => body)));
    }
  });

  test('one key, accepted to be done later: one operation, which both nodes show', async () => {
    for (let i = 0; i < ROUNDS; i++) {
      const name = `later-${i}`;
      const headers = { 'idempotency-key': name, prefer: 'respond-async' };
      const answers = await atBoth('/api/buckets', () => ({ json: { name }, headers }));
      assert.deepEqual(statuses(answers), [202, 202]);
      const ids = new Set(answers.map(({ body }) => body.operation_id));
      assert.equal(ids.size, 1);
      for (const node of nodes) {
        const { body } = await node.call(`/api/operations/${[...ids][0]}?wait=60`);
        assert.deepEqual([body.state, body.status], ['succeeded', 201]);
      }
    }
  });

  /** A statement that takes seconds, at the host. */
  async function beginSlow(name: string): Promise<string> {
    const [host] = nodes;
    const { body: made } = await host.call('/api/databases', { json: { name, engine: 'sqlite' } });
    const statement = `create table t as with recursive c(n) as
      (select 1 union all select n + 1 from c where n < 3000000) select count(*) as n from c`;
    const asked = { json: { statement, read_only: false }, headers: { prefer: 'respond-async' } };
    const { status, body } = await host.call(`/api/databases/${made.database_id}/query`, asked);
    assert.equal(status, 202, JSON.stringify(body));
    return `/api/operations/${body.operation_id}`;
  }

  test('an operation that the host runs is running at the other node too, until its end', async () => {
    const [, front] = nodes;
    const operation = await beginSlow('slow');
    const seen = await front.call(operation);
    assert.deepEqual([seen.body.state, seen.body.error], ['running', null]);
    const list = await front.call('/api/operations?limit=1');
    assert.deepEqual(list.body[0]?.state, 'running');
    const cancelled = await front.call(`${operation}/cancel`, { method: 'POST' });
    assert.deepEqual([cancelled.status, cancelled.body.code], [409, 'operation_not_cancellable']);
    const ended = await front.call(`${operation}?wait=60`);
    assert.deepEqual([ended.body.state, ended.body.status], ['succeeded', 200], JSON.stringify(ended.body));
  });

  test('a log-in that was begun at one is approved at the other', async () => {
    const [host, front] = nodes;
    const asked = { json: { name: 'CLI on laptop', scopes: ['*'] } };
    const { body: codes } = await front.as(undefined).call('/api/login/device', asked);
    const decided = { json: { user_code: codes.user_code, approve: true } };
    assert.equal((await host.call('/api/login/device/decide', decided)).status, 200);
    const poll = { json: { device_code: codes.device_code } };
    const fetched = await Promise.all(
      nodes.map((node) => node.as(undefined).call('/api/login/device/key', poll)),
    );
    assert.deepEqual(statuses(fetched), [201, 400], 'one of them has the key');
    const key = fetched.find(({ status }) => status === 201)?.body.api_key;
    for (const node of nodes) assert.equal((await node.as(key).call('/api/account')).status, 200);
  });

  test('a ticket of one is good at the other', async () => {
    const [host, front] = nodes;
    await host.call('/api/buckets', { json: { name: 'tickets' } });
    const { body: made } = await host.upload('tickets', 'file', 'the same bytes');
    const path = `/api/storage/${made.object_id}/download`;
    const { status, body } = await front.call('/api/account/tickets', { json: { path } });
    assert.equal(status, 201, JSON.stringify(body));
    const download = await host.as(undefined).call(body.url);
    assert.deepEqual([download.status, download.body], [200, 'the same bytes']);
  });

  test('an operation is interrupted once its node is gone, and stays so when that is back', async () => {
    const [host] = cluster.nodes;
    const [, front] = nodes;
    const operation = await beginSlow('killed');
    await host?.crash();
    assert.equal((await front.call(operation)).body.state, 'running', 'nobody knows yet');
    const { body } = await front.call(`${operation}?wait=60`);
    assert.deepEqual([body.state, body.error?.code], ['failed', 'operation_interrupted']);
    await host?.start();
    for (const node of nodes)
      assert.equal((await node.call(operation)).body.error?.code, 'operation_interrupted');
  });
});

function statuses(answers: readonly Answer[]): number[] {
  return answers.map(({ status }) => status).sort();
}

async function storedBytes(owner: Client): Promise<number> {
  const { body } = await owner.call('/api/billing/quotas');
  return body.quotas.storage_bytes.used;
}

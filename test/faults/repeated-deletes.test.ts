/** kill -9 in the middle of deletions: who repeats one under its Idempotency-Key learns that it is done. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { Client } from '../harness/client.ts';
import { ADMIN_KEY, CloudProcess } from '../harness/cloud-process.ts';

/** From before the first commit to after the last, ms. */
const DELAYS = [1, 5, 12, 30, 80];

type Make = (user: Client, name: string) => Promise<string>;

const created = async (user: Client, path: string, json: object) => {
  const { status, body } = await user.call(path, { json });
  assert.equal(status, 201, JSON.stringify(body));
  return body;
};

/** Each makes something; resolves to the path that deletes it. */
const KINDS: Readonly<Record<string, Make>> = {
  bucket: async (user, name) => {
    await created(user, '/api/buckets', { name });
    return `/api/buckets/${name}`;
  },
  object: async (user, name) => {
    await created(user, '/api/buckets', { name, versioning: true });
    return `/api/storage/${(await user.upload(name, 'a', Buffer.from('text'))).body.object_id}`;
  },
  machine: async (user, name) => {
    const path = `/api/vms/${(await created(user, '/api/vms', { name, instance_type: 't2.micro' })).vm_id}`;
    assert.equal((await user.call(`${path}/stop`, { method: 'POST' })).status, 200);
    return path;
  },
  database: async (user, name) =>
    `/api/databases/${(await created(user, '/api/databases', { name, engine: 'sqlite' })).database_id}`,
  accessKey: async (user, name) =>
    `/api/account/access-keys/${(await created(user, '/api/account/access-keys', { name, scopes: ['storage:read'] })).id}`,
  webhook: async (user) => {
    const webhook = { url: 'https://hooks.invalid/' };
    return `/api/webhooks/${(await created(user, '/api/webhooks', webhook)).id}`;
  },
};

test('a deletion that a kill cut off is answered as done when it is repeated', async (t) => {
  const cloud = await CloudProcess.start();
  t.after(() => cloud.stop());
  let user = await new Client(cloud.api).newUser();
  for (const delay of DELAYS) {
    const paths: string[] = [];
    for (const [kind, make] of Object.entries(KINDS))
      paths.push(await make(user, `${kind.toLowerCase()}-${delay}`));
    const remove = (path: string) =>
      user.call(path, { method: 'DELETE', headers: { 'idempotency-key': `gone-${path}` } });
    const first = paths.map((path) => remove(path).catch(() => null));
    await sleep(delay);
    await cloud.crash();
    const answers = await Promise.all(first);
    await cloud.start();
    user = new Client(cloud.api, user.key);
    for (const [i, path] of paths.entries()) {
      const { status, body } = await remove(path);
      assert.equal(status, 200, `${path} after ${delay} ms: ${JSON.stringify(body)}`);
      const answer = answers[i] ?? null;
      if (answer !== null) assert.deepEqual(body, answer.body, path);
    }
  }
  const { body } = await new Client(cloud.api, ADMIN_KEY).call('/api/system/status');
  assert.deepEqual(body.alarms, []);
});

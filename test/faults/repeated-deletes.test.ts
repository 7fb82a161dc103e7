/** kill -9 in the middle of deletions: repeating one with its Idempotency-Key reports that it is done. */
import assert from 'node:assert/strict';
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { Client } from '../harness/client.ts';
import { ADMIN_KEY, CloudProcess } from '../harness/cloud-process.ts';
import { eventually } from '../harness/waiting.ts';

/** From before the first commit to after the last, ms. */
const DELAYS = [1, 5, 12, 30, 80];

type Make = (user: Client, name: string) => Promise<string>;

const created = async (user: Client, path: string, json: object) => {
  const { status, body } = await user.call(path, { json });
  assert.equal(status, 201, JSON.stringify(body));
  return body;
};

/** Each creates a resource; resolves to the path that deletes it. */
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

let cloud: CloudProcess;
before(async () => {
  cloud = await CloudProcess.start();
});
after(() => cloud?.stop());

test('a deletion that a kill cut off is answered as done when it is repeated', async () => {
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

/** With so many files that a kill finds the removal in progress. */
async function largeMachine(user: Client, name: string): Promise<{ path: string; folder: string }> {
  const path = await (KINDS.machine as Make)(user, name);
  const folder = join(cloud.dataDir, 'vms', path.split('/').at(-1) ?? '');
  assert.ok(existsSync(folder));
  for (let i = 0; i < 20; i++) {
    const inner = join(folder, 'left', String(i));
    mkdirSync(inner, { recursive: true });
    for (let j = 0; j < 200; j++) writeFileSync(join(inner, String(j)), '');
  }
  return { path, folder };
}

test('a machine whose deletion a kill cut off is gone after the start, asked for again or not', async (t) => {
  let user = await new Client(cloud.api).newUser();
  let cutOff = 0;
  for (const delay of [20, 50, 100, 200]) {
    const machines = [
      await largeMachine(user, `again-${delay}`),
      await largeMachine(user, `left-${delay}`),
    ] as const;
    const first = machines.map(({ path }) => user.call(path, { method: 'DELETE' }).catch(() => null));
    await sleep(delay);
    await cloud.crash();
    cutOff += (await Promise.all(first)).filter((answer) => answer === null).length;
    await cloud.start();
    user = new Client(cloud.api, user.key);
    const [again, left] = machines;
    const { status } = await user.call(again.path, { method: 'DELETE' });
    // The start may have completed it before the call.
    assert.ok(status === 200 || status === 404, `${status}`);
    assert.equal((await user.call(again.path)).status, 404, 'what was answered is so');
    assert.equal((await user.call(again.path, { method: 'DELETE' })).status, 404);
    const state = await user.call(left.path);
    if (state.status === 200 && state.body.state !== 'deleting')
      // The kill came before the first commit: nothing was requested.
      assert.equal((await user.call(left.path, { method: 'DELETE' })).status, 200);
    await eventually('its deletion ends by itself', async () => (await user.call(left.path)).status === 404);
    assert.deepEqual((await user.call('/api/vms')).body, []);
    for (const { folder } of machines) await eventually('its folder is gone', () => !existsSync(folder));
  }
  t.diagnostic(`${cutOff} deletions cut off`);
  assert.ok(cutOff > 0, 'no deletion was cut off');
});

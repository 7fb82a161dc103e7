/** Saved queries over the API: by name, limited, for one account and database only, and in its export. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { CheckedClient } from '../harness/checked-client.ts';
import { CloudProcess } from '../harness/cloud-process.ts';
import { DELETE, newDatabase } from './databases-kit.ts';

let cloud: CloudProcess;
let user: CheckedClient;
let other: CheckedClient;
before(async () => {
  cloud = await CloudProcess.start();
  const anyone = await CheckedClient.open(cloud.api);
  user = anyone.as((await anyone.register()).api_key);
  other = anyone.as((await anyone.register()).api_key);
});
after(() => cloud.stop());

test('are saved by name, replaced, listed and deleted', async () => {
  const [path, second] = [await newDatabase(user), await newDatabase(user)];
  const save = (name: string, text: string) => ({ json: { name, text } });
  const saved = `${path}/saved-queries`;
  const { saved_query_id: id } = await user.expect(200, saved, save('b', 'SELECT 2'));
  await user.expect(200, saved, save('a', 'SELECT 1;\nSELECT 2'));
  assert.equal((await user.expect(200, saved, save('b', 'SELECT 3'))).saved_query_id, id);
  const list = await user.expect(200, saved);
  assert.deepEqual(
    list.map(({ name, text }: { name: string; text: string }) => [name, text]),
    [
      ['a', 'SELECT 1;\nSELECT 2'],
      ['b', 'SELECT 3'],
    ],
  );
  assert.deepEqual(await user.expect(200, `${second}/saved-queries`), []);
  await user.refused(404, 'not_found', [`${second}/saved-queries/${id}`, DELETE]);
  await other.refused(404, 'database_not_found', [saved]);
  await other.refused(404, 'database_not_found', [saved, save('c', 'SELECT 1')]);
  await other.refused(404, 'database_not_found', [`${saved}/${id}`, DELETE]);
  await user.refused(400, 'invalid_request', [saved, save('', 'SELECT 1')]);
  await user.refused(400, 'invalid_request', [saved, save('long', 'x'.repeat(100_001))]);
  assert.equal((await user.expect(200, `${saved}/${id}`, DELETE)).name, 'b');
  await user.refused(404, 'not_found', [`${saved}/${id}`, DELETE]);
});

test('are at most 200 in a database, of which each can still be replaced', async () => {
  const saved = `${await newDatabase(user)}/saved-queries`;
  for (let i = 0; i < 200; i++) await user.expect(200, saved, { json: { name: `q${i}`, text: 'SELECT 1' } });
  const more = { json: { name: 'more', text: 'SELECT 1' } };
  await user.refused(403, 'quota_exceeded', [saved, more]);
  await user.expect(200, saved, { json: { name: 'q7', text: 'SELECT 2' } });
});

test('saved fifty times at once under one name are one query', async () => {
  const saved = `${await newDatabase(user)}/saved-queries`;
  const save = (_: unknown, i: number) => user.call(saved, { json: { name: 'same', text: `SELECT ${i}` } });
  const answers = await Promise.all(Array.from({ length: 50 }, save));
  const told = new Set(answers.map(({ status, body }) => `${status} ${body.saved_query_id ?? body.code}`));
  assert.equal(told.size, 1, [...told].join('; '));
  assert.equal((await user.expect(200, saved)).length, 1);
});

test('have at most 8 MiB in all databases of an account', async () => {
  const [one, two] = [await newDatabase(other), await newDatabase(other)];
  const text = 'x'.repeat(100_000);
  const save = (path: string, name: string, sql = text) =>
    [`${path}/saved-queries`, { json: { name, text: sql } }] as const;
  for (let i = 0; i < 83; i++) await other.expect(200, ...save(i % 2 === 0 ? one : two, `q${i}`));
  await other.refused(403, 'quota_exceeded', [...save(two, 'more')]);
  await other.expect(200, ...save(two, 'small', 'SELECT 1'));
  await other.refused(403, 'quota_exceeded', [...save(two, 'small')]);
  await other.expect(200, ...save(one, 'q0', 'SELECT 1'));
  await other.expect(200, ...save(two, 'small'));
  await user.expect(200, ...save(await newDatabase(user), 'own'));
  for (const path of [one, two]) await other.expect(200, `${path}?keep=false`, DELETE);
});

test('are deleted with their database, and are part of an export', async () => {
  const path = await newDatabase(other);
  await other.expect(200, `${path}/saved-queries`, {
    json: { name: 'one', text: 'SELECT 1' },
  });
  const { databases } = await exportedOf(other);
  assert.ok(
    databases.some((name) => name.endsWith('-queries.json')),
    databases.join(),
  );
  await other.expect(200, `${path}?keep=false`, DELETE);
  await other.refused(404, 'database_not_found', [`${path}/saved-queries`]);
});

/** Names of files in an export of the account, found in the bytes of its zip. */
async function exportedOf(client: CheckedClient) {
  const response = await client.fetch('/api/account/export');
  const text = Buffer.from(await response.arrayBuffer()).toString('latin1');
  return { databases: [...text.matchAll(/databases\/[\w.-]+/g)].map(([name]) => name) };
}

/**
 * Data that databases send through Cloudlet is metered as traffic: dumps, libSQL's drivers, MongoDB's
 * protocol.
 */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { MongoClient } from 'mongodb';
import { CheckedClient } from '../harness/checked-client.ts';
import { CloudProcess } from '../harness/cloud-process.ts';
import { eventually } from '../harness/waiting.ts';

const BYTES = 500_000;
/** The overhead around the bytes of an answer, and around a driver's own requests. */
const AROUND = 20_000;

let cloud: CloudProcess;
let user: CheckedClient;
before(async () => {
  cloud = await CloudProcess.start({ env: { CLOUDLET_MONGODB_SERVER: 'built-in' } });
  const anyone = await CheckedClient.open(cloud.api);
  user = anyone.as((await anyone.register()).api_key);
});
after(() => cloud.stop());

interface Item {
  readonly meter: string;
  readonly resource_type: string;
  readonly resource_id: string;
  readonly name: string;
  readonly quantity: number;
}

/** The traffic item of a database, once it has at least this many bytes. */
const sent = (databaseId: string, atLeast: number): Promise<Item & { readonly bytes: number }> =>
  eventually(`${atLeast} bytes that ${databaseId} sent`, async () => {
    const { items }: { items: Item[] } = await user.expect(200, '/api/billing/usage');
    const item = items.find(({ meter, resource_id }) => meter === 'egress' && resource_id === databaseId);
    const bytes = Math.round((item?.quantity ?? 0) * 2 ** 30);
    return item !== undefined && bytes >= atLeast ? { ...item, bytes } : undefined;
  });

const newDatabase = (engine: string) =>
  user.expect(201, '/api/databases', { json: { name: `shop-${engine}`, engine } });

test('answers to libSQL drivers and dumps are traffic of the database, also once it is deleted', async () => {
  const { database_id, connection } = await newDatabase('sqlite');
  const url = `${connection.uri.replace(/^libsql:/, 'http:').replace(/\?.*$/, '')}/v2/pipeline`;
  const answer = await fetch(url, {
    method: 'POST',
    headers: { authorization: `Bearer ${connection.password}` },
    body: JSON.stringify({
      requests: [{ type: 'execute', stmt: { sql: `SELECT hex(zeroblob(${BYTES / 2}))` } }],
    }),
  });
  assert.equal(answer.status, 200);
  await answer.arrayBuffer();
  const first = await sent(database_id, BYTES);
  assert.ok(first.bytes < BYTES + AROUND, String(first.bytes));
  assert.deepEqual([first.resource_type, first.name], ['database', 'shop-sqlite']);
  const path = `/api/databases/${database_id}`;
  const dump = await user.fetch(`${path}/dump`);
  const { byteLength } = await dump.arrayBuffer();
  assert.ok(byteLength > 0);
  const second = await sent(database_id, first.bytes + byteLength);
  assert.equal(second.bytes, first.bytes + byteLength);
  await user.expect(200, path, { method: 'PATCH', json: { name: 'store' } });
  assert.equal((await sent(database_id, second.bytes)).name, 'store');
  // Data sent just before is recorded after the deletion.
  const last = (await (await user.fetch(`${path}/dump`)).arrayBuffer()).byteLength;
  await user.expect(200, path, { method: 'DELETE' });
  assert.equal((await sent(database_id, second.bytes + last)).bytes, second.bytes + last);
});

test('so are the replies of the built-in MongoDB', async () => {
  const { database_id, connection } = await newDatabase('mongodb');
  const driver = await new MongoClient(connection.uri).connect();
  try {
    const things = driver.db().collection('things');
    await things.insertOne({ text: 'x'.repeat(BYTES) });
    assert.equal((await things.find().toArray()).length, 1);
  } finally {
    await driver.close();
  }
  const { bytes, resource_type } = await sent(database_id, BYTES);
  assert.ok(bytes < BYTES + AROUND, String(bytes));
  assert.equal(resource_type, 'database');
});

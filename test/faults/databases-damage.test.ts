/**
 * Data of databases that disappears or changes by itself: an error with a name, without a path, never other
 * data.
 */
import assert from 'node:assert/strict';
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { createClient as libsql } from '@libsql/client';
import { MongoClient } from 'mongodb';
import { DATABASES, formOf } from '../acceptance/databases-kit.ts';
import { CheckedClient } from '../harness/checked-client.ts';
import { ADMIN_KEY, CloudProcess } from '../harness/cloud-process.ts';
import { eventually } from '../harness/waiting.ts';

interface Made {
  readonly database_id: string;
  readonly connection: { readonly uri: string; readonly database: string };
}

/** A text in each database, to be found in its file. */
const MARK = 'what a tenant has stored here';

/** The position of the bytes, always the same. */
function flipBitOf(text: string, path: string): void {
  const bytes = readFileSync(path);
  let at = bytes.indexOf(text);
  assert.ok(at > 0, `${path} does not hold ${text}`);
  for (; at > 0; at = bytes.indexOf(text, at + 1)) bytes[at + 3] = (bytes[at + 3] ?? 0) ^ 0x10;
  writeFileSync(path, bytes);
}

/** How a program and a person fill and read a database. */
const KINDS = {
  sqlite: {
    write: { statement: `CREATE TABLE t AS SELECT '${MARK}' AS a` },
    read: { statement: 'SELECT a FROM t' },
    byDriver: async ({ uri }: Made['connection']) => {
      const client = libsql({ url: uri });
      return client.execute('SELECT a FROM t').finally(() => client.close());
    },
    code: undefined,
  },
  mongodb: {
    write: { command: { insert: 't', documents: [{ _id: 1, a: MARK }] } },
    read: { command: { find: 't' } },
    byDriver: async ({ uri }: Made['connection']) => {
      const client = new MongoClient(uri);
      return client
        .db()
        .collection('t')
        .find()
        .toArray()
        .finally(() => client.close());
    },
    code: 301,
  },
} as const;

/** Damage of a whole file, which a page checksum may not detect. */
const HURTS: Readonly<Record<string, (bytes: Buffer) => Buffer>> = {
  'whose header is damaged': (bytes) => Buffer.concat([Buffer.alloc(100, 7), bytes.subarray(100)]),
  'that was cut in half': (bytes) => bytes.subarray(0, bytes.length / 2),
  'that was emptied': () => Buffer.alloc(0),
};

let cloud: CloudProcess;
let user: CheckedClient;
let admin: CheckedClient;
let number = 0;

/** While no database is open. */
async function restart(whileItIsDown: () => void): Promise<void> {
  await cloud.end();
  whileItIsDown();
  await cloud.start();
  const anyone = await CheckedClient.open(cloud.api);
  user = anyone.as(user.key);
  admin = anyone.as(ADMIN_KEY);
}

before(async () => {
  cloud = await CloudProcess.start();
  const anyone = await CheckedClient.open(cloud.api);
  user = anyone.as((await anyone.register()).api_key);
  admin = anyone.as(ADMIN_KEY);
});
after(() => cloud.stop());

test('the scrub reads databases that nobody opens, and names those that are damaged', async () => {
  const made = await user.expect(201, DATABASES, { json: { name: 'asleep', engine: 'sqlite' } });
  const { database_id: id, connection } = made;
  await user.expect(200, `${DATABASES}/${id}/query`, {
    json: { ...KINDS.sqlite.write, read_only: false },
  });
  const path = join(cloud.dataDir, 'databases', 'sqlite', connection.database, 'db.sqlite');
  await restart(() => flipBitOf(MARK, path));
  await admin.expect(200, '/api/admin/scrub', { method: 'POST' });
  await eventually('the scrub ends', async () => !(await admin.expect(200, '/api/admin/scrub')).running);
  const { checked_databases: checked, damaged_databases: damaged } = await admin.expect(
    200,
    '/api/admin/scrub',
  );
  assert.ok(checked >= 1);
  assert.deepEqual(
    damaged.map((each: { database_id: string }) => each.database_id),
    [id],
  );
  await user.expect(200, `${DATABASES}/${id}`, { method: 'DELETE' });
});

for (const [engine, { write, read, byDriver, code }] of Object.entries(KINDS)) {
  const make = async (): Promise<Made> => {
    const made = (await user.expect(201, DATABASES, { json: { name: `d${++number}`, engine } })) as Made;
    await user.expect(200, `${DATABASES}/${made.database_id}/query`, {
      json: { ...write, read_only: false },
    });
    return made;
  };
  const folderOf = ({ connection: { database } }: Made) => join(cloud.dataDir, 'databases', engine, database);

  describe(`of ${engine}`, () => {
    test('a bit that flips in what is stored is never served, and is told', async () => {
      const made = await make();
      const other = await make();
      const path = `${DATABASES}/${made.database_id}`;
      const dump = Buffer.from(await (await user.fetch(`${path}/dump`)).arrayBuffer());
      await restart(() => flipBitOf(MARK, join(folderOf(made), 'db.sqlite')));
      await user.refused(500, 'data_damaged', [`${path}/query`, { json: read }]);
      await user.refused(500, 'data_damaged', [`${path}/dump`]);
      const { state, state_reason } = await user.expect(200, path);
      assert.deepEqual([state, state_reason.code], ['error', 'data_damaged']);
      assert.doesNotMatch(state_reason.message, /sqlite|SELECT/);
      const { connection } = await user.expect(200, `${path}/credentials`);
      await assert.rejects(byDriver(connection), (error: Error & { code?: unknown }) => {
        assert.match(error.message, /damaged|not what was written/);
        return code === undefined || error.code === code;
      });
      const { components } = await admin.expect(200, '/api/system/status');
      assert.match(components.databases.problem, new RegExp(made.database_id));
      await user.expect(200, `${DATABASES}/${other.database_id}/query`, { json: read });
      await user.expect(200, `${path}/load`, { method: 'POST', body: formOf(dump) });
      assert.equal((await user.expect(200, `${path}/query`, { json: read })).row_count, 1);
      assert.equal((await admin.expect(200, '/api/system/status')).components.databases.status, 'ok');
      assert.equal((await user.expect(200, path)).state, 'ready');
    });

    for (const [what, hurt] of Object.entries(HURTS))
      test(`a file ${what} is never served, and is told`, async () => {
        const made = await make();
        const path = `${DATABASES}/${made.database_id}`;
        const dump = Buffer.from(await (await user.fetch(`${path}/dump`)).arrayBuffer());
        const file = join(folderOf(made), 'db.sqlite');
        await restart(() => writeFileSync(file, hurt(readFileSync(file))));
        await user.refused(500, 'data_damaged', [`${path}/query`, { json: read }]);
        assert.equal((await user.expect(200, path)).state_reason.code, 'data_damaged');
        await user.refused(500, 'data_damaged', [`${path}/dump`]);
        const { connection } = await user.expect(200, `${path}/credentials`);
        await assert.rejects(byDriver(connection));
        const { components } = await admin.expect(200, '/api/system/status');
        assert.match(components.databases.problem, new RegExp(made.database_id));
        await user.expect(200, `${path}/load`, { method: 'POST', body: formOf(dump) });
        assert.equal((await user.expect(200, `${path}/query`, { json: read })).row_count, 1);
        assert.equal((await user.expect(200, path)).state, 'ready');
      });

    for (const { what, remove } of [
      { what: 'a folder', remove: (folder: string) => rmSync(folder, { recursive: true }) },
      { what: 'a file', remove: (folder: string) => rmSync(join(folder, 'db.sqlite')) },
    ])
      test(`${what} that is missing is told, not made anew, and its last dump brings all back`, async () => {
        const made = await make();
        const path = `${DATABASES}/${made.database_id}`;
        const dump = Buffer.from(await (await user.fetch(`${path}/dump`)).arrayBuffer());
        const folder = folderOf(made);
        await restart(() => remove(folder));
        const refused = await user.refused(503, 'data_missing', [`${path}/query`, { json: read }]);
        assert.doesNotMatch(JSON.stringify(refused), /databases\/(?:sqlite|mongodb)|db\.sqlite/);
        assert.match(refused.hint, /load/);
        assert.equal((await user.expect(200, path)).state_reason.code, 'data_missing');
        await user.refused(503, 'data_missing', [`${path}/dump`]);
        const { connection } = await user.expect(200, `${path}/credentials`);
        await assert.rejects(byDriver(connection), (error: Error & { code?: unknown }) => {
          assert.match(error.message, /missing/);
          assert.doesNotMatch(error.message, new RegExp(cloud.dataDir));
          return code === undefined || error.code === code;
        });
        assert.ok(!existsSync(join(folder, 'db.sqlite')), 'it was made anew');
        const { components } = await admin.expect(200, '/api/system/status');
        assert.match(components.databases.problem, new RegExp(made.database_id));
        await user.expect(200, `${path}/load`, { method: 'POST', body: formOf(dump) });
        assert.equal((await user.expect(200, `${path}/query`, { json: read })).row_count, 1);
        await eventually('the alarm ends', async () => {
          const { alarms } = await admin.expect(200, '/api/system/status');
          return alarms.every((alarm: { code: string }) => alarm.code !== 'damaged_databases');
        });
      });
  });
}

/**
 * Adds the engine `nothing` (engine-nothing/) to a copy of the repository, with a new folder and exactly the
 * edits below: the copy must still be valid, and a cloud of it must have databases of that engine.
 */
import assert from 'node:assert/strict';
import { cpSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { CheckedClient } from '../harness/checked-client.ts';
import { CloudProcess } from '../harness/cloud-process.ts';
import { type Edits, RepositoryCopy } from './repository-copy.ts';

/** Maximum number of files outside its folder that a new engine changes, including generated ones. */
const MOST_TOUCHED = 6;
const FOLDER = 'server/drivers/engines/nothing';
const EDITS: Edits = {
  'server/databases/engine.ts': [["'mongodb'] as const", "'mongodb', 'nothing'] as const"]],
  'server/drivers/engines/all-engines.ts': [
    ['import { POSTGRESQL }', "import { NOTHING } from './nothing/about.ts';\nimport { POSTGRESQL }"],
    ['  mongodb: MONGODB,\n', '  mongodb: MONGODB,\n  nothing: NOTHING,\n'],
  ],
};
const copy = new RepositoryCopy();

test('an engine is a folder and few lines elsewhere, and server, client and console stay whole', () => {
  mkdirSync(join(copy.path, FOLDER));
  cpSync(join(import.meta.dirname, 'engine-nothing/about.txt'), join(copy.path, FOLDER, 'about.ts'));
  copy.edit(EDITS);
  copy.generate();
  const touched = copy.touched();
  assert.deepEqual(touched, [...Object.keys(EDITS), 'openapi.json'].sort());
  assert.ok(touched.length <= MOST_TOUCHED);
  assert.deepEqual(copy.typeErrors('server', 'cli', 'console'), []);
  const help = copy.run('server/main.ts', 'dev', '--help');
  assert.match(help, /mongodb, nothing[\s\S]*NOTHING_URL \(Nothing\)/);
});

test('a cloud lists the new engine, and its databases live', async (t) => {
  const cloud = await CloudProcess.start({
    command: [process.execPath, join(copy.path, 'server/main.ts'), 'start'],
  });
  t.after(() => cloud.stop());
  const anyone = await CheckedClient.open(cloud.api);
  const engines = await anyone.expect(200, '/api/database-engines');
  const { title, available, traits } = engines.at(-1);
  assert.deepEqual([engines.length, title, available, traits.dialect], [5, 'Nothing', true, 'standard']);
  const { api_key: key } = await anyone.register();
  const user = anyone.as(key);
  const made = await user.expect(201, '/api/databases', { json: { name: 'x', engine: 'nothing' } });
  assert.deepEqual([made.engine, made.state, made.version], ['nothing', 'ready', '1']);
  const path = `/api/databases/${made.database_id}`;
  const query = { json: { statement: 'SELECT 1', read_only: false } };
  assert.equal((await user.expect(200, `${path}/query`, query)).affected, 1);
  const { snippets, connection } = await user.expect(200, `${path}/credentials`);
  assert.equal(snippets.cli, connection.uri);
  const prices = await user.expect(200, '/api/billing/prices');
  assert.ok(prices.some((price: { engine: string | null }) => price.engine === 'nothing'));
  await user.expect(200, `${path}?keep=false`, { method: 'DELETE' });
});

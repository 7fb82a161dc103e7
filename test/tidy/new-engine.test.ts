/**
 * Adds the engine `nothing` (engine-nothing/) to a copy of the repository, by a new folder and the edits
 * below and no others: the copy must still be whole, and a cloud of it must have databases of that engine.
 */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import {
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { after, test } from 'node:test';
import { CheckedClient } from '../harness/checked-client.ts';
import { CloudProcess } from '../harness/cloud-process.ts';
import { repositoryFiles } from './source-files.ts';

/** A new engine touches at most so many files outside its folder, with those that are generated. */
const MOST_TOUCHED = 6;
const ROOT = join(import.meta.dirname, '../..');
const FOLDER = 'server/drivers/engines/nothing';
const EDITS: Readonly<Record<string, readonly (readonly [string, string])[]>> = {
  'server/databases/engine.ts': [["'mongodb'] as const", "'mongodb', 'nothing'] as const"]],
  'server/drivers/engines/all-engines.ts': [
    ['import { POSTGRESQL }', "import { NOTHING } from './nothing/about.ts';\nimport { POSTGRESQL }"],
    ['  mongodb: MONGODB,\n', '  mongodb: MONGODB,\n  nothing: NOTHING,\n'],
  ],
};
/** Written by a program from what the engines say. */
const GENERATED = { 'openapi.json': 'scripts/write-openapi.ts' };

const copy = mkdtempSync(join(tmpdir(), 'cloudlet-engine-'));
after(() => rmSync(copy, { recursive: true, force: true }));
const run = (...words: readonly string[]) =>
  execFileSync(process.execPath, words, { cwd: copy, encoding: 'utf8' });

/** What is built is not of the copy, but has programs and the guest image, which would be fetched again. */
function copyRepository(): void {
  for (const { path, text } of repositoryFiles(ROOT)) {
    mkdirSync(dirname(join(copy, path)), { recursive: true });
    writeFileSync(join(copy, path), text);
  }
  symlinkSync(join(ROOT, 'node_modules'), join(copy, 'node_modules'));
  mkdirSync(join(copy, 'build'));
  for (const name of readdirSync(join(ROOT, 'build')).filter((name) => name !== 'sdk'))
    symlinkSync(join(ROOT, 'build', name), join(copy, 'build', name));
}

function addEngine(): void {
  mkdirSync(join(copy, FOLDER));
  cpSync(join(import.meta.dirname, 'engine-nothing/about.txt'), join(copy, FOLDER, 'about.ts'));
  for (const [path, edits] of Object.entries(EDITS)) {
    let text = readFileSync(join(copy, path), 'utf8');
    for (const [from, to] of edits) {
      assert.ok(text.includes(from), `${path} has no ${from}`);
      text = text.replace(from, to);
    }
    writeFileSync(join(copy, path), text);
  }
  for (const program of Object.values(GENERATED)) run(program);
  run('scripts/write-sdk.ts');
}

test('an engine is a folder and few lines elsewhere, and server, client and console stay whole', () => {
  copyRepository();
  addEngine();
  const before = new Map(repositoryFiles(ROOT).map(({ path, text }) => [path, text]));
  const touched = [...before].filter(([path, text]) => readFileSync(join(copy, path), 'utf8') !== text);
  const expected = [...Object.keys(EDITS), ...Object.keys(GENERATED)].sort();
  assert.deepEqual(touched.map(([path]) => path).sort(), expected);
  assert.ok(touched.length <= MOST_TOUCHED);
  const project = { extends: './tsconfig.json', include: ['server/main.ts', FOLDER] };
  writeFileSync(join(copy, 'tsconfig.server.json'), JSON.stringify(project));
  for (const name of ['tsconfig.server.json', 'cli', 'console'])
    run(join(ROOT, 'node_modules/typescript/bin/tsc'), '-p', name, '--noEmit');
  assert.match(run('server/main.ts', 'dev', '--help'), /mongodb, nothing[\s\S]*NOTHING_URL \(Nothing\)/);
});

test('a cloud lists the new engine, and its databases live', async (t) => {
  const cloud = await CloudProcess.start({
    command: [process.execPath, join(copy, 'server/main.ts'), 'start'],
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

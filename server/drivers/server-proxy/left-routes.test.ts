import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { noOwnNetwork, runInOwnNetwork } from '../../testing/own-network.ts';

const HERE = (path: string) => JSON.stringify(fileURLToPath(new URL(path, import.meta.url)));

/** A cloud whose listener leads to its own server, which answers with its name. */
const CLOUD = `
import { createServer } from 'node:net';
import { ServerProxy } from ${HERE('./server-proxy.ts')};
import { CloudClaim } from ${HERE('../host-network/cloud-claim.ts')};
const [cloudId, port, server, dataDir] = process.argv.slice(-4);
createServer((client) => client.on('error', () => {}).end(cloudId)).listen(Number(server), '127.0.0.1');
const claim = new CloudClaim({ cloudId, uidBase: 1, dataDir });
const proxy = new ServerProxy({ wanted() {}, warn() {}, claim });
const of = { name: 'x', addresses: ['127.0.0.1'], protocol: 'postgresql' };
await proxy.open({ ...of, port: Number(port) });
await proxy.lead('x', Number(server));
console.log('up');
`;

/**
 * A cloud of an earlier version: it has locked its directory, and named a table after the path of the
 * directory.
 */
const OLD = `
import { createHash } from 'node:crypto';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, openSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
const folder = mkdtempSync('/tmp/cloudlet-left-');
writeFileSync(folder + '/master.key', '');
openSync(folder + '/lock', 'w');
const hash = createHash('sha256').update(folder).digest('hex').slice(0, 12);
const rules = 'table ip cloudlet_databases_' + hash + ' { set ports { type inet_service; ' +
  'elements = { 5440 }; }; }';
createServer().listen(5440, '127.0.0.1', () => {
  spawnSync('nft', ['-f', '-'], { input: rules });
  console.log('up ' + folder);
});
`;

const SCRIPT = `
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { connect } from 'node:net';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { routeTables } from ${HERE('./left-routes.ts')};
const CLOUD = ${JSON.stringify(CLOUD)};
const begin = async (script, ...words) => {
  const node = ['--input-type=module-typescript', '-e', script, ...words.map(String)];
  const child = spawn(process.execPath, node, { stdio: ['ignore', 'pipe', 'inherit'] });
  const [line] = await once(child.stdout, 'data');
  return { said: String(line).trim(), kill: async () => { child.kill('SIGKILL'); await once(child, 'exit'); } };
};
const ask = (port) => new Promise((resolve) => {
  let said = '';
  connect(port, '127.0.0.1').on('data', (bytes) => { said += bytes; })
    .on('error', ({ code }) => resolve(code)).on('close', () => resolve(said));
});
const tables = async () => (await routeTables()).map(({ name, isAlive }) =>
  name.replace(/_[0-9a-f]{12}$/, '').replace('cloudlet_databases', 'databases') + ' ' + isAlive).sort().join(', ');
const old = await begin(${JSON.stringify(OLD)});
const folders = [];
const folderOf = (id) => {
  const folder = mkdtempSync('/tmp/cloudlet-left-');
  folders.push(folder);
  writeFileSync(folder + '/cloud.json', JSON.stringify({ cloud_id: id }));
  return folder;
};
const first = await begin(CLOUD, 'cld-first', 5432, 24000, folderOf('cld-first'));
console.log('first', await ask(5432), await tables());
const second = await begin(CLOUD, 'cld-second', 5433, 24001, folderOf('cld-second'));
console.log('beside', await ask(5432), await ask(5433), await tables());
await first.kill();
console.log('killed', await ask(5432), await ask(5433), await tables());
const away = await begin(CLOUD, 'cld-away', 5436, 24006, folderOf('cld-away'));
console.log('it may come back', await tables());
await away.kill();
const third = await begin(CLOUD, 'cld-third', 5432, 24002, folderOf('cld-third'));
console.log('another on its port', await ask(5432), await ask(5433), await tables());
rmSync(folders[2], { recursive: true });
await third.kill();
const again = await begin(CLOUD, 'cld-third', 5432, 24003, folderOf('cld-third'));
console.log('started again', await ask(5432), await tables());
const twin = await begin(CLOUD, 'cld-third', 5434, 24004, folderOf('cld-third'));
console.log('a copy beside it', await ask(5432), await ask(5434), await tables());
await old.kill();
await again.kill();
const last = await begin(CLOUD, 'cld-last', 5432, 24005, folderOf('cld-last'));
console.log('the old one killed', await ask(5432), await ask(5433), await ask(5434), await tables());
for (const folder of [old.said.slice(3), ...folders]) rmSync(folder, { recursive: true, force: true });
for (const each of [second, twin, last]) await each.kill();
process.exit();
`;

test('rules of killed clouds go with a start that they are in the way of, those of living ones stay', {
  skip: noOwnNetwork(),
}, () => {
  const { stdout, stderr } = runInOwnNetwork(SCRIPT);
  const [old, one, two] = ['databases true', 'databases_cld_first true', 'databases_cld_second true'];
  const [three, last] = ['databases_cld_third true', 'databases_cld_last true'];
  assert.deepEqual(
    stdout.trim().split('\n'),
    [
      `first cld-first ${old}, ${one}`,
      `beside cld-first cld-second ${old}, ${one}, ${two}`,
      `killed ECONNREFUSED cld-second ${old}, databases_cld_first false, ${two}`,
      `it may come back ${old}, databases_cld_away true, databases_cld_first false, ${two}`,
      `another on its port cld-third cld-second ${old}, databases_cld_away false, ${two}, ${three}`,
      `started again cld-third ${old}, ${two}, ${three}`,
      `a copy beside it cld-third cld-third ${old}, ${two}, ${three}, ${three}`,
      `the old one killed cld-last cld-second cld-third ${last}, ${two}, ${three}`,
    ],
    stderr,
  );
});

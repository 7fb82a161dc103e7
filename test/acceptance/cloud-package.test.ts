/** An installation of the whole cloud from its tarball, without git and its sources, and a run of it. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { packCloud } from '../../scripts/pack-cloud.ts';
import { Client } from '../harness/client.ts';
import { CloudProcess } from '../harness/cloud-process.ts';
import { testWholeSuites } from '../long/whole-suites.ts';

const ROOT = join(import.meta.dirname, '../..');
/** A path that ends in another folder of packages, like npm's global one. */
const PREFIX = mkdtempSync(join(tmpdir(), 'cloudlet-package-'));
const INSTALLED = join(PREFIX, 'lib/node_modules/cloudlet');
const LAUNCHER = join(PREFIX, 'bin/cloudlet');

/** A journey of each domain. */
const JOURNEYS = [
  'accounts-login',
  'billing-report',
  'console-storage',
  'databases-libsql',
  'databases-mongodb',
  'databases-mysql',
  'databases-postgresql',
  'recovery',
  's3-basics',
  'storage-upload',
  'vms-life',
];

let cloud: CloudProcess;
let client: Client;

before(async () => {
  const tarball = packCloud(PREFIX);
  const words = [
    'install',
    '--global',
    '--prefix',
    PREFIX,
    '--prefer-offline',
    '--no-audit',
    '--no-fund',
    tarball,
  ];
  execFileSync('npm', words, { stdio: ['ignore', 'ignore', 'pipe'] });
  // Parts that the first start would download.
  for (const part of ['guest', 'programs'])
    if (existsSync(join(ROOT, 'build', part)))
      symlinkSync(join(ROOT, 'build', part), join(INSTALLED, 'build', part));
  cloud = await CloudProcess.start({ command: [LAUNCHER, 'start'] });
  client = new Client(cloud.api, (await new Client(cloud.api).register()).api_key);
});

after(async () => {
  await cloud?.stop();
  rmSync(PREFIX, { recursive: true, force: true });
});

test('it holds no sources of the server, and its launcher knows its version', () => {
  assert.equal(existsSync(join(INSTALLED, 'server')), false);
  assert.equal(existsSync(join(INSTALLED, 'test')), false);
  assert.match(execFileSync(LAUNCHER, ['--version'], { encoding: 'utf8' }), /^cloudlet \d/);
  assert.match(execFileSync(LAUNCHER, ['version'], { encoding: 'utf8' }), /\d+\.\d+\.\d+/);
});

test('objects are stored and the console is served', async () => {
  const bucket = await client.call('/api/buckets', { method: 'POST', json: { name: 'photos' } });
  assert.equal(bucket.status, 201);
  const form = new FormData();
  form.set('name', 'large');
  form.set('file', new Blob([new Uint8Array(200_000).fill(7)]));
  const stored = await client.call('/api/buckets/photos/upload', { method: 'POST', body: form });
  assert.equal(stored.status, 200);
  const page = await fetch(cloud.api, { headers: { accept: 'text/html' } });
  assert.match(await page.text(), /<div id="root">/);
});

for (const engine of ['sqlite', 'mongodb']) {
  test(`a database of ${engine} answers: its process has its code and packages`, async () => {
    const made = await client.call('/api/databases', {
      method: 'POST',
      json: { name: `d-${engine}`, engine },
    });
    assert.deepEqual([made.status, made.body.state], [201, 'ready'], JSON.stringify(made.body));
  });
}

testWholeSuites({ folder: 'acceptance', only: JOURNEYS, settings: () => ({ TEST_LAUNCHER: LAUNCHER }) });

test('what was acknowledged is there after a kill', async () => {
  await cloud.crash();
  await cloud.start();
  const { body } = await new Client(cloud.api, client.key).call('/api/buckets');
  assert.deepEqual(
    body.map(({ name }: { name: string }) => name),
    ['photos'],
  );
});

import assert from 'node:assert/strict';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { Alarms } from '../platform/alarms.ts';
import { systemClock as clock } from '../platform/clock.ts';
import { StartupError } from '../platform/data-directory.ts';
import { openTestMetadata } from '../testing/new-metadata.ts';
import { Identity } from './identity.ts';

const FIRST = ['sqlite', 'postgresql', 'mysql', 'mongodb'].map((name) => `databases/${name}`);
const NEW = 'databases/nothing';

async function startedCloud(t: TestContext) {
  const dataDir = mkdtempSync(join(tmpdir(), 'cloudlet-identity-'));
  const metadata = await openTestMetadata({ directory: dataDir, clock, alarms: new Alarms(clock) });
  t.after(async () => {
    await metadata.close();
    rmSync(dataDir, { recursive: true });
  });
  const own = { metadata, dataDir, clock, isElsewhere: false, releaseReserve: async () => {} };
  const open = (engineFolders: readonly string[]) => Identity.open({ ...own, engineFolders });
  await open(FIRST);
  const isMarked = (folder: string) => existsSync(join(dataDir, folder, '.cloud'));
  return { dataDir, open, isMarked };
}

test('an engine that is new gets a marked folder, and a folder that was there before must stay', async (t) => {
  const { dataDir, open, isMarked } = await startedCloud(t);
  const { cloudId } = await open([...FIRST, NEW]);
  assert.equal(isMarked(NEW), true);
  rmSync(join(dataDir, NEW), { recursive: true });
  await assert.rejects(open([...FIRST, NEW]), (error: Error) => {
    assert.ok(error instanceof StartupError);
    assert.match(error.message, /databases\/nothing is missing: mount its disk/);
    return true;
  });
  assert.match(readFileSync(join(dataDir, 'cloud.json'), 'utf8'), new RegExp(cloudId));
});

test('a cloud of a version that wrote down no engines has the first four, and no less', async (t) => {
  const { dataDir, open, isMarked } = await startedCloud(t);
  const path = join(dataDir, 'cloud.json');
  const { engines, ...earlier } = JSON.parse(readFileSync(path, 'utf8'));
  assert.deepEqual(engines, FIRST);
  writeFileSync(path, JSON.stringify(earlier));
  rmSync(join(dataDir, 'databases/mysql'), { recursive: true });
  await assert.rejects(open([...FIRST, NEW]), /databases\/mysql is missing/);
  assert.equal(isMarked(NEW), false);
});

test('the folder of a new engine that another cloud has marked is refused', async (t) => {
  const { dataDir, open } = await startedCloud(t);
  await open([...FIRST, NEW]);
  const other = await startedCloud(t);
  await other.open([...FIRST, NEW]);
  writeFileSync(join(dataDir, NEW, '.cloud'), readFileSync(join(other.dataDir, NEW, '.cloud')));
  await assert.rejects(open([...FIRST, NEW]), /belongs to another cloud/);
});

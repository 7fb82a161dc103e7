import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { rotateMasterKey } from '../../metadata/secrets/key-rotation.ts';
import { Alarms } from '../../platform/alarms.ts';
import { systemClock } from '../../platform/clock.ts';
import { isAppError } from '../../platform/errors.ts';
import { MasterKeys } from '../../platform/master-key.ts';
import { openTestMetadata } from '../../testing/new-metadata.ts';
import { trySealedValues } from './sealed-values.ts';

const ROWS = 450;
const never = new AbortController().signal;

async function newCloud(t: TestContext) {
  const dataDir = mkdtempSync(join(tmpdir(), 'cloudlet-sealed-'));
  const keys = MasterKeys.open({ dataDir, mayCreate: true, cloudId: 'cld-test' });
  const metadata = await openTestMetadata({
    directory: dataDir,
    clock: systemClock,
    alarms: new Alarms(systemClock),
  });
  t.after(async () => {
    await metadata.close();
    rmSync(dataDir, { recursive: true });
  });
  const rows = Array.from({ length: ROWS }, (_, i) => ({
    sql: 'INSERT INTO secrets (name, sealed) VALUES (?, ?)',
    params: [`s${i}`, keys.seal(Buffer.from('what it is'), `secret:s${i}`)],
  }));
  await metadata.commit(rows);
  const copyOfKeys = () => MasterKeys.read(readFileSync(join(dataDir, 'master.key'), 'utf8'), 'master.key');
  return { keys, metadata, copyOfKeys };
}

test('all values open with the keys of the same moment, also after two rotations', async (t) => {
  const { keys, metadata, copyOfKeys } = await newCloud(t);
  for (let rotation = 0; rotation < 3; rotation++) {
    assert.deepEqual(await trySealedValues(metadata, copyOfKeys(), never), []);
    await rotateMasterKey({ metadata, keys, waitMs: 0 });
  }
});

test('keys of before a rotation are refused, naming the key that is missing', async (t) => {
  const { keys, metadata, copyOfKeys } = await newCloud(t);
  const old = copyOfKeys();
  await rotateMasterKey({ metadata, keys, waitMs: 0 });
  await assert.rejects(trySealedValues(metadata, old, never), (error) => {
    assert.ok(isAppError(error, 'data_corrupted'));
    assert.match(error.message, new RegExp(`no key ${keys.currentId}, which encrypts secret:s0`));
    return true;
  });
});

test('values that are damaged, exchanged or cut in this cloud are reported, and are no reason to give up', async (t) => {
  const { metadata, copyOfKeys } = await newCloud(t);
  await metadata.commit([
    {
      sql: "UPDATE secrets SET sealed = (SELECT sealed FROM secrets WHERE name = 's1') WHERE name = 's2'",
      params: [],
    },
    { sql: "UPDATE secrets SET sealed = x'01' WHERE name = 's7'", params: [] },
  ]);
  const [gap, ...more] = await trySealedValues(metadata, copyOfKeys(), never);
  assert.deepEqual(more, []);
  assert.deepEqual(gap, {
    component: 'secrets.sealed',
    reason: '2 sealed values are damaged, the first is secret:s2',
  });
});

test('it ends when the point does', async (t) => {
  const { metadata, copyOfKeys } = await newCloud(t);
  await assert.rejects(trySealedValues(metadata, copyOfKeys(), AbortSignal.abort()), { name: 'AbortError' });
});

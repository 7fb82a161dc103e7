/** An incomplete point is shown as incomplete, and `latest` does not mean it unless there is no other. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { globSync, renameSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { runCloudlet } from '../harness/command.ts';
import { eventually } from '../harness/waiting.ts';
import { DATABASES, run } from './databases-kit.ts';
import { LosableCloud, POINTS, POST } from './recovery-kit.ts';

const SCRIPT = fileURLToPath(new URL('../../scripts/unpack-recovery.js', import.meta.url));
let lost: LosableCloud;
let databaseId: string;
let restores = 0;
before(async () => {
  lost = await LosableCloud.start();
  const made = await lost.user.expect(201, DATABASES, { json: { name: 'shop' } });
  databaseId = made.database_id;
  await run(lost.user, `${DATABASES}/${databaseId}`, 'CREATE TABLE t (x)');
  await lost.keepKey();
});
after(() => lost.end());

/** Hides the database's file while `work` runs. The cloud is restarted: no file is open. */
async function without<T>(work: () => Promise<T>): Promise<T> {
  await lost.startAgain();
  const files = globSync(join(lost.dataDir, 'databases/sqlite/d_*/db.sqlite*'));
  assert.ok(files.length > 0);
  for (const file of files) renameSync(file, `${file}.away`);
  try {
    return await work();
  } finally {
    for (const file of files) renameSync(`${file}.away`, file);
  }
}

async function point(state: string): Promise<string> {
  const made = await lost.point();
  assert.equal(made.state, state, JSON.stringify(made.gaps));
  return made.point_id;
}

const cli = (...words: readonly string[]) =>
  runCloudlet(['recovery', ...words, '--data-dir', lost.dataDir], { env: {} });
const status = async () => (await lost.admin.expect(200, '/api/system/status')).components.recovery;
const lacks = () => `database shop (${databaseId})`;

/** Every command and call that accepts `latest`. */
async function assertLatest(id: string): Promise<void> {
  assert.equal((await lost.admin.expect(200, `${POINTS}/latest`)).point_id, id);
  const verified = await lost.admin.expect(200, `${POINTS}/latest/verify?wait=60`, POST);
  assert.deepEqual([verified.point_id, verified.verifying_percent], [id, null]);
  assert.notEqual(verified.verified_at, null);
  assert.equal((await status()).latest.point_id, id);
  assert.match((await cli('get', 'latest')).stdout, new RegExp(`^${id} is `));
  assert.match((await cli('verify', 'latest')).stdout, new RegExp(`^${id} is `, 'm'));
  const there = await runCloudlet(['recovery', 'verify', '--from', lost.target, '--key-file', lost.keyFile], {
    env: {},
  });
  assert.match(there.stdout, new RegExp(`^${id}: all data is intact$`, 'm'));
  const to = join(lost.root, `restored-${++restores}`);
  const restored = await lost.restore(to);
  assert.equal(restored.code, 0, restored.stderr);
  assert.match(restored.stdout, new RegExp(`^Restored ${id}, `, 'm'));
  const unpacking = promisify(execFile)(process.execPath, [SCRIPT, lost.target, lost.keyFile, `${to}-files`]);
  assert.match((await unpacking).stdout, new RegExp(`^${id}, taken at `));
}

describe('latest', () => {
  let partial: string;
  let complete: string;

  test('with partial points alone, it is the newest of them, and each says what it lacks', async () => {
    await without(async () => {
      await point('partial');
      partial = await point('partial');
    });
    await assertLatest(partial);
    assert.equal((await status()).latest.gaps, 1);
    const shown = await cli('status');
    assert.match(
      shown.stdout,
      new RegExp(`No recovery point is complete: .* ${partial}, which lacks 1 component`),
    );
    const row = new RegExp(`^${partial} .* partial .* lacks database shop \\(${databaseId}\\)$`, 'm');
    assert.match((await cli('list')).stdout, row);
    const verified = await cli('verify', partial);
    assert.ok(verified.stdout.includes(`not included: ${lacks()} (`), verified.stdout);
    const restored = await lost.restore(join(lost.root, 'partial'), '--point', partial);
    assert.equal(restored.stdout.split('\n', 1)[0], `${partial} is partial. It lacks ${lacks()}`);
    await eventually('the alarm', async () =>
      /is missing database shop/.test(String((await status()).problem)),
    );
  });

  test('a complete one is it, also when partial ones come later', async () => {
    complete = await point('complete');
    await eventually('the alarm is over', async () => (await status()).problem === null);
    await without(async () => {
      partial = await point('partial');
    });
    await assertLatest(complete);
    assert.equal((await status()).latest.gaps, 0);
    assert.match((await cli('status')).stdout, new RegExp(`newest is partial: .* take ${complete} of `));
    const to = join(lost.root, 'passed-over');
    const first = (await lost.restore(to)).stdout.split('\n', 1)[0];
    assert.equal(
      first,
      `${complete} is the newest complete one; newer ones are partial or damaged: ${partial}`,
    );
  });

  test('it is not a name of something to delete or cancel', async () => {
    await lost.admin.refused(404, 'point_not_found', [`${POINTS}/latest`, { method: 'DELETE' }]);
    await lost.admin.refused(404, 'point_not_found', [`${POINTS}/latest/cancel`, POST]);
  });

  test('when the complete one goes, a partial one is all there is; of none there is nothing', async () => {
    await lost.admin.expect(200, `${POINTS}/${complete}`, { method: 'DELETE' });
    assert.equal((await lost.admin.expect(200, `${POINTS}/latest`)).point_id, partial);
    for (const { point_id: id } of await lost.admin.expect(200, POINTS)) {
      await lost.admin.expect(200, `${POINTS}/${id}`, { method: 'DELETE' });
    }
    await lost.admin.refused(404, 'point_not_found', [`${POINTS}/latest`]);
    assert.match((await cli('get', 'latest')).stderr, /There is no complete recovery point/);
    assert.equal((await status()).latest, null);
  });
});

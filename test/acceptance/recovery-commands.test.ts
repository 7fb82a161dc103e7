/** Commands about recovery points, for a running cloud and a lost one. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { existsSync, readdirSync, readFileSync, rmSync, statSync, truncateSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { type Ended, runCloudlet } from '../harness/command.ts';
import { LosableCloud, POINTS } from './recovery-kit.ts';

const SCRIPT = fileURLToPath(new URL('../../scripts/unpack-recovery.js', import.meta.url));
let lost: LosableCloud;
let points: string[];
before(async () => {
  lost = await LosableCloud.start();
  await lost.user.expect(201, '/api/buckets', { json: { name: 'files' } });
  await lost.user.upload('files', 'file', randomBytes(2_500_000));
  points = [];
  for (let count = 0; count < 3; count++) points.push((await lost.point()).point_id);
  await lost.keepKey();
  await lost.admin.expect(200, `${POINTS}/${points[2]}`, { method: 'DELETE' });
});
after(() => lost.end());

/** `cloudlet recovery …` beside the cloud. */
function recovery(...words: readonly string[]): Promise<Ended> {
  return runCloudlet(['recovery', ...words, '--data-dir', lost.dataDir], { env: {}, timeoutMs: 100_000 });
}

/** Verifies the points only. */
function verifyThere(...words: readonly string[]): Promise<Ended> {
  const args = ['recovery', 'verify', '--from', lost.target, '--key-file', lost.keyFile, ...words];
  return runCloudlet(args, { env: {}, timeoutMs: 100_000 });
}

test('get shows a point, and latest is the newest that was not deleted', async () => {
  const { code, stdout } = await recovery('get', 'latest');
  assert.equal(code, 0);
  assert.match(stdout, new RegExp(`^${points[1]} is complete\n {2}taken at +\\d{4}-\\S+ \\S+ UTC\n`));
  assert.match(stdout, / {2}contents +2 accounts, 1 buckets, 1 objects, 1 versions, /);
  assert.match((await recovery('get', String(points[2]))).stdout, /is deleting\n[\s\S]*removed at +\d/);
  const none = await recovery('get', 'drp-none');
  assert.deepEqual([none.code, none.stdout], [1, '']);
  assert.match(none.stderr, /There is no recovery point drp-none/);
  const verified = await recovery('verify', 'latest');
  assert.equal(verified.code, 0, verified.stderr);
  assert.ok(verified.stdout.includes(`${points[1]} is verified`), verified.stdout);
  const all = await recovery('verify', 'all');
  assert.equal(all.code, 0, all.stderr);
  for (const id of points.slice(0, 2)) assert.ok(all.stdout.includes(`${id} is verified`), all.stdout);
});

test('without a running cloud every byte is read, and what is damaged is named', async () => {
  await lost.cloud.end();
  const before = readdirSync(lost.target, { recursive: true }).length;
  const sound = await verifyThere();
  assert.equal(sound.code, 0, sound.stderr);
  assert.match(
    sound.stdout,
    new RegExp(`${points[1]}: all data is intact\n1 other recovery point was not read`),
  );
  const deleted = await verifyThere(String(points[2]));
  assert.match(deleted.stdout, new RegExp(`${points[2]}: all data is intact\n`));
  const unknown = await verifyThere('drp-none');
  assert.deepEqual([unknown.code, unknown.stdout], [1, '']);
  assert.match(unknown.stderr, /No point drp-none: there are drp-/);
  const [piece = ''] = readdirSync(join(lost.target, 'pieces'), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
    .filter((path) => statSync(path).size > 900_000);
  truncateSync(piece, 1000);
  const damaged = await verifyThere(String(points[0]));
  assert.equal(damaged.code, 1);
  assert.ok(
    damaged.stdout.includes(`altered: ${piece.slice(lost.target.length + 1)} (blobs/`),
    damaged.stdout,
  );
  rmSync(piece);
  const all = await verifyThere('all');
  assert.equal(all.code, 1);
  for (const id of points.slice(0, 2)) assert.match(all.stdout, new RegExp(`${id}: 1 file is missing or`));
  assert.doesNotMatch(all.stdout, /not read/);
  assert.match((await verifyThere()).stdout, /^missing: pieces\/\S+ \(blobs\/\S+\)$/m);
  assert.equal(readdirSync(lost.target, { recursive: true }).length, before - 1, 'nothing is written there');
});

test('the script takes the newest that was not deleted too', async () => {
  const to = join(lost.root, 'unpacked');
  const unpacked = promisify(execFile)(process.execPath, [SCRIPT, lost.target, lost.keyFile, to]);
  // The piece removed by the previous test is missing, the rest is there.
  const { stdout, stderr } = await unpacked.catch((error) => error);
  assert.match(stdout, new RegExp(`^${points[1]}, taken at .*, 1 missing\n$`));
  assert.match(stderr, new RegExp(`^skipped recovery point ${points[2]}: it was deleted`));
  assert.ok(existsSync(join(to, 'metadata.db')));
  assert.ok(readFileSync(join(to, 'master.key')).length > 0);
});

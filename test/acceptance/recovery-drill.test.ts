/** A restore drill: a point is restored beside the live cloud, tested, and removed without a trace. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { randomBytes, randomInt } from 'node:crypto';
import { mkdirSync, readdirSync, readFileSync, rmSync, statSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { runCloudlet } from '../harness/command.ts';
import { eventually } from '../harness/waiting.ts';
import { DATABASES, run } from './databases-kit.ts';
import { LosableCloud, POINTS, POST } from './recovery-kit.ts';

interface Check {
  readonly name: string;
  readonly state: string;
  readonly detail: string;
}

const notRoot = process.getuid?.() === 0 ? false : 'only root can make a small disk';

let lost: LosableCloud;
let pointId: string;
const start = async () => {
  lost = await LosableCloud.start();
  await lost.user.expect(201, '/api/buckets', { json: { name: 'files' } });
  for (let i = 0; i < 8; i++) await lost.user.upload('files', `large-${i}`, randomBytes(300_000));
  await lost.user.upload('files', 'small', 'a few bytes');
};
before(async () => {
  await start();
  pointId = (await lost.point()).point_id;
});
after(() => lost.end());

function drill(id = pointId, json: unknown = {}) {
  return lost.admin.expect(200, `${POINTS}/${id}/drill?wait=300`, { ...POST, json });
}

function cli(...words: readonly string[]) {
  return runCloudlet(['recovery', ...words, '--data-dir', lost.dataDir], { env: {}, timeoutMs: 300_000 });
}

function states(checks: readonly Check[]): Record<string, string> {
  return Object.fromEntries(checks.map(({ name, state }) => [name, state]));
}

describe('a drill', () => {
  test('of a sound point passes, says what it compared, and leaves nothing', async () => {
    const drilled = await drill();
    assert.equal(drilled.drill.reason, null, JSON.stringify(drilled.drill, null, 1));
    assert.deepEqual([drilled.state, drilled.drilling, drilled.drill.result], ['drilled', null, 'passed']);
    assert.equal(drilled.verified_at, drilled.drilled_at);
    assert.ok(drilled.drill.seconds > 0);
    const found = states(drilled.drill.checks);
    for (const name of [
      'recovery key',
      'repository',
      'objects',
      'start',
      'counts',
      'ledger',
      'audit log',
      'sampled objects',
    ])
      assert.equal(found[name], 'passed', name);
    const counts = drilled.drill.checks.find(({ name }: Check) => name === 'counts');
    assert.match(counts.detail, /^3 accounts, 1 bucket, 9 objects|^2 accounts, 1 bucket, 9 objects/);
    assert.deepEqual(readdirSync(join(lost.dataDir, 'drill')), []);
  });

  test('is shown by the command, with its exit code', async () => {
    const { code, stdout } = await cli('drill');
    assert.equal(code, 0, stdout);
    assert.match(stdout, /ok {6}repository +all data is intact/);
    assert.match(stdout, new RegExp(`${pointId} passed its drill in [\\d.]+ s\n$`));
    const { stdout: shown } = await cli('get', pointId);
    assert.match(shown, / drilled at +\d{4}-/);
  });

  test('is for administrators only', async () => {
    await lost.user.expect(403, `${POINTS}/${pointId}/drill`, POST);
    await lost.admin.expect(404, `${POINTS}/drp-00000000000000000000000000/drill`, POST);
  });

  test('tries the recovery key: the right one, another one, and a slot that was altered', async () => {
    await lost.keepKey();
    const right = await cli('drill', 'latest', '--key-file', lost.keyFile);
    assert.match(right.stdout, /ok {6}recovery key +the recovery key opens the repository/);
    await lost.admin.expect(400, `${POINTS}/${pointId}/drill`, { ...POST, json: { recovery_key: 'clr-1' } });
    const other = `clr-${'0'.repeat(52)}`;
    await lost.admin.expect(400, `${POINTS}/${pointId}/drill`, { ...POST, json: { recovery_key: other } });
    const head = join(lost.target, 'repository.json');
    const text = readFileSync(head, 'utf8');
    const { sealed_key: sealed } = JSON.parse(text) as { sealed_key: string };
    writeFileSync(
      head,
      text.replace(sealed, Buffer.from(sealed, 'base64').fill(1, 20, 30).toString('base64')),
    );
    const altered = await drill();
    assert.deepEqual([altered.drill.result, altered.state], ['failed', 'complete']);
    assert.equal(states(altered.drill.checks)['recovery key'], 'failed');
    const key = readFileSync(lost.keyFile, 'utf8');
    writeFileSync(head, text);
    await lost.admin.expect(200, '/api/admin/recovery-key/confirm', { ...POST, json: { recovery_key: key } });
    const kept = await drill();
    const slot = kept.drill.checks.find(({ name }: Check) => name === 'recovery key');
    assert.deepEqual([kept.state, slot.detail], ['drilled', 'the key slot is unchanged']);
  });
});

describe('a damaged repository', () => {
  const rounds = process.env.FAULTS === 'full' ? 50 : 6;
  const seed = Number(process.env.FAULTS_SEED ?? randomInt(2 ** 31));
  let hasLogs = false;

  before(async () => {
    // With one point, so that every file is needed.
    await lost.end();
    await start();
    await lost.startAgain({ CLOUDLET_CONTINUOUS_SECONDS: '1' });
    const { status, body } = await lost.user.call(DATABASES, {
      json: { name: 'shop', engine: 'postgresql' },
    });
    hasLogs = status === 201;
    const path = `${DATABASES}/${body.database_id}`;
    if (hasLogs) await run(lost.user, path, 'CREATE TABLE notes AS SELECT generate_series(1, 1000) AS i');
    pointId = (await lost.point()).point_id;
    if (!hasLogs) return;
    await run(lost.user, path, 'UPDATE notes SET i = i + 1');
    const since = async () => (await lost.user.expect(200, `${path}/moments`)).windows.length;
    await eventually('the log is archived', async () => (await since()) > 0);
  });

  test(`is never drilled with success (seed ${seed})`, async () => {
    const random = randomFrom(seed);
    const rest = ['pieces', 'points', 'repository.json'];
    for (let round = 0; round < rounds; round++) {
      const names = hasLogs && round % 2 === 0 ? ['logs'] : rest;
      const files = names.flatMap((name) => filesIn(join(lost.target, name)));
      const path = files[random(files.length)] as string;
      const whole = readFileSync(path);
      const at = random(whole.length);
      const how = ['missing', 'cut', 'flipped'][random(3)];
      if (how === 'missing') rmSync(path);
      else if (how === 'cut') truncateSync(path, at);
      else writeFileSync(path, whole.with(at, (whole[at] as number) ^ 0x80));
      const { status, body } = await lost.admin.call(`${POINTS}/${pointId}/drill?wait=300`, POST);
      const about = `${how} at ${at} of ${path}: ${JSON.stringify(body)}`;
      if (status === 200) assert.equal(body.drill.result, 'failed', about);
      else assert.equal(status, 503, about);
      writeFileSync(path, whole);
    }
    const healed = await drill();
    const why = JSON.stringify(healed.drill, null, 1);
    assert.deepEqual(
      [healed.state, healed.damaged_files, healed.drill.result],
      ['drilled', 0, 'passed'],
      why,
    );
    const logs = await lost.admin.expect(200, '/api/disaster-recovery/archived-logs');
    assert.deepEqual([logs.servers, logs.damaged_files], [Number(hasLogs), 0]);
    if (!hasLogs) return;
    assert.equal(states(healed.drill.checks)['archived logs'], 'passed');
    const replayed = healed.drill.checks.find(({ name }: Check) => name === 'replayed log');
    assert.match(
      replayed.detail,
      /^postgresql-\d+ as of the end of its log, .* UTC: 1 database, 1 table and 1000 rows read$/,
    );
  });
});

function filesIn(path: string): string[] {
  if (!statSync(path).isDirectory()) return [path];
  const entries = readdirSync(path, { recursive: true, withFileTypes: true });
  return entries
    .filter((entry) => entry.isFile())
    .map(({ parentPath, name }) => join(parentPath, name))
    .sort();
}

/** Numbers below a limit, reproducible from the seed (mulberry32). */
function randomFrom(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) % below;
  };
}

describe('a drill that cannot be tried', () => {
  test('for want of room is skipped, with the reason', { skip: notRoot }, async (t) => {
    const small = join(lost.root, 'small');
    mkdirSync(small);
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=256k', 'tmpfs', small]);
    t.after(() => execFileSync('umount', [small]));
    await lost.startAgain({ CLOUDLET_DRILL_DIR: small });
    const before = (await lost.admin.expect(200, `${POINTS}/${pointId}`)).state;
    const skipped = await drill();
    assert.deepEqual([skipped.drill.result, skipped.state], ['skipped', before]);
    assert.match(skipped.drill.reason, /needs [\d.]+ MiB of disk.*CLOUDLET_DRILL_DIR/);
    assert.deepEqual(readdirSync(small), []);
    const { code, stdout } = await cli('drill');
    assert.equal(code, 1);
    assert.match(stdout, /was not drilled: .* MiB of disk/);
  });
});

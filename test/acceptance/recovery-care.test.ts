/** Existing recovery points: verified, deleted, undeleted, and their target cleaned up. */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { cpSync, existsSync, readdirSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { runCloudlet } from '../harness/command.ts';
import { eventually } from '../harness/waiting.ts';
import { LosableCloud, POINTS, POST } from './recovery-kit.ts';

const DELETE = { method: 'DELETE' };
const CHECK = '/api/disaster-recovery/check';

interface Damage {
  readonly file: string;
  readonly problem: string;
  readonly needed_by: string;
}

let lost: LosableCloud;
before(async () => {
  lost = await LosableCloud.start({ CLOUDLET_RECOVERY_UNDELETE_HOURS: '1' });
  await lost.user.expect(201, '/api/buckets', { json: { name: 'files' } });
  for (let i = 0; i < 8; i++) await lost.user.upload('files', `large-${i}`, randomBytes(300_000));
});
after(() => lost.end());

/** Paths of all pieces, in their order, below the target. */
function pieces(): string[] {
  return readdirSync(join(lost.target, 'pieces'), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(lost.target.length + 1))
    .sort();
}

function cli(...words: readonly string[]) {
  return runCloudlet(['recovery', ...words, '--data-dir', lost.dataDir], { env: {} });
}

describe('verify', () => {
  let point: { point_id: string };
  const verify = () => lost.admin.expect(200, `${POINTS}/${point.point_id}/verify?wait=120`, POST);

  test('reads every byte of a sound point', async () => {
    point = await lost.point();
    const verified = await verify();
    assert.deepEqual([verified.state, verified.damage, verified.verifying_percent], ['verified', [], null]);
    assert.ok(verified.verified_at >= verified.completed_at);
    const { code, stdout } = await cli('verify', point.point_id);
    assert.deepEqual([code, stdout.split('\n').at(-2)], [0, `${point.point_id} is verified`]);
  });

  test('names each piece that is missing, cut short or changed; the next point heals it', async () => {
    const whole = join(lost.root, 'whole');
    cpSync(lost.target, whole, { recursive: true });
    const [missing = '', cut = '', flipped = ''] = pieces().filter(
      (path) => readFileSync(join(lost.target, path)).length > 300_000,
    );
    rmSync(join(lost.target, missing));
    truncateSync(join(lost.target, cut), 1000);
    const bytes = readFileSync(join(lost.target, flipped));
    bytes[500] = (bytes[500] as number) ^ 4;
    writeFileSync(join(lost.target, flipped), bytes);
    const damaged = await verify();
    assert.equal(damaged.state, 'damaged');
    assert.match(damaged.state_reason, /3 files/);
    assert.equal(damaged.damaged_files, 3);
    const found = damaged.damage as Damage[];
    assert.deepEqual(
      found.map(({ file, problem }) => `${problem} ${file}`).sort(),
      [`altered ${cut}`, `altered ${flipped}`, `missing ${missing}`].sort(),
    );
    for (const { needed_by: path } of found) assert.match(path, /^blobs\//);
    const { code, stdout } = await cli('verify', point.point_id);
    assert.equal(code, 1);
    assert.ok(stdout.includes(`missing: ${missing} (blobs/`), stdout);
    const next = await lost.point();
    const sound = await lost.admin.expect(200, `${POINTS}/${next.point_id}/verify?wait=120`, POST);
    assert.deepEqual([sound.state, sound.damage], ['verified', []]);
    assert.equal((await verify()).state, 'verified');
  });

  test('a manifest that is gone or changed is damage; an unmounted target is not', async () => {
    const manifest = join(lost.target, 'points', point.point_id);
    const bytes = readFileSync(manifest);
    writeFileSync(manifest, bytes.subarray(1));
    const altered = await verify();
    assert.deepEqual(altered.damage, [
      { file: `points/${point.point_id}`, problem: 'altered', needed_by: 'the whole point' },
    ]);
    writeFileSync(manifest, bytes);
    assert.equal((await verify()).state, 'verified');
    cpSync(lost.target, `${lost.target}.away`, { recursive: true });
    rmSync(lost.target, { recursive: true });
    const path = `${POINTS}/${point.point_id}`;
    await lost.admin.refused(503, 'target_unavailable', [`${path}/verify`, POST]);
    await lost.admin.refused(503, 'target_unavailable', [POINTS, POST]);
    assert.equal((await lost.admin.expect(200, path)).state, 'verified');
    assert.ok(!existsSync(join(lost.target, 'repository.json')));
    rmSync(lost.target, { recursive: true, force: true });
    cpSync(`${lost.target}.away`, lost.target, { recursive: true });
    assert.equal((await verify()).state, 'verified');
  });

  test('only what is complete is verified, and by administrators', async () => {
    await lost.user.refused(403, 'admin_required', [`${POINTS}/${point.point_id}/verify`, POST]);
    await lost.admin.refused(404, 'point_not_found', [`${POINTS}/drp-none/verify`, POST]);
    await lost.admin.refused(409, 'point_invalid_state', [`${POINTS}/${point.point_id}/cancel`, POST]);
    const later = { ...POST, headers: { prefer: 'respond-async' } };
    const { operation_id: id } = await lost.admin.expect(202, `${POINTS}/${point.point_id}/verify`, later);
    const ended = await eventually('the operation has ended', async () => {
      const operation = await lost.admin.expect(200, `/api/operations/${id}?wait=30`);
      return operation.state !== 'running' && operation;
    });
    assert.deepEqual([ended.state, ended.result?.state], ['succeeded', 'verified']);
  });
});

test('files of others in the target are nobody’s, whatever they are called', async () => {
  const whole = await lost.point();
  const before = pieces();
  const copyOf = (file: string) => join(lost.target, file);
  const others = ['points/README.txt', 'points/.nfs0000000000a1b2', 'deleting/z', 'writers/z', 'pieces/z'];
  const copies = [`points/${whole.point_id}.bak`, ...before.map((piece) => `${piece}.bak`)];
  // As if a whole folder of pieces were missing.
  const beside = before.map((piece) => piece.replace(/(?<=^pieces\/..)/, ' (copy)'));
  const all = [...others, ...copies, ...beside].map(copyOf);
  const [any = ''] = before;
  for (const file of all) cpSync(copyOf(any), file, { recursive: true });
  const checked = await lost.admin.expect(200, CHECK, POST);
  assert.deepEqual(
    [checked.removed_pieces, checked.blocked_by, checked.damaged_points],
    [0, [], []],
    JSON.stringify(checked),
  );
  const verified = await lost.admin.expect(200, `${POINTS}/${whole.point_id}/verify?wait=60`, POST);
  assert.equal(verified.state, 'verified');
  assert.equal((await lost.point()).state, 'complete');
  assert.ok(all.every(existsSync), 'they are still there');
  await lost.keepKey();
  const restored = await lost.restore(join(lost.root, 'beside-others'));
  assert.equal(restored.code, 0, restored.stderr);
});

describe('delete', () => {
  test('can be undone, and keeps every piece until then', async () => {
    const point = await lost.point();
    const path = `${POINTS}/${point.point_id}`;
    const before = pieces();
    const [deleted, ...others] = await Promise.all(
      Array.from({ length: 8 }, () => lost.admin.expect(200, path, DELETE)),
    );
    for (const { state } of [deleted, ...others]) assert.equal(state, 'deleting');
    assert.ok(deleted.deletes_at > deleted.completed_at);
    assert.equal((await lost.admin.expect(200, path, DELETE)).deletes_at, deleted.deletes_at);
    await lost.admin.refused(409, 'point_invalid_state', [`${path}/verify`, POST]);
    const checked = await lost.admin.expect(200, CHECK, POST);
    assert.deepEqual([checked.removed_points, checked.removed_pieces], [[], 0]);
    assert.deepEqual(pieces(), before);
    const back = await lost.admin.expect(200, `${path}/undelete`, POST);
    assert.deepEqual([back.state, back.deletes_at], ['complete', null]);
    await lost.admin.refused(409, 'point_invalid_state', [`${path}/undelete`, POST]);
    assert.equal((await lost.admin.expect(200, `${path}/verify?wait=60`, POST)).state, 'verified');
    await lost.user.refused(403, 'admin_required', [path, DELETE]);
  });

  test('of the command line', async () => {
    const [{ point_id: id }] = await lost.admin.expect(200, POINTS);
    assert.match((await cli('delete', id)).stdout, /is deleted; it can be undeleted until 20/);
    assert.match((await cli('undelete', id)).stdout, /was undeleted; it is verified/);
    assert.equal((await cli('delete')).code, 2);
    const { code, stdout } = await cli('fsck');
    assert.equal(code, 0, stdout);
    assert.match(stdout, /Removed 0 unreferenced pieces/);
  });

  test('in the end frees what only it held, and leftovers of what was killed', async () => {
    await lost.startAgain({ CLOUDLET_RECOVERY_UNDELETE_HOURS: '0' });
    const kept = await lost.point();
    const own = pieces();
    const big = await lost.user.upload('files', 'only-of-one-point', randomBytes(2_000_000));
    const doomed = await lost.point();
    await lost.user.expect(200, `/api/storage/${big.body.object_id}`, DELETE);
    const stray = join(lost.target, 'pieces', '00', `${'0'.repeat(64)}`);
    for (const path of [stray, `${stray}.abc.unfinished`]) {
      cpSync(join(lost.target, own[0] ?? ''), path, { recursive: true });
    }
    const path = `${POINTS}/${doomed.point_id}`;
    const deleted = await lost.admin.expect(200, path, DELETE);
    assert.equal(deleted.state, 'deleting');
    await eventually('it is gone', async () => (await lost.admin.call(path)).status === 404);
    assert.ok(!existsSync(stray) && !existsSync(`${stray}.abc.unfinished`));
    const left = new Set(pieces());
    assert.ok(
      own.every((piece) => left.has(piece)),
      'nothing of another point is gone',
    );
    assert.equal((await lost.admin.expect(200, CHECK, POST)).removed_pieces, 0);
    const sound = await lost.admin.expect(200, `${POINTS}/${kept.point_id}/verify?wait=60`, POST);
    assert.equal(sound.state, 'verified');
  });
});

/** Restores that are refused, that return the undamaged part, and that continue after a kill. */
import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import {
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { basename, dirname, join, relative } from 'node:path';
import { after, before, test } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { CheckedClient } from '../harness/checked-client.ts';
import { CloudProcess } from '../harness/cloud-process.ts';
import { runCloudlet } from '../harness/command.ts';
import { blobFiles } from '../harness/waiting.ts';
import { LosableCloud, POINTS } from './recovery-kit.ts';

const LAUNCHER = fileURLToPath(new URL('../../bin/cloudlet', import.meta.url));
let lost: LosableCloud;
let points: string[];
const objects = new Map<string, Buffer>();
before(async () => {
  lost = await LosableCloud.start();
  await lost.user.expect(201, '/api/buckets', { json: { name: 'files' } });
  for (let i = 0; i < 30; i++) {
    const bytes = randomBytes(1_000_000 + i);
    const { body } = await lost.user.upload('files', `file-${i}`, bytes);
    objects.set(body.object_id, bytes);
  }
  points = [(await lost.point()).point_id, (await lost.point()).point_id];
  await lost.keepKey();
});
after(() => lost.end());

/** A copy of the target to be damaged. */
function copyOf(name: string): string {
  const copy = join(lost.root, name);
  cpSync(lost.target, copy, { recursive: true });
  return copy;
}

function restoreArgs(from: string, to: string): string[] {
  return ['recovery', 'restore', '--from', from, '--to', to, '--key-file', lost.keyFile];
}

function restore(from: string, to: string, ...more: string[]) {
  return runCloudlet([...restoreArgs(from, to), ...more], { env: {}, timeoutMs: 100_000 });
}

/** The pieces of one blob each, in a fixed order. */
function largePieces(target: string): string[] {
  return readdirSync(join(target, 'pieces'), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
    .filter((path) => statSync(path).size > 900_000)
    .sort();
}

function flipIn(path: string, at: number): void {
  const bytes = readFileSync(path);
  bytes[at] = (bytes[at] as number) ^ 1;
  writeFileSync(path, bytes);
}

async function demandObjects(dataDir: string, except = 0): Promise<void> {
  const cloud = await CloudProcess.start({ dataDir });
  try {
    const user = await CheckedClient.open(cloud.api, lost.user.key);
    let missing = 0;
    for (const [id, bytes] of objects) {
      const found = await user.download(id).catch((error: Error) => {
        assert.match(error.message, /data_corrupted/);
      });
      if (found === undefined) missing++;
      else assert.ok(found.equals(bytes), id);
    }
    assert.equal(missing, except);
  } finally {
    await cloud.end();
  }
}

test('altered, short and missing pieces are all named before anything is written', async () => {
  const target = copyOf('hurt');
  const [altered = '', cut = '', gone = ''] = largePieces(target);
  flipIn(altered, 700_000);
  truncateSync(cut, 10);
  rmSync(gone);
  const to = join(lost.root, 'refused');
  const { code, stderr } = await restore(target, to);
  assert.equal(code, 1);
  for (const [path, problem] of [
    [altered, 'altered'],
    [cut, 'altered'],
    [gone, 'missing'],
  ] as const) {
    assert.ok(stderr.includes(`${path.slice(target.length + 1)} is ${problem}: blobs/`), stderr);
  }
  assert.match(stderr, /Nothing was written/);
  assert.ok(!existsSync(to));
  // The rest is restored on request.
  const some = await restore(target, to, '--partial');
  assert.equal(some.code, 1, some.stderr);
  assert.equal(some.stdout.match(/^missing or damaged: blobs\//gm)?.length, 3, some.stdout);
  await demandObjects(to, 3);
});

test('a damaged manifest is named, with the points that are left', async () => {
  const target = copyOf('no-manifest');
  const [first = '', second = ''] = points;
  writeFileSync(join(target, 'points', second), '');
  const to = join(lost.root, 'latest');
  const { code, stderr } = await restore(target, to);
  assert.equal(code, 1);
  assert.ok(stderr.includes(`points/${second} is missing or damaged`), stderr);
  assert.ok(stderr.includes(`pass another one with --point: ${first}`), stderr);
  assert.ok(!existsSync(to));
  assert.equal((await restore(target, to, '--point', first)).code, 0);
  await demandObjects(to);
});

test('the newest point is meant that was not deleted', async () => {
  const [first = '', second = ''] = points;
  await lost.admin.expect(200, `${POINTS}/${second}`, { method: 'DELETE' });
  const { stdout, stderr } = await restore(lost.target, join(lost.root, 'newest'));
  assert.ok(stdout.includes(`Restored ${first}, `), stdout + stderr);
  await lost.admin.expect(200, `${POINTS}/${second}/undelete`, { method: 'POST' });
});

/** Kills a restore as soon as `isTime` is true, or lets it end if it is too fast. */
async function killWhen(to: string, isTime: () => boolean): Promise<void> {
  const child = spawn(LAUNCHER, restoreArgs(lost.target, to), { stdio: 'ignore', detached: true });
  const exited = once(child, 'exit');
  while (child.exitCode === null && !isTime()) await turn();
  if (child.exitCode === null) process.kill(-(child.pid as number), 'SIGKILL');
  await exited;
}

test('killed at any moment it leaves no cloud, and goes on where it was', async () => {
  const to = join(lost.root, 'killed');
  const note = join(to, '.restoring', '.point');
  const isBegun = () => existsSync(note) && readFileSync(note, 'utf8').includes('"isWhole":false');
  do {
    rmSync(to, { recursive: true, force: true });
    mkdirSync(join(to, 'lost+found'), { recursive: true });
    await killWhen(to, () => existsSync(note));
  } while (!isBegun());
  const blobs = join(to, '.restoring', 'blobs');
  const paths = blobFiles(lost.dataDir)
    .sort((a, b) => basename(a).localeCompare(basename(b)))
    .map((path) => join(blobs, relative(join(lost.dataDir, 'blobs'), path)));
  assert.equal(paths.length, objects.size);
  for (const [at, path] of paths.entries()) {
    if (at % 10 !== 9) continue;
    // A writer to this pipe waits for a reader, who never comes.
    const gate = `${path}.unfinished`;
    for (const file of [path, gate]) rmSync(file, { force: true });
    mkdirSync(dirname(gate), { recursive: true });
    execFileSync('mkfifo', [gate]);
    await killWhen(to, () => paths.slice(0, at).every((earlier) => existsSync(earlier)));
    rmSync(gate);
    assert.ok(isBegun() && !existsSync(join(to, 'metadata.db')), 'half a cloud');
  }
  const begun = statSync(blobs).ino;
  const { code, stdout, stderr } = await restore(lost.target, to);
  assert.equal(code, 0, stderr);
  assert.doesNotMatch(stdout, /Reading all pieces/, 'the pieces were read before');
  assert.equal(statSync(join(to, 'blobs')).ino, begun);
  assert.ok(!existsSync(join(to, '.restoring')));
  await demandObjects(to);
});

test('another point is not mixed into a restore that was not finished', async () => {
  const to = join(lost.root, 'mixed');
  const [first = '', second = ''] = points;
  const target = copyOf('mixed-target');
  const [piece = ''] = largePieces(target);
  mkdirSync(join(to, '.restoring'), { recursive: true });
  const boot = readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
  const note = { pointId: first, boot, isChecked: true, isWhole: false };
  writeFileSync(join(to, '.restoring', '.point'), JSON.stringify(note));
  const refused = await restore(target, to, '--point', second);
  assert.match(refused.stderr, new RegExp(`contains an unfinished restore of ${first}`));
  // Pieces damaged after they were read: the restore stops, and is possible in part.
  flipIn(piece, 99);
  const stopped = await restore(target, to, '--point', first);
  assert.equal(stopped.code, 1);
  assert.ok(!existsSync(join(to, 'metadata.db')));
  const some = await restore(target, to, '--point', first, '--partial');
  assert.match(some.stdout, /missing or damaged: blobs\//);
  await demandObjects(to, 1);
});

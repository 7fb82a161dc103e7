/** Files of a recovery target that are lost, truncated or changed: each one that matters is named. */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import {
  copyFileSync,
  existsSync,
  readdirSync,
  readFileSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { LosableCloud, POINTS, POST } from '../acceptance/recovery-kit.ts';
import { chooseSeed, randomFrom, rounds } from './load.ts';

const FILES = rounds(200, 2000);
/** At most this many in one round. */
const AT_ONCE = 4;
const OBJECTS = 60;

interface Damage {
  readonly file: string;
  readonly problem: string;
  readonly needed_by: string;
}

type Random = () => number;

/** The change to the file. */
function hurt(path: string, random: Random): 'missing' | 'altered' {
  const { length } = readFileSync(path);
  const way = Math.floor(random() * 3);
  if (way === 0) rmSync(path);
  else if (way === 1) truncateSync(path, Math.floor(random() * length));
  else {
    const bytes = readFileSync(path);
    const at = Math.floor(random() * length);
    bytes[at] = (bytes[at] as number) ^ (1 << Math.floor(random() * 8));
    writeFileSync(path, bytes);
  }
  return way === 0 ? 'missing' : 'altered';
}

/** This many, or fewer. */
function someOf(files: readonly string[], count: number, random: Random): string[] {
  const one = () => files[Math.floor(random() * files.length)] ?? '';
  return [...new Set(Array.from({ length: count }, one))];
}

function sorted<T extends { file: string }>(entries: readonly T[]): T[] {
  return entries.toSorted((a, b) => (a.file < b.file ? -1 : 1));
}

/** Below the target. */
function filesIn(target: string, folder: string): string[] {
  return readdirSync(join(target, folder), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(target.length + 1))
    .sort();
}

test(`${FILES} files damaged, each is named, whether alone or with others`, async (t) => {
  const seed = chooseSeed();
  t.diagnostic(`FAULTS_SEED=${seed}`);
  const random = randomFrom(seed);
  const lost = await LosableCloud.start({ CLOUDLET_RATE_REQUESTS: '1000000' });
  t.after(() => lost.end());
  await lost.user.expect(201, '/api/buckets', { json: { name: 'files' } });
  const objects = new Map<string, Buffer>();
  for (let i = 0; i < OBJECTS; i++) {
    const bytes = randomBytes(20_000 + i);
    objects.set((await lost.user.upload('files', `file-${i}`, bytes)).body.object_id, bytes);
  }
  const { point_id: id } = await lost.point();
  await lost.keepKey();
  const { target } = lost;
  const matter = [...filesIn(target, 'pieces'), `points/${id}`];
  // No point needs these: remains of a kill.
  const [piece = ''] = matter;
  const rubbish = Array.from({ length: 8 }, (_, i) => join(dirname(piece), String(i).padStart(64, '0')));
  for (const file of rubbish) copyFileSync(join(target, piece), join(target, file));
  const all = [...matter, ...rubbish];
  const verify = () => lost.admin.expect(200, `${POINTS}/${id}/verify?wait=100`, POST);
  const ofObjects = new Set<string>();
  for (let done = 0; done < FILES; ) {
    const files = someOf(all, 1 + Math.floor(random() * AT_ONCE), random);
    const whole = new Map(files.map((file) => [file, readFileSync(join(target, file))]));
    const hurtFiles = files.map((file) => ({ file, problem: hurt(join(target, file), random) }));
    const expected = hurtFiles.filter(({ file }) => !rubbish.includes(file));
    const { state, damage } = await verify();
    assert.equal(state, expected.length > 0 ? 'damaged' : 'verified', JSON.stringify(hurtFiles));
    const found = damage as Damage[];
    const lists = found.filter(({ needed_by }) => !needed_by.startsWith('blobs/'));
    // The files that a list would name are unknown without the list.
    const named = new Set(found.map(({ file }) => file));
    const due = lists.length > 0 ? expected.filter(({ file }) => named.has(file)) : expected;
    assert.deepEqual(sorted(found.map(({ file, problem }) => ({ file, problem }))), sorted(due));
    for (const { file, needed_by } of found) if (needed_by.startsWith('blobs/')) ofObjects.add(file);
    for (const [file, bytes] of whole) writeFileSync(join(target, file), bytes);
    done += found.length + files.length - expected.length;
  }
  assert.equal((await verify()).state, 'verified');

  assert.ok(ofObjects.size > 10, `${ofObjects.size} files of objects were damaged`);
  for (const file of ofObjects) hurt(join(target, file), random);
  const named = ((await verify()).damage as Damage[]).map(({ file }) => file);
  assert.deepEqual(new Set(named), ofObjects);
  const to = join(lost.root, 'again');
  const refused = await lost.restore(to);
  assert.equal(refused.code, 1);
  for (const file of ofObjects) assert.ok(refused.stderr.includes(file), file);
  assert.ok(!existsSync(to));
  const some = await lost.restore(to, '--partial');
  assert.equal(some.stdout.match(/^missing or damaged: blobs\//gm)?.length, ofObjects.size, some.stderr);
  await lost.goOn(to);
  let missing = 0;
  for (const [object, bytes] of objects) {
    const found = await lost.user.download(object).catch(() => undefined);
    if (found === undefined) missing++;
    else assert.ok(found.equals(bytes), object);
  }
  assert.equal(missing, ofObjects.size);
});

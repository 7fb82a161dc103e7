/** Folders with contents that a hostile process could make, also while it still changes them. */
import assert from 'node:assert/strict';
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import * as fs from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, test } from 'node:test';
import { noGuestUsers, testUidBase } from '../../testing/own-ground.ts';
import { removeTree } from './foreign-files.ts';

const UID = testUidBase();
const ROUNDS = 10;
const DEPTH = 1500;

/** Names of files in the swapped folder, and elsewhere. */
const FILES = Array.from({ length: 20 }, (_, at) => `file${at}`);
/** Gives the names of folders in turn to those folders and to a link to another place. */
const SWAPPING = `
  my ($elsewhere, @names) = @ARGV;
  symlink $elsewhere, 'link';
  for my $folder (1 .. 20) {
    mkdir $folder;
    for (@names) { open my $file, '>', "$folder/$_" }
  }
  $| = 1; print "ready\\n";
  while (1) {
    for my $folder (1 .. 20) {
      rename $folder, 'kept'; rename 'link', $folder;
      rename $folder, 'link'; rename 'kept', $folder;
    }
  }`;

describe('removal of a tree', () => {
  let root: string;
  let victim: string;
  let tree: string;
  beforeEach(() => {
    root = fs.mkdtempSync(join(tmpdir(), 'cloudlet-removal-'));
    victim = join(root, 'victim');
    tree = join(root, 'tree');
    fs.mkdirSync(victim);
    for (const name of FILES) fs.writeFileSync(join(victim, name), 'keep');
    fs.mkdirSync(join(tree, 'work'), { recursive: true });
  });
  // Also remains of a build that cannot remove deep trees.
  afterEach(() => execFileSync('rm', ['-rf', root]));
  const left = () => fs.readdirSync(root).filter((name) => name !== 'victim');

  test('several remove the same tree, and what a crash left of it, at the same time', async () => {
    for (let round = 0; round < 3; round++) {
      for (const top of ['tree', 'tree.0', 'tree.1'])
        for (let at = 0; at < 8; at++) {
          const folder = join(root, top, `${at}`, 'inside');
          fs.mkdirSync(folder, { recursive: true });
          for (const name of FILES.slice(0, 5)) fs.writeFileSync(join(folder, name), 'go');
        }
      const all = ['tree', 'tree', 'tree.0', 'tree', 'tree.1'];
      await Promise.all(all.map((name) => removeTree(join(root, name))));
      assert.deepEqual(left(), [], `round ${round}`);
    }
  });

  test('all goes, whatever it is and is called, and nothing it leads to', async () => {
    const work = join(tree, 'work');
    fs.symlinkSync(victim, join(work, 'link'));
    fs.symlinkSync('/nowhere', join(work, 'broken'));
    fs.mkdirSync(join(work, 'one/two/three'), { recursive: true });
    fs.symlinkSync(victim, join(work, 'one/two/link'));
    fs.mkdirSync(Buffer.from(`${work}/\xff\xfe`, 'latin1'));
    fs.writeFileSync(Buffer.from(`${work}/\xff\xfe/\xfd`, 'latin1'), '');
    execFileSync('mkfifo', [join(work, 'one/pipe')]);
    await removeTree(tree);
    assert.deepEqual(left(), []);
    await removeTree(tree);
    assert.equal(fs.readdirSync(victim).length, FILES.length);
  });

  test('a tree that is deeper than any path goes too', async () => {
    const script = `for (1 .. ${DEPTH}) { mkdir 'folder'; chdir 'folder' or die } mkdir 'last'`;
    execFileSync('/usr/bin/perl', ['-e', script], { cwd: join(tree, 'work') });
    await removeTree(tree);
    assert.deepEqual(left(), []);
  });

  test('while its owner swaps folders for links, nothing elsewhere is removed', {
    skip: noGuestUsers,
  }, async () => {
    fs.chmodSync(root, 0o711);
    for (let round = 0; round < ROUNDS; round++) {
      const work = join(tree, 'work');
      fs.mkdirSync(work, { recursive: true, mode: 0o700 });
      fs.chownSync(work, UID, UID);
      const options = { cwd: work, uid: UID, gid: UID } as const;
      const owner: ChildProcess = spawn('/usr/bin/perl', ['-e', SWAPPING, victim, ...FILES], options);
      try {
        assert.ok(owner.stdout);
        await once(owner.stdout, 'data');
        await removeTree(tree).catch(() => {});
      } finally {
        const gone = once(owner, 'exit');
        owner.kill('SIGKILL');
        await gone;
      }
      assert.equal(fs.readdirSync(victim).length, FILES.length, `in round ${round}`);
      await removeTree(tree);
      for (const name of left()) await removeTree(join(root, name));
    }
    assert.deepEqual(left(), []);
  });
});

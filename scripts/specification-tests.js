/**
 * Downloads the public specification tests of MongoDB's drivers into build/specifications/mongodb/. They are
 * part of the source of MongoDB's C driver in Debian. Plain JavaScript without dependencies, because the
 * set-up calls it on an old Node.
 */
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { DebianPackages, GuestImageError } from './guest-packages.js';

const PACKAGE = 'libmongoc-dev';
const FILES = '*/src/libmongoc/tests/json/crud';
/** Folders above those files in the archive. */
const ABOVE = 5;

export function hasSpecificationTests(root) {
  return existsSync(folderOf(root));
}

/** Throws an Error of one line if this host cannot. */
export function fetchSpecificationTests({ root, outsidePath }) {
  mkdirSync(join(root, 'build', 'specifications'), { recursive: true });
  const directory = mkdtempSync(join(root, 'build', 'specifications', 'work-'));
  try {
    const archive = new DebianPackages({ directory, path: outsidePath }).source(PACKAGE);
    const tree = join(directory, 'tree');
    mkdirSync(tree);
    const words = ['-xf', archive, '-C', tree, '--wildcards', `--strip-components=${ABOVE}`, FILES];
    const unpacked = spawnSync('tar', words, { env: { ...process.env, PATH: outsidePath } });
    if (unpacked.status !== 0)
      throw new GuestImageError(`${PACKAGE} no longer contains the specification tests`);
    // Its name shows that it is complete.
    renameSync(tree, folderOf(root));
    return 'done';
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

function folderOf(root) {
  return join(root, 'build', 'specifications', 'mongodb');
}

/** Files with secrets: readable only by their owner, and replaced atomically. */
import { randomBytes } from 'node:crypto';
import {
  chmodSync,
  closeSync,
  fstatSync,
  fsyncSync,
  mkdirSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { dirname } from 'node:path';
import { ownUid } from '../environment.ts';
import { ClientError, EXIT } from '../failures.ts';

/**
 * The text of the file, or undefined if there is none. Throws ClientError if others may read or
 * write it: they could change where keys are sent.
 */
export function readPrivateFile(path: string): string | undefined {
  let file: number;
  try {
    file = openSync(path, 'r');
  } catch (error) {
    // A home such as /dev/null is not a folder.
    if (['ENOENT', 'ENOTDIR'].includes((error as NodeJS.ErrnoException).code ?? '')) return undefined;
    throw error;
  }
  try {
    assertPrivate(path, fstatSync(file));
    return readFileSync(file, 'utf8');
  } finally {
    closeSync(file);
  }
}

function assertPrivate(path: string, { mode, uid }: { mode: number; uid: number }): void {
  const own = ownUid();
  // Windows has no mode bits; the user's folder is private there.
  if (own === undefined) return;
  if ((mode & 0o077) !== 0) {
    const shown = (mode & 0o777).toString(8);
    throw new ClientError(
      `other users can read ${path} (mode ${shown})`,
      EXIT.failure,
      `Run: chmod 600 ${path}`,
    );
  }
  if (uid !== own && own !== 0) throw new ClientError(`${path} belongs to another user`);
}

/** Replaces the file; a crash leaves the old or the new text. */
export function writePrivateFile(path: string, text: string): void {
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  const next = `${path}.${process.pid}.${randomBytes(4).toString('hex')}`;
  try {
    const file = openSync(next, 'wx', 0o600);
    try {
      writeFileSync(file, text);
      fsyncSync(file);
    } finally {
      closeSync(file);
    }
    chmodSync(next, 0o600);
    renameSync(next, path);
  } catch (error) {
    rmSync(next, { force: true });
    throw error;
  }
}

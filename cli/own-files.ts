/** Files that a command makes: whole or not at all, also if it is interrupted; and temporary ones. */
import { createWriteStream, mkdtempSync, renameSync, rmSync } from 'node:fs';
import { stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import type { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';

/** A device, a pipe or a socket, such as `/dev/null`, which a file must not replace. */
export async function isStream(path: string): Promise<boolean> {
  const found = await stat(path).catch(() => undefined);
  if (found === undefined) return false;
  // `/dev/stdout` is a link to the file that the shell opened.
  const isOpened = /^\/(?:dev|proc)\/(?!shm\/)/.test(resolve(path));
  return !found.isDirectory() && (isOpened || !found.isFile());
}

/** Runs `work`; afterwards, or if a signal ends the command, the path is removed. */
async function removing<T>(path: string, work: () => Promise<T>): Promise<T> {
  const remove = () => rmSync(path, { recursive: true, force: true });
  process.once('exit', remove);
  try {
    return await work();
  } finally {
    process.off('exit', remove);
    remove();
  }
}

/**
 * Writes the bytes beside the path, and renames the file once they are complete and `check` has passed.
 * Only its owner can read it if `isPrivate`. A pipe or a device gets the bytes, unchecked: undefined.
 */
export async function writeWhole<T>(
  { path, bytes }: { readonly path: string; readonly bytes: Readable },
  { isPrivate = false, check }: { readonly isPrivate?: boolean; check(part: string): Promise<T> },
): Promise<T | undefined> {
  if (await isStream(path)) {
    await pipeline(bytes, createWriteStream(path, { flags: 'r+' }));
    return undefined;
  }
  const part = `${path}.part`;
  // The name is predictable: someone with access to the folder may have created a link there.
  rmSync(part, { force: true });
  return removing(part, async () => {
    const mode = isPrivate ? 0o600 : 0o666;
    await pipeline(bytes, createWriteStream(part, { flags: 'wx', flush: true, mode }));
    const found = await check(part);
    renameSync(part, path);
    return found;
  });
}

/** Runs `work` with the path: `-` stands for standard input, which is kept in a temporary file meanwhile. */
export async function withInput<T>(path: string, work: (source: string) => Promise<T>): Promise<T> {
  if (path !== '-') return work(path);
  const folder = mkdtempSync(join(tmpdir(), 'cloudlet-'));
  return removing(folder, async () => {
    const source = join(folder, 'input');
    await writeFile(source, process.stdin);
    return work(source);
  });
}

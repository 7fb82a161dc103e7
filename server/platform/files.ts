/**
 * Small files that are replaced atomically, so that a power loss leaves the old or the new content;
 * and error codes of file operations.
 */
import { closeSync, fsyncSync, openSync, renameSync, writeFileSync } from 'node:fs';
import { open, rename, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';

/** Writes `<path>.new`, and renames it to `path` once it is on disk. `mode`: of a new file. */
export function writeDurableFile(path: string, content: string | Uint8Array, mode: number): void {
  const temporary = `${path}.new`;
  writeFileSync(temporary, content, { mode, flush: true });
  renameSync(temporary, path);
  syncFolder(dirname(path));
}

/** Like writeDurableFile(), asynchronous. Callers must not write the same path concurrently. */
export async function writeDurableFileAsync(
  path: string,
  content: string | Uint8Array,
  mode: number,
): Promise<void> {
  const temporary = `${path}.new`;
  await writeFile(temporary, content, { mode, flush: true });
  await rename(temporary, path);
  await syncFolderAsync(dirname(path));
}

/** Makes creations, renames and removals in the folder durable. */
export function syncFolder(path: string): void {
  const fd = openSync(path, 'r');
  try {
    fsyncSync(fd);
  } finally {
    closeSync(fd);
  }
}

/** Like syncFolder(), asynchronous. */
export async function syncFolderAsync(path: string): Promise<void> {
  const folder = await open(path, 'r');
  await folder.sync().finally(() => folder.close());
}

/** The code of a system error, such as `ENOENT`; undefined: another error. */
export function codeOf(error: unknown): string | undefined {
  return error instanceof Error && 'code' in error ? String(error.code) : undefined;
}

export function isCode(error: unknown, code: string): boolean {
  return codeOf(error) === code;
}

/** For `catch`: returns undefined if the file is missing; throws other errors. */
export function unlessMissing(error: unknown): undefined {
  if (!isCode(error, 'ENOENT')) throw error;
}

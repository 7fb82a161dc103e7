/** Small files that must be whole after a loss of power: the new one, or the one before. */
import { closeSync, fsyncSync, openSync, renameSync, writeFileSync } from 'node:fs';
import { open, rename, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';

/** Writes `<path>.new`, and puts it in the place of `path` once it is on disk. `mode`: of a new file. */
export function writeDurableFile(path: string, content: string | Uint8Array, mode: number): void {
  const temporary = `${path}.new`;
  writeFileSync(temporary, content, { mode, flush: true });
  renameSync(temporary, path);
  syncFolder(dirname(path));
}

/** The same, while this thread does other things. Two at a time of the same path are the caller's fault. */
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

/** What was made, renamed or removed in it is so after a loss of power. */
export function syncFolder(path: string): void {
  const fd = openSync(path, 'r');
  try {
    fsyncSync(fd);
  } finally {
    closeSync(fd);
  }
}

/** The same, while this thread does other things. */
export async function syncFolderAsync(path: string): Promise<void> {
  const folder = await open(path, 'r');
  await folder.sync().finally(() => folder.close());
}

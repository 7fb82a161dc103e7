/** Small files that must be whole after a loss of power: the new one, or the one before. */
import { closeSync, fsyncSync, openSync, renameSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';

/** Writes `<path>.new`, and puts it in the place of `path` once it is on disk. `mode`: of a new file. */
export function writeDurableFile(path: string, content: string | Uint8Array, mode: number): void {
  const temporary = `${path}.new`;
  writeFileSync(temporary, content, { mode, flush: true });
  renameSync(temporary, path);
  syncFolder(dirname(path));
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

/** The files below a local folder, in the order of a bucket's list. */
import type { BigIntStats, Dirent } from 'node:fs';
import { lstat, readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { PART_FILE } from './download.ts';
import { compareNames } from './locations.ts';

export interface LocalFile {
  /** Relative to the folder, with `/`. */
  readonly name: string;
  readonly path: string;
  readonly size: number;
  readonly mtimeMs: number;
  readonly mtimeNs: bigint;
}

export interface LeftOut {
  /** Called with entries that are neither file nor folder. */
  readonly skipped: (name: string, why: string) => void;
  /** Called with folders that cannot be read, whose content is unknown. */
  readonly failed: (name: string, error: Error) => void;
}

/** Throws the error of reading the first folder. */
export async function* filesBelow(folder: string, told: LeftOut, prefix = ''): AsyncGenerator<LocalFile> {
  const entries = await readdir(join(folder, prefix), { withFileTypes: true });
  // A folder sorts like its files, whose names begin with its name and `/`.
  const named = entries
    .filter(({ name }) => !PART_FILE.test(name))
    .map((entry) => ({ entry, name: `${prefix}${entry.name}${entry.isDirectory() ? '/' : ''}` }))
    .sort((a, b) => compareNames(a.name, b.name));
  for (const { entry, name } of named) {
    const why = unfit(entry);
    if (why !== undefined) told.skipped(name, why);
    else if (entry.isDirectory()) yield* below(folder, told, name);
    else {
      const file = await localFile(join(folder, name), name).catch((error) => error as NodeJS.ErrnoException);
      if (!(file instanceof Error)) yield file;
      else if (file.code === 'ENOENT') told.skipped(name, 'vanished');
      else told.failed(name, file);
    }
  }
}

async function* below(
  ...[folder, told, name = '']: Parameters<typeof filesBelow>
): AsyncGenerator<LocalFile> {
  try {
    yield* filesBelow(folder, told, name);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).syscall !== 'scandir') throw error;
    told.failed(name, error as Error);
  }
}

function unfit(entry: Dirent): string | undefined {
  if (entry.isSymbolicLink()) return 'a symbolic link';
  if (entry.isDirectory()) return undefined;
  if (!entry.isFile()) return 'not a file';
  return entry.name.includes('\ufffd') ? 'its name is not UTF-8' : undefined;
}

/** One file. Throws like lstat. */
async function localFile(path: string, name: string): Promise<LocalFile> {
  return factsOf(path, name, await lstat(path, { bigint: true }));
}

/** A file that the user named, perhaps by a symbolic link; null: a pipe or a device. Throws like stat. */
export async function namedFile(path: string, name: string): Promise<LocalFile | null> {
  const found = await stat(path, { bigint: true });
  return found.isFile() ? factsOf(path, name, found) : null;
}

function factsOf(path: string, name: string, { size, mtimeNs }: BigIntStats): LocalFile {
  return { name, path, size: Number(size), mtimeNs, mtimeMs: Number(mtimeNs) / 1e6 };
}

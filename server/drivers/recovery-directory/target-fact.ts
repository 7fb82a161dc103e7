/** Inspects a directory for recovery points without writing to it. */
import { access, constants, stat, statfs } from 'node:fs/promises';
import { dirname } from 'node:path';

export interface DirectoryFact {
  readonly isOnDataDisk: boolean;
  readonly freeBytes: number;
}

/** Inspects the directory, or the nearest existing parent. Rejects with the reason why it cannot be used. */
export async function inspectDirectory(location: string, dataDir: string): Promise<DirectoryFact> {
  const existing = await nearest(location);
  await access(existing, constants.W_OK | constants.X_OK);
  const [target, data, fileSystem] = await Promise.all([
    stat(existing),
    stat(await nearest(dataDir)),
    statfs(existing),
  ]);
  return { isOnDataDisk: target.dev === data.dev, freeBytes: fileSystem.bavail * fileSystem.bsize };
}

async function nearest(path: string): Promise<string> {
  try {
    await access(path);
    return path;
  } catch (error) {
    const isMissing = error instanceof Error && 'code' in error && error.code === 'ENOENT';
    if (!isMissing || dirname(path) === path) throw error;
    return nearest(dirname(path));
  }
}

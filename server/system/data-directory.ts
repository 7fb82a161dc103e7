/** The data directory, made or checked before anything is opened in it. */
import { accessSync, chmodSync, constants, mkdirSync, statfsSync } from 'node:fs';
import { StartupError } from './startup-error.ts';

/** Below this nothing can be relied on, not even deletes; a small file system needs less. */
const MIN_FREE_BYTES = 16 * 2 ** 20;
const MIN_FREE_SHARE = 1 / 32;

/** Makes the directory (0700) when missing; returns its path. Throws StartupError when it cannot be used. */
export function openDataDirectory(path: string): string {
  try {
    mkdirSync(path, { recursive: true, mode: 0o700 });
    accessSync(path, constants.R_OK | constants.W_OK | constants.X_OK);
    chmodSync(path, 0o700);
  } catch (cause) {
    throw new StartupError(
      `The data directory ${path} is not writable (${codeOf(cause)}): change its owner or set CLOUDLET_DATA_DIR`,
      cause,
    );
  }
  const { bavail, blocks, bsize } = statfsSync(path);
  const free = bavail * bsize;
  if (free < Math.min(MIN_FREE_BYTES, blocks * bsize * MIN_FREE_SHARE)) {
    throw new StartupError(
      `The disk of ${path} is nearly full (${Math.floor(free / 2 ** 20)} MiB free): free some space first`,
    );
  }
  return path;
}

function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : String(error);
}

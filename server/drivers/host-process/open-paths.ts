/**
 * Where the host allows no views, as in a container without CAP_SYS_ADMIN, a process with its own user
 * must find its folder and its program where they are: every directory above them must let it pass.
 */
import { chmodSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import { AppError } from '../../platform/errors.ts';

const PASS = 0o001;

/**
 * Lets every user pass, not list, the directories of ours from `ground` down to those paths. Throws
 * `engine_unavailable` when one above, which is not ours to change, lets nobody pass.
 */
export function openPaths(ground: string, paths: readonly string[]): void {
  const directories = new Set(paths.flatMap(directoriesAbove));
  for (const directory of directories) {
    const { mode, uid } = statSync(directory);
    if ((mode & PASS) !== 0) continue;
    const isGround = directory === ground || directory.startsWith(`${ground}/`);
    if (!isGround) throw closed(directory);
    if (uid === process.getuid?.()) chmodSync(directory, (mode & 0o7777) | PASS);
  }
}

function directoriesAbove(path: string): string[] {
  const above = dirname(path);
  return above === path ? [] : [...directoriesAbove(above), above];
}

function closed(directory: string): AppError {
  return new AppError(
    'engine_unavailable',
    `Databases run as users of their own, and ${directory} is not traversable by other users (chmod o+x)`,
    {
      hint:
        'Put Cloudlet and its data directory below directories that every user can enter, such as /opt and /var/lib, ' +
        'or give the container CAP_SYS_ADMIN',
    },
  );
}

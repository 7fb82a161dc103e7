/**
 * Where the host allows no views, as in a container without CAP_SYS_ADMIN, a process with its own user uses
 * the real paths of its folder and its program: it must be able to traverse every directory above them.
 */
import { chmodSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import { AppError } from '../../platform/errors.ts';

const PASS = 0o001;

/**
 * Makes Cloudlet's directories from `ground` down to those paths traversable for every user, but not
 * listable. Throws `engine_unavailable` if a directory above, which Cloudlet must not change, is not
 * traversable.
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
    `Databases run as separate users, and ${directory} is not traversable by other users (chmod o+x)`,
    {
      hint:
        'Put Cloudlet and its data directory below directories that every user can enter, such as /opt and /var/lib, ' +
        'or give the container CAP_SYS_ADMIN',
    },
  );
}

/** Finds programs on this host, whose folders differ between distributions, and starts programs. */
import { type ChildProcess, type SpawnOptions, spawn } from 'node:child_process';
import { accessSync, constants } from 'node:fs';
import { join } from 'node:path';
import { pathFolders } from '../../config/config.ts';
import { AppError } from '../errors.ts';

/** Searched first: root must not run programs from elsewhere in PATH. */
const USUAL_FOLDERS: readonly string[] = ['/usr/sbin', '/usr/bin', '/sbin', '/bin'];

/** Programs that are looked up by name, with their Debian packages. */
const PACKAGES = {
  bash: 'bash',
  perl: 'perl-base',
  setpriv: 'util-linux',
  unshare: 'util-linux',
} as const;

function folders(): string[] {
  return [...new Set([...USUAL_FOLDERS, ...pathFolders()])];
}

/** A PATH for child processes: the PATH of a service or a user may lack the folders of root's programs. */
export function hostPath(): string {
  return folders().join(':');
}

/** Path of the program; null: it is not installed, or not on the PATH. */
export function findHostProgram(name: string): string | null {
  return (
    folders()
      .map((folder) => join(folder, name))
      .find(isProgram) ?? null
  );
}

/** Path of the program. Throws `engine_unavailable`, with its package, if it is not installed. */
export function hostProgram(name: keyof typeof PACKAGES): string {
  const found = findHostProgram(name);
  if (found !== null) return found;
  throw new AppError('engine_unavailable', `${name} is not installed on this host, or not on the PATH`, {
    hint: `install it: apt-get install ${PACKAGES[name]}`,
  });
}

function isProgram(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

/**
 * Like Node's spawn, but resolves once the program runs, with every stream of its `stdio`, and rejects if it
 * cannot start: it is missing (`ENOENT`), or this process has too many open files (`EMFILE`). Node then
 * returns a child without streams, and emits the error only to listeners attached by then. A later error, for
 * example of the signal that ends the program, needs no listener: `exit` and `close` follow it.
 */
export async function startProgram(
  program: string,
  words: readonly string[],
  options: SpawnOptions,
): Promise<ChildProcess> {
  const child = spawn(program, words, options);
  child.on('error', () => undefined);
  await new Promise<void>((resolve, reject) => {
    child.once('spawn', resolve);
    child.once('error', reject);
  });
  return child;
}

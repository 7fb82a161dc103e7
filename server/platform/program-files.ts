/**
 * Finds our own files: a built server has them in other folders than the sources.
 * scripts/build-server.ts puts everything into build/server/STAMP/, and reads the names of programs
 * here.
 */
import { join } from 'node:path';

const IS_BUILT = !import.meta.filename.endsWith('.ts');

/** Folder of the project, with bin/, build/ and package.json. */
export const ROOT = join(import.meta.dirname, IS_BUILT ? '../../..' : '../..');
/** Folder of the running code: server/, or its build. */
export const CODE_FOLDER = IS_BUILT ? import.meta.dirname : join(ROOT, 'server');

/**
 * Folder that the code of child processes is copied from, with its folders: sources import from
 * libs/ too.
 */
export const COPIED_FROM = IS_BUILT ? CODE_FOLDER : ROOT;

/**
 * The file of a program or thread: `drivers/qemu/thread` for server/drivers/qemu/thread.ts. The
 * bundler creates one file for each name in a call of this function.
 */
export function programFile(name: string): string {
  return join(CODE_FOLDER, IS_BUILT ? `${name.replaceAll('/', '.')}.js` : `${name}.ts`);
}

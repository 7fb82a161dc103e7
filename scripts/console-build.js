/**
 * Says whether build/console and build/cli are of the present sources, and builds them when they are not;
 * `node scripts/console-build.js` does so by hand, with the pinned Node. Plain JavaScript without
 * dependencies, because the set-up calls it on an old Node; Vite itself runs on the pinned one.
 */
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** What goes into both, from the root. Of the lock file: the versions of the libraries. */
const SHARED = ['sdk', 'openapi.json', 'package-lock.json', 'scripts/write-sdk.ts'];

/** Each is built by its program when one of its inputs changed. */
const CONSOLE = { name: 'console', program: './build-console.ts', inputs: ['console', ...SHARED] };
const CLI = { name: 'cli', program: './build-cli.ts', inputs: ['cli', 'package.json', ...SHARED] };

const pathOf = ({ program }) => fileURLToPath(new URL(program, import.meta.url));

/** A digest of every input. */
function stampOf(root, { program, inputs }) {
  const hash = createHash('sha256');
  const all = [...inputs, program.replace('.', 'scripts')];
  for (const path of all.flatMap((input) => filesUnder(root, input))) {
    hash.update(`${path}\n`).update(readFileSync(join(root, path)));
  }
  return hash.digest('hex');
}

/** True when it is built from the files that there are. Without sources, what was built is right. */
function isCurrent(root, what) {
  if (!existsSync(join(root, what.name))) return true;
  const stampFile = join(root, `build/${what.name}.stamp`);
  return existsSync(stampFile) && readFileSync(stampFile, 'utf8') === stampOf(root, what);
}

function build(root, node, what) {
  const result = spawnSync(node, [pathOf(what), stampOf(root, what)], { cwd: root, encoding: 'utf8' });
  if (result.error) throw result.error;
  if (result.status === 0) return;
  throw new Error(String(result.stderr).trim() || `the build exited with ${result.signal || result.status}`);
}

/** Whether build/console is of the present sources. */
export const isConsoleCurrent = (root) => isCurrent(root, CONSOLE);
/** Whether build/cli is of the present sources. */
export const isCliCurrent = (root) => isCurrent(root, CLI);
/** `node`: the pinned one. Throws an Error with what the build said. */
export const buildConsole = (root, node) => build(root, node, CONSOLE);
/** `node`: the pinned one. Throws an Error with what the build said. */
export const buildCli = (root, node) => build(root, node, CLI);

/** Each file under a path, from the root, in an order that does not change. */
function filesUnder(root, path) {
  if (!statSync(join(root, path)).isDirectory()) return [path];
  return readdirSync(join(root, path))
    .sort()
    .flatMap((name) => filesUnder(root, `${path}/${name}`));
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const root = fileURLToPath(new URL('..', import.meta.url));
  for (const what of [CONSOLE, CLI]) if (!isCurrent(root, what)) build(root, process.execPath, what);
}

/**
 * Says whether build/console is of the present sources, and builds it when it is not; `node
 * scripts/console-build.js` does so by hand, with the pinned Node. Plain JavaScript
 * without dependencies, because the set-up calls it on an old Node; Vite itself runs on the pinned one.
 */
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** What goes into the console, from the root. Of the lock file: the versions of its libraries. */
const INPUTS = [
  'console',
  'sdk',
  'openapi.json',
  'package-lock.json',
  'scripts/build-console.ts',
  'scripts/write-sdk.ts',
];

const BUILD = fileURLToPath(new URL('./build-console.ts', import.meta.url));

/** A digest of every input. */
function consoleStamp(root) {
  const hash = createHash('sha256');
  for (const path of INPUTS.flatMap((input) => filesUnder(root, input))) {
    hash.update(`${path}\n`).update(readFileSync(join(root, path)));
  }
  return hash.digest('hex');
}

/** True when the console is built from the files that there are. Without sources, what was built is right. */
export function isConsoleCurrent(root) {
  if (!existsSync(join(root, 'console'))) return true;
  const stampFile = join(root, 'build/console.stamp');
  return existsSync(stampFile) && readFileSync(stampFile, 'utf8') === consoleStamp(root);
}

/** `node`: the pinned one. Throws an Error with what the build said. */
export function buildConsole(root, node) {
  const result = spawnSync(node, [BUILD, consoleStamp(root)], { cwd: root, encoding: 'utf8' });
  if (result.error) throw result.error;
  if (result.status === 0) return;
  throw new Error(String(result.stderr).trim() || `the build exited with ${result.signal || result.status}`);
}

/** Each file under a path, from the root, in an order that does not change. */
function filesUnder(root, path) {
  if (!statSync(join(root, path)).isDirectory()) return [path];
  return readdirSync(join(root, path))
    .sort()
    .flatMap((name) => filesUnder(root, `${path}/${name}`));
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const root = fileURLToPath(new URL('..', import.meta.url));
  if (!isConsoleCurrent(root)) buildConsole(root, process.execPath);
}

/**
 * Says whether build/server, build/console and build/cli are of the present sources, and builds those that
 * are not; `node scripts/builds.js [server]` does so by hand, with the pinned Node. Plain JavaScript without
 * dependencies, because the set-up calls it on an old Node; the bundler itself runs on the pinned one.
 */
import { spawn, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  existsSync,
  lstatSync,
  lutimesSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  statSync,
} from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { isAlive } from './set-up-lock.js';

/** Inputs of console and client, from the root. The lock file contains the versions of the libraries. */
const SHARED = ['sdk', 'libs', 'openapi.json', 'package-lock.json', 'scripts/write-sdk.ts'];

/** Built by a program beside this file when an input changed. `folder`: of the sources. */
const BUILDS = [
  {
    name: 'server',
    folder: 'server',
    program: './build-server.ts',
    inputs: ['server', 'libs', 'package.json', 'package-lock.json'],
  },
  {
    name: 'console',
    folder: 'console',
    program: './build-console.ts',
    inputs: ['console', 'CHANGELOG.md', ...SHARED],
  },
  {
    name: 'client',
    folder: 'cli',
    program: './build-cli.ts',
    inputs: ['cli', 'package.json', ...SHARED],
  },
];

const fileOf = (program) => join('scripts', program);

/** A digest of every input except tests, which are not part of any build. */
function stampOf(root, { program, inputs }) {
  const hash = createHash('sha256');
  for (const path of [...inputs, fileOf(program)].flatMap((input) => filesUnder(root, input))) {
    if (path.endsWith('.test.ts') || /^(?:server|libs\/[a-z0-9-]+)\/testing\//.test(path)) continue;
    hash.update(`${path}\n`).update(readFileSync(join(root, path)));
  }
  return hash.digest('hex').slice(0, 32);
}

/** The place of the last build's stamp. Each build of the server has a folder, and a link leads to one. */
function markOf(root, { name, folder }) {
  return join(root, 'build', name === 'server' ? 'server/current' : `${folder}.stamp`);
}

/** Stamp of the last build, or undefined. */
function builtStamp(root, what) {
  try {
    return what.name === 'server'
      ? readlinkSync(markOf(root, what))
      : readFileSync(markOf(root, what), 'utf8');
  } catch {
    return undefined;
  }
}

/**
 * Whether no input is newer than the oldest build, like the check in bin/cloudlet. A removed file makes its
 * folder newer. Reading all of them takes ten times as long.
 */
function isNothingNewer(root, builds) {
  try {
    const marks = builds.map((what) => markOf(root, what));
    const ages = marks.map((mark) => lstatSync(mark).mtimeMs);
    const oldest = marks[ages.indexOf(Math.min(...ages))];
    const inputs = builds.flatMap(({ inputs, program }) => [...inputs, fileOf(program)]);
    const words = [...new Set(inputs), '-newer', oldest, '!', '-name', '*.test.ts', '-print'];
    const { status, stdout } = spawnSync('find', words, { cwd: root, encoding: 'utf8' });
    return status === 0 && stdout === '';
  } catch {
    return false;
  }
}

/** Clocks of file systems lag by at most this. */
const GRAIN_MS = 2000;

/** Lets the next check use the age only. `since`: start of reading the inputs. */
function noteUnchanged(mark, since) {
  const time = new Date(since - GRAIN_MS);
  try {
    lutimesSync(mark, time, time);
  } catch {
    // Owned by another user: they are read again the next time.
  }
}

/** True if it was built from the current files. Without sources, any build is up to date. */
function isCurrent(root, what) {
  if (!existsSync(join(root, what.folder))) return true;
  const since = Date.now();
  const isSame = builtStamp(root, what) === stampOf(root, what);
  if (isSame) noteUnchanged(markOf(root, what), since);
  return isSame;
}

/** Names of the outdated builds: `server`, `console`, `client`. */
export function oldBuilds(root) {
  const made = BUILDS.filter(({ folder }) => existsSync(join(root, folder)));
  if (isNothingNewer(root, made)) return [];
  return BUILDS.filter((what) => !isCurrent(root, what)).map(({ name }) => name);
}

/** Removes remains of killed builds: each works in a folder whose name ends in its process id. */
function sweep(root) {
  for (const folder of ['build', 'build/server'].map((path) => join(root, path))) {
    const names = existsSync(folder) ? readdirSync(folder) : [];
    for (const name of names) {
      const [, pid] = /^(?:console|cli|\.current|\.[0-9a-f]{32})-(\d+)$/.exec(name) ?? [];
      if (pid !== undefined && !isAlive(Number(pid)))
        rmSync(join(folder, name), { recursive: true, force: true });
    }
  }
}

/**
 * Builds these in parallel. `node`: the pinned one. Resolves with the failures, as `{ name, problem }`; the
 * earlier build then remains.
 */
export async function build(root, node, names) {
  sweep(root);
  const problems = await Promise.all(
    names.map((name) =>
      buildOne(
        root,
        node,
        BUILDS.find((what) => what.name === name),
      ),
    ),
  );
  return problems.filter((problem) => problem !== undefined);
}

function buildOne(root, node, what) {
  const since = Date.now();
  return new Promise((resolve) => {
    const child = spawn(node, [join(root, fileOf(what.program)), stampOf(root, what)], {
      cwd: root,
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    let said = '';
    child.stderr.setEncoding('utf8').on('data', (text) => {
      said += text;
    });
    const failed = (problem) => resolve({ name: what.name, problem });
    child.on('error', (error) => failed(error.message));
    child.on('close', (code, signal) => {
      if (code === 0) {
        // Files changed during the build are newer.
        noteUnchanged(markOf(root, what), since);
        resolve(undefined);
      } else failed(said.trim() || `its build exited with ${signal || code}`);
    });
  });
}

/** Each file under a path, from the root, in a stable order. */
function filesUnder(root, path) {
  if (!statSync(join(root, path)).isDirectory()) return [path];
  return readdirSync(join(root, path))
    .sort()
    .flatMap((name) => filesUnder(root, `${path}/${name}`));
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const root = fileURLToPath(new URL('..', import.meta.url));
  const names = process.argv.slice(2);
  const wanted = names.length > 0 ? names : oldBuilds(root);
  for (const { name, problem } of await build(root, process.execPath, wanted)) {
    console.error(`the ${name} could not be built: ${problem}`);
    process.exitCode = 1;
  }
}

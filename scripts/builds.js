/**
 * Says whether build/server, build/console and build/cli are of the present sources, and builds those that
 * are not; `node scripts/builds.js [server]` does so by hand, with the pinned Node. Plain JavaScript without
 * dependencies, because the set-up calls it on an old Node; the bundler itself runs on the pinned one.
 */
import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync, readlinkSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** Inputs of console and client, from the root. The lock file has the versions of the libraries. */
const SHARED = ['sdk', 'libs', 'openapi.json', 'package-lock.json', 'scripts/write-sdk.ts'];

/** Built by a program beside this file when an input changed. `folder`: of the sources. */
const BUILDS = [
  {
    name: 'server',
    folder: 'server',
    program: './build-server.ts',
    inputs: ['server', 'libs', 'package.json', 'package-lock.json'],
  },
  { name: 'console', folder: 'console', program: './build-console.ts', inputs: ['console', ...SHARED] },
  {
    name: 'client',
    folder: 'cli',
    program: './build-cli.ts',
    inputs: ['cli', 'package.json', ...SHARED],
  },
];

const fileOf = (program) => join('scripts', program);

/** A digest of every input but tests, which go into no build. */
function stampOf(root, { program, inputs }) {
  const hash = createHash('sha256');
  for (const path of [...inputs, fileOf(program)].flatMap((input) => filesUnder(root, input))) {
    if (path.endsWith('.test.ts') || /^(?:server|libs\/[a-z0-9-]+)\/testing\//.test(path)) continue;
    hash.update(`${path}\n`).update(readFileSync(join(root, path)));
  }
  return hash.digest('hex').slice(0, 32);
}

/** Stamp of the last build, or undefined. Builds of the server have a folder each, and a link to one. */
function builtStamp(root, { name, folder }) {
  const place = join(root, 'build', name === 'server' ? 'server/current' : `${folder}.stamp`);
  try {
    return name === 'server' ? readlinkSync(place) : readFileSync(place, 'utf8');
  } catch {
    return undefined;
  }
}

/** True when it is built from the files that there are. Without sources, what was built is right. */
function isCurrent(root, what) {
  if (!existsSync(join(root, what.folder))) return true;
  return builtStamp(root, what) === stampOf(root, what);
}

/** Names of what has to be built: `server`, `console`, `client`. */
export function oldBuilds(root) {
  return BUILDS.filter((what) => !isCurrent(root, what)).map(({ name }) => name);
}

/**
 * Builds these, side by side. `node`: the pinned one. Resolves with what failed, as `{ name, problem }`; an
 * earlier build stays then.
 */
export async function build(root, node, names) {
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
      if (code === 0) resolve(undefined);
      else failed(said.trim() || `its build exited with ${signal || code}`);
    });
  });
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
  const names = process.argv.slice(2);
  const wanted = names.length > 0 ? names : oldBuilds(root);
  for (const { name, problem } of await build(root, process.execPath, wanted)) {
    console.error(`the ${name} could not be built: ${problem}`);
    process.exitCode = 1;
  }
}

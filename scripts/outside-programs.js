/** Outside programs, their list in programs.json, and their installation on Debian. For the set-up. */
import { spawnSync } from 'node:child_process';
import { accessSync, constants, readFileSync } from 'node:fs';
import { delimiter, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const ROOT = dirname(dirname(fileURLToPath(import.meta.url)));
/** The lists of programs for each purpose. */
const PARTS = {
  start: ['start'],
  // The same, with all parts: for images and packages.
  whole: ['start'],
  // Needs of a start of the package, which npm has already installed.
  installed: ['start'],
  test: ['start', 'test'],
  all: ['start', 'test', 'all'],
  long: ['start', 'test', 'all', 'long'],
  bench: ['start', 'bench'],
};

export const PURPOSES = Object.keys(PARTS);

/** The PATH without our own node_modules/.bin: npm must not run on the Node it is about to replace. */
export function outsidePath() {
  const own = join(ROOT, 'node_modules', '.bin');
  return (process.env.PATH || '')
    .split(delimiter)
    .filter((directory) => directory !== own)
    .join(delimiter);
}

/** Runs a program to its end, quietly. */
export function run(program, args, environment = {}) {
  return spawnSync(program, args, {
    cwd: ROOT,
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'pipe'],
    maxBuffer: 64 * 1024 * 1024,
    env: { ...process.env, PATH: outsidePath(), ...environment },
  });
}

function hasProgram(program) {
  const directories = [...outsidePath().split(delimiter), '/usr/sbin', '/sbin'];
  return directories.some((directory) => {
    try {
      accessSync(join(directory, program), constants.X_OK);
      return true;
    } catch {
      return false;
    }
  });
}

function isRoot() {
  return process.getuid !== undefined && process.getuid() === 0;
}

/**
 * The listed programs for `purpose` that are missing. Programs that only root can use are not reported to
 * other users.
 */
export function missingPrograms(purpose) {
  const listed = JSON.parse(readFileSync(join(ROOT, 'scripts', 'programs.json'), 'utf8'));
  const isWanted = (entry) => entry.for.split(' ').some((part) => PARTS[purpose].includes(part));
  return listed.filter(
    (entry) => isWanted(entry) && (isRoot() || !entry.byRoot) && !hasProgram(entry.program),
  );
}

/** True for root on Debian and its descendants. */
export function canInstallPackages() {
  if (!isRoot() || !hasProgram('apt-get')) return false;
  try {
    return /^ID(_LIKE)?=.*\b(debian|ubuntu)\b/m.test(readFileSync('/etc/os-release', 'utf8'));
  } catch {
    return false;
  }
}

/** A service in a package is not started: its port on this host is not ours to use. */
const QUIET = { DEBIAN_FRONTEND: 'noninteractive', SYSTEMD_OFFLINE: '1', RUNLEVEL: '1' };

const aptGet = (...words) => run('apt-get', words, QUIET);

function install(packages, ...more) {
  const options = ['-y', '-qq', '--no-install-recommends', '-o', 'DPkg::Lock::Timeout=60', ...more];
  const result = aptGet('install', ...options, ...packages);
  if (!result.error && result.status === 0) return null;
  const said = String(result.stderr || '')
    .split('\n')
    .find((line) => line.startsWith('E: '));
  return said ? said.slice(3) : 'apt-get failed';
}

/**
 * Installs Debian packages and returns the outcome, in words. A package that this release lacks, like
 * Ubuntu's chromium, does not prevent the others.
 */
export function installPackages(packages) {
  aptGet('update', '-qq');
  let problem = install(packages);
  // An earlier installation was interrupted, maybe by this set-up.
  if (problem?.includes('dpkg --configure -a')) {
    run('dpkg', ['--configure', '-a'], QUIET);
    problem = install(packages);
  }
  if (problem === null) return 'done';
  const there = packages.filter((name) => install([name], '--simulate') === null);
  if (there.length === packages.length || there.length === 0 || install(there) !== null)
    return `failed (${problem}); features that need them are unavailable`;
  const absent = packages.filter((name) => !there.includes(name));
  return `done, except ${absent.join(', ')}: ${problem}`;
}

/** Reverts the automatic start of these services that packages enabled. */
export function disableServices(names) {
  for (const name of names) {
    // The first with systemd, the second with SysV scripts.
    run('systemctl', ['--quiet', 'disable', name], { SYSTEMD_OFFLINE: '1' });
    run('update-rc.d', [name, 'disable']);
  }
}

/**
 * Fetches the programs of database engines into build/programs/<name>-<version>/, from packages of Debian or
 * Ubuntu that are unpacked and never installed: no root, no service, nothing of the host is changed, and an
 * upgrade of the host takes nothing away. Plain JavaScript without dependencies, because the set-up calls it
 * on an old Node. The server finds them there (server/drivers/managed-server/programs/unpacked-programs.ts).
 */
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { DebianPackages, GuestImageError } from './guest-packages.js';

/** Packages that contain the programs, by the name of the programs. */
const PROGRAMS = {
  postgresql: {
    title: 'PostgreSQL',
    oldest: '15.19',
    // Only its query compiler reads these.
    superfluous: (root) => [`${root.replace('postgresql-', 'usr/lib/postgresql/')}/lib/bitcode`],
    // The package with this name depends on the release that the distribution has.
    roots: (packages) =>
      packages
        .dependencies('postgresql')
        .flatMap((name) => (/^postgresql-\d+$/.test(name) ? [name, name.replace('-', '-client-')] : [])),
    // Debian has it from 13 on, Ubuntu from 24.04.
    extras: (root) => [`${root}-pgvector`],
  },
  mariadb: {
    title: 'MariaDB',
    oldest: '10.11.8',
    known: 'mariadb-server-core',
    superfluous: (_, tree) =>
      ['usr/bin', 'usr/sbin'].flatMap((folder) =>
        readdirSync(join(tree, folder)).flatMap((program) =>
          MARIADB_PROGRAMS.includes(program) ? [] : [`${folder}/${program}`],
        ),
      ),
    roots: () => ['mariadb-server-core', 'mariadb-client-core', 'mariadb-client'],
  },
};
const MARIADB_PROGRAMS = ['mariadbd', 'mariadb', 'mariadb-dump'];
/** Libraries that belong to the host's libc, and those that only a query compiler needs. */
const NOT_TAKEN = /^lib(?:c6|c-bin|c-l10n|llvm\d|z3-|perl|pam-modules|elogind|debian|newt)/;
/** Files that a server does not need. */
const SUPERFLUOUS = ['usr/share/doc', 'usr/share/man', 'usr/share/locale', 'usr/share/lintian', 'etc', 'var'];
const RETRY_MS = 3_600_000;
const AGAIN =
  'make sure apt can reach its mirror, remove build/programs/*.problem.json and run the set-up again (npm start)';
const ELSEWHERE = 'set up Cloudlet on Debian 12, Ubuntu 24.04 or newer (npm start)';

/** This distribution has none that will do, today and tomorrow. */
export class NoPackages extends Error {}

/** Names in PROGRAMS that are not in the repository `root` yet. */
export function missingDatabasePrograms(root) {
  const there = existsSync(folderOf(root)) ? readdirSync(folderOf(root)) : [];
  return Object.keys(PROGRAMS).filter((name) => !there.some((entry) => isFolderOf(name, entry)));
}

/** Whether downloading them failed within the last hour. */
export function hasJustFailed(root, name) {
  try {
    return Date.now() - statSync(noteOf(root, name)).mtimeMs < RETRY_MS;
  } catch {
    return false;
  }
}

/** They were installed in another way. */
export function forgetFailure(root, name) {
  rmSync(noteOf(root, name), { force: true });
}

/** Downloads them; returns their version. Throws an Error of one line if this host cannot, or NoPackages. */
export function fetchDatabasePrograms({ root, outsidePath, name, onProgress }) {
  const output = folderOf(root);
  mkdirSync(output, { recursive: true });
  const directory = mkdtempSync(join(output, 'work-'));
  try {
    const packages = new DebianPackages({ directory, path: outsidePath, onProgress });
    const version = fetch(packages, { name, output });
    forgetFailure(root, name);
    return version;
  } catch (error) {
    const isPermanent = error instanceof NoPackages;
    if (!isPermanent && !(error instanceof GuestImageError)) throw error;
    writeFileSync(
      noteOf(root, name),
      `${JSON.stringify({ reason: error.message, fix: isPermanent ? ELSEWHERE : AGAIN })}\n`,
    );
    throw error;
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

function fetch(packages, { name, output }) {
  const { title, oldest, known = name, extras = () => [] } = PROGRAMS[name];
  try {
    packages.firstKnown([known]);
  } catch (error) {
    if (/was not found/.test(error.message)) throw new NoPackages('this host has no apt-get');
    throw error;
  }
  const roots = PROGRAMS[name].roots(packages);
  const version = /^(?:\d+:)?([\d.]+)/.exec(packages.candidates(roots)[roots[0]])[1];
  if (isOlder(version, oldest))
    throw new NoPackages(`the newest package is ${title} ${version}, but ${oldest} or newer is required`);
  const isTaken = (other) =>
    /^(?:lib|zlib)/.test(other) && !NOT_TAKEN.test(other) && !other.endsWith('-perl');
  const there = extras(roots[0]).filter((each) => packages.firstKnown([each, roots[0]]) === each);
  const tree = packages.unpack(packages.closure([...roots, ...there], isTaken));
  for (const path of [...SUPERFLUOUS, ...PROGRAMS[name].superfluous(roots[0], tree)])
    rmSync(join(tree, path), { recursive: true, force: true });
  // Its name shows that it is complete.
  renameSync(tree, join(output, `${name}-${version}`));
  return version;
}

function isOlder(version, oldest) {
  const [one, other] = [version, oldest].map((text) => text.split('.').map(Number));
  const at = other.findIndex((number, index) => number !== (one[index] || 0));
  return at >= 0 && (one[at] || 0) < other[at];
}

/** The folder of all of them. */
export function folderOf(root) {
  return join(root, 'build', 'programs');
}

/** Records why there are none, for messages of the server. */
function noteOf(root, name) {
  return join(folderOf(root), `${name}.problem.json`);
}

function isFolderOf(name, entry) {
  return entry.startsWith(`${name}-`) && /^\d/.test(entry.slice(name.length + 1));
}

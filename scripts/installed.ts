/** Which outside programs are missing here, for the `skip` of tests. scripts/programs.json lists them all. */
import { spawnSync } from 'node:child_process';
import { accessSync, constants, readFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import PROGRAMS from './programs.json' with { type: 'json' };

/** Debian's PATH for ordinary users lacks these. */
const SYSTEM_FOLDERS = ['/usr/sbin', '/sbin'];
const FIX = 'apt-get install ';
/** For the `skip` of tests that start machines. */
export const NO_GUEST_IMAGE = 'the guest image has not been built; run npm start to build it';
/** For the `skip` of tests that start a PostgreSQL server. */
export const NO_POSTGRESQL = 'PostgreSQL has not been fetched; run npm start to fetch it';
/** For the `skip` of tests that start a MariaDB server. */
export const NO_MARIADB = 'MariaDB has not been fetched; run npm start to fetch it';
/** For the `skip` of the specification tests of MongoDB's drivers. */
export const NO_MONGODB_SPECIFICATION =
  'the specification tests have not been fetched; run node scripts/setup.js long to fetch them';
/** Programs unpacked by the set-up, by the reason; for the image, the package that some descendants lack. */
const UNPACKED: Readonly<Record<string, string>> = {
  [NO_GUEST_IMAGE]: 'linux-image-cloud-amd64',
  [NO_POSTGRESQL]: 'postgresql',
  [NO_MARIADB]: 'mariadb-server-core',
  [NO_MONGODB_SPECIFICATION]: 'libmongoc-dev',
};

function hasProgram(program: string): boolean {
  const folders = [...(process.env.PATH ?? '').split(delimiter), ...SYSTEM_FOLDERS];
  return folders.some((folder) => {
    try {
      accessSync(join(folder, program), constants.X_OK);
      return true;
    } catch {
      return false;
    }
  });
}

/** Why these programs cannot be run: the first missing one with its Debian package, or false. */
export function notInstalled(...programs: readonly string[]): string | false {
  for (const program of programs) {
    const listed = PROGRAMS.find((entry) => entry.program === program);
    if (listed === undefined) throw new Error(`${program} is not in scripts/programs.json`);
    if (!hasProgram(program)) return `${program} is not installed: ${FIX}${listed.package}`;
  }
  return false;
}

/** True when the set-up installs packages here: it runs as root on Debian or a descendant. */
function isInstalledBySetUp(): boolean {
  try {
    const isDebian = /^ID(_LIKE)?=.*\b(debian|ubuntu)\b/m.test(readFileSync('/etc/os-release', 'utf8'));
    return isDebian && process.getuid?.() === 0 && hasProgram('apt-get');
  } catch {
    return false;
  }
}

/** Parts of the list that only the set-up of all tests installs, not that of the quick ones. */
const LATER = /^(?:all|long|bench)$/;

/**
 * The package without which there was this `reason` to skip, if the set-up for `purpose` can install it here:
 * that of `npm test`, or of all tests.
 */
export function curablePackage(reason: string, purpose: 'test' | 'all'): string | undefined {
  const name = UNPACKED[reason] ?? reason.split(FIX)[1];
  if (name === undefined || !isInstalledBySetUp()) return undefined;
  const uses = PROGRAMS.filter((entry) => entry.package === name).flatMap((entry) => entry.for.split(' '));
  if (purpose === 'test' && uses.length > 0 && uses.every((use) => LATER.test(use))) return undefined;
  const isOffered = spawnSync('apt-get', ['install', '--simulate', '-qq', ...name.split(' ')]).status === 0;
  return isOffered ? name : undefined;
}

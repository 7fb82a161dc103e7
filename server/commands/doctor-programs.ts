/** The part of `cloudlet doctor` that looks for programs: the hypervisor and the database engines. */
import { execFile } from 'node:child_process';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { QemuPrograms } from '../drivers/qemu/program.ts';
import type { Finding } from './doctor.ts';

const run = promisify(execFile);
const ASK_MS = 5000;
/** Debian keeps the server here, out of everyone's PATH, one directory per major version. */
const DEBIAN_POSTGRES = '/usr/lib/postgresql';

/** What `<program> --version` says first, or undefined when there is no such program or it does not run. */
async function versionOf(program: string): Promise<string | undefined> {
  try {
    const { stdout } = await run(program, ['--version'], { timeout: ASK_MS });
    return stdout.trim().split('\n', 1)[0];
  } catch {
    return undefined;
  }
}

/** The first candidate that runs. */
async function firstVersion(programs: readonly string[]): Promise<string | undefined> {
  for (const program of programs) {
    const version = await versionOf(program);
    if (version !== undefined) return version;
  }
  return undefined;
}

export async function checkQemu(): Promise<Finding[]> {
  const subject = 'QEMU';
  const found = await new QemuPrograms().look();
  if ('path' in found) return [{ level: 'ok', subject, detail: `${found.version}, ${found.path}` }];
  return [
    { level: 'warn', subject, detail: `${found.problem}: virtual machines cannot start`, fix: found.fix },
  ];
}

interface Engine {
  readonly subject: string;
  readonly programs: readonly string[];
  readonly fix: string;
}

async function engines(): Promise<Engine[]> {
  const majors = await readdir(DEBIAN_POSTGRES).catch(() => []);
  const newestFirst = majors.sort((a, b) => Number(b) - Number(a));
  return [
    {
      subject: 'PostgreSQL',
      programs: ['postgres', ...newestFirst.map((major) => join(DEBIAN_POSTGRES, major, 'bin/postgres'))],
      fix: 'apt-get install postgresql',
    },
    {
      subject: 'MySQL/MariaDB',
      programs: ['mysqld', 'mariadbd', '/usr/sbin/mysqld', '/usr/sbin/mariadbd'],
      fix: 'apt-get install mariadb-server',
    },
    {
      subject: 'MongoDB',
      programs: ['mongod', '/usr/bin/mongod'],
      fix: 'install mongodb-org from MongoDB (Debian has no package)',
    },
  ];
}

/** SQLite databases need none of these; each missing engine only makes its own kind unavailable. */
export async function checkEngines(): Promise<Finding[]> {
  return Promise.all(
    (await engines()).map(async ({ subject, programs, fix }): Promise<Finding> => {
      const version = await firstVersion(programs);
      if (version !== undefined) return { level: 'ok', subject, detail: version };
      return { level: 'warn', subject, detail: 'not found: databases of this kind are unavailable', fix };
    }),
  );
}

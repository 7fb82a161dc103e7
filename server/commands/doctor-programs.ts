/** The part of `cloudlet doctor` that looks for programs: the hypervisor and the database engines. */
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { findPrograms as findMariadb } from '../drivers/engine-mysql/mysql-programs.ts';
import { findPrograms } from '../drivers/engine-postgresql/postgresql-programs.ts';
import { QemuPrograms } from '../drivers/qemu/program.ts';
import type { Finding } from './doctor.ts';

const run = promisify(execFile);
const ASK_MS = 5000;
const NOT_FOUND = 'not found: databases of this kind are unavailable';

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

const ENGINES: readonly Engine[] = [
  {
    subject: 'MongoDB',
    programs: ['mongod', '/usr/bin/mongod'],
    fix: 'install mongodb-org from MongoDB (Debian has no package)',
  },
];

/** SQLite databases need none of these; each missing engine only makes its own kind unavailable. */
export async function checkEngines(): Promise<Finding[]> {
  const others = ENGINES.map(async ({ subject, programs, fix }): Promise<Finding> => {
    const version = await firstVersion(programs);
    if (version !== undefined) return { level: 'ok', subject, detail: version };
    return { level: 'warn', subject, detail: NOT_FOUND, fix };
  });
  return Promise.all([checkPostgresql(), checkMariadb(), ...others]);
}

async function checkPostgresql(): Promise<Finding> {
  const subject = 'PostgreSQL';
  const found = await findPrograms(null);
  if ('version' in found) return { level: 'ok', subject, detail: `${found.version}, ${found.bin}` };
  return { level: 'warn', subject, detail: `${NOT_FOUND}: ${found.reason}`, fix: found.fix };
}

async function checkMariadb(): Promise<Finding> {
  const subject = 'MySQL/MariaDB';
  const found = await findMariadb(null);
  if ('version' in found) return { level: 'ok', subject, detail: `${found.version}, ${found.server}` };
  return { level: 'warn', subject, detail: `${NOT_FOUND}: ${found.reason}`, fix: found.fix };
}

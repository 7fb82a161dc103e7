/** The part of `cloudlet doctor` that looks for programs: the hypervisor and the database engines. */
import { findPrograms as findMariadb } from '../drivers/engine-mysql/mysql-programs.ts';
import { findPrograms } from '../drivers/engine-postgresql/postgresql-programs.ts';
import { QemuPrograms } from '../drivers/qemu/program.ts';
import type { Finding } from './doctor.ts';

const NOT_FOUND = 'not found: databases of this kind are unavailable';

export async function checkQemu(): Promise<Finding[]> {
  const subject = 'QEMU';
  const found = await new QemuPrograms().look();
  if ('path' in found) return [{ level: 'ok', subject, detail: `${found.version}, ${found.path}` }];
  return [
    { level: 'warn', subject, detail: `${found.problem}: virtual machines cannot start`, fix: found.fix },
  ];
}

/** SQLite databases need none of these; each missing engine only makes its own kind unavailable. */
export function checkEngines(): Promise<Finding[]> {
  return Promise.all([checkPostgresql(), checkMariadb()]);
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

/** The part of `cloudlet doctor` that looks for programs: the hypervisor and the database engines. */
import { globSync } from 'node:fs';
import { join } from 'node:path';
import type { Config } from '../config/config.ts';
import { chooseMongodb } from '../drivers/engines/mongodb/on-server/choice.ts';
import { findMongod } from '../drivers/engines/mongodb/on-server/mongod-program.ts';
import { probe as probeMongodb } from '../drivers/engines/mongodb/on-server/operator-mongodb.ts';
import { externalMysql } from '../drivers/engines/mysql/external-server-facts.ts';
import { MYSQL } from '../drivers/engines/mysql/mysql.ts';
import { findPrograms as findMariadb } from '../drivers/engines/mysql/mysql-programs.ts';
import { dataMajor } from '../drivers/engines/postgresql/data-directory.ts';
import { externalPostgresql } from '../drivers/engines/postgresql/external-server-facts.ts';
import { postgresqlKind } from '../drivers/engines/postgresql/postgresql.ts';
import {
  findPrograms,
  missingOf,
  newestPrograms,
} from '../drivers/engines/postgresql/postgresql-programs.ts';
import { findFilter } from '../drivers/host-process/system-calls.ts';
import { dataSeries } from '../drivers/managed-server/server-data.ts';
import { type ExternalFacts, probeExternal } from '../drivers/managed-server/sql-server.ts';
import { QemuPrograms } from '../drivers/qemu/program.ts';
import type { Finding } from './doctor.ts';

const NOT_FOUND = 'not found: databases of this engine are unavailable';

export async function checkQemu(): Promise<Finding[]> {
  const subject = 'QEMU';
  const found = await new QemuPrograms().detect();
  if ('path' in found) return [{ level: 'ok', subject, detail: `${found.version}, ${found.path}` }];
  return [
    { level: 'warn', subject, detail: `${found.problem}: virtual machines cannot start`, fix: found.fix },
  ];
}

/** Whether programs of strangers' data run under a filter of system calls. */
export async function checkFilter(): Promise<Finding> {
  const subject = 'system calls';
  const { problem } = await findFilter();
  if (problem === '') return { level: 'ok', subject, detail: 'those of database programs are filtered' };
  const fix = 'apt-get install perl-base, on a kernel with seccomp filters';
  return { level: 'warn', subject, detail: problem, fix };
}

type EngineSettings = Pick<
  Config,
  'dataDir' | 'postgresqlUrl' | 'mysqlUrl' | 'mongodbUrl' | 'mongodbServer' | 'databaseHost'
>;

/** SQLite databases need none of these; each missing engine makes its own kind unavailable. */
export function checkEngines(config: EngineSettings): Promise<Finding[]> {
  return Promise.all([checkPostgresql(config), checkMysql(config), checkMongodb(config)]);
}

async function checkMongodb(config: EngineSettings): Promise<Finding> {
  const subject = 'MongoDB';
  const folder = join(config.dataDir, 'databases/mongodb');
  const choice = chooseMongodb(config, folder);
  if (choice.kind === 'url') return checkExternal(subject, probeMongodb(choice.address));
  if (choice.kind === 'built-in') {
    const why = choice.why ?? 'mongod is not installed, and CLOUDLET_MONGODB_URL is not set';
    return { level: 'ok', subject, detail: `built-in engine; ${why}` };
  }
  const found = await findMongod(dataSeries({ keeper: join(folder, 'server/keeper') }));
  if (!('version' in found))
    return { level: 'warn', subject, detail: `${NOT_FOUND}: ${found.reason}`, fix: found.fix };
  const untried = 'Cloudlet manages it, but has never been tested with a real mongod';
  return { level: 'ok', subject, detail: `${found.version}, ${found.command}; ${untried}` };
}

async function checkPostgresql(config: Pick<Config, 'dataDir' | 'postgresqlUrl'>): Promise<Finding> {
  const subject = 'PostgreSQL';
  const external = externalPostgresql(config);
  if (external !== null) return checkExternal(subject, probeExternal(postgresqlKind(), external));
  const homes = globSync(join(config.dataDir, 'databases/postgresql/accounts/*/home'));
  const majors = homes.map((home) => dataMajor({ home })).filter((major) => major !== null);
  const made = majors.length === 0 ? null : Math.min(...majors);
  const [found, newest] = [await findPrograms(made), await newestPrograms()];
  if (!('version' in found))
    return { level: 'warn', subject, detail: `${NOT_FOUND}: ${found.reason}`, fix: found.fix };
  const upgrade = 'cloudlet databases upgrade postgresql';
  const isOld = made !== null && newest !== null && newest.major > made;
  const more = isOld ? `; ${newest.version} is also installed; to upgrade, run ${upgrade}` : '';
  const missing = missingOf(found);
  if (missing !== null)
    return { level: 'warn', subject, detail: `${missing.reason} (${found.bin})`, fix: missing.fix };
  return { level: 'ok', subject, detail: `${found.version}, ${found.bin}${more}` };
}

function checkExternal(subject: string, asked: Promise<ExternalFacts>): Promise<Finding> {
  return asked.then(
    ({ version, limits }) => ({
      level: 'ok',
      subject,
      detail: `${version}, your own server: ${limits.join('; ')}`,
    }),
    (error) => ({ level: 'warn', subject, detail: error.message, fix: error.hint }),
  );
}

async function checkMysql(config: Pick<Config, 'mysqlUrl'>): Promise<Finding> {
  const subject = 'MySQL/MariaDB';
  const external = externalMysql(config);
  if (external !== null) return checkExternal(subject, probeExternal(MYSQL, external));
  const found = await findMariadb(null);
  if ('version' in found) return { level: 'ok', subject, detail: `${found.version}, ${found.server}` };
  return { level: 'warn', subject, detail: `${NOT_FOUND}: ${found.reason}`, fix: found.fix };
}

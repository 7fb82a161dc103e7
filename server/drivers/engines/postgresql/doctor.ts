/** PostgreSQL in the report of `cloudlet doctor`. */
import { globSync } from 'node:fs';
import { join } from 'node:path';
import type { Config } from '../../../config/config.ts';
import type { Finding } from '../../../platform/finding.ts';
import { probeExternal } from '../../managed-server/sql-server.ts';
import { notFound, ofExternal } from '../shared/engine-findings.ts';
import { externalPostgresql } from './external-server-facts.ts';
import { postgresqlKind } from './postgresql.ts';
import { findPrograms, missingOf, newestPrograms } from './postgresql-programs.ts';
import { dataMajor } from './server/data-directory.ts';

export async function checkPostgresql(config: Pick<Config, 'dataDir' | 'postgresqlUrl'>): Promise<Finding> {
  const subject = 'PostgreSQL';
  const external = externalPostgresql(config);
  if (external !== null) return ofExternal(subject, probeExternal(postgresqlKind(), external));
  const homes = globSync(join(config.dataDir, 'databases/postgresql/accounts/*/home'));
  const majors = homes.map((home) => dataMajor({ home })).filter((major) => major !== null);
  const made = majors.length === 0 ? null : Math.min(...majors);
  const [found, newest] = [await findPrograms(made), await newestPrograms()];
  if (!('version' in found)) return notFound(subject, found);
  const upgrade = 'cloudlet databases upgrade postgresql';
  const isOld = made !== null && newest !== null && newest.major > made;
  const more = isOld ? `; ${newest.version} is also installed; to upgrade, run ${upgrade}` : '';
  const missing = missingOf(found);
  if (missing !== null)
    return { level: 'warn', subject, detail: `${missing.reason} (${found.bin})`, fix: missing.fix };
  return { level: 'ok', subject, detail: `${found.version}, ${found.bin}${more}` };
}

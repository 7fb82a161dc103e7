/** MySQL's description: a MariaDB server for each account, or the operator's MariaDB or MySQL. */
import { join } from 'node:path';
import type { Config } from '../../../config/config.ts';
import type { Finding } from '../../../platform/finding.ts';
import { probeExternal } from '../../managed-server/sql-server.ts';
import type { EngineAbout } from '../shared/engine-about.ts';
import { notFound, ofExternal } from '../shared/engine-findings.ts';
import { sqlFrameworks } from '../shared/framework-files.ts';
import { externalMysql } from './external-server-facts.ts';
import { FRAMEWORKS } from './frameworks.ts';
import { MYSQL as KIND } from './mysql.ts';
import { MysqlEngine, mysqlServers, refusal } from './mysql-engine.ts';
import { findPrograms } from './mysql-programs.ts';
import { MYSQL_PLANS } from './plans.ts';
import { MYSQL_ROWS } from './rows.ts';
import { mysqlSnippets } from './snippets.ts';

const FOLDER = 'databases/mysql';

export const MYSQL: EngineAbout = {
  name: 'mysql',
  title: 'MySQL',
  summary: 'A MariaDB server, for applications written for MySQL.',
  port: 3306,
  traits: {
    language: 'sql',
    dialect: 'mysql',
    transport: 'tcp',
    hasLog: true,
    offersTls: true,
    hasTestDatabases: true,
    hasAccountServer: true,
  },
  client: { programs: ['mariadb', 'mysql'], package: 'mariadb-client' },
  // Crashed tables, and corrupt indexes or pages.
  damageCodes: ['1034', '1194', '1195', '1712', '1877'],
  rows: MYSQL_ROWS,
  plans: MYSQL_PLANS,
  dumpChanges: 'by_insertion',
  dumpBegins: /^(?:\/\*M?!999999\\- .*\n)?-- (?:MySQL|MariaDB) dump \d/,
  snippets: mysqlSnippets,
  frameworks: (target) => sqlFrameworks(FRAMEWORKS, target),
  folder: FOLDER,
  programs: { part: 'mariadb' },
  refusal,
  development: { isDefault: false, names: ['MYSQL_URL'], variables: ({ uri }) => ({ MYSQL_URL: uri }) },
  canUpgrade: false,
  doctor: async (config) => [await check(config)],
  build: async ({ config, managed, serverUsers }) => {
    const options = {
      ...managed,
      folder: join(config.dataDir, FOLDER),
      uidBase: serverUsers.first('mysql'),
      firstPort: config.mysqlPort,
    };
    const external = externalMysql(config);
    if (external !== null) {
      const engine = new MysqlEngine({ ...options, external });
      return { engine, wake: () => engine.wake() };
    }
    const engine = mysqlServers({ ...options, uidOf: serverUsers.ofAccount('mysql') });
    return { engine, wake: () => engine.wake(), wanted: (listener) => engine.wanted(listener) };
  },
};

async function check(config: Pick<Config, 'mysqlUrl'>): Promise<Finding> {
  const subject = 'MySQL/MariaDB';
  const external = externalMysql(config);
  if (external !== null) return ofExternal(subject, probeExternal(KIND, external));
  const found = await findPrograms(null);
  if (!('version' in found)) return notFound(subject, found);
  return { level: 'ok', subject, detail: `${found.version}-MariaDB, ${found.server}` };
}

/** PostgreSQL's description: a server for each account, or the operator's. */
import { join } from 'node:path';
import type { EngineAbout } from '../shared/engine-about.ts';
import { sqlFrameworks } from '../shared/framework-files.ts';
import { checkPostgresql } from './doctor.ts';
import { externalPostgresql } from './external-server-facts.ts';
import { FRAMEWORKS } from './frameworks.ts';
import { POSTGRESQL_PLANS } from './plans.ts';
import { PostgresqlEngine, postgresqlServers, refusal } from './postgresql-engine.ts';
import { findPrograms } from './postgresql-programs.ts';
import { POSTGRESQL_ROWS } from './rows.ts';
import { postgresqlSnippets } from './snippets.ts';

const FOLDER = 'databases/postgresql';

export const POSTGRESQL: EngineAbout = {
  name: 'postgresql',
  title: 'PostgreSQL',
  summary: 'The right choice for most applications that need SQL.',
  port: 5432,
  traits: {
    language: 'sql',
    dialect: 'postgresql',
    transport: 'tcp',
    hasLog: true,
    offersTls: true,
    hasTestDatabases: true,
    hasAccountServer: true,
  },
  client: { programs: ['psql'], package: 'postgresql-client' },
  // data_corrupted and index_corrupted.
  damageCodes: ['XX001', 'XX002'],
  rows: POSTGRESQL_ROWS,
  plans: POSTGRESQL_PLANS,
  dumpChanges: 'by_insertion',
  dumpBegins: /^(?:PGDMP|--\s+-- PostgreSQL database (?:cluster )?dump\b)/,
  snippets: postgresqlSnippets,
  frameworks: (target) => sqlFrameworks(FRAMEWORKS, target),
  folder: FOLDER,
  programs: { part: 'postgresql', isOnHost: async () => 'version' in (await findPrograms(null)) },
  refusal,
  development: {
    isDefault: true,
    names: ['DATABASE_URL'],
    variables: ({ uri }) => ({ DATABASE_URL: uri }),
  },
  canUpgrade: true,
  doctor: async (config) => [await checkPostgresql(config)],
  build: async ({ config, managed, serverUsers }) => {
    const options = {
      ...managed,
      folder: join(config.dataDir, FOLDER),
      uidBase: serverUsers.first('postgresql'),
      firstPort: config.postgresqlPort,
    };
    const external = externalPostgresql(config);
    if (external !== null) {
      const engine = new PostgresqlEngine({ ...options, external });
      return { engine, wake: () => engine.wake(), upgrade: () => engine.upgrade() };
    }
    const engine = postgresqlServers({ ...options, uidOf: serverUsers.ofAccount('postgresql') });
    return {
      engine,
      wake: () => engine.wake(),
      wanted: (listener) => engine.wanted(listener),
      upgrade: () => engine.upgrade(),
    };
  },
};

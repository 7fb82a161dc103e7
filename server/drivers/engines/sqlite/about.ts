/** SQLite in a page: a file per database, opened by its own process, that drivers reach by HTTP. */
import { join } from 'node:path';
import type { EngineAbout } from '../shared/engine-about.ts';
import { hranaOf } from './hrana-exchange.ts';
import { SQLITE_PLANS } from './plans.ts';
import { SQLITE_ROWS } from './rows.ts';
import { sqliteSnippets } from './snippets.ts';
import { SqliteEngine } from './sqlite-engine.ts';

const FOLDER = 'databases/sqlite';

export const SQLITE: EngineAbout = {
  name: 'sqlite',
  title: 'SQLite',
  summary: 'A single file, queried over HTTP. It is ready immediately and suits small sites and tests.',
  port: 80,
  traits: {
    language: 'sql',
    dialect: 'sqlite',
    transport: 'http',
    hasLog: false,
    offersTls: false,
    hasTestDatabases: false,
    hasAccountServer: false,
  },
  client: null,
  damageCodes: [],
  rows: SQLITE_ROWS,
  plans: SQLITE_PLANS,
  dumpChanges: 'in_place',
  dumpBegins: /^(?:SQLite format 3\0|PRAGMA (?:foreign_keys ?= ?OFF|defer_foreign_keys ?= ?\w+);\s)/i,
  snippets: sqliteSnippets,
  frameworks: () => [],
  folder: FOLDER,
  programs: null,
  development: {
    isDefault: true,
    names: ['LIBSQL_URL', 'LIBSQL_AUTH_TOKEN'],
    // Its token has a separate variable.
    variables: ({ uri, password }) => ({
      LIBSQL_URL: uri.split('?')[0] ?? uri,
      LIBSQL_AUTH_TOKEN: password,
    }),
  },
  canUpgrade: false,
  // Node's SQLite, which differs from that of the metadata.
  doctor: async () => [{ level: 'ok', subject: 'SQLite databases', detail: String(process.versions.sqlite) }],
  build: async ({ config, children, dataUrl }) => {
    const engine = new SqliteEngine({ ...children, folder: join(config.dataDir, FOLDER), address: dataUrl });
    return { engine, hrana: hranaOf(engine) };
  },
};

/**
 * Writes docs/databases/compatibility.md: the features that each database engine accepts, tested
 * with the engine itself, on a cloud started for this. `node scripts/write-compatibility.ts`, with
 * the Node in node_modules/.bin.
 */
import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { fileURLToPath } from 'node:url';
import { createClient } from '@libsql/client';
import { createConnection } from 'mysql2/promise';
import pg from 'pg';
import { Client } from '../test/harness/client.ts';
import { CloudProcess } from '../test/harness/cloud-process.ts';
import { askMongodb } from './compatibility/ask-mongodb.ts';
import { LIBSQL, MYSQL, POSTGRESQL, type Probe } from './compatibility/sql-probes.ts';

export const COMPATIBILITY_PAGE = fileURLToPath(
  new URL('../docs/databases/compatibility.md', import.meta.url),
);

/**
 * Runs a statement and returns its rows. Rejects with the error, or the warning: the accepted
 * statement has no effect.
 */
type Run = (statement: string) => Promise<unknown[][]>;

const SHOWN_CHARACTERS = 70;

/** Null: it was accepted. */
type Answer = string | null;

function shown(text: string): string {
  if (text.startsWith('You have an error in your SQL syntax')) return 'syntax error';
  // Names of databases and users differ each time.
  const line = text
    .replace(/\b([du])_[0-9a-z]{16}\b/g, '$1_…')
    .replace(/\s+/g, ' ')
    .replaceAll('|', '\\|')
    .trim();
  return line.length > SHOWN_CHARACTERS ? `${line.slice(0, SHOWN_CHARACTERS).trimEnd()}…` : line;
}

async function ask({ statements, wants, refused }: Probe, run: Run): Promise<Answer> {
  try {
    let rows: unknown[][] = [];
    for (const statement of statements) rows = await run(statement);
    if (refused !== undefined) return (await isTaken(refused, run)) ? `takes \`${refused}\`` : null;
    const found = String(rows[0]?.[0] ?? '');
    return wants === undefined || wants.test(found) ? null : `gives \`${shown(found)}\``;
  } catch (error) {
    return shown((error as Error).message);
  }
}

function isTaken(statement: string, run: Run): Promise<boolean> {
  return run(statement).then(
    () => true,
    () => false,
  );
}

interface Sql {
  readonly run: Run;
  /** Removes objects created by a probe. */
  readonly clear: readonly string[];
}

async function table(probes: readonly Probe[], original: string, { run, clear }: Sql): Promise<string> {
  const rows: string[] = [];
  for (const probe of probes) {
    const answer = await ask(probe, run);
    for (const statement of clear) await run(statement).catch(() => {});
    const here = answer === null ? 'yes' : `no: ${answer}`;
    rows.push(`| ${probe.what} | ${probe.original ? 'yes' : 'no'} | ${here} |`);
  }
  return [`| | ${original} | here |`, '|---|---|---|', ...rows].join('\n');
}

const MADE_MYSQL = 'TABLE VIEW SEQUENCE TRIGGER FUNCTION PROCEDURE EVENT DATABASE USER'.split(' ');
const SETUP_MYSQL = [
  'CREATE OR REPLACE TABLE t (id INT PRIMARY KEY, a INT, j JSON, s VARCHAR(20))',
  `INSERT INTO t VALUES (1, 1, '{"a": 1}', 'a')`,
];

async function mysql(uri: string): Promise<string> {
  const connection = await createConnection({ uri, rowsAsArray: true });
  const run: Run = async (statement) => {
    const [rows] = await connection.query(statement);
    const [warnings] = await connection.query('SHOW WARNINGS');
    for (const [level, , text] of warnings as unknown as string[][]) {
      if (level !== 'Note') throw new Error(text);
    }
    return Array.isArray(rows) ? (rows as unknown[][]) : [];
  };
  for (const statement of SETUP_MYSQL) await run(statement);
  const clear = [
    ...MADE_MYSQL.map((kind) => `DROP ${kind} IF EXISTS made`),
    'DROP DATABASE IF EXISTS test_made',
    ...SETUP_MYSQL,
  ];
  const [[version]] = (await run('SELECT VERSION()')) as [[string]];
  const rows = await table(MYSQL, 'MySQL 8.0', { run, clear });
  await connection.end();
  return `## MySQL: MariaDB ${version.split('-')[0]} compared with MySQL 8.0\n\n${rows}\n`;
}

const list = (names: readonly string[]) =>
  names.length === 0 ? 'none' : names.map((name) => `\`${name}\``).join(', ');

async function postgresql(uri: string): Promise<string> {
  const client = new pg.Client({ connectionString: uri });
  await client.connect();
  const warnings: string[] = [];
  client.on('notice', ({ severity, message }) => {
    if (severity === 'WARNING') warnings.push(message ?? '');
  });
  const run: Run = async (statement) => {
    warnings.length = 0;
    const { rows } = await client.query({ text: statement, rowMode: 'array' });
    if (warnings[0] !== undefined) throw new Error(warnings[0]);
    return rows ?? [];
  };
  await run('CREATE TABLE t (id int PRIMARY KEY, a int)');
  const kinds = [
    'DATABASE',
    'SCHEMA',
    'ROLE',
    'MATERIALIZED VIEW',
    'FUNCTION',
    'TABLE',
    'PUBLICATION',
    'EVENT TRIGGER',
  ];
  const clear = [
    'ROLLBACK',
    'DROP EXTENSION IF EXISTS pg_stat_statements',
    ...kinds.map((kind) => `DROP ${kind} IF EXISTS made`),
    'SELECT pg_advisory_unlock_all()',
  ];
  const rows = await table(POSTGRESQL, 'its superuser', { run, clear });
  const [[version]] = (await run('SHOW server_version')) as [[string]];
  const names = async (statement: string) => (await run(statement)).map(([name]) => String(name));
  const extensions = await names('SELECT name FROM pg_available_extensions ORDER BY name');
  const taken = await acceptedOf(
    extensions,
    run,
    (name) => `CREATE EXTENSION IF NOT EXISTS "${name}" CASCADE`,
  );
  const settingsOf = (context: string) =>
    names(`SELECT name FROM pg_settings WHERE context = '${context}' ORDER BY name`);
  const set = (name: string) => `SELECT set_config('${name}', current_setting('${name}'), false)`;
  const [own, others] = [await settingsOf('user'), await settingsOf('superuser')];
  const ownTaken = await acceptedOf(own, run, set);
  const othersTaken = await acceptedOf(others, run, set);
  await client.end();
  const without = (all: readonly string[], some: readonly string[]) =>
    all.filter((name) => !some.includes(name));
  return `## PostgreSQL ${version.split(' ')[0]}

${rows}

**Extensions** that a user of a database can create: ${list(taken)}.

Extensions that only the superuser can create: ${list(without(extensions, taken))}.

**Settings**: of the ${own.length} settings that PostgreSQL lets every user change, a user can change
all except ${list(without(own, ownTaken))}. Of the ${others.length} settings that only superusers can change, a user can change:
${list(othersTaken)}.
`;
}

/** The statements that are accepted, each in a transaction that is rolled back. */
async function acceptedOf(
  names: readonly string[],
  run: Run,
  statementOf: (name: string) => string,
): Promise<string[]> {
  const accepted: string[] = [];
  for (const name of names) {
    await run('BEGIN');
    const taken = await isTaken(statementOf(name), run);
    await run('ROLLBACK');
    if (taken) accepted.push(name);
  }
  return accepted;
}

async function libsql(uri: string): Promise<string> {
  const client = createClient({ url: uri });
  const run: Run = async (statement) =>
    (await client.execute(statement)).rows.map((row) => Array.from({ length: row.length }, (_, i) => row[i]));
  await run('CREATE TABLE t (id INTEGER PRIMARY KEY, a INT)');
  const clear = ['TABLE', 'TRIGGER'].map((kind) => `DROP ${kind} IF EXISTS made`);
  const [[version]] = (await run('SELECT sqlite_version()')) as [[string]];
  const rows = await table(LIBSQL, 'libSQL', { run, clear });
  client.close();
  return `## SQLite ${version}, compared with libSQL\n\n${rows}\n`;
}

const HEAD = `# Features of the database engines

\`scripts/write-compatibility.ts\` writes this page. It starts a cloud and tests the engines: "here" is the
result for a user of one database, and "yes" means that everything in the row works. The column of the original
engine follows the manual of that engine. [Databases](../databases.md) describes everything else.
`;

/** The page for the engines of this host. */
export async function renderCompatibility(): Promise<string> {
  const cloud = await CloudProcess.start({ env: { CLOUDLET_MONGODB_SERVER: 'built-in' } });
  try {
    const user = await new Client(cloud.api).newUser();
    const uriOf = async (engine: string) => {
      const { status, body } = await user.call('/api/databases', { json: { name: engine, engine } });
      if (status !== 201) throw new Error(`no database of ${engine}: ${JSON.stringify(body)}`);
      return String(body.connection.uri);
    };
    const parts = [
      await mysql(await uriOf('mysql')),
      await postgresql(await uriOf('postgresql')),
      await libsql(await uriOf('sqlite')),
      await askMongodb(await uriOf('mongodb')),
    ];
    return [HEAD, ...parts].join('\n');
  } finally {
    await cloud.stop();
  }
}

if (import.meta.main) {
  mkdirSync(dirname(COMPATIBILITY_PAGE), { recursive: true });
  writeFileSync(COMPATIBILITY_PAGE, await renderCompatibility());
}

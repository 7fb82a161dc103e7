/** Databases, by name or id. */
import type { Cloud, Database, DatabaseEngine, DatabasePlanStep } from '../../sdk/index.ts';
import type { Command } from '../command.ts';
import { ClientError, EXIT, UsageError } from '../failures.ts';
import { meant } from '../nearest.ts';
import { cleaned, sizeText } from '../output.ts';
import { about, all, assertMeant, find, type Kind, linesOf, showPoints, YES } from '../resources.ts';

const LOG_BYTES = 64 * 1024;

const DATABASE: Kind<Database> = {
  noun: 'database',
  listedBy: 'db ls',
  namesOf: ({ database_id, name }) => [database_id, name],
};
export const findDatabase = (cloud: Cloud, word: string) => find(cloud.listDatabases(), DATABASE, word);
const findDeleted = (cloud: Cloud, word: string, noun = 'deleted database') =>
  find(cloud.listDatabases({ deleted: true }), { ...DATABASE, noun }, word);

/** A deleted database is found only if no other has the name. */
const findAny = (cloud: Cloud, word: string) =>
  findDatabase(cloud, word).catch((error) => {
    if (error instanceof ClientError && error.exitCode === EXIT.notFound)
      return findDeleted(cloud, word, 'database');
    throw error;
  });

/** The engine's name as the API has it. */
export async function engineOf(cloud: Cloud, { engine, name }: Database): Promise<DatabaseEngine> {
  const found = (await cloud.listDatabaseEngines()).find((one) => one.engine === engine);
  if (found === undefined)
    throw new ClientError(`the cloud does not know the engine of ${name}`, EXIT.failure);
  return found;
}

/** An engine by the beginning of its name or program: `postgres`, `mongo`, `mariadb`. */
async function engineNamed(cloud: Cloud, given: string): Promise<Database['engine']> {
  const word = given.toLowerCase();
  const engines = await cloud.listDatabaseEngines();
  const exact = engines.find(({ engine }) => engine === word);
  const [first, ...others] = engines.filter(({ engine, client }) => {
    return word.length > 2 && [engine, ...(client?.programs ?? [])].some((name) => name.startsWith(word));
  });
  const only = others.length === 0 ? first : undefined;
  const found = exact ?? only;
  if (found !== undefined) return found.engine;
  const names = engines.map(({ engine }) => engine);
  const short = names.filter((name) => abbreviates(word, name));
  const guess = short.length === 1 ? `; did you mean ${short[0]}?` : meant(word, names);
  if (guess === '') return given as Database['engine'];
  throw new UsageError(`there is no database engine ${given}${guess}`, 'See: cloudlet db engines');
}

/** Whether the letters stand in the name in that order, from its first one on: `pg`, `pgsql`, `my`. */
function abbreviates(word: string, name: string): boolean {
  if (word.length < 2 || !name.startsWith(word.slice(0, 1))) return false;
  let at = 0;
  for (const letter of name) if (letter === word[at]) at++;
  return at === word.length;
}

async function credentialsOf(
  cloud: Cloud,
  databaseId: string,
  { isShown, tls }: { readonly isShown: boolean; readonly tls: boolean },
) {
  const { connection } = await cloud.getDatabaseCredentials(databaseId, { tls });
  const { password = '', ...rest } = connection;
  return isShown ? connection : { ...rest, uri: rest.uri.replace(password, '***') };
}

function commandOf(text: string): Record<string, unknown> {
  try {
    return JSON.parse(text) as Record<string, unknown>;
  } catch {
    throw new UsageError('the command is not valid JSON', `For example: '{"find":"things"}'`);
  }
}

function planLine({ depth, operation, on, estimated_rows, actual_rows, time_ms, details }: DatabasePlanStep) {
  const rows = actual_rows ?? estimated_rows;
  const figures = [
    rows === null ? [] : [`${actual_rows === null ? 'about ' : ''}${Math.round(rows)} rows`],
    time_ms === null ? [] : [`${Number(time_ms.toPrecision(3))} ms`],
    details.map(({ name, value }) => `${name}: ${value}`),
  ].flat();
  const step = on === null ? operation : `${operation} ${on}`;
  return `${'  '.repeat(depth)}${step}${figures.length === 0 ? '' : `  (${figures.join(', ')})`}`;
}

export const DATABASE_COMMANDS: readonly Command[] = [
  {
    name: 'db ls',
    words: '',
    summary: 'list the databases',
    run: async ({ session, output }) => {
      const databases = await all(session().cloud.listDatabases());
      output.table(databases, ['NAME', 'ENGINE', 'STATE', 'SIZE', 'ID'], (database: Database) => {
        const { name, engine, state, size_bytes, database_id } = database;
        return [name, engine, state, sizeText(size_bytes), database_id];
      });
    },
  },
  {
    name: 'db create',
    words: 'NAME',
    summary: 'create a database, and print its connection URI with the password',
    options: {
      engine: { value: 'ENGINE', summary: 'database engine (see db engines); default: sqlite' },
      from: { value: 'DATABASE', summary: 'create it as a copy of this database' },
      point: { value: 'POINT', summary: 'with --from: copy the data in this recovery point (see db points)' },
      at: {
        value: 'TIME',
        summary: 'with --from: copy the data as of this time, UTC or RFC 3339 (see db moments)',
      },
      'size-limit': { value: 'MB', summary: 'maximum size in MB' },
    },
    run: async ({ session, output, options, words: [name = ''] }) => {
      const { cloud } = session();
      const given = ['engine', 'from', 'point', 'at'].map((option) => options.text(option));
      const [engine, source, point, at] = given;
      const past = { ...(point !== undefined && { point_id: point }), ...(at !== undefined && { at }) };
      const isPast = point !== undefined || at !== undefined;
      if (isPast && source === undefined) throw new UsageError('--point and --at need --from');
      const find = isPast ? findAny : findDatabase;
      const from = source === undefined ? undefined : (await find(cloud, source)).database_id;
      const made = await cloud.createDatabase({
        name,
        ...(engine !== undefined && { engine: await engineNamed(cloud, engine) }),
        ...(from !== undefined && {
          from: { database_id: from, ...past },
        }),
        ...(options.has('size-limit') && { size_limit_mb: options.count('size-limit', 1) }),
      });
      output.one(made, () => [made.connection.uri]);
      if (made.state === 'creating')
        output.note(
          `${made.state_reason?.message ?? 'the database is being created'}; cloudlet db show tells when it is ready`,
        );
    },
  },
  {
    name: 'db show',
    words: 'DATABASE',
    summary: 'show a database',
    run: about(findDatabase, async (database, { output }) => output.one(database, () => linesOf(database))),
  },
  {
    name: 'db url',
    words: 'DATABASE',
    summary: 'print the connection URI of a database',
    options: {
      show: { summary: 'include the password' },
      private: { summary: "print the URI for the account's machines (private network)" },
      tls: { summary: 'use TLS, and verify the server with ca.pem (the output of db ca)' },
    },
    run: about(findDatabase, async ({ database_id, connection }, { cloud, output, options }) => {
      const [isShown, tls] = [options.has('show'), options.has('tls')];
      const shown = isShown || tls ? await credentialsOf(cloud, database_id, { isShown, tls }) : connection;
      const uri = options.has('private') ? shown.private_uri : shown.uri;
      if (uri === null)
        throw new UsageError('this database is not reachable from the private network of machines');
      output.one(shown, () => [uri]);
    }),
  },
  {
    name: 'db ca',
    words: 'DATABASE',
    summary: 'print the CA certificate (PEM) for TLS connections to a database',
    run: about(findDatabase, async ({ database_id, name }, { cloud, output }) => {
      const { ca } = await cloud.getDatabaseCredentials(database_id, { tls: true });
      if (ca === null) throw new UsageError(`${name} needs no CA certificate: its own is publicly trusted`);
      output.one({ ca }, () => [ca.trimEnd()]);
    }),
  },
  {
    name: 'db rm',
    words: 'DATABASE',
    summary: 'delete a database; db undelete can restore it for 72 hours',
    options: YES,
    run: about(findDatabase, async ({ database_id, name }, { cloud, output, ...call }) => {
      await assertMeant({ ...call, output }, `Delete ${name}?`);
      const deleted = await cloud.deleteDatabase(database_id);
      output.one(deleted, () => [`${name} is deleted`]);
    }),
  },
  {
    name: 'db explain',
    words: 'DATABASE STATEMENT',
    summary: 'show the query plan of a statement as a tree (MongoDB: a command in JSON)',
    options: { measure: { summary: 'run the statement, read-only, to measure each step' } },
    run: about(findDatabase, async (database, { cloud, output, options, words: [, given = ''] }) => {
      const { language } = (await engineOf(cloud, database)).traits;
      const asked = language === 'sql' ? { statement: given } : { command: commandOf(given) };
      const plan = await cloud.explainDatabaseQuery(database.database_id, {
        ...asked,
        measure: options.has('measure'),
      });
      output.one(plan, () => plan.steps.map(planLine));
    }),
  },
  {
    name: 'db queries',
    words: 'DATABASE',
    summary: 'list the running queries of a database (those sent over the API)',
    run: about(findDatabase, async ({ database_id }, { cloud, output }) => {
      const running = await cloud.listRunningDatabaseQueries(database_id);
      output.table(running, ['ID', 'SINCE', 'STATEMENT'], ({ query_id, started_at, statement }) => [
        query_id,
        started_at,
        statement,
      ]);
    }),
  },
  {
    name: 'db saved',
    words: 'DATABASE [NAME]',
    summary: 'list the saved queries of a database, or print one',
    run: about(findDatabase, async ({ database_id }, { cloud, output, words: [, name] }) => {
      const saved = await cloud.listSavedQueries(database_id);
      if (name === undefined)
        return output.table(saved, ['NAME', 'UPDATED'], (one) => [one.name, one.updated_at]);
      const found = saved.find((one) => one.name === name);
      if (found === undefined) throw new ClientError(`there is no saved query ${name}`, EXIT.notFound);
      output.one(found, () => cleaned(found.text).split('\n'));
    }),
  },
  {
    name: 'db cancel',
    words: 'DATABASE QUERY',
    summary: 'cancel a running query (see db queries)',
    run: about(findDatabase, async ({ database_id }, { cloud, output, words: [, query = ''] }) => {
      const cancelled = await cloud.cancelDatabaseQuery(database_id, query);
      output.one(cancelled, () => [`${query} is cancelled`]);
    }),
  },
  {
    name: 'db restart',
    words: 'DATABASE',
    summary: 'restart the server of a database, closing its connections',
    run: about(findDatabase, async ({ database_id }, { cloud, output }) => {
      const database = await cloud.restartDatabase(database_id);
      output.one(database, () => [`${database.name} is ${database.state}`]);
    }),
  },
  {
    name: 'db logs',
    words: 'DATABASE',
    summary: 'print the last log lines of a database',
    options: {
      bytes: { value: 'COUNT', short: 'n', summary: 'number of bytes from the end; default: 65536' },
    },
    run: about(findDatabase, async ({ database_id }, { cloud, options }) => {
      const log = await cloud.getDatabaseLog(database_id, { bytes: options.count('bytes', LOG_BYTES) });
      process.stdout.write(cleaned(log));
    }),
  },
  {
    name: 'db points',
    words: 'DATABASE',
    summary: 'list the recovery points that contain a database; restore with db create --from --point',
    run: about(findAny, async ({ database_id }, { cloud, output }) => {
      showPoints(await cloud.listDatabasePoints(database_id), output);
    }),
  },
  {
    name: 'db moments',
    words: 'DATABASE',
    summary: 'list the times a database can be restored to; restore with db create --from --at',
    run: about(findAny, async ({ database_id }, { cloud, output }) => {
      const { windows, reason } = await cloud.listDatabaseMoments(database_id);
      if (windows.length === 0) output.note(reason ?? '');
      output.table(windows, ['FROM', 'TO'], ({ from, to }) => [from, to]);
    }),
  },
  {
    name: 'db undelete',
    words: 'DATABASE',
    summary: 'restore a deleted database with its content and password',
    run: about(findDeleted, async ({ database_id }, { cloud, output }) => {
      const database = await cloud.undeleteDatabase(database_id);
      output.one(database, () => [`${database.name} is ${database.state}`]);
    }),
  },
  {
    name: 'db rotate',
    words: 'DATABASE',
    summary: 'change the password of a database and print its connection URI; open connections end',
    run: about(findDatabase, async ({ database_id }, { cloud, output }) => {
      const { connection } = await cloud.rotateDatabaseCredentials(database_id);
      output.one(connection, () => [connection.uri]);
    }),
  },
];

/** Remote access to databases: their own clients, ports, dumps. */
import { openAsBlob } from 'node:fs';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { Cloud, Database, DatabaseEngine, LoadedDatabase } from '../../sdk/index.ts';
import type { Command, Invocation } from '../command.ts';
import { engineOf, findDatabase } from '../commands/database-commands.ts';
import { ClientError, EXIT, UsageError } from '../failures.ts';
import { withInput, writeWhole } from '../own-files.ts';
import { confirm } from '../prompt.ts';
import { YES } from '../resources.ts';
import { installedClient, runClient } from './db-clients.ts';
import { runShell } from './db-shell.ts';
import { listen, portPair, untilInterrupted } from './forward.ts';
import { IMPORT_COMMAND } from './import-command.ts';
import { openSocket } from './tunnel.ts';

type ExportQuery = Parameters<Cloud['exportDatabaseRows']>[1];

const theDatabase = async (call: Invocation) => {
  const { cloud } = call.session();
  return { cloud, database: await findDatabase(cloud, call.words[0] ?? '') };
};

/** A tunnel to the database, for engines with a port. */
function tunnelTo({ session }: Invocation, { database_id, name }: Database, engine: DatabaseEngine) {
  if (engine.traits.transport === 'http') {
    const hint = `Run: cloudlet db connect ${name}`;
    throw new UsageError(`${name} is a ${engine.title} database and has no port`, hint);
  }
  return () => openSocket(session(), session().cloud.urlOf('openDatabaseTunnel', [database_id]));
}

async function connect(call: Invocation) {
  const { cloud, database } = await theDatabase(call);
  const engine = await engineOf(cloud, database);
  const client = call.options.has('builtin') ? undefined : installedClient(engine);
  if (client === undefined) {
    const missing = engine.client?.package;
    if (missing !== undefined && !call.options.has('builtin'))
      call.output.note(`The package ${missing} is not installed; using the built-in shell.`);
    return (await runShell(cloud, { database, engine }, call.output)) ? EXIT.ok : EXIT.failure;
  }
  const { connection, ca } = await cloud.getDatabaseCredentials(database.database_id);
  const forwarded = await listen(0, tunnelTo(call, database, engine), call.output);
  const { port } = forwarded;
  try {
    return await runClient(client, { connection, ca: ca ?? null, port, words: call.words.slice(1) });
  } finally {
    forwarded.close();
  }
}

async function forward(call: Invocation) {
  const { cloud, database } = await theDatabase(call);
  const engine = await engineOf(cloud, database);
  const { local } = portPair(call.words[1] ?? String(database.connection.port));
  const { port } = await listen(local, tunnelTo(call, database, engine), call.output);
  const uri = new URL(database.connection.uri);
  uri.host = `127.0.0.1:${port}`;
  // A password placeholder is not part of a URL.
  const shown = { address: `127.0.0.1:${port}`, uri: uri.href.replaceAll('%2A', '*') };
  call.output.one(shown, () => [shown.uri]);
  call.output.note('Press Ctrl+C to stop.');
  await untilInterrupted();
  process.exit(0);
}

async function dump(call: Invocation): Promise<void> {
  const { cloud, database } = await theDatabase(call);
  const format = call.options.text('format');
  const response = await cloud.dumpDatabase(database.database_id, format === undefined ? {} : { format });
  await save(response, call.words[1]);
}

async function exportRows(call: Invocation): Promise<void> {
  const { cloud, database } = await theDatabase(call);
  const [, table = '', path] = call.words;
  const schema = call.options.text('schema');
  const format = call.options.text('format');
  const query = { table, ...(schema !== undefined && { schema }), ...(format !== undefined && { format }) };
  await save(await cloud.exportDatabaseRows(database.database_id, query as ExportQuery), path);
}

/** Creates the file only after a complete download. */
async function save(response: Response, path = '-'): Promise<void> {
  if (response.body === null) throw new ClientError('the answer is empty', EXIT.unavailable);
  const bytes = Readable.fromWeb(response.body as Parameters<typeof Readable.fromWeb>[0]);
  if (path === '-') return pipeline(bytes, process.stdout, { end: false });
  await writeWhole({ path, bytes }, { check: async () => {} });
}

async function load(call: Invocation): Promise<void> {
  const { cloud, database } = await theDatabase(call);
  const { database_id, name } = database;
  const path = call.words[1] ?? '-';
  const isMeant =
    call.options.has('yes') || (path !== '-' && (await confirm(`Replace the content of ${name}?`)));
  if (!isMeant)
    throw new UsageError('the dump was not loaded', 'Use --yes in scripts (no terminal to confirm on)');
  await withInput(path, async (source) => {
    const strict = call.options.has('strict') ? { strict: true } : {};
    const loaded = await cloud.loadDatabase(database_id, { file: await openAsBlob(source) }, strict);
    call.output.one(loaded, () => [
      loaded.added
        ? `The rows of the dump were added to the tables of ${name}`
        : `${name} now has the content of the dump`,
      ...leftOut(loaded),
    ]);
  });
}

function leftOut({ left_out: count, notes }: LoadedDatabase): string[] {
  if (count === 0) return [];
  const lines = notes.map(
    ({ line, text, reason }) => `${line === null ? '' : `line ${line}: `}${text}: ${reason}`,
  );
  const more = count > notes.length ? [`and ${count - notes.length} more`] : [];
  return [`Not loaded (${count}):`, ...lines, ...more];
}

export const DATABASE_TUNNEL_COMMANDS: readonly Command[] = [
  {
    name: 'db connect',
    words: 'DATABASE [ARGUMENT…]',
    summary: 'open a database with psql, mariadb or mongosh, or with the built-in shell',
    details: 'Arguments of the program come after --: cloudlet db connect shop -- -c "SELECT 1"',
    options: { builtin: { summary: 'use the built-in shell even if the program is installed' } },
    run: connect,
  },
  {
    name: 'db forward',
    words: 'DATABASE [PORT]',
    summary: 'forward a local port to a database',
    run: forward,
  },
  {
    name: 'db dump',
    words: 'DATABASE [FILE]',
    summary: 'download a dump of a database to FILE or standard output',
    options: { format: { value: 'FORMAT', summary: 'format of the dump' } },
    run: dump,
  },
  {
    name: 'db export',
    words: 'DATABASE TABLE [FILE]',
    summary: 'download all rows of a table to FILE or standard output',
    options: {
      format: { value: 'FORMAT', summary: 'csv (default), jsonl or sql' },
      schema: { value: 'SCHEMA', summary: 'schema of the table' },
    },
    run: exportRows,
  },
  IMPORT_COMMAND,
  {
    name: 'db load',
    words: 'DATABASE [FILE]',
    summary: 'replace the content of a database with a dump',
    options: {
      ...YES,
      strict: {
        summary: 'load nothing if the dump contains something this server or account does not support',
      },
    },
    run: load,
  },
];

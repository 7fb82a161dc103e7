/** A small shell, over the query API or libSQL, for engines whose own client is not installed here. */
import { createInterface } from 'node:readline';
import { endsStatement, readSql } from '../../libs/hrana/index.ts';
import type { Cloud, Database, DatabaseEngine } from '../../sdk/index.ts';
import { isTerminal } from '../environment.ts';
import { tell } from '../failures.ts';
import { type Output, printable } from '../output.ts';
import { type Answer, LibsqlSession } from './libsql-session.ts';

const HELP = {
  sql: 'End statements with ;. Type quit to exit.',
  documents: 'Each line is one JSON command. Type quit to exit.',
};

interface Asked {
  readonly database: Database;
  readonly engine: DatabaseEngine;
}

/** Like psql, mariadb and mongosh. */
const LEAVE = /^\s*(?:\\q|quit|exit)(?:\(\))?\s*;?\s*$/i;

/** Runs statements of standard input until its end. Resolves with whether all succeeded. */
export async function runShell(cloud: Cloud, asked: Asked, output: Output): Promise<boolean> {
  const { database, engine } = asked;
  const { language } = engine.traits;
  const { stdin, stderr } = process;
  const isAsked = isTerminal(stdin);
  // Runs before the line reader, which would lose lines.
  const session = await sessionOf(cloud, asked);
  const ask = asker(cloud, asked, session);
  const lines = createInterface({ input: stdin, output: isAsked ? stderr : undefined, terminal: isAsked });
  if (isAsked) output.note(`${database.name} (${engine.title}). ${HELP[language]}`);
  const isWhole = (text: string) => (session === null ? text.trimEnd().endsWith(';') : endsStatement(text));
  let isOver = false;
  let [statement, areFine, isBusy] = ['', true, false];
  const prompt = () => {
    if (!isAsked) return;
    lines.setPrompt(statement === '' ? `${printable(database.name)}> ` : '... ');
    lines.prompt();
  };
  const run = async () => {
    const text = statement.trim().replace(/;$/, '');
    statement = '';
    if (text === '') return;
    isBusy = true;
    try {
      const statements = session === null ? [text] : readSql(text).map(({ text }) => text);
      for (const one of statements) show(await ask(one), output);
    } catch (error) {
      areFine = false;
      for (const line of tell(error).lines) output.warn(line);
      if (!isAsked && session?.isInTransaction === true) {
        output.warn('The transaction is rolled back, and the rest is not run.');
        isOver = true;
      }
    }
    isBusy = false;
  };
  lines.on('SIGINT', () => {
    if (isBusy) return void process.kill(process.pid, 'SIGINT');
    statement = '';
    lines.write(null, { ctrl: true, name: 'e' });
    lines.write(null, { ctrl: true, name: 'u' });
    stderr.write('^C\n');
    prompt();
  });
  prompt();
  for await (const line of lines) {
    if (statement === '' && LEAVE.test(line)) break;
    statement += `${line}\n`;
    if (language === 'documents' || (line.trimEnd().endsWith(';') && isWhole(statement))) await run();
    if (isOver) break;
    prompt();
  }
  if (!isOver) await run();
  await session?.close();
  lines.close();
  return areFine;
}

/** null: the engine has no session over HTTP. */
async function sessionOf(cloud: Cloud, { database, engine }: Asked): Promise<LibsqlSession | null> {
  if (engine.traits.transport !== 'http') return null;
  const { connection } = await cloud.getDatabaseCredentials(database.database_id);
  const url = new URL(connection.uri);
  url.search = '';
  return new LibsqlSession(url.href, connection.password ?? '');
}

function asker(cloud: Cloud, { database: { database_id }, engine }: Asked, session: LibsqlSession | null) {
  if (session !== null) return (text: string) => session.run(text);
  return (text: string): Promise<Answer> => {
    const query =
      engine.traits.language === 'documents'
        ? { command: JSON.parse(text) as Record<string, unknown> }
        : { statement: text };
    return cloud.queryDatabase(database_id, { ...query, read_only: false });
  };
}

function show({ columns, rows, truncated, affected }: Answer, output: Output): void {
  const names = columns.map(({ name }) => name);
  if (names.length > 0) {
    if (output.isJson) {
      for (const row of rows) output.json(Object.fromEntries(names.map((name, i) => [name, row[i]])));
    } else {
      output.table(rows, names, (row) =>
        row.map((cell) =>
          typeof cell === 'object' && cell !== null ? JSON.stringify(cell) : String(cell ?? 'NULL'),
        ),
      );
    }
  }
  if (truncated) output.note('More rows follow; add a LIMIT to see others.');
  if (names.length === 0) output.note(affected === null ? 'done' : `${affected} rows changed`);
}

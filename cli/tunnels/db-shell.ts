/** A small shell over the query API, for engines whose own client is not installed here. */
import { createInterface } from 'node:readline';
import type { Cloud, Database, DatabaseEngine } from '../../sdk/index.ts';
import { isTerminal } from '../environment.ts';
import { tell } from '../failures.ts';
import { type Output, printable } from '../output.ts';

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
  const lines = createInterface({ input: stdin, output: isAsked ? stderr : undefined, terminal: isAsked });
  if (isAsked) output.note(`${database.name} (${engine.title}). ${HELP[language]}`);
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
      await show(cloud, asked, { text, output });
    } catch (error) {
      areFine = false;
      for (const line of tell(error).lines) output.warn(line);
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
    if (language === 'documents' || line.trimEnd().endsWith(';')) await run();
    prompt();
  }
  await run();
  lines.close();
  return areFine;
}

async function show(
  cloud: Cloud,
  { database: { database_id }, engine }: Asked,
  { text, output }: { readonly text: string; readonly output: Output },
): Promise<void> {
  const query =
    engine.traits.language === 'documents'
      ? { command: JSON.parse(text) as Record<string, unknown> }
      : { statement: text };
  const result = await cloud.queryDatabase(database_id, { ...query, read_only: false });
  const names = result.columns.map(({ name }) => name);
  if (names.length > 0) {
    if (output.isJson) {
      for (const row of result.rows) output.json(Object.fromEntries(names.map((name, i) => [name, row[i]])));
    } else {
      output.table(result.rows, names, (row) =>
        row.map((cell) =>
          typeof cell === 'object' && cell !== null ? JSON.stringify(cell) : String(cell ?? 'NULL'),
        ),
      );
    }
  }
  if (result.truncated) output.note('More rows follow; add a LIMIT to see others.');
  if (names.length === 0) output.note(result.affected === null ? 'done' : `${result.affected} rows changed`);
}

/** Loads SQL text, as written by sqlite3's `.dump`, in one transaction. */
import { createReadStream, rmSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import { setImmediate as turn } from 'node:timers/promises';
import { readSql } from '../../../../../libs/hrana/index.ts';
import { NO_STATEMENT } from '../../../../databases/file-start.ts';
import type { LeftOut } from '../../../../databases/left-out.ts';
import type { SizeLimit } from '../../../engine-children/child-call.ts';
import { loadAuthorizer } from '../authorizer.ts';
import { LIMITS, limitSize, PAGE_BYTES } from '../tenant-file.ts';
import { defineVectorFunctions, dropVectorParts } from '../vectors.ts';
import { LoadedStatements, type LoadingHow } from './loaded-statements.ts';
import { BYTES, LongBlobs, TooLong, textOf } from './text-pieces.ts';

const PIECE_BYTES = 256 * 1024;
/** SQLite's own limit. */
const MOST_CHARACTERS = LIMITS.sqlLength;
const SHOWN = 100;
/** A byte order mark. */
const MARK = /^\xef\xbb\xbf/;
/** Commands of the sqlite3 shell that only change its display or permissions; `.recover` prints some. */
const FOR_PROGRAM =
  /^\.(?:bail|changes|dbconfig|echo|headers?|log|mode|nullvalue|print|separator|timeout|timer|width)\b[^\n]*$/;

export class RefusedText extends Error {}

export interface MakingHow extends LoadingHow {
  readonly sizeLimit: SizeLimit;
}

/**
 * Converts the text `from`, which is removed, into the new file `to`, or adds its rows. Throws RefusedText
 * with the line of a statement that fails. Check the file like an uploaded one. Resolves with the statements
 * that are left out.
 */
export async function makeOfText(from: string, to: string, how: MakingHow): Promise<LeftOut> {
  const { sizeLimit, isAdded } = how;
  const database = new DatabaseSync(to, {
    allowExtension: false,
    // The dump of a virtual table writes its parts.
    defensive: false,
    enableForeignKeyConstraints: false,
    enableDoubleQuotedStringLiterals: true,
    limits: LIMITS,
  });
  try {
    database.exec(`PRAGMA trusted_schema = OFF; PRAGMA page_size = ${PAGE_BYTES};
      PRAGMA auto_vacuum = INCREMENTAL; PRAGMA temp_store = MEMORY`);
    limitSize(database, sizeLimit);
    database.exec('BEGIN');
    defineVectorFunctions(database);
    database.setAuthorizer(loadAuthorizer);
    const statements = new LoadedStatements(database, how);
    const hasEnd = await runAll(from, statements);
    if (hasEnd === null) throw new RefusedText(NO_STATEMENT);
    if (!hasEnd)
      throw new RefusedText(
        'the dump is cut off: its COMMIT is missing; make it again, or add the line COMMIT;',
      );
    database.setAuthorizer(null);
    if (isAdded) keepLastOfEach(database);
    if (statements.vectorIndexes.length > 0) dropVectorParts(database, statements.vectorIndexes);
    database.exec('COMMIT');
    return statements.leftOut;
  } finally {
    database.close();
    rmSync(from, { force: true });
  }
}

/** `.dump` also writes the rows of sqlite_sequence, of which a table has one. */
function keepLastOfEach(database: DatabaseSync): void {
  const isThere = database.prepare("SELECT 1 FROM sqlite_schema WHERE name = 'sqlite_sequence'").get();
  if (isThere === undefined) return;
  database.exec(`DELETE FROM sqlite_sequence WHERE rowid NOT IN (
    SELECT last FROM (SELECT rowid AS last, max(seq) FROM sqlite_sequence GROUP BY name))`);
}

/** Whether each transaction of the text has its end; null: there is no statement. */
async function runAll(path: string, statements: LoadedStatements): Promise<boolean | null> {
  const blobs = new LongBlobs(LIMITS.length);
  let rest = '';
  let line = 1;
  let isOpen = false;
  let isEmpty = true;
  const run = (isEnd: boolean) => {
    const found = readSql(rest);
    // The last statement may be incomplete.
    const whole = isEnd ? found : found.slice(0, -1);
    let at = 0;
    isEmpty &&= whole.length === 0;
    for (const statement of whole) {
      const { text } = statement;
      const begin = rest.indexOf(text, at);
      line += linesIn(rest.slice(at, begin));
      const start = beginOf(text);
      // Behind a command of the client, the first words are not those of the statement.
      const { boundary, rollsBack } =
        text.trimStart()[0] === '.' ? (readSql(text.slice(start))[0] ?? statement) : statement;
      if (rollsBack) throw rolledBack(text, line);
      // Its own transactions run within ours.
      if (boundary !== null) isOpen = boundary === 'begin';
      else runOne(statements, text.slice(start), { line: line + linesIn(text.slice(0, start)), blobs });
      line += linesIn(text);
      at = begin + text.length;
    }
    rest = rest.slice(at);
    if (rest.length > MOST_CHARACTERS) throw new RefusedText(`line ${line}: the statement is too long`);
  };
  const add = (piece: string) => {
    try {
      rest = blobs.add(rest, piece);
    } catch (error) {
      if (!(error instanceof TooLong)) throw error;
      throw new RefusedText(`line ${line + linesIn(rest)}: ${error.message}`);
    }
  };
  let isFirst = true;
  for await (const piece of createReadStream(path, { highWaterMark: PIECE_BYTES })) {
    const text = (piece as Buffer).toString(BYTES);
    add(isFirst ? withoutProgramLines(text.replace(MARK, '')) : text);
    isFirst = false;
    // Otherwise, a long statement would be parsed again with each piece.
    if (text.includes(';') || rest.length > MOST_CHARACTERS) run(false);
    await turn();
  }
  run(true);
  return isEmpty ? null : !isOpen;
}

/** Blanks the leading client commands, so that line numbers do not change. */
function withoutProgramLines(text: string): string {
  const lines = text.split('\n');
  const first = lines.findIndex((line) => line.trim() !== '' && !FOR_PROGRAM.test(line));
  return lines.map((line, at) => (at < first ? '' : line)).join('\n');
}

/** `.dump` ends with it when it could not read all rows, behind comments that say what it could not read. */
function rolledBack(text: string, line: number): RefusedText {
  const lines = linesIn(text.slice(0, text.toUpperCase().lastIndexOf('ROLLBACK')));
  return new RefusedText(
    `line ${line + lines}: the dump contains ROLLBACK, as dumps of damaged databases do: rows may be missing; ` +
      'save what can be read with the `.recover` command of sqlite3, and load that',
  );
}

/** Blanks, comments and commands of the client before a statement. */
const BEFORE = /[ \t\n\f\r]+|--[^\n]*|\/\*[\s\S]*?\*\//y;

/** The place where the statement itself begins. */
function beginOf(text: string): number {
  for (let at = 0; ; ) {
    BEFORE.lastIndex = at;
    if (BEFORE.test(text)) at = BEFORE.lastIndex;
    else {
      const end = text.indexOf('\n', at);
      const isAtLine = text.slice(text.lastIndexOf('\n', at) + 1, at).trim() === '';
      const lineText = text.slice(at, end === -1 ? undefined : end);
      if (!isAtLine || !FOR_PROGRAM.test(lineText.trimEnd())) return at;
      at += lineText.length;
    }
  }
}

function runOne(
  statements: LoadedStatements,
  bytes: string,
  { line, blobs }: { readonly line: number; readonly blobs: LongBlobs },
): void {
  if (bytes === '') return;
  const text = textOf(bytes);
  try {
    statements.run({ text, line, blobs: blobs.take(text) });
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    const begin = text.split('\n')[0]?.slice(0, SHOWN) ?? '';
    throw Object.assign(new RefusedText(`line ${line}: ${message}, at: ${begin}`), { cause: error });
  }
}

const linesIn = (text: string) => text.split('\n').length - 1;

/** Loads SQL text, as written by sqlite3's `.dump`, in one transaction. */
import { createReadStream, rmSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import { StringDecoder } from 'node:string_decoder';
import { setImmediate as turn } from 'node:timers/promises';
import { readSql } from '../../../../libs/hrana/index.ts';
import { NO_STATEMENT } from '../../../databases/file-start.ts';
import type { SizeLimit } from '../../engine-children/child-call.ts';
import { loadAuthorizer, VIRTUAL_TABLES } from './authorizer.ts';
import { LIMITS, limitSize, PAGE_BYTES } from './tenant-file.ts';
import { defineVectorFunctions, dropVectorParts, NO_VECTOR_INDEX, vectorIndexOf } from './vectors.ts';

const PIECE_BYTES = 256 * 1024;
/** SQLite's own limit. */
const MOST_CHARACTERS = LIMITS.sqlLength;
const SHOWN = 100;
/** Statements about the file: a new one has no free pages and no log. */
const OF_FILE = /^\s*(?:VACUUM|PRAGMA\s+(?:main\s*\.\s*)?wal_checkpoint(?:\s*\([^)]*\))?)\s*;?\s*$/i;
/** Commands of the sqlite3 shell that only change its display or permissions; `.recover` prints some. */
const FOR_PROGRAM =
  /^\.(?:bail|changes|dbconfig|echo|headers?|log|mode|nullvalue|print|separator|timeout|timer|width)\b[^\n]*$/;
/** Tables that SQLite creates itself; `.schema` prints them nevertheless. */
const OWN_TABLE = /^\s*CREATE TABLE (?:IF NOT EXISTS )?["']?sqlite_(?:sequence|stat[1-4])["']?\s*\(/i;
/** Rows of those tables, which are missing where no table counts its rows or has statistics. */
const OWN_ROWS = /^\s*(?:INSERT INTO|DELETE FROM) ["']?sqlite_(?:sequence|stat[1-4])\b/i;

const MODULE =
  /^\s*(?:INSERT\s+INTO\s+"?sqlite_(?:schema|master)"?\s*\([^)]*\)\s*VALUES\s*\(\s*'table'[^;]*?')?CREATE\s+VIRTUAL\s+TABLE\s[^;]*?\sUSING\s+"?(\w+)/i;

/** A statement that is left out. */
export interface LeftOutText {
  readonly text: string;
  readonly reason: string;
}

export class RefusedText extends Error {}

export interface MakingHow {
  readonly sizeLimit: SizeLimit;
  /** The file exists, and the text has rows for its tables. */
  readonly isAdded: boolean;
  /** Indexes of vectors are left out, not refused. */
  readonly lenient: boolean;
}

/**
 * Converts the text `from`, which is removed, into the new file `to`, or adds its rows. Throws RefusedText
 * with the line of a statement that fails. Check the file like an uploaded one. Resolves with the statements
 * that are left out.
 */
export async function makeOfText(from: string, to: string, how: MakingHow): Promise<readonly LeftOutText[]> {
  const { sizeLimit, isAdded, lenient } = how;
  const leftOut: LeftOutText[] = [];
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
    const passedOver = isAdded ? intoParts(database) : OWN_TABLE;
    defineVectorFunctions(database);
    database.setAuthorizer(loadAuthorizer);
    const isPassedOver = (text: string) => {
      const reason = lenient ? whyNot(text) : undefined;
      if (reason === undefined) return passedOver.test(text);
      leftOut.push({ text: text.trim(), reason });
      return true;
    };
    const hasEnd = await runAll(database, from, isPassedOver);
    if (hasEnd === null) throw new RefusedText(NO_STATEMENT);
    if (!hasEnd)
      throw new RefusedText(
        'the dump is cut off: its COMMIT is missing; make it again, or add the line COMMIT;',
      );
    database.setAuthorizer(null);
    if (isAdded) keepLastOfEach(database);
    if (leftOut.length > 0)
      dropVectorParts(
        database,
        leftOut.flatMap(({ text }) => vectorIndexOf(text) ?? []),
      );
    database.exec('COMMIT');
    return leftOut;
  } finally {
    database.close();
    rmSync(from, { force: true });
  }
}

/** Why this SQLite cannot have it; undefined: it can, as far as known. */
function whyNot(text: string): string | undefined {
  if (vectorIndexOf(text) !== undefined) return NO_VECTOR_INDEX;
  const name = MODULE.exec(text)?.[1];
  if (name === undefined || VIRTUAL_TABLES.has(name.toLowerCase())) return undefined;
  return `there is no module ${name} here; the tables in which it kept its content are loaded`;
}

/** `.dump` also writes the rows of sqlite_sequence, of which a table has one. */
function keepLastOfEach(database: DatabaseSync): void {
  const isThere = database.prepare("SELECT 1 FROM sqlite_schema WHERE name = 'sqlite_sequence'").get();
  if (isThere === undefined) return;
  database.exec(`DELETE FROM sqlite_sequence WHERE rowid NOT IN (
    SELECT last FROM (SELECT rowid AS last, max(seq) FROM sqlite_sequence GROUP BY name))`);
}

/**
 * Statements with the rows of parts of virtual tables: `.dump` writes these and the rows of the table itself,
 * which fill them.
 */
function intoParts(database: DatabaseSync): RegExp {
  const parts = database.prepare("SELECT name FROM pragma_table_list WHERE type = 'shadow'").all();
  const names = parts.map(({ name }) => RegExp.escape(String(name)));
  const any = names.length === 0 ? '(?!)' : names.join('|');
  return new RegExp(`^\\s*INSERT INTO (["'\x60]?)(?:${any})\\1[\\s(]`, 'i');
}

/** Whether each transaction of the text has its end; null: there is no statement. */
async function runAll(
  database: DatabaseSync,
  path: string,
  isPassedOver: (text: string) => boolean,
): Promise<boolean | null> {
  const decoder = new StringDecoder('utf8');
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
    for (const { text, boundary, rollsBack } of whole) {
      const begin = rest.indexOf(text, at);
      line += linesIn(rest.slice(at, begin));
      if (rollsBack) throw rolledBack(text, line);
      // Its own transactions run within ours.
      if (boundary !== null) isOpen = boundary === 'begin';
      else if (!isPassedOver(text) && !OF_FILE.test(text)) runOne(database, text, line);
      line += linesIn(text);
      at = begin + text.length;
    }
    rest = rest.slice(at);
    if (rest.length > MOST_CHARACTERS) throw new RefusedText(`line ${line}: the statement is too long`);
  };
  let isFirst = true;
  for await (const piece of createReadStream(path, { highWaterMark: PIECE_BYTES })) {
    const text = decoder.write(piece as Buffer);
    rest += isFirst ? withoutProgramLines(text.replace(/^\ufeff/, '')) : text;
    isFirst = false;
    // Otherwise, a long statement would be parsed again with each piece.
    if (text.includes(';') || rest.length > MOST_CHARACTERS) run(false);
    await turn();
  }
  rest += decoder.end();
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

function runOne(database: DatabaseSync, text: string, line: number): void {
  try {
    database.exec(text);
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    if (OWN_ROWS.test(text) && message.startsWith('no such table: sqlite_')) return;
    const begin = text.trim().split('\n')[0]?.slice(0, SHOWN) ?? '';
    const lines = linesIn(text.slice(0, text.search(/\S/)));
    throw Object.assign(new RefusedText(`line ${line + lines}: ${message}, at: ${begin}`), { cause: error });
  }
}

const linesIn = (text: string) => text.split('\n').length - 1;

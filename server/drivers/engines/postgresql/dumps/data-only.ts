/**
 * Whether a dump expects existing tables, like those of `pg_dump --data-only` and `--section=post-data`: rows
 * or indexes come before any CREATE TABLE, so an empty database could not load it.
 */
import { joined, withoutMark, withoutMessages } from '../../../../databases/file-start.ts';
import { SqlStatements, type StatementJudge } from './sql-statements.ts';

/** Statements before the first of the content; of `select`: set_config, setval. */
const BEFORE = new Set(['set', 'reset', 'select', 'begin', 'start']);
const DATA = new Set(['copy', 'insert', 'truncate', 'delete', 'lock']);
/** First words of statements about the server or about content. */
const EITHER = new Set(['alter', 'comment', 'create']);
const SERVER = /^(?:alter|comment\s+on|create)\s+(?:database|role|user|group|tablespace)\s/i;
const OF_TABLE =
  /^(?:alter\s+table\s[^;]*\s(?:disable\s+trigger|add\s+constraint|enable\s+row\s+level)\b|create\s+(?:unique\s+)?(?:index|trigger|constraint\s+trigger|rule|policy)\s)/i;
/** A dump whose first statement of content comes later counts as a whole one. */
const MOST_BYTES = 1024 * 1024;

class FirstContent implements StatementJudge {
  isData: boolean | null = null;

  asksAbout(word: string): boolean {
    if (this.isData === null && !BEFORE.has(word) && !EITHER.has(word)) this.isData = DATA.has(word);
    return EITHER.has(word);
  }

  statement(text: string): null {
    if (!SERVER.test(text)) this.isData ??= OF_TABLE.test(text);
    return null;
  }

  command(): null {
    return null;
  }
}

/** All of the pieces, and whether they are data only. */
export async function withoutTables(
  pieces: AsyncIterable<Buffer>,
): Promise<{ readonly isDataOnly: boolean; readonly pieces: AsyncGenerator<Buffer> }> {
  const source = pieces[Symbol.asyncIterator]();
  const first = new FirstContent();
  const statements = new SqlStatements(first);
  const head: Buffer[] = [];
  for (let bytes = 0; first.isData === null && bytes < MOST_BYTES; ) {
    const { value, done } = await source.next();
    if (done === true) {
      statements.end();
      break;
    }
    statements.take(bytes === 0 ? withoutMessages(withoutMark(value)) : value);
    head.push(value);
    bytes += value.length;
    // The rows of one statement may be many.
    if (DATA.has(statements.openWord)) first.isData ??= true;
  }
  return { isDataOnly: first.isData === true, pieces: joined(head, source) };
}

/**
 * Data-only dumps, as written by `mysqldump --no-create-info`: detects them, and filters their
 * lines for loading into existing tables in one transaction. MariaDB commits before each statement
 * that changes a table, so these are left out.
 */
import { LoadFailed } from '../../../../databases/engine.ts';
import { begin, isMessage } from '../../../../databases/file-start.ts';
import type { LeftOut } from '../../../../databases/left-out.ts';

/** The beginning of a statement, possibly in a comment that newer servers execute. */
const OPEN = /^(?:\/\*M?!\d*\\?-? ?)?/;
const BEFORE =
  /^(?:SET|USE|START|BEGIN|COMMIT|(?:CREATE|DROP|ALTER)\s+(?:\/\*[^*]*\*\/\s*)?(?:DATABASE|SCHEMA)|enable the sandbox)/i;
const COMMENT = /^(?:--|#|$)/;
const DATA = /^(?:(?:INSERT|REPLACE|DELETE|TRUNCATE|LOCK)\b|ALTER\s+TABLE\s.*\sDISABLE\s+KEYS\b)/i;
/** A dump whose first statement of content comes later counts as a whole one. */
const MOST_BYTES = 1024 * 1024;
const MOST_LINE = 4096;

/** All of the pieces, and whether they are data only. */
export async function withoutTables(
  pieces: AsyncIterable<Buffer>,
): Promise<{ readonly isDataOnly: boolean; readonly pieces: AsyncGenerator<Buffer> }> {
  let isData = null as boolean | null;
  const { whole } = await begin(pieces, (head, isOver) => {
    isData = firstContent(head, isOver);
    return isData !== null || head.length >= MOST_BYTES;
  });
  return { isDataOnly: isData === true, pieces: whole };
}

/** Whether the dump is data only; null: nothing was read yet. */
function firstContent(head: Buffer, isOver: boolean): boolean | null {
  let isWithin = false;
  for (let at = 0; at < head.length; ) {
    const end = head.indexOf(0x0a, at);
    if (end < 0 && !isOver && head.length - at < MOST_LINE) return null;
    const last = end < 0 ? head.length : end;
    const line = head.toString('latin1', at, Math.min(last, at + MOST_LINE)).trim();
    const text = (at === 0 ? line.replace('\xef\xbb\xbf', '') : line).replace(OPEN, '');
    const isStatement: boolean = !isWithin && !COMMENT.test(text) && !isMessage(text);
    if (isStatement && !BEFORE.test(text)) return DATA.test(text);
    isWithin = (isWithin || isStatement) && !/(?:;|\*\/)$/.test(line);
    at = last + 1;
  }
  return null;
}

/** Statements of dumps that would end the transaction, and are not needed in one. */
const NOT_NEEDED =
  /^(?:(?:UN)?LOCK\s+TABLES?\b|ALTER\s+TABLE\s.*\s(?:DIS|EN)ABLE\s+KEYS\b|START\s+TRANSACTION\b|BEGIN\s*(?:WORK\s*)?;|COMMIT\b|SET\b.*\bAUTOCOMMIT\b)/i;
const BACK = /^ROLLBACK(?!\s+(?:WORK\s+)?TO\b)/i;
const EMPTIES = /^TRUNCATE\s+(?:TABLE\s+)?([^;]+);\s*$/i;
const ENDS = /^(?:CREATE|ALTER|DROP|RENAME|TRUNCATE|ANALYZE|OPTIMIZE|REPAIR|FLUSH|CACHE|LOAD)\b/i;

export class OneTransaction {
  readonly #leftOut: LeftOut | undefined;

  /** `leftOut`: collects statements that are left out; undefined: they are refused. */
  constructor(leftOut: LeftOut | undefined) {
    this.#leftOut = leftOut;
  }

  /** The first line of a statement; null: the statement is left out. Throws LoadFailed. */
  altered(text: string, line: number): string | null {
    const plain = text.trim().replace(OPEN, '');
    if (NOT_NEEDED.test(plain)) return null;
    if (BACK.test(plain)) throw new LoadFailed(`line ${line}: the dump contains ROLLBACK`);
    const table = EMPTIES.exec(plain)?.[1];
    if (table !== undefined) return `DELETE FROM ${table};\n`;
    if (!ENDS.test(plain)) return text;
    const reason = 'rows are added in one transaction, which this would end';
    if (this.#leftOut === undefined) throw new LoadFailed(`line ${line}: ${reason}: ${plain.slice(0, 60)}`);
    this.#leftOut.add({ line, text: Buffer.from(text.trim(), 'latin1').toString(), reason });
    return null;
  }
}

/**
 * Views and programs of a dump, each run in such a way that an error of the server leaves it out and is
 * told: MySQL's language has forms that MariaDB's has not, and no row depends on them.
 */
import type { Readable } from 'node:stream';
import type { LeftOut } from '../../../../databases/left-out.ts';
import { randomBase62 } from '../../../../platform/ids.ts';
import { masked } from './names/sql-parts.ts';

const KEY_LENGTH = 32;
/** Longer lines of the client's output are none of ours. */
const MOST_LINE = 8192;
const MOST_SHOWN = 200;
/** Further ones run as they are: what is kept of each takes memory. */
const MOST_TRIED = 10_000;
/**
 * Syntax, a missing function, variable, table, column, collation or character set, what is not supported,
 * and a view of something that is missing.
 */
const ERRORS = '1064,1305,1128,1193,1146,1054,1109,1273,1115,1235,1356,1583,4078,4161';
const SYNTAX = /^You have an error in your SQL syntax; .* to use near '([\s\S]*)' at line \d+$/;
const OWN_NAME = /\bt_[a-z0-9]{16}\./g;
const WRAPPED = ';;';

export class TriedPrograms {
  readonly #leftOut: LeftOut;
  readonly #key = randomBase62(KEY_LENGTH);
  /** Beginnings of those that were tried, by their lines. */
  readonly #texts = new Map<number, string>();
  #extraLines = 0;

  constructor(leftOut: LeftOut) {
    this.#leftOut = leftOut;
  }

  /** Lines that the texts for the client have more than those of the file. */
  get extraLines(): number {
    return this.#extraLines;
  }

  /** `text`: a whole statement with its end mark, with one character per byte. */
  wrapped(text: string, { line, delimiter }: { readonly line: number; readonly delimiter: string }): string {
    const end = text.lastIndexOf(delimiter);
    if (end < 0 || this.#texts.size >= MOST_TRIED || hasMore(text, { end, delimiter })) return text;
    this.#texts.set(line, shown(text.slice(0, MOST_SHOWN)));
    const lines = text.split('\n').length - 1;
    // The bytes pass as they are, whatever character set the dump says.
    const statement = Buffer.from(text.slice(0, end), 'latin1').toString('hex');
    const isChanged = delimiter === ';';
    const tried =
      `BEGIN NOT ATOMIC DECLARE n INT; DECLARE m TEXT; DECLARE EXIT HANDLER FOR ${ERRORS} BEGIN ` +
      'GET DIAGNOSTICS CONDITION 1 n = MYSQL_ERRNO, m = MESSAGE_TEXT; ' +
      `SELECT '${this.#key}' AS k, ${line} AS l, n, m; END; EXECUTE IMMEDIATE x'${statement}'; END`;
    // In a file with CRLF the client's end mark has the carriage return.
    const whole = isChanged
      ? `DELIMITER ${WRAPPED}\n${tried} ${WRAPPED}\nDELIMITER ${delimiter}\n`
      : `${tried} ${text.slice(end).trimEnd()}${text.endsWith('\r\n') ? '\r' : ''}\n`;
    const made = whole.split('\n').length - 1;
    this.#extraLines += Math.max(0, made - lines);
    return whole + '\n'.repeat(Math.max(0, lines - made));
  }

  /** Reads the client's output to its end, and tells what the server did not take. */
  async read(output: Readable): Promise<void> {
    let rest = '';
    for await (const piece of output.setEncoding('utf8')) {
      const lines = (rest + piece).split('\n');
      rest = (lines.pop() ?? '').slice(0, MOST_LINE);
      for (const line of lines) this.#tell(line);
    }
    this.#tell(rest);
  }

  #tell(output: string): void {
    const [key, at, , message = ''] = output.split('\t');
    if (key !== this.#key) return;
    const line = Number(at);
    const text = this.#texts.get(line);
    if (text !== undefined) this.#leftOut.add({ line, text, reason: reasonOf(message) });
  }
}

/** Whether the text may have another statement, which must not be left out with the first one. */
function hasMore(
  text: string,
  { end, delimiter }: { readonly end: number; readonly delimiter: string },
): boolean {
  const first = masked(text).indexOf(delimiter);
  return first >= 0 && first < end;
}

/** `message`: as the client prints it, with escapes. */
function reasonOf(message: string): string {
  const plain = message
    .replaceAll(/\\[nt0]/g, ' ')
    .replaceAll('\\\\', '\\')
    .replaceAll(OWN_NAME, '');
  const near = SYNTAX.exec(plain)?.[1];
  return near === undefined
    ? `the server refuses it: ${plain}`
    : `MariaDB does not have this syntax, near ${near.trim().slice(0, 60)}`;
}

/** Decodes text with one character per byte. */
const shown = (bytes: string) => Buffer.from(bytes, 'latin1').toString();

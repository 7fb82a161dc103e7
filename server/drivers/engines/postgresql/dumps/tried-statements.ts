/**
 * Statements of a dump without rows, each run in such a way that an error of the server leaves it out and is
 * told: a newer server's views, functions and indexes have forms that this one lacks, and those of absent
 * extensions need what is not here. No row depends on them.
 */
import type { Readable } from 'node:stream';
import type { LeftOut } from '../../../../databases/left-out.ts';
import { randomBase62 } from '../../../../platform/ids.ts';
import { pattern } from './sql-names.ts';

const KEY_LENGTH = 32;
/** Longer lines of psql's output are none of ours. */
const MOST_LINE = 8192;
const MOST_SHOWN = 200;
/** The beginnings of further ones are not kept in memory. */
const MOST_KEPT = 20_000;

/** Objects without rows of their own. */
const OBJECTS =
  'AGGREGATE|CAST|COLLATION|CONVERSION|FUNCTION|(?:UNIQUE )?INDEX|MATERIALIZED VIEW|OPERATOR|POLICY|PROCEDURE|' +
  'RECURSIVE VIEW|RULE|STATISTICS|TEXT SEARCH|(?:CONSTRAINT )?TRIGGER|VIEW';
const WITHOUT_ROWS: readonly RegExp[] = [
  `CREATE(?: OR REPLACE)? (?:${OBJECTS})\\b`,
  `ALTER (?:${OBJECTS}|ROUTINE|DEFAULT PRIVILEGES)\\b`,
  // Not ATTACH PARTITION: the rows of the partition would be hidden.
  'ALTER TABLE (?:ONLY )?(?:ID\\.)?ID ADD (?:CONSTRAINT|CHECK|UNIQUE|PRIMARY|FOREIGN|EXCLUDE)\\b',
  'ALTER TABLE (?:ONLY )?(?:ID\\.)?ID (?:ALTER COLUMN ID SET|CLUSTER|DISABLE|ENABLE|FORCE|REPLICA|VALIDATE)\\b',
  'ALTER TABLE (?:ONLY )?(?:ID\\.)?ID SET \\(',
  '(?:COMMENT ON|GRANT|REVOKE|REFRESH)\\b',
  // A function of an extension, not one of PostgreSQL, such as setval().
  'SELECT (?!pg_catalog\\.)ID\\.ID\\s*\\(',
].map((words) => pattern(`^${words}`));
const CONCURRENT = pattern('^CREATE (?:UNIQUE )?INDEX CONCURRENTLY ');

/**
 * SQLSTATEs (PostgreSQL, appendix A): syntax, missing names and rights, unsupported forms and values. A name
 * that exists twice, rows that break a rule, and a missing table of a constraint are true errors.
 */
const IS_ABSENT =
  "(SQLSTATE LIKE '42%' AND SQLSTATE NOT IN ('42P07', '42710', '42723', '42701', '42P16') " +
  "AND NOT (SQLSTATE = '42P01' AND statement ~* '^ALTER\\s+TABLE')) " +
  "OR SQLSTATE IN ('0A000', '22023', '3F000', '55000', '58P01')";

export class TriedStatements {
  readonly #leftOut: LeftOut;
  readonly #version: string;
  readonly #hasLines: boolean;
  /** A name for a function and for dollar quotes, which may not begin with a digit. */
  readonly #key = `k${randomBase62(KEY_LENGTH)}`;
  /** Lines and beginnings of those that were tried, in their order. */
  readonly #all: { readonly line: number; readonly text: string }[] = [];
  #count = 0;

  constructor(leftOut: LeftOut, { version, hasLines }: { version: string; hasLines: boolean }) {
    this.#leftOut = leftOut;
    this.#version = version;
    this.#hasLines = hasLines;
  }

  /** SQL before the first statement, in one line; it needs the right to make temporary functions. */
  get prelude(): string {
    const body =
      'BEGIN EXECUTE statement; RETURN NULL; EXCEPTION WHEN OTHERS THEN ' +
      `IF ${IS_ABSENT} THEN RETURN concat_ws(E'\\t', '${this.#key}', number, translate(SQLERRM, E'\\n\\t', '  ')); ` +
      'END IF; RAISE; END';
    return (
      `CREATE FUNCTION ${this.#name}(number integer, statement text) RETURNS text LANGUAGE plpgsql ` +
      `AS $${this.#key}$ ${body} $${this.#key}$; `
    );
  }

  /** The statement so that it may fail, with as many lines; null: rows may depend on it. */
  wrapped(text: string, line: number): string | null {
    if (!WITHOUT_ROWS.some((words) => words.test(text)) || CONCURRENT.test(text)) return null;
    const number = this.#count++;
    // A slice would keep the whole statement in memory.
    if (number < MOST_KEPT) this.#all.push({ line, text: Buffer.from(text.slice(0, MOST_SHOWN)).toString() });
    const quote = `$${this.#key}$`;
    return `SELECT ${this.#name}(${number}, ${quote}${text}${quote});`;
  }

  /** Reads psql's output to its end, and tells what the server did not take. */
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
    const [key, at, message = ''] = output.split('\t');
    if (key !== this.#key) return;
    const { line = null, text = 'a statement' } = this.#all[Number(at)] ?? {};
    this.#leftOut.add({
      line: this.#hasLines ? line : null,
      text,
      reason: `PostgreSQL ${this.#version} refuses it: ${message}`,
    });
  }

  get #name(): string {
    return `pg_temp."try_${this.#key}"`;
  }
}

/**
 * Lines of CREATE TABLE as written by mysqldump of MySQL 8 and 9, one element per line, without
 * those that MariaDB does not support. A comma is placed before the next element, because that may
 * be left out.
 */
import { QUOTED_TEXT, STRING } from './names/sql-parts.ts';

/** MariaDB's own program writes neither; `--compact` leaves out the first. */
const HEADER = /^(?:-- MySQL dump |\/\*!50503 SET )/;
const MARIADB = /^-- MariaDB dump /;
const BEGIN = /^CREATE TABLE /;
/** The end of a table, in any text. */
const END = /^\) ?(?:\/\*!\d+ [^*]*\*\/ )?(?:ENGINE|TYPE)\b/i;
/** A whole table in a line, as people write it. */
const ONE_LINE = /^CREATE TABLE .*(\) ?(?:ENGINE|TYPE|TABLESPACE)\b[^()'"]*)$/is;
const ELEMENT = /^( {2}\S.*?)(,?)(\r?\n)$/;
const NAME = '`(?:[^`]|``)*`';
/** An index with an expression, which has its own parentheses. */
const OF_EXPRESSION = new RegExp(`^ {2}(?:UNIQUE )?KEY ${NAME} \\((?:${NAME}(?:\\(\\d+\\))?(?: DESC)?,)*\\(`);
/** Table options that MariaDB does not support, and why. */
const OPTIONS: readonly (readonly [RegExp, string])[] = [
  [/(?<!\/\*!\d{5}) ENCRYPTION='\w'/g, 'the host encrypts its disk, not single tables'],
  [/ `?(?:ENCRYPTED|ENCRYPTION_KEY_ID)`?='?\w+'?/gi, 'the host encrypts its disk, not single tables'],
  [/ `compression`='\w+'/gi, 'it is an option of another storage engine'],
  [/ (?:PAGE_CHECKSUM|TRANSACTIONAL)=\d/g, 'it is an option of another storage engine'],
  [/ ROW_FORMAT=(?:FIXED|PAGE|TOKUDB_\w+)/g, 'it is a format of another storage engine'],
  [/ COMPRESSION='\w*'/g, 'MariaDB compresses tables in another way'],
  [/ \/\*!50100 TABLESPACE `[^`]+`(?: STORAGE \w+)? \*\//g, 'the server decides where files of tables lie'],
  [/ TABLESPACE ?=? ?`?\w+`?(?: STORAGE (?:DISK|MEMORY))?/g, 'the server decides where files of tables lie'],
  [/ SECONDARY_ENGINE=\w+/g, 'MariaDB has no secondary engines'],
  [/(?<!\/\*!\d{5}) AUTOEXTEND_SIZE=\w+/g, 'the server decides how files of tables grow'],
];
const COMMENT = new RegExp(` COMMENT=(?:${STRING.source})`);
/** Options of columns of MySQL's cluster, outside of quotes. */
const OF_CLUSTER = new RegExp(`${QUOTED_TEXT.source}|( /\\*!50606 (?:STORAGE|COLUMN_FORMAT) \\w+ \\*/)`, 'g');
const PARSER = / \/\*!50100 WITH PARSER `\w+` \*\/ ?/;

const UNCHECKED = new RegExp(`^ {2}CONSTRAINT ${NAME} CHECK .*/\\*!80016 NOT ENFORCED \\*/$`);

/** In dumps of these programs only names of other databases stand before a point. */
const FAR_KEY = new RegExp(`^ {2}CONSTRAINT ${NAME} FOREIGN KEY .* REFERENCES (${NAME})\\.${NAME} `);
export const NO_EXPRESSIONS = 'MariaDB has no indexes of expressions: index a generated column instead';
const NO_SCHEMAS = /^ {2}CONSTRAINT (?:(?! CHECK ).)* CHECK .*\bjson_schema_valid\(/i;

interface Means {
  /** MySQL's program wrote the file. */
  readonly isMysql: boolean;
  /** Whether this server has vectors, and indexes of them. */
  readonly hasVectors: boolean;
}

function whyNot(element: string, { isMysql, hasVectors }: Means): string | null {
  if (!hasVectors && element.startsWith('  VECTOR KEY ')) return 'the server has no indexes of vectors';
  const [, other] = FAR_KEY.exec(element) ?? [];
  if (other !== undefined) return `the database ${other.slice(1, -1)} is not in the file`;
  if (!isMysql) return null;
  if (NO_SCHEMAS.test(element)) return 'MariaDB has no such function in constraints';
  if (OF_EXPRESSION.test(element)) return NO_EXPRESSIONS;
  return UNCHECKED.test(element) ? 'constraints are always enforced on this server' : null;
}

/** Receives omitted elements, and the reasons. */
type Tell = (text: string, reason: string) => void;

function withoutCluster(element: string, tell: Tell): string {
  return element.replaceAll(OF_CLUSTER, (found, option?: string) => {
    if (option === undefined) return found;
    tell(option.trim(), 'it is an option of MySQL Cluster');
    return '';
  });
}

export class TableLines {
  readonly #tell: (line: number, text: string, reason: string) => void;
  readonly #hasVectors: boolean;
  #isMysql = false;
  #isMariadb = false;
  #isWithin = false;
  #needsComma = false;

  constructor(
    tell: (line: number, text: string, reason: string) => void,
    { hasVectors }: Pick<Means, 'hasVectors'>,
  ) {
    this.#tell = tell;
    this.#hasVectors = hasVectors;
  }

  altered(text: string, { line, isFirst }: { readonly line: number; readonly isFirst: boolean }): string {
    if (HEADER.test(text)) this.#isMysql = true;
    if (MARIADB.test(text)) this.#isMariadb = true;
    const tell: Tell = (what, reason) => this.#tell(line, what, reason);
    if (isFirst) {
      this.#isWithin = (this.#isMysql || this.#isMariadb) && BEGIN.test(text);
      this.#needsComma = false;
      const end = ONE_LINE.exec(text)?.[1];
      return end === undefined ? text : text.slice(0, -end.length) + this.#closed(end, tell);
    }
    if (!this.#isWithin) return END.test(text) ? this.#closed(text, tell) : text;
    const [, element, comma, end = ''] = ELEMENT.exec(text) ?? [];
    if (element === undefined) return this.#closed(text, tell);
    const reason = whyNot(element, { isMysql: this.#isMysql, hasVectors: this.#hasVectors });
    if (reason !== null) {
      tell(element.trim(), reason);
      // The last one has no comma, and then none may precede it.
      if (comma === '') this.#needsComma = false;
      return end;
    }
    const before = this.#needsComma ? ',' : '';
    this.#needsComma = comma !== '';
    if (element.includes(' /*!50606 ')) return before + withoutCluster(element, tell) + end;
    const parser =
      this.#isMysql && element.startsWith('  FULLTEXT KEY ') ? PARSER.exec(element)?.[0] : undefined;
    if (parser === undefined) return before + element + end;
    tell(parser.trim(), 'MariaDB has no such parser: only whole words are found');
    return before + element.replace(PARSER, '') + end;
  }

  #closed(text: string, tell: Tell): string {
    this.#isWithin = false;
    if (!text.startsWith(')')) return text;
    const without = (options: string) =>
      OPTIONS.reduce((kept, [option, reason]) => {
        return kept.replaceAll(option, (found) => {
          tell(found.trim(), reason);
          return '';
        });
      }, options);
    const { 0: comment = '', index = text.length } = COMMENT.exec(text) ?? {};
    return without(text.slice(0, index)) + comment + without(text.slice(index + comment.length));
  }
}

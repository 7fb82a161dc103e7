/**
 * Lines of CREATE TABLE as written by mysqldump of MySQL 8 and 9, one element per line, without
 * those that MariaDB does not support. A comma is placed before the next element, because that may
 * be left out.
 */
const HEADER = /^-- MySQL dump /;
const BEGIN = /^CREATE TABLE /;
const ELEMENT = /^( {2}\S.*?)(,?)(\r?\n)$/;
const NAME = '`(?:[^`]|``)*`';
/** An index with an expression, which has its own parentheses. */
const OF_EXPRESSION = new RegExp(`^ {2}(?:UNIQUE )?KEY ${NAME} \\((?:${NAME}(?:\\(\\d+\\))?(?: DESC)?,)*\\(`);
const COMPRESSED = /( COMPRESSION=)'\w*'/;

/** Receives omitted elements, and the reasons. */
type Tell = (text: string, reason: string) => void;

export class TableLines {
  readonly #tell: (line: number, text: string, reason: string) => void;
  #isMysql = false;
  #isWithin = false;
  #needsComma = false;

  constructor(tell: (line: number, text: string, reason: string) => void) {
    this.#tell = tell;
  }

  altered(text: string, { line, isFirst }: { readonly line: number; readonly isFirst: boolean }): string {
    if (HEADER.test(text)) this.#isMysql = true;
    if (isFirst) {
      this.#isWithin = this.#isMysql && BEGIN.test(text);
      this.#needsComma = false;
      return text;
    }
    if (!this.#isWithin) return text;
    const [, element, comma, end = ''] = ELEMENT.exec(text) ?? [];
    const tell: Tell = (what, reason) => this.#tell(line, what, reason);
    if (element === undefined) return this.#closed(text, tell);
    if (OF_EXPRESSION.test(element)) {
      tell(element.trim(), 'MariaDB has no indexes of expressions: index a generated column instead');
      // The last one has no comma, and then none may precede it.
      if (comma === '') this.#needsComma = false;
      return end;
    }
    const before = this.#needsComma ? ',' : '';
    this.#needsComma = comma !== '';
    return before + element + end;
  }

  #closed(text: string, tell: Tell): string {
    this.#isWithin = false;
    const found = text.startsWith(')') ? COMPRESSED.exec(text.replace(/ COMMENT='.*$/, '')) : null;
    if (found === null) return text;
    tell(found[0].trim(), 'MariaDB compresses tables in another way');
    return text.replace(found[0], '');
  }
}

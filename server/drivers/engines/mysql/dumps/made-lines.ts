/**
 * Lines of a dump that mariadb-dump writes, altered so that it can be loaded again:
 *   - the database has another name there, so its own does not stand before other names;
 *   - rows are not checked: those that are there may be older than a constraint;
 *   - no default needs a sequence that is gone, because such a table could not be created.
 */
import { asBytes, QUOTED_PARTS, quoted } from './names/sql-parts.ts';

export interface MadeDump {
  /** The dumped database. */
  readonly database: string;
  /** Names of its tables and sequences. */
  readonly tables: readonly string[];
  /** Statements for the end of the dump. */
  readonly last: Buffer;
}

const TABLE = /^CREATE TABLE `/;
const BY_SEQUENCE = / DEFAULT nextval\(`((?:[^`]|``)*)`\)/;
/** One of the first settings, and the last line. */
const FIRST = /^\/\*!40014 SET @OLD_UNIQUE_CHECKS=/;
const LAST = /^-- Dump completed/;
const UNCHECKED =
  '/*M!100201 SET @OLD_CHECK_CONSTRAINT_CHECKS=@@CHECK_CONSTRAINT_CHECKS, CHECK_CONSTRAINT_CHECKS=0 */;\n';
const CHECKED = '/*M!100201 SET CHECK_CONSTRAINT_CHECKS=@OLD_CHECK_CONSTRAINT_CHECKS */;\n';
/** The database's own collation while a routine or trigger is created. */
const COLLATION = /^(ALTER DATABASE )`(?:[^`]|``)*` (?=CHARACTER SET )/;

export class MadeLines {
  readonly #own: string;
  readonly #tables: ReadonlySet<string>;
  readonly #last: string;
  #isTable = false;
  #isUnchecked = false;

  constructor({ database, tables, last }: MadeDump) {
    this.#own = `${quoted(database)}.`;
    this.#tables = new Set(tables.map(asBytes));
    this.#last = last.toString('latin1');
  }

  /** Each character is a byte. */
  altered(text: string, isFirst: boolean): string {
    if (isFirst) this.#isTable = TABLE.test(text);
    if (this.#isTable) return this.#inTable(text);
    if (!isFirst) return text;
    if (FIRST.test(text)) {
      this.#isUnchecked = true;
      return UNCHECKED + text;
    }
    if (LAST.test(text)) return `${this.#last}\n${this.#isUnchecked ? CHECKED : ''}${text}`;
    return text.replace(COLLATION, '$1');
  }

  #inTable(text: string): string {
    const plain = text.replace(QUOTED_PARTS, (part) => (part === this.#own ? '' : part));
    const [found, name = ''] = BY_SEQUENCE.exec(plain) ?? [];
    const isGone = found !== undefined && !this.#tables.has(name.replaceAll('``', '`'));
    return isGone ? plain.replace(found, '') : plain;
  }
}

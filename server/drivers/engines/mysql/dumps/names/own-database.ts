/**
 * The one database of a dump that is loaded, whatever its name was: the dump names it in a comment, by
 * CREATE DATABASE and USE, or before the names of its tables.
 */
import { LoadFailed } from '../../../../../databases/engine.ts';
import type { LeftOut } from '../../../../../databases/left-out.ts';
import { copied } from '../known-names.ts';
import { OwnNames } from './own-names.ts';
import { plainName } from './sql-parts.ts';

export const ONE = 'the dump is loaded into this database, whatever its name was';
const OF_PHPMYADMIN = 'it is a note of phpMyAdmin, for its own database';
const OF_SERVER = 'it belongs to a database of the server itself';
/** The beginning of a statement, possibly in a comment that newer servers execute. */
const OPEN = '^(?:/\\*M?!\\d* ?)?';
const NAME = '(`(?:[^`]|``)+`|[\\w$\\x80-\\xff-]+)';
const PLAIN = '(`(?:[^`]|``)+`|[\\w$\\x80-\\xff]+)';
const USE = new RegExp(`${OPEN}USE\\s+${NAME}`, 'i');
const MADE = new RegExp(
  `${OPEN}CREATE\\s+(?:/\\*!\\d+ [^*]*\\*/\\s*)?(?:DATABASE|SCHEMA)\\s*(?:/\\*!\\d+ [^*]*\\*/\\s*)?(?:IF\\s+NOT\\s+EXISTS\\s+)?${NAME}`,
  'i',
);
/** Comments of programs that name the database. */
const SAID = [/^-- Host: .*Database: (\S+)\s*$/, /^-- Database: `([^`]+)`/];
const SERVERS_OWN = /^(?:mysql|sys|performance_schema|information_schema|ndbinfo)$/i;
/** Longer ones, in bytes, are no names of the server. */
const MOST_NAME = 256;
const MOST_SHOWN = 100;
const ROWS = /^(?:INSERT|REPLACE|UPDATE|DELETE)\b/i;
const CHANGES = /^\s*(?:UPDATE|DELETE)\b/i;
const CONTENT = new RegExp(
  `${OPEN}(?:INSERT|REPLACE|UPDATE|DELETE|CREATE|DROP|ALTER|LOCK|UNLOCK|TRUNCATE|ANALYZE|CALL)\\b`,
  'i',
);
/** A statement about tables, up to the name of a table with that of its database. */
const ABOUT = new RegExp(
  `${OPEN}(?:((?:CREATE\\s+(?:OR\\s+REPLACE\\s+)?TABLE|(?:INSERT|REPLACE)(?:\\s+(?:LOW_PRIORITY|DELAYED|HIGH_PRIORITY|IGNORE))*\\s+INTO))|` +
    '(?:DROP|ALTER|TRUNCATE|LOCK)\\s+TABLES?|TRUNCATE|CREATE\\s+(?:OR\\s+REPLACE\\s+)?VIEW|DROP\\s+VIEW)' +
    `\\s+(?:IF\\s+(?:NOT\\s+)?EXISTS\\s+)?${PLAIN}\\s*\\.\\s*[\`\\w$\\x80-\\xff]`,
  'i',
);
/** The beginning of a statement with rows, up to the name of its table. */
const INTO = new RegExp(
  `^(\\s*(?:INSERT|REPLACE|UPDATE|DELETE)(?:\\s+\\w+)*?\\s+(?:INTO\\s+|FROM\\s+)?)${PLAIN}\\s*\\.\\s*(?=[\`\\w$\\x80-\\xff])`,
  'i',
);

export class OwnDatabase {
  readonly #leftOut: LeftOut;
  readonly #databases: ReadonlySet<string>;
  #used: string | null = null;
  #names: OwnNames | null = null;
  /** Why the statements of another database are left out; null: they are of this one. */
  #away: string | null = null;

  /** `databases`: others that the user of the load reaches. */
  constructor(leftOut: LeftOut, databases: ReadonlySet<string>) {
    this.#leftOut = leftOut;
    this.#databases = databases;
  }

  /** Why a first line of a statement is left out; null: it is not. Throws LoadFailed for a second one. */
  whyNot(text: string, line: number): string | null {
    const used = USE.exec(text)?.[1];
    if (used !== undefined) return this.#use(plainName(used));
    const made = MADE.exec(text)?.[1];
    if (made !== undefined && SERVERS_OWN.test(plainName(made))) return OF_SERVER;
    if (this.#away !== null) {
      const isOfIt = this.#away === OF_SERVER ? CONTENT.test(text) : ROWS.test(text);
      return isOfIt ? this.#away : null;
    }
    const said = SAID.map((pattern) => pattern.exec(text)?.[1]).find((name) => name !== undefined);
    if (made !== undefined || said !== undefined) this.#name(said ?? plainName(made ?? ''));
    this.#about(text, line);
    return null;
  }

  /** The line without the name of this database; of rows only the beginning is read. */
  without(
    text: string,
    { isFirst, isData }: { readonly isFirst: boolean; readonly isData: boolean },
  ): string {
    const names = this.#names;
    if (names === null) return text;
    if (!isData) return isFirst || names.isIn(text) ? names.without(text, isFirst) : text;
    if (isFirst && CHANGES.test(text)) return names.without(text, true);
    return text.replace(INTO, (all, into: string, name: string) =>
      plainName(name) === names.name ? into : all,
    );
  }

  #use(name: string): string {
    // phpMyAdmin writes notes about columns into its own database.
    const isOfPhpMyAdmin = name === 'phpmyadmin' && this.#used !== null && this.#used !== name;
    this.#away = isOfPhpMyAdmin ? OF_PHPMYADMIN : SERVERS_OWN.test(name) ? OF_SERVER : null;
    if (this.#away !== null) return this.#away;
    if (this.#used !== null && this.#used !== name) throw secondDatabase(this.#used, name);
    this.#used = copied(name);
    this.#name(name);
    return ONE;
  }

  #name(name: string): void {
    if (name.length > MOST_NAME || this.#names?.name === name || SERVERS_OWN.test(name)) return;
    this.#names = new OwnNames(copied(name));
  }

  #about(text: string, line: number): void {
    const [, makes, quoted] = ABOUT.exec(text) ?? [];
    if (quoted === undefined) return;
    const name = plainName(quoted);
    if (name === this.#names?.name || this.#databases.has(shown(name)) || SERVERS_OWN.test(name)) return;
    if (this.#names === null) {
      this.#name(name);
      this.#leftOut.add({ line, text: shown(`${quoted}.`), reason: ONE });
    } else if (makes !== undefined) throw secondDatabase(this.#names.name, name);
  }
}

function secondDatabase(first: string, second: string): LoadFailed {
  return new LoadFailed(
    `The dump has more than one database, ${shown(first.slice(0, MOST_SHOWN))} and ${shown(second.slice(0, MOST_SHOWN))}: ` +
      'make a dump of each with `mysqldump NAME`, and load it alone',
  );
}

/** Decodes text with one character per byte. */
const shown = (bytes: string) => Buffer.from(bytes, 'latin1').toString();

/**
 * Views and parts of tables that need what this server or tenant does not have: other databases, and
 * functions of MySQL. Statements are held until their end, because the last line may be the one that tells.
 */
import type { LeftOut } from '../../../../databases/left-out.ts';
import type { LenientLoad } from './foreign-lines.ts';
import { closing, elementsOf, masked, plainName, type UsedNames, usedNames } from './sql-parts.ts';

export interface LineAt {
  /** Number of the line in the file. */
  readonly line: number;
  /** Begins a statement. */
  readonly isFirst: boolean;
  /** Ends the statement. */
  readonly isLast: boolean;
  /** The end mark of the statement. */
  readonly delimiter: string;
}

interface View extends UsedNames {
  readonly name: string;
  /** The beginning of the statement. */
  readonly text: string;
  readonly line: number;
}

/** Functions of MySQL that this server may not have, besides those that are replaced. */
export const MYSQL_FUNCTIONS: readonly string[] = [
  ...['json_schema_valid', 'json_schema_validation_report', 'json_storage_size', 'json_storage_free'],
  ...['json_pretty', 'json_overlaps', 'is_uuid', 'uuid_to_bin', 'bin_to_uuid', 'regexp_like', 'random_bytes'],
  ...['statement_digest', 'statement_digest_text', 'vector_to_string', 'string_to_vector', 'vector_dim'],
  ...['st_latitude', 'st_longitude', 'st_transform', 'st_swapxy', 'st_isvalid', 'st_validate', 'st_geohash'],
  ...[
    'st_latfromgeohash',
    'st_longfromgeohash',
    'st_pointfromgeohash',
    'st_makeenvelope',
    'st_distance_sphere',
  ],
  ...['st_hausdorffdistance', 'st_frechetdistance', 'st_lineinterpolatepoint', 'st_pointatdistance'],
];

/** A longer statement is passed on as it is. */
const MOST_CHARACTERS = 262_144;
const MOST_SHOWN = 300;
const OPEN = '^\\s*(?:/\\*M?!\\d* ?)?';
const VIEW = new RegExp(
  `${OPEN}CREATE\\s+(?:OR\\s+REPLACE\\s+)?(?:ALGORITHM\\s*=|SQL\\s+SECURITY\\s|VIEW\\s)`,
  'i',
);
const TABLE = new RegExp(`${OPEN}(?:CREATE\\s+(?:OR\\s+REPLACE\\s+)?TABLE|ALTER\\s+TABLE)\\s`, 'i');
const NAME = '((?:`(?:[^`]|``)*`|[\\w$\\x80-\\xff]+))';
const NAMED = new RegExp(`\\bVIEW\\s+(?:IF\\s+NOT\\s+EXISTS\\s+)?(?:${NAME}\\s*\\.\\s*)?${NAME}`, 'i');
const ROUTINE = new RegExp(
  `^\\s*(?:/\\*M?!\\d* ?)?CREATE\\b.*\\bFUNCTION\\s+(?:IF\\s+NOT\\s+EXISTS\\s+)?(?:${NAME}\\s*\\.\\s*)?${NAME}\\s*\\(`,
  'i',
);
/** Lines that name the database of the dump: of MySQL's program, of phpMyAdmin, and statements. */
const OWN = [
  /^-- Host: .*Database: (\S+)\s*$/,
  /^-- Database: `([^`]+)`/,
  /^USE\s+`?([^`;\s]+)/i,
  /^CREATE\s+(?:DATABASE|SCHEMA)\s[^`;]*`([^`]+)`/i,
];
/** Everybody may read it. */
const COMMON = /^information_schema$/i;
const CHECK = /(?:\bCONSTRAINT\s+\S+\s+)?\bCHECK\s*\(/gi;
const GENERATED = /(?:\bGENERATED\s+ALWAYS\s+)?\bAS\s*\(/gi;
const DEFAULT = /\bDEFAULT\s*\(/gi;
const IS_CHECK = /^\s*(?:CONSTRAINT\s+\S+\s+)?CHECK\s*\(/i;
const IS_INDEX = /^\s*(?:CONSTRAINT\s+\S+\s+)?(?:UNIQUE|FULLTEXT|SPATIAL|KEY|INDEX|PRIMARY)\b/i;

export class AbsentParts {
  readonly #leftOut: LeftOut;
  readonly #databases: ReadonlySet<string>;
  /** Calls of functions that the server does not have; null: it has all. */
  readonly #calls: RegExp | null;
  readonly #own = new Set<string>();
  /** Functions that the dump makes, in lower case. */
  readonly #made = new Set<string>();
  readonly #views: View[] = [];
  /** Names of views that are left out. */
  readonly #gone = new Set<string>();
  #held: string[] | null = null;
  #heldCharacters = 0;
  #heldLine = 0;

  constructor({
    leftOut,
    absentFunctions,
    databases,
  }: Pick<LenientLoad, 'leftOut' | 'absentFunctions' | 'databases'>) {
    this.#leftOut = leftOut;
    this.#databases = databases;
    const names = [...absentFunctions].join('|');
    this.#calls = names === '' ? null : new RegExp(`(?<![.\\w])(${names})\\s*\\(`, 'i');
  }

  /** Reads names of the dump's own database from a line of the file. */
  note(text: string): void {
    for (const pattern of OWN) {
      const name = pattern.exec(text)?.[1];
      if (name !== undefined) this.#own.add(name);
    }
  }

  /** Text for the server: of this line, of a statement that ends with it, or none yet. */
  take(text: string, { line, isFirst, isLast, delimiter }: LineAt): string {
    const routine = isFirst ? ROUTINE.exec(text)?.[2] : undefined;
    if (routine !== undefined) this.#made.add(plainName(routine).toLowerCase());
    if (isFirst && this.#held === null && (VIEW.test(text) || TABLE.test(text))) {
      this.#held = [];
      this.#heldCharacters = 0;
      this.#heldLine = line;
    }
    if (this.#held === null) return text;
    this.#held.push(text);
    this.#heldCharacters += text.length;
    if (!isLast) return this.#heldCharacters > MOST_CHARACTERS ? this.release() : '';
    const whole = this.release();
    return VIEW.test(whole) ? this.#view(whole, delimiter) : this.#table(whole);
  }

  /** The held lines of an unfinished statement, unchanged. */
  release(): string {
    const text = this.#held?.join('') ?? '';
    this.#held = null;
    return text;
  }

  #view(text: string, delimiter: string): string {
    const found = NAMED.exec(text);
    if (found === null) return text;
    const view = {
      name: plainName(found[2] as string),
      text: text.slice(0, MOST_SHOWN),
      line: this.#heldLine,
      ...usedNames(text.slice(found.index + found[0].length)),
    };
    const reason = this.#whyNot(view, text);
    if (reason === null) {
      this.#gone.delete(view.name);
      this.#views.push(view);
      return text;
    }
    this.#leave(view, reason);
    return this.#withoutUsers(delimiter) + text.replace(/[^\n]+/g, '');
  }

  /** Statements that remove the views that were made from a stand-in of one that is left out by now. */
  #withoutUsers(delimiter: string): string {
    let removed = '';
    for (;;) {
      const view = this.#views.find(({ name, tables }) => !this.#gone.has(name) && this.#goneOf(tables));
      if (view === undefined) return removed;
      this.#leave(view, needs(this.#goneOf(view.tables) as string));
      removed += `DROP VIEW IF EXISTS \`${view.name.replaceAll('`', '``')}\`${delimiter} `;
    }
  }

  #whyNot({ databases, tables }: View, text: string): string | null {
    for (const name of databases)
      if (!this.#own.has(name) && !COMMON.test(name) && !this.#databases.has(shown(name)))
        return `the database ${shown(name)} is not in the file`;
    const call = this.#calls?.exec(masked(text))?.[1];
    if (call !== undefined && !this.#made.has(call.toLowerCase())) return without(call);
    const gone = this.#goneOf(tables);
    return gone === undefined ? null : needs(gone);
  }

  #goneOf(tables: ReadonlySet<string>): string | undefined {
    return [...tables].find((name) => this.#gone.has(name));
  }

  #leave({ name, text, line }: View, reason: string): void {
    this.#gone.add(name);
    this.#leftOut.add({ line, text: shown(text), reason });
  }

  #table(text: string): string {
    const bare = masked(text);
    const call = this.#calls?.exec(bare)?.[1];
    if (call === undefined) return text;
    if (/^\s*ALTER/i.test(bare)) return this.#alteration(text, bare);
    const open = bare.indexOf('(');
    const close = closing(bare, open);
    if (close < 0) return text;
    let made = text.slice(0, open + 1);
    let isEmpty = true;
    for (const [start, end] of elementsOf(bare, open + 1, close)) {
      const element = this.#element(text.slice(start, end), this.#lineOf(bare, start));
      // The lines of the file stay as they are.
      if (element.trim() !== '' && !isEmpty) made += ',';
      if (element.trim() !== '') isEmpty = false;
      made += element;
    }
    return made + text.slice(close);
  }

  /** A statement that adds one constraint alone. */
  #alteration(text: string, bare: string): string {
    const isOne = /^\s*ALTER\s+TABLE\s+\S+\s+ADD\s+(?:CONSTRAINT\s+\S+\s+)?CHECK\s*\(/i.test(bare);
    const call = this.#calls?.exec(bare)?.[1];
    if (!isOne || call === undefined || elementsOf(bare, 0, bare.length).length > 1) return text;
    this.#leftOut.add({ line: this.#heldLine, text: shown(text), reason: without(call) });
    return text.replace(/[^\n]+/g, '');
  }

  /** A column or constraint without what calls an absent function; blank: nothing of it is left. */
  #element(text: string, line: number): string {
    const bare = masked(text);
    const call = this.#calls?.exec(bare)?.[1];
    if (call === undefined) return text;
    if (IS_CHECK.test(bare) || IS_INDEX.test(bare)) {
      this.#leftOut.add({ line, text: shown(text), reason: without(call) });
      return text.replace(/[^\n]+/g, '');
    }
    const unchecked = this.#cut(text, CHECK, { line, reason: without });
    const empty = (name: string) => `${without(name)}; the column stays, without values`;
    const plain = this.#cut(unchecked, GENERATED, { line, reason: empty, isGenerated: true });
    return this.#cut(plain, DEFAULT, { line, reason: without });
  }

  /** Without the expressions that begin so and call an absent function. */
  #cut(
    text: string,
    begins: RegExp,
    {
      line,
      reason,
      isGenerated = false,
    }: {
      readonly line: number;
      readonly reason: (call: string) => string;
      readonly isGenerated?: boolean;
    },
  ): string {
    const bare = masked(text);
    for (const found of bare.matchAll(begins)) {
      const close = closing(bare, found.index + found[0].length - 1);
      const call = this.#calls?.exec(bare.slice(found.index, close + 1))?.[1];
      if (close < 0 || call === undefined) continue;
      const rest = isGenerated
        ? (/^(?:\s+(?:VIRTUAL|STORED|PERSISTENT|NOT\s+NULL|NULL))*/i.exec(bare.slice(close + 1))?.[0] ?? '')
        : '';
      const end = close + 1 + rest.length;
      this.#leftOut.add({ line, text: shown(text.slice(found.index, end)), reason: reason(call) });
      const kept = text.slice(0, found.index) + text.slice(found.index, end).replace(/[^\n]+/g, '');
      return this.#cut(kept + text.slice(end), begins, { line, reason, isGenerated });
    }
    return text;
  }

  #lineOf(bare: string, start: number): number {
    const before = bare.slice(0, start) + (/^\s*/.exec(bare.slice(start))?.[0] ?? '');
    return this.#heldLine + before.split('\n').length - 1;
  }
}

const needs = (view: string) => `it needs the view ${shown(view)}, which is left out`;
const without = (call: string) => `the server does not have the function ${call.toLowerCase()}()`;
/** Decodes text with one character per byte. */
const shown = (bytes: string) => Buffer.from(bytes, 'latin1').toString();

/**
 * Views and parts of tables that need what this server or tenant does not have: other databases, and
 * functions of MySQL. Statements are held until their end, because the last line may be the one that tells.
 */
import type { LeftOut } from '../../../../databases/left-out.ts';
import type { LenientLoad } from './foreign-lines.ts';
import { copied, KnownNames } from './known-names.ts';
import { withoutArrows } from './names/json-arrows.ts';
import { closing, elementsOf, masked, plainName, type UsedNames, usedNames } from './names/sql-parts.ts';
import { NO_EXPRESSIONS } from './table-lines.ts';

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

interface View {
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
/** Names of tables that views use, of which as many are remembered: a user chooses them. */
const MOST_USES = 100_000;
/** Expressions of a column that are left out; a dump has few. */
const MOST_CUTS = 20;
/** Expressions of a column that are looked into. */
const MOST_EXPRESSIONS = 200;
const OPEN = '^\\s*(?:/\\*M?!\\d* ?)?';
const VIEW = new RegExp(
  `${OPEN}CREATE\\s+(?:OR\\s+REPLACE\\s+)?(?:ALGORITHM\\s*=|SQL\\s+SECURITY\\s|VIEW\\s)`,
  'i',
);
const TABLE = new RegExp(`${OPEN}(?:CREATE\\s+(?:OR\\s+REPLACE\\s+)?TABLE|ALTER\\s+TABLE)\\s`, 'i');
/** The beginning of a routine, trigger or event. */
const PROGRAM = new RegExp(
  `${OPEN}CREATE\\b(?:\\s+OR\\s+REPLACE\\b|\\s+AGGREGATE\\b|\\s*\\*/|\\s*/\\*!\\d+|\\s+DEFINER\\s*=\\s*[^\\s*]+(?=[\\s*]))*` +
    '\\s*\\b(?:PROCEDURE|FUNCTION|TRIGGER|EVENT)\\b',
  'i',
);
/** Dumps of programs, whose views and routines were valid where they come from. */
const OF_PROGRAM =
  /^(?:-- (?:MySQL dump|phpMyAdmin|mysqldump-php|Adminer)|\/\*!500(?:01|03|20|06) CREATE|\s*(?:Navicat|SQLyog) )/;
const OF_MARIADB = /^-- MariaDB dump /;
const SETS_MODE = /^(?:\/\*M?!\d* ?)?SET .*\bsql_mode\b/i;
/** In this mode programs have another language. */
const ORACLE = /\boracle\b/i;
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
const OF_GENERATED = /^(?:\s+(?:VIRTUAL|STORED|PERSISTENT|NOT\s+NULL|NULL))*/i;
const IS_CHECK = /^\s*(?:CONSTRAINT\s+\S+\s+)?CHECK\s*\(/i;
const IS_INDEX = /^\s*(?:CONSTRAINT\s+\S+\s+)?(?:UNIQUE|FULLTEXT|SPATIAL|KEY|INDEX|PRIMARY)\b/i;

/** An index whose list has an expression, which MySQL writes in parentheses of its own. */
const INDEX_OF =
  '(?:UNIQUE\\s+)?(?:KEY|INDEX)\\s+(?:[^\\s(]+\\s*)?\\((?:[^(),]*(?:\\(\\s*\\d+\\s*\\))?,)*\\s*\\(';
const OF_EXPRESSION = new RegExp(`[,\\s(]${INDEX_OF}`, 'i');
const IS_OF_EXPRESSION = new RegExp(`^\\s*(?:ADD\\s+)?(?:CONSTRAINT\\s+\\S+\\s+)?${INDEX_OF}`, 'i');
const ALTERED = /^\s*ALTER\s+TABLE\s+\S+\s/i;

interface Cutting {
  readonly line: number;
  readonly reason: (call: string) => string;
  readonly isGenerated?: boolean;
}

export class AbsentParts {
  readonly #leftOut: LeftOut;
  readonly #databases: ReadonlySet<string>;
  /** Calls of functions that the server does not have; null: it has all. */
  readonly #calls: RegExp | null;
  readonly #tried: LenientLoad['tried'];
  /** A program made the text as a dump of MySQL. */
  #isTried = false;
  #isOfMariadb = false;
  #isOracle = false;
  readonly #told = new KnownNames();
  readonly #own = new KnownNames();
  /** Functions that the dump makes, in lower case. */
  readonly #made = new KnownNames();
  /** Views that were made, by name. */
  readonly #views = new Map<string, View>();
  /** Views by the tables that they use. */
  readonly #usersOf = new Map<string, View[]>();
  #uses = 0;
  /** Names of views that are left out. */
  readonly #gone = new KnownNames();
  #held: string[] | null = null;
  #heldCharacters = 0;
  #heldLine = 0;

  constructor({
    leftOut,
    absentFunctions,
    databases,
    tried,
  }: Pick<LenientLoad, 'leftOut' | 'absentFunctions' | 'databases' | 'tried'>) {
    this.#leftOut = leftOut;
    this.#databases = databases;
    this.#tried = tried;
    const names = [...absentFunctions, ...(tried === undefined ? [] : ['member\\s+of'])].join('|');
    this.#calls = names === '' ? null : new RegExp(`(?<![.\\w])(${names})\\s*\\(`, 'i');
  }

  /** Reads names of the dump's own database from a line of the file. */
  note(text: string): void {
    if (OF_MARIADB.test(text)) this.#isOfMariadb = true;
    if (SETS_MODE.test(text)) this.#isOracle = ORACLE.test(text);
    this.#isTried ||= !this.#isOfMariadb && OF_PROGRAM.test(text);
    for (const pattern of OWN) {
      const name = pattern.exec(text)?.[1];
      if (name !== undefined) this.#own.add(name);
    }
  }

  /** Text for the server: of this line, of a statement that ends with it, or none yet. */
  take(text: string, { line, isFirst, isLast, delimiter }: LineAt): string {
    const routine = isFirst ? ROUTINE.exec(text)?.[2] : undefined;
    if (routine !== undefined) this.#made.add(plainName(routine).toLowerCase());
    if (isFirst && this.#held === null && (VIEW.test(text) || TABLE.test(text) || PROGRAM.test(text))) {
      this.#held = [];
      this.#heldCharacters = 0;
      this.#heldLine = line;
    }
    if (this.#held === null) return text;
    this.#held.push(text);
    this.#heldCharacters += text.length;
    if (!isLast) return this.#heldCharacters > MOST_CHARACTERS ? this.release() : '';
    const given = this.release();
    const whole = this.#tried === undefined ? given : this.#withoutArrows(given);
    if (TABLE.test(whole)) return this.#table(whole);
    const kept = VIEW.test(whole) ? this.#view(whole, delimiter) : whole;
    if (kept !== whole || !this.#isTried || this.#isOracle) return kept;
    return this.#tried?.wrapped(whole, { line: this.#heldLine, delimiter }) ?? whole;
  }

  #withoutArrows(given: string): string {
    const { text, replaced } = withoutArrows(given);
    const reason = 'the server has no such operator; its functions for JSON do the same';
    for (const part of replaced) {
      if (this.#told.has(part)) continue;
      this.#told.add(part);
      this.#leftOut.add({ line: this.#heldLine, text: shown(part), reason });
    }
    return text;
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
    };
    const used = usedNames(text.slice(found.index + found[0].length));
    const reason = this.#whyNot(used, text);
    if (reason === null) {
      this.#gone.delete(view.name);
      this.#remember(view, used);
      return text;
    }
    this.#leave(view, reason);
    return this.#withoutUsers(view.name, delimiter) + text.replace(/[^\n]+/g, '');
  }

  #remember({ name, text, line }: View, { tables }: UsedNames): void {
    if (this.#uses + tables.size >= MOST_USES) return;
    const view = { name: copied(name), text: copied(text), line };
    this.#uses += 1 + tables.size;
    this.#views.set(view.name, view);
    for (const table of tables) {
      const users = this.#usersOf.get(table) ?? [];
      if (users.push(view) === 1) this.#usersOf.set(copied(table), users);
    }
  }

  /** Statements that remove the views that were made from a stand-in of one that is left out by now. */
  #withoutUsers(left: string, delimiter: string): string {
    let removed = '';
    const names = [left];
    for (const gone of names) {
      const users = this.#usersOf.get(gone) ?? [];
      this.#usersOf.delete(gone);
      for (const view of users) {
        if (this.#gone.has(view.name) || this.#views.get(view.name) !== view) continue;
        this.#leave(view, needs(gone));
        names.push(view.name);
        removed += `DROP VIEW IF EXISTS \`${view.name.replaceAll('`', '``')}\`${delimiter} `;
      }
    }
    return removed;
  }

  #whyNot({ databases, tables }: UsedNames, text: string): string | null {
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
    const isAltered = /^\s*ALTER/i.test(bare);
    if (this.#calls?.test(bare) !== true && !(this.#tried !== undefined && OF_EXPRESSION.test(bare)))
      return text;
    if (isAltered && !OF_EXPRESSION.test(bare)) return this.#alteration(text, bare);
    const open = isAltered ? (ALTERED.exec(bare)?.[0].length ?? 0) - 1 : bare.indexOf('(');
    const close = isAltered ? bare.lastIndexOf(';') : closing(bare, open);
    if (close < 0) return text;
    let made = text.slice(0, open + 1);
    let isEmpty = true;
    let [line, counted] = [this.#heldLine, 0];
    for (const [start, end] of elementsOf(bare, open + 1, close)) {
      const begins = start + (/^\s*/.exec(bare.slice(start, end))?.[0].length ?? 0);
      line += linesIn(bare, counted, begins);
      counted = begins;
      const element = this.#element(text.slice(start, end), line);
      // The lines of the file stay as they are.
      if (element.trim() !== '' && !isEmpty) made += ',';
      if (element.trim() !== '') isEmpty = false;
      made += element;
    }
    if (isAltered && isEmpty) return text.replace(/[^\n]+/g, '');
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
    if (this.#tried !== undefined && IS_OF_EXPRESSION.test(bare)) {
      this.#leftOut.add({ line, text: shown(text), reason: NO_EXPRESSIONS });
      return text.replace(/[^\n]+/g, '');
    }
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
  #cut(text: string, begins: RegExp, { line, reason, isGenerated = false }: Cutting): string {
    let kept = text;
    for (let count = 0; count < MOST_CUTS; count++) {
      const found = this.#calling(kept, begins, isGenerated);
      if (found === null) return kept;
      const { from, to, call } = found;
      this.#leftOut.add({ line, text: shown(kept.slice(from, to)), reason: reason(call) });
      kept = kept.slice(0, from) + kept.slice(from, to).replace(/[^\n]+/g, '') + kept.slice(to);
    }
    return kept;
  }

  /** The first expression that begins so and calls an absent function; null: none of the first ones. */
  #calling(text: string, begins: RegExp, isGenerated: boolean) {
    const bare = masked(text);
    let count = 0;
    for (const { 0: word, index: from } of bare.matchAll(begins)) {
      if (++count > MOST_EXPRESSIONS) return null;
      const close = closing(bare, from + word.length - 1);
      const call = this.#calls?.exec(bare.slice(from, close + 1))?.[1];
      if (close < 0 || call === undefined) continue;
      const rest = isGenerated ? (OF_GENERATED.exec(bare.slice(close + 1))?.[0] ?? '') : '';
      return { from, to: close + 1 + rest.length, call };
    }
    return null;
  }
}

function linesIn(text: string, from: number, to: number): number {
  let count = 0;
  for (let at = text.indexOf('\n', from); at >= 0 && at < to; at = text.indexOf('\n', at + 1)) count++;
  return count;
}

const needs = (view: string) => `it needs the view ${shown(view)}, which is left out`;
const without = (call: string) =>
  /^member\s/i.test(call)
    ? 'the server does not have MEMBER OF'
    : `the server does not have the function ${call.toLowerCase()}()`;
/** Decodes text with one character per byte. */
const shown = (bytes: string) => Buffer.from(bytes, 'latin1').toString();

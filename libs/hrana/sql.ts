/**
 * Scans SQL text for facts needed before SQLite parses it: statement boundaries, parameters, and
 * whether statements write. It never decides permissions; the authorizer does.
 */

export interface SqlStatement {
  readonly text: string;
  /** By index, from 0: name with its prefix, null for a bare `?`; undefined: no parameter has that number. */
  readonly params: readonly (string | null | undefined)[];
  /** May need the write lock. */
  readonly writes: boolean;
  /** Ends a transaction or a savepoint. */
  readonly ends: boolean;
  /** Begins or ends a whole transaction; null: neither, such as savepoints. */
  readonly boundary: 'begin' | 'end' | null;
  /** Rolls a whole transaction back. */
  readonly rollsBack: boolean;
  /** `BEGIN READONLY` of libSQL; SQLite would parse the word as a name. */
  readonly beginsReadOnly: boolean;
  /** Changes rows, and SQLite counts them. */
  readonly counts: boolean;
  readonly explains: boolean;
  /** Changes settings that outlast it in the connection (PRAGMA, temporary tables). */
  readonly leavesTrace: boolean;
}

const SPACE = String.raw`(?<space>[ \t\n\f\r]+|--[^\n]*|/\*[^]*?(?:\*/|$))`;
/** Loops over single characters need no memory per repetition: a literal may be as long as a request. */
const QUOTED = String.raw`(?<quoted>'[^']*(?:''[^']*)*(?:'|$)|"[^"]*(?:""[^"]*)*(?:"|$)|\x60[^\x60]*(?:\x60\x60[^\x60]*)*(?:\x60|$)|\[[^\]]*(?:\]|$))`;
const VARIABLE = String.raw`(?<variable>\?\d*|[$@:#](?:[\w$\x80-\uffff]|::)+(?:\([^ \t\n\f\r)]*\))?)`;
const WORD = String.raw`(?<word>[A-Za-z_\x80-\uffff][\w$\x80-\uffff]*)`;
const TOKEN = new RegExp(String.raw`${SPACE}|${QUOTED}|${VARIABLE}|${WORD}|(?<other>\d[\w.]*|[^])`, 'gy');

/** The maximum of SQLITE_LIMIT_VARIABLE_NUMBER. */
const MAX_VARIABLE = 32_766;

const COUNTED = new Set(['INSERT', 'UPDATE', 'DELETE', 'REPLACE']);
const READING = new Set(['SELECT', 'VALUES', 'EXPLAIN']);
const BOUNDARIES = new Set(['BEGIN', 'COMMIT', 'END', 'ROLLBACK', 'SAVEPOINT', 'RELEASE']);

/** The statements of a text, in order. Invalid SQL is left for SQLite to report. */
export function readSql(sql: string): readonly SqlStatement[] {
  const known = KNOWN.get(sql);
  if (known !== undefined) return known;
  const found = read(sql);
  if (sql.length > MAX_KNOWN_LENGTH) return found;
  if (KNOWN.size >= MAX_KNOWN) KNOWN.clear();
  KNOWN.set(sql, found);
  return found;
}

/** Whether a statement ends at the end of the text: not in a string, comment or trigger body. */
export function endsStatement(sql: string): boolean {
  let reader = new StatementReader(sql, 0);
  let last = '';
  for (const match of sql.matchAll(TOKEN)) {
    [last] = match;
    if (reader.take(match)) reader = new StatementReader(sql, 0);
  }
  const isInComment = last.startsWith('/*') && (last.length < 4 || !last.endsWith('*/'));
  return reader.isEmpty && !isInComment;
}

/** Cache, because programs repeat the same few texts. */
const KNOWN = new Map<string, readonly SqlStatement[]>();
const MAX_KNOWN = 500;
const MAX_KNOWN_LENGTH = 1_000;

function read(sql: string): SqlStatement[] {
  const found: SqlStatement[] = [];
  let reader = new StatementReader(sql, 0);
  for (const match of sql.matchAll(TOKEN)) {
    if (!reader.take(match)) continue;
    const end = match.index + 1;
    if (!reader.isEmpty) found.push(reader.finish(end));
    reader = new StatementReader(sql, end);
  }
  if (!reader.isEmpty) found.push(reader.finish(sql.length));
  return found;
}

class StatementReader {
  readonly #sql: string;
  readonly #start: number;
  /** The first words, in upper case. */
  readonly #words: string[] = [];
  readonly #params: (string | null | undefined)[] = [];
  #depth = 0;
  /** The verb after a WITH clause. */
  #verb: string | undefined;
  #assigns = false;
  #isTemporary = false;
  /** In a trigger's body: the matched part of `; END ;`. */
  #ending: 0 | 1 | 2 = 0;
  isEmpty = true;

  constructor(sql: string, start: number) {
    this.#sql = sql;
    this.#start = start;
  }

  /** True when the token ends the statement. */
  take({ 0: token, groups = {} }: RegExpExecArray): boolean {
    if (groups.space !== undefined) return false;
    if (token === ';') {
      const isEnd = !this.#isTrigger() || this.#ending === 2;
      this.#ending = 1;
      return isEnd;
    }
    this.isEmpty = false;
    const word = groups.word?.toUpperCase();
    this.#ending = this.#ending === 1 && word === 'END' ? 2 : 0;
    if (groups.variable !== undefined) this.#takeVariable(groups.variable);
    else if (word !== undefined) this.#takeWord(word);
    else if (token === '(') this.#depth++;
    else if (token === ')') this.#depth--;
    else if (token === '=') this.#assigns = true;
    else if (this.#words.length < WORDS_KEPT) this.#words.push('');
    return false;
  }

  finish(end: number): SqlStatement {
    const explains = this.#words[0] === 'EXPLAIN';
    const first = this.#words[0] ?? '';
    const verb = first === 'WITH' ? (this.#verb ?? '') : first;
    const isBoundary = BOUNDARIES.has(verb);
    const isPragma = verb === 'PRAGMA';
    return {
      text: this.#sql.slice(this.#start, end),
      params: this.#params,
      writes: isBoundary ? this.#locks(verb) : !READING.has(verb) && (!isPragma || this.#assigns),
      ends: isBoundary && verb !== 'BEGIN' && verb !== 'SAVEPOINT',
      boundary: this.#boundaryOf(verb),
      rollsBack: verb === 'ROLLBACK' && this.#boundaryOf(verb) === 'end',
      beginsReadOnly: verb === 'BEGIN' && this.#words.includes('READONLY'),
      counts: COUNTED.has(verb),
      explains,
      leavesTrace: isPragma || this.#isTemporary,
    };
  }

  #boundaryOf(verb: string): SqlStatement['boundary'] {
    if (verb === 'BEGIN') return 'begin';
    const isWhole =
      verb === 'COMMIT' || verb === 'END' || (verb === 'ROLLBACK' && !this.#words.includes('TO'));
    return isWhole ? 'end' : null;
  }

  #locks(verb: string): boolean {
    return verb === 'BEGIN' && (this.#words[1] === 'IMMEDIATE' || this.#words[1] === 'EXCLUSIVE');
  }

  #takeWord(word: string): void {
    if (this.#words.length < WORDS_KEPT) this.#words.push(word);
    if (word.startsWith('TEMP') || word.startsWith('SQLITE_TEMP')) this.#isTemporary = true;
    if (this.#verb === undefined && this.#depth === 0 && (COUNTED.has(word) || READING.has(word))) {
      this.#verb = word;
    }
  }

  /** Parameters are numbered as in sqlite3_prepare. */
  #takeVariable(name: string): void {
    const params = this.#params;
    if (name === '?') {
      params.push(null);
    } else if (name.startsWith('?')) {
      const number = Number(name.slice(1));
      if (number < 1 || number > MAX_VARIABLE) return;
      while (params.length < number) params.push(undefined);
      params[number - 1] ??= `?${number}`;
    } else if (!params.includes(name)) {
      params.push(name);
    }
  }

  /** `CREATE TRIGGER`, whose body contains statements. */
  #isTrigger(): boolean {
    const words = this.#words.filter((word) => !BEFORE_CREATE.has(word));
    if (words[0] !== 'CREATE') return false;
    return (/^TEMP(?:ORARY)?$/.test(words[1] ?? '') ? words[2] : words[1]) === 'TRIGGER';
  }
}

const WORDS_KEPT = 6;
const BEFORE_CREATE = new Set(['EXPLAIN', 'QUERY', 'PLAN']);

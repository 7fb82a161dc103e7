/** Filters SQL dumps for psql, and those of pg_dump. */
import { Transform, type TransformCallback } from 'node:stream';
import { LoadFailed } from '../../../../databases/engine.ts';
import {
  cutOff,
  MESSAGE_REASON,
  NO_STATEMENT,
  withoutMark,
  withoutMessages,
} from '../../../../databases/file-start.ts';
import type { LeftOut } from '../../../../databases/left-out.ts';
import type { RefusedStatements } from './refused-statements.ts';
import { SqlStatements, type StatementJudge } from './sql-statements.ts';
import type { TriedStatements } from './tried-statements.ts';

const BEGIN_OF_DUMP = /^-- PostgreSQL database (?:cluster )?dump\s*$/m;
const END_OF_DUMP = /^-- PostgreSQL database (?:cluster )?dump complete\s*$/m;
/** First bytes, which identify a dump of pg_dump. */
const HEAD_BYTES = 4096;
const TAIL_BYTES = 1024;
/** The first statement of every dump of pg_dump, preceded by comments. */
const FIRST_STATEMENT = Buffer.from('\nSET statement_timeout');
const NO_TEXT = 'The file is neither SQL nor an archive of pg_dump, or it is damaged: it contains NUL bytes';
const RESTRICT = /^\\(?:un)?restrict\b/;
const CONNECT = /^\\c(?:onnect)?\s+([\s\S]*)$/;
const TEMPLATE = /^template[01]$/;
const CLUSTER = /^-- PostgreSQL database cluster dump\s*$/m;
/** Commands of psql about its own display or variables. */
const DISPLAY =
  /^\\(?:a|C|conninfo|d\S*|echo|errverbose|f|h|help|H|l\+?|p|prompt|pset|qecho|r|set|t|T|timing|unset|warn|x|z|\?)(?:\s|$)/;
const ENCODING = /^\\encoding\s+'?([\w-]+)'?\s*$/;
/** Commands of psql that read files or run programs of whoever calls it. */
const READS = /^\\(?:i|ir|include|include_relative|copy|!|o|out|w|cd|lo_import|lo_export)(?:\s|$)/;
const NO_FILES =
  'NAME is a command of psql about files of your computer, which are not here: put their content into this ' +
  'file, or run it with psql and the connection string';
const GLOBALS =
  'The dump has no database, only what all databases of a server share, as pg_dumpall --globals-only writes ' +
  'it: make a dump with `pg_dump NAME`';
/** Statements that are content of a database. */
const CONTENT = new Set(['copy', 'create', 'insert']);

/**
 * How pg_dump empties the path. Its own text has full names; but functions of the user, which indexes,
 * checks, triggers, generated columns and materialized views call, often rely on the path.
 */
const EMPTY_PATH =
  /^select\s+(?:pg_catalog\.)?set_config\s*\(\s*'search_path'\s*,\s*''\s*,\s*false\s*\)\s*;?$/i;

/** Statements that begin or end a transaction, and their first words. */
const TRANSACTION = new Set(['abort', 'begin', 'commit', 'end', 'rollback', 'start']);
const OWN_TRANSACTION =
  /^(?:begin|commit|end|abort|rollback(?!\s+(?:(?:work|transaction)\s+)?to\b)|start\s+transaction)\b/i;

export interface Lenient {
  readonly refused: RefusedStatements;
  readonly leftOut: LeftOut;
  /** False: the lines come from a text that we made from the file. */
  readonly hasLines: boolean;
  /** Missing: the dump has only rows, for existing tables. */
  readonly tried?: TriedStatements | undefined;
}

export interface DumpFilterOptions {
  /** Letters and digits; unique. */
  readonly key: string;
  /** Undefined: everything passes except pg_dump's own commands of psql. */
  readonly lenient?: Lenient | undefined;
  /** Number of the first line. */
  readonly firstLine?: number;
  /** All in one transaction, which ends only once the dump was read completely. */
  readonly isOneTransaction?: boolean;
}

/**
 * Filters a dump on its way into psql. Its first line disables psql's own commands (`\restrict` with a random
 * key); the same lines of the dump are removed. Each statement that this server or tenant cannot run is
 * replaced by empty lines.
 */
export class DumpFilter extends Transform implements StatementJudge {
  readonly #options: DumpFilterOptions;
  readonly #statements: SqlStatements;
  #head: Buffer | null = Buffer.alloc(0);
  #isDump = false;
  /** It was made of a whole server, and only its databases have content. */
  #isCluster = false;
  #tail: Buffer = Buffer.alloc(0);
  /** Names in `\connect`; null: none yet. */
  #section: string | null = null;
  /** The database with content. */
  #filled: string | null = null;
  #hasContent = false;

  constructor(options: DumpFilterOptions) {
    super();
    this.#options = options;
    this.#statements = new SqlStatements(this, options.firstLine);
  }

  override _transform(chunk: Buffer, _encoding: string, done: TransformCallback): void {
    try {
      this.#tail = Buffer.concat([this.#tail, chunk.subarray(-TAIL_BYTES)]).subarray(-TAIL_BYTES);
      if (this.#head === null) this.#take(chunk);
      else {
        this.#head = Buffer.concat([this.#head, chunk]);
        if (this.#head.length >= HEAD_BYTES) this.#endHead();
      }
      done();
    } catch (error) {
      done(error as Error);
    }
  }

  override _flush(done: TransformCallback): void {
    try {
      if (this.#head !== null) this.#endHead();
      for (const piece of this.#statements.end()) this.push(piece);
      if (this.#isDump && !END_OF_DUMP.test(this.#tail.toString('latin1')))
        throw new LoadFailed(cutOff({ last: '-- PostgreSQL database dump complete', by: 'pg_dump' }));
      if (this.#statements.isWithinComment) throw new LoadFailed('The dump is cut off within a comment');
      if (!this.#statements.hasStatement) throw new LoadFailed(NO_STATEMENT);
      if (this.#isCluster && !this.#hasContent) throw new LoadFailed(GLOBALS);
      if (this.#statements.isWithinCopy) throw new LoadFailed(cutOff({ last: '\\.', by: 'pg_dump' }));
      // Without a final line break, psql would not send the last statement.
      this.push(this.#options.isOneTransaction === true ? '\nCOMMIT;\n' : '\n');
      done();
    } catch (error) {
      done(error as Error);
    }
  }

  asksAbout(word: string): boolean {
    const { lenient, isOneTransaction } = this.#options;
    if (word === 'select' || (isOneTransaction === true && TRANSACTION.has(word))) return true;
    if (lenient === undefined) return false;
    const isKnown = this.#hasContent && this.#filled === this.#section;
    return lenient.refused.asksAbout(word) || (CONTENT.has(word) && !isKnown);
  }

  statement(text: string, line: number): string | null {
    const { lenient, isOneTransaction } = this.#options;
    if (isOneTransaction === true && OWN_TRANSACTION.test(text)) return withinOurs(text, line);
    if (EMPTY_PATH.test(text)) return 'RESET search_path;';
    if (lenient === undefined) return null;
    if (this.#section !== null && TEMPLATE.test(this.#section)) {
      const reason = `it concerns ${this.#section}, the template of new databases`;
      return this.#leaveOut({ reason }, text, line);
    }
    const refused = lenient.refused.of(text);
    if (refused !== null && refused.instead === undefined) return this.#leaveOut(refused, text, line);
    if (CONTENT.has(/^\w*/.exec(text)?.[0].toLowerCase() ?? '')) this.#noteContent();
    const instead = refused === null ? null : this.#leaveOut(refused, text, line);
    // Text in another encoding than UTF-8 passes as its bytes only.
    if (this.#tried === undefined || text.includes('\ufffd')) return instead;
    return this.#tried.wrapped(instead ?? text, line) ?? instead;
  }

  /** Only in dumps of pg_dump: in SQL that people write, an error is theirs. */
  get #tried(): TriedStatements | undefined {
    const { lenient } = this.#options;
    return this.#isDump || lenient?.hasLines === false ? lenient?.tried : undefined;
  }

  command(text: string, line: number): string | null {
    if (RESTRICT.test(text)) return '';
    if (this.#options.lenient === undefined) return null;
    const encoding = ENCODING.exec(text)?.[1];
    if (encoding !== undefined) return `SET client_encoding = '${encoding}';`;
    if (DISPLAY.test(text)) return this.#leaveOut({ reason: 'it changes only what psql shows' }, text, line);
    const name = READS.exec(text)?.[0].trim();
    if (name !== undefined) throw new LoadFailed(`line ${line}: ${NO_FILES.replace('NAME', name)}`);
    const to = CONNECT.exec(text)?.[1];
    if (to === undefined) return null;
    // A dash stands for the same database.
    if (!/^-(?:\s|$)/.test(to)) this.#section = databaseOf(to);
    const reason = 'the dump is loaded into this database, whatever its name was';
    this.#leaveOut({ reason }, text, line);
    return 'RESET ALL;';
  }

  #leaveOut(
    { reason, instead = '' }: { readonly reason: string; readonly instead?: string },
    text: string,
    line: number,
  ): string {
    const { leftOut, hasLines = true } = this.#options.lenient ?? {};
    leftOut?.add({ line: hasLines ? line : null, text, reason });
    return instead;
  }

  #noteContent(): void {
    if (this.#hasContent && this.#filled !== this.#section) {
      const names = [this.#filled, this.#section]
        .map((name) => name ?? 'the one at its beginning')
        .join(' and ');
      throw new LoadFailed(
        `The dump has more than one database, ${names}: make a dump of each with \`pg_dump NAME\`, and load it alone`,
      );
    }
    this.#hasContent = true;
    this.#filled = this.#section;
  }

  #endHead(): void {
    const whole = withoutMark(this.#head ?? Buffer.alloc(0));
    this.#head = null;
    const tell = (text: string, line: number) => this.#leaveOut({ reason: MESSAGE_REASON }, text, line);
    const head = this.#options.lenient === undefined ? whole : withoutMessages(whole, tell);
    if (head.length === 0) throw new LoadFailed('The dump is empty');
    const begins = head.toString('latin1');
    this.#isDump = BEGIN_OF_DUMP.test(begins);
    this.#isCluster = this.#options.lenient !== undefined && CLUSTER.test(begins);
    const begin = this.#options.isOneTransaction === true ? 'BEGIN; ' : (this.#tried?.prelude ?? '');
    this.push(`${begin}\\restrict ${this.#options.key}\n`);
    this.#take(head);
  }

  #take(chunk: Buffer): void {
    // psql skips them.
    if (chunk.includes(0)) throw new LoadFailed(NO_TEXT);
    for (const piece of this.#statements.take(chunk)) this.push(piece);
  }
}

/** A transaction of the dump runs within ours. */
function withinOurs(text: string, line: number): string {
  if (!/^(?:rollback|abort)\b/i.test(text)) return '';
  throw new LoadFailed(`line ${line}: the dump contains ROLLBACK`);
}

/** The name after `\connect`: `shop`, `"shop"`, `-reuse-previous=on "dbname='shop'"`. */
function databaseOf(text: string): string {
  const inString = /dbname='((?:[^'\\]|\\.)*)'/.exec(text)?.[1];
  if (inString !== undefined) return inString.replaceAll(/\\(.)/g, '$1');
  return text
    .trim()
    .replace(/;$/, '')
    .replace(/^["']([\s\S]*)["']$/, '$1');
}

/** Inserts statements before the first one of an SQL dump. */
export class DumpPrelude extends Transform {
  #statements: string;
  #head = Buffer.alloc(0);

  /** Empty: all text passes unchanged. */
  constructor(statements: string) {
    super();
    this.#statements = statements;
  }

  override _transform(chunk: Buffer, _encoding: string, done: TransformCallback): void {
    if (this.#statements === '') this.push(chunk);
    else this.#seek(chunk);
    done();
  }

  override _flush(done: TransformCallback): void {
    if (this.#statements !== '') this.push(this.#head);
    done();
  }

  #seek(chunk: Buffer): void {
    this.#head = Buffer.concat([this.#head, chunk]);
    const at = this.#head.indexOf(FIRST_STATEMENT);
    if (at < 0) return;
    this.push(this.#head.subarray(0, at + 1));
    this.push(this.#statements);
    this.push(this.#head.subarray(at + 1));
    this.#statements = '';
  }
}

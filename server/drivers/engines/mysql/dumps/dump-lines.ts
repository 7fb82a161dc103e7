/**
 * Changes dumps in SQL line by line, out of MariaDB and into it. mariadb-dump writes every row in lines
 * of its own without a raw line break, so what is altered is never data:
 *   - who made a view, trigger or routine (DEFINER): replaced by the user who loads the dump;
 *   - the line that puts a client into its sandbox, which not every client knows; ours gets an option;
 *   - of dumps that are made, what made-lines.ts says.
 */
import { Transform, type TransformCallback } from 'node:stream';
import { LoadFailed } from '../../../../databases/engine.ts';
import { cutOff, isMessage, NO_STATEMENT, withoutMark } from '../../../../databases/file-start.ts';
import { AbsentParts } from './absent-parts.ts';
import { OneTransaction } from './data-only.ts';
import { FirstStatement } from './first-statement.ts';
import { ForeignLines, type LenientLoad } from './foreign-lines.ts';
import { type MadeDump, MadeLines } from './made-lines.ts';

const SANDBOX = /^\/\*M?!999999\\- enable the sandbox mode \*\/\s*$/;
const BEGIN_OF_DUMP = /^-- (?:MariaDB|MySQL) dump /;
const END_OF_DUMP = /^-- Dump completed/;
// With double quotes: made while ANSI_QUOTES, or the mode of Oracle, was on.
const ACCOUNT = '(?:`(?:[^`]|``)*`|\'(?:[^\']|\'\')*\'|"(?:[^"]|"")*"|[A-Za-z0-9_.]+)';
const DEFINER = `DEFINER ?= ?${ACCOUNT}(?:@${ACCOUNT})?`;
/** In the first line of a statement, or the second one of a view. */
const MADE_BY = [
  [new RegExp(`^(/\\*!\\d+ CREATE\\*/ )/\\*!\\d+ ${DEFINER} ?\\*/ `), '$1'],
  [new RegExp(`^((?:/\\*!\\d+ )?CREATE (?:OR REPLACE )?)${DEFINER} `), '$1'],
  [new RegExp(`^(CREATE (?:OR REPLACE )?ALGORITHM ?= ?\\w+ )${DEFINER} `), '$1'],
] as const;
const VIEW_MADE_BY = new RegExp(`^(/\\*!\\d+ )${DEFINER} `);
const VIEW_BEGINS = /^\/\*!\d+ CREATE ALGORITHM=\w+ \*\/\s*$/;
const DELIMITER = /^DELIMITER (\S+)\s*$/i;
/** Longer lines are not inspected: they are passed on in pieces. */
const MAX_LINE = 262_144;
const MAX_HEAD = 300;

export interface DumpLinesOptions {
  /** The dump that is being made; missing: the text will be loaded. */
  readonly made?: MadeDump;
  /** Missing: the server refuses unsupported statements. */
  readonly lenient?: LenientLoad | undefined;
  /** Number of the first line in the file. */
  readonly firstLine?: number;
  /** All in one transaction, which ends only once the dump was read completely. */
  readonly isOneTransaction?: boolean | undefined;
}

export class DumpLines extends Transform {
  readonly #made: MadeLines | null;
  readonly #isLoad: boolean;
  #rest: Buffer = Buffer.alloc(0);
  /** Further pieces of a line without its end, joined later: they may be tiny. */
  #more: Buffer[] = [];
  #moreBytes = 0;
  /** Within a line that is too long to be inspected. */
  #isPassing = false;
  #ending = '';
  #delimiter = ';';
  #isFirstLine = true;
  #isAfterView = false;
  #isDump = false;
  #isWhole = false;
  #isEmpty = true;
  readonly #first = new FirstStatement();
  readonly #foreign: ForeignLines | null;
  readonly #absent: AbsentParts | null;
  readonly #one: OneTransaction | null;
  /** Counts lines of the file. */
  #number: number;
  readonly #firstLine: number;
  /** Within a statement that is left out. */
  #isLeftOut = false;
  readonly #tried: LenientLoad['tried'];
  /** Lines for the client after which it has more lines than the file, and how many more. */
  readonly #longer: { readonly line: number; readonly extra: number }[] = [];

  constructor({ made, lenient, firstLine = 1, isOneTransaction = false }: DumpLinesOptions = {}) {
    super();
    this.#made = made === undefined ? null : new MadeLines(made);
    this.#isLoad = made === undefined;
    this.#foreign = lenient === undefined ? null : new ForeignLines(lenient);
    this.#absent = lenient === undefined ? null : new AbsentParts(lenient);
    this.#one = isOneTransaction ? new OneTransaction(lenient?.leftOut) : null;
    this.#number = firstLine - 1;
    this.#firstLine = firstLine;
    this.#tried = lenient?.tried;
  }

  override _transform(chunk: Buffer, _encoding: string, done: TransformCallback): void {
    try {
      this.#take(chunk);
      done();
    } catch (error) {
      done(error as Error);
    }
  }

  #take(chunk: Buffer): void {
    const bytes = this.#rest.length + this.#moreBytes + chunk.length;
    if (!this.#isPassing && bytes <= MAX_LINE && !chunk.includes(0x0a)) {
      this.#more.push(Buffer.from(chunk));
      this.#moreBytes += chunk.length;
      return;
    }
    let all = this.#joined(chunk);
    for (let end = all.indexOf(0x0a); end >= 0; end = all.indexOf(0x0a)) {
      this.#line(all.subarray(0, end + 1));
      all = all.subarray(end + 1);
    }
    if (this.#isPassing || all.length > MAX_LINE) {
      this.#pass(this.#isPassing ? all : this.#longBegun(this.#begun(all), this.#number + 1));
      this.#isPassing = true;
      all = Buffer.alloc(0);
    }
    this.#rest = Buffer.from(all);
  }

  /** All bytes of the line so far. */
  #joined(last: Buffer): Buffer {
    const pieces = [this.#rest, ...this.#more, last].filter(({ length }) => length > 0);
    this.#more = [];
    this.#moreBytes = 0;
    return pieces.length === 1 ? (pieces[0] as Buffer) : Buffer.concat(pieces);
  }

  override _flush(done: TransformCallback): void {
    try {
      this.#rest = this.#joined(Buffer.alloc(0));
      if (this.#rest.length > 0) this.#line(this.#rest);
      else if (this.#isPassing) this.#note(true);
    } catch (error) {
      done(error as Error);
      return;
    }
    this.#pushText(this.#absent?.release() ?? '');
    this.#first.end();
    if (!this.#isLoad) done();
    else if (this.#isEmpty) done(new LoadFailed('The dump is empty'));
    else if (!this.#first.isFound) done(new LoadFailed(NO_STATEMENT));
    else if (this.#isDump && !this.#isWhole)
      done(new LoadFailed(cutOff({ last: '-- Dump completed', by: 'mariadb-dump' })));
    else if (this.#one !== null && this.endsWithin)
      done(new LoadFailed('The dump is cut off: its last statement has no end'));
    else {
      if (this.#one !== null) this.push('\nCOMMIT;\n');
      done();
    }
  }

  #pushText(text: string): void {
    if (text !== '') this.push(Buffer.from(text, 'latin1'));
  }

  /** Whether its head is that of mysqldump or mariadb-dump. */
  get isDump(): boolean {
    return this.#isDump;
  }

  /** Whether the text so far ends within a statement. */
  get endsWithin(): boolean {
    return !this.#isFirstLine;
  }

  #pass(bytes: Buffer): void {
    this.#pushText(this.#absent?.release() ?? '');
    this.#first.take(bytes);
    this.#ending = (this.#ending + bytes.subarray(-64).toString('latin1')).slice(-64);
    if (!this.#isLeftOut) this.push(bytes);
    else if (bytes.at(-1) === 0x0a) this.push('\n');
  }

  /** The line of the file for one that the client counts. */
  lineOf(counted: number): number {
    const extra = this.#longer.findLast(({ line }) => line < counted)?.extra ?? 0;
    return counted + this.#firstLine - 1 - extra;
  }

  /** The first bytes of a line. */
  #begun(line: Buffer): Buffer {
    if (!this.#isEmpty || !this.#isLoad) return line;
    this.#isEmpty = false;
    const text = withoutMark(line);
    if (text.includes(0)) throw new LoadFailed('The file is not SQL: it contains NUL bytes');
    if (this.#one !== null) this.push('START TRANSACTION; ');
    return text;
  }

  /** The first bytes of a line that is too long to be looked at. */
  #longBegun(bytes: Buffer, line: number): Buffer {
    if (this.#foreign === null || !this.#isFirstLine) return bytes;
    const head = bytes.toString('latin1', 0, MAX_HEAD);
    const kept = this.#foreign.longAltered(head, line);
    this.#isLeftOut = kept === null;
    if (kept === null || kept === head) return bytes;
    return Buffer.concat([Buffer.from(kept, 'latin1'), bytes.subarray(MAX_HEAD)]);
  }

  #line(given: Buffer): void {
    const bytes = this.#isPassing ? given : this.#begun(given);
    this.#number++;
    const wasPassing = this.#isPassing;
    const isLong = wasPassing || bytes.length > MAX_LINE;
    this.#isPassing = false;
    if (isLong) this.#pass(wasPassing ? bytes : this.#longBegun(bytes, this.#number));
    else {
      const text = bytes.toString('latin1');
      this.#first.take(bytes);
      this.#ending = text;
      this.#pushText(this.#withoutAbsent(text, this.#foreignAltered(this.#altered(text))));
    }
    this.#note(isLong);
  }

  #altered(given: string): string {
    const text = this.#made?.altered(given, this.#isFirstLine) ?? given;
    if (this.#isAfterView) return text.replace(VIEW_MADE_BY, '$1');
    if (!this.#isFirstLine) return text;
    // The client counts lines.
    if (SANDBOX.test(text)) return this.#isLoad ? '\n' : '';
    if (BEGIN_OF_DUMP.test(text)) this.#isDump = true;
    if (END_OF_DUMP.test(text)) this.#isWhole = true;
    for (const [pattern, by] of MADE_BY) if (pattern.test(text)) return text.replace(pattern, by);
    return text;
  }

  #foreignAltered(text: string): string {
    const isFirst = this.#isFirstLine;
    if (this.#isLeftOut && !isFirst) return '\n';
    const line = this.#number;
    const altered = this.#foreign === null ? text : this.#foreign.altered(text, { line, isFirst });
    const kept = altered !== null && isFirst && this.#one ? this.#one.altered(altered, line) : altered;
    this.#isLeftOut = kept === null;
    return kept ?? '\n';
  }

  #withoutAbsent(text: string, altered: string): string {
    if (this.#absent === null) return altered;
    const isFirst = this.#isFirstLine;
    if (isFirst) this.#absent.note(text);
    const isLast = text.trim().endsWith(this.#delimiter);
    const extra = this.#tried?.extraLines ?? 0;
    const at = { line: this.#number, isFirst, isLast, delimiter: this.#delimiter };
    const taken = this.#absent.take(altered, at);
    const now = this.#tried?.extraLines ?? 0;
    if (now > extra) this.#longer.push({ line: this.#number - this.#firstLine + 1 + now, extra: now });
    return taken;
  }

  /** Tracks the position within a statement. */
  #note(isLong: boolean): void {
    const line = this.#ending.trim();
    this.#ending = '';
    this.#isAfterView = !isLong && this.#isFirstLine && VIEW_BEGINS.test(line);
    const delimiter = this.#isFirstLine && !isLong ? DELIMITER.exec(line)?.[1] : undefined;
    if (delimiter !== undefined) this.#delimiter = delimiter;
    const isNoStatement =
      !isLong &&
      this.#isFirstLine &&
      (line === '' || /^(?:--|#)/.test(line) || isMessage(line) || SANDBOX.test(line));
    this.#isFirstLine = delimiter !== undefined || isNoStatement || line.endsWith(this.#delimiter);
  }
}

/**
 * Changes dumps in SQL line by line, out of MariaDB and into it. mariadb-dump writes every row in lines
 * of its own without a raw line break, so what is altered is never data:
 *   - who made a view, trigger or routine (DEFINER): it is whoever loads it;
 *   - the line that puts a client into its sandbox, which not every client knows; ours gets an option;
 *   - the name of the database in views, for it will have another one.
 */
import { Transform, type TransformCallback } from 'node:stream';
import { LoadFailed } from '../../../databases/engine.ts';

const SANDBOX = /^\/\*M?!999999\\- enable the sandbox mode \*\/\s*$/;
const BEGIN_OF_DUMP = /^-- (?:MariaDB|MySQL) dump /;
const END_OF_DUMP = /^-- Dump completed/;
const ACCOUNT = "(?:`(?:[^`]|``)*`|'(?:[^']|'')*'|[A-Za-z0-9_.]+)";
const DEFINER = `DEFINER ?= ?${ACCOUNT}(?:@${ACCOUNT})?`;
/** In the first line of a statement, or in the second one of a view. */
const MADE_BY = [
  [new RegExp(`^(/\\*!\\d+ CREATE\\*/ )/\\*!\\d+ ${DEFINER} ?\\*/ `), '$1'],
  [new RegExp(`^(CREATE (?:OR REPLACE )?)${DEFINER} `), '$1'],
  [new RegExp(`^(CREATE (?:OR REPLACE )?ALGORITHM ?= ?\\w+ )${DEFINER} `), '$1'],
] as const;
const VIEW_MADE_BY = new RegExp(`^(/\\*!\\d+ )${DEFINER} `);
const VIEW_BEGINS = /^\/\*!\d+ CREATE ALGORITHM=\w+ \*\/\s*$/;
const VIEW = /^\/\*!\d+ VIEW /;
const DELIMITER = /^DELIMITER (\S+)\s*$/i;
/** Lines that are looked at are shorter; data are passed on piece by piece. */
const MAX_LINE = 262_144;

export class DumpLines extends Transform {
  readonly #from: string;
  readonly #isLoad: boolean;
  #rest = Buffer.alloc(0);
  /** Within a line that is too long to be looked at. */
  #isPassing = false;
  #ending = '';
  #delimiter = ';';
  #isFirstLine = true;
  #isAfterView = false;
  #isDump = false;
  #isWhole = false;
  #isEmpty = true;

  /** `from`: the database that it is taken of; empty: it is to be loaded. */
  constructor(from = '') {
    super();
    this.#from = from === '' ? '' : `\`${from}\`.`;
    this.#isLoad = from === '';
  }

  override _transform(chunk: Buffer, _encoding: string, done: TransformCallback): void {
    let all = this.#rest.length === 0 ? chunk : Buffer.concat([this.#rest, chunk]);
    for (let end = all.indexOf(0x0a); end >= 0; end = all.indexOf(0x0a)) {
      this.#line(all.subarray(0, end + 1));
      all = all.subarray(end + 1);
    }
    if (this.#isPassing || all.length > MAX_LINE) {
      this.#isPassing = true;
      this.#pass(all);
      all = Buffer.alloc(0);
    }
    this.#rest = Buffer.from(all);
    done();
  }

  override _flush(done: TransformCallback): void {
    if (this.#rest.length > 0) this.#line(this.#rest);
    if (!this.#isLoad) done();
    else if (this.#isEmpty) done(new LoadFailed('The dump is empty'));
    else if (this.#isDump && !this.#isWhole)
      done(new LoadFailed('The dump is cut off: its last line, which mariadb-dump writes, is missing'));
    else done();
  }

  #pass(bytes: Buffer): void {
    this.#ending = (this.#ending + bytes.subarray(-64).toString('latin1')).slice(-64);
    this.push(bytes);
  }

  #line(bytes: Buffer): void {
    this.#isEmpty = false;
    const isLong = this.#isPassing || bytes.length > MAX_LINE;
    this.#isPassing = false;
    if (isLong) this.#pass(bytes);
    else {
      const text = bytes.toString('latin1');
      this.#ending = text;
      const line = this.#altered(text);
      if (line !== '') this.push(Buffer.from(line, 'latin1'));
    }
    this.#note(isLong);
  }

  #altered(text: string): string {
    if (this.#isAfterView) return text.replace(VIEW_MADE_BY, '$1');
    if (VIEW.test(text) && this.#from !== '') return text.replaceAll(this.#from, '');
    if (!this.#isFirstLine) return text;
    if (SANDBOX.test(text)) return '';
    if (BEGIN_OF_DUMP.test(text)) this.#isDump = true;
    if (END_OF_DUMP.test(text)) this.#isWhole = true;
    for (const [pattern, by] of MADE_BY) if (pattern.test(text)) return text.replace(pattern, by);
    return text;
  }

  /** Where in a statement the next line is. */
  #note(isLong: boolean): void {
    const line = this.#ending.trim();
    this.#ending = '';
    this.#isAfterView = !isLong && this.#isFirstLine && VIEW_BEGINS.test(line);
    const delimiter = this.#isFirstLine && !isLong ? DELIMITER.exec(line)?.[1] : undefined;
    if (delimiter !== undefined) this.#delimiter = delimiter;
    const isNoStatement =
      !isLong && this.#isFirstLine && (line === '' || /^(?:--|#)/.test(line) || SANDBOX.test(line));
    this.#isFirstLine = delimiter !== undefined || isNoStatement || line.endsWith(this.#delimiter);
  }
}

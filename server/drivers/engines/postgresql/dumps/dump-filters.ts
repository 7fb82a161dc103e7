/**
 * A dump in SQL on its way into psql. Its first line has psql refuse its own commands (`\restrict` with
 * a key that nobody knows); pg_dump's dumps do the same with a key of theirs, whose two lines are left out.
 * All else goes through as it is.
 */
import { Transform, type TransformCallback } from 'node:stream';
import { LoadFailed } from '../../../../databases/engine.ts';

const ARCHIVE = Buffer.from('PGDMP');
const BEGIN_OF_DUMP = '-- PostgreSQL database dump';
const END_OF_DUMP = '-- PostgreSQL database dump complete';
/** Bytes of the beginning, up to the first statement. */
const MAX_HEAD_BYTES = 65_536;
const TAIL_BYTES = 1024;
/** The first statement of every dump of pg_dump; what stands before it are comments. */
const FIRST_STATEMENT = Buffer.from('\nSET statement_timeout');
const RESTRICT = /^\\restrict ([A-Za-z0-9]+)\s*$/;

export class DumpFilter extends Transform {
  readonly #key: string;
  #head: Buffer | null = Buffer.alloc(0);
  /** pg_dump's closing line, which is not passed on; null: there is none. */
  #closing: Buffer | null = null;
  #isDump = false;
  /** A piece that may be a part of what is looked for. */
  #rest = Buffer.alloc(0);
  #tail = Buffer.alloc(0);

  /** `key`: of letters and digits, nobody else's. */
  constructor(key: string) {
    super();
    this.#key = key;
  }

  override _transform(chunk: Buffer, _encoding: string, done: TransformCallback): void {
    this.#tail = Buffer.concat([this.#tail, chunk]).subarray(-TAIL_BYTES);
    if (this.#head === null) {
      this.#pass(chunk);
      done();
      return;
    }
    this.#head = Buffer.concat([this.#head, chunk]);
    done(this.#head.length < MAX_HEAD_BYTES ? null : this.#endHead());
  }

  override _flush(done: TransformCallback): void {
    const problem = this.#head === null ? null : this.#endHead();
    if (problem !== null) {
      done(problem);
      return;
    }
    this.push(this.#rest);
    if (this.#isDump && !this.#tail.includes(END_OF_DUMP)) {
      done(new LoadFailed('The dump is cut off: its last line, which pg_dump writes, is missing'));
      return;
    }
    // Without a final line end, the last statement would not be sent.
    this.push('\n');
    done();
  }

  #endHead(): LoadFailed | null {
    const head = this.#head ?? Buffer.alloc(0);
    this.#head = null;
    if (head.subarray(0, ARCHIVE.length).equals(ARCHIVE)) {
      return new LoadFailed(
        'The file is an archive of pg_dump, but only SQL can be loaded: `pg_restore -f dump.sql FILE` makes it',
      );
    }
    if (head.length === 0) return new LoadFailed('The dump is empty');
    this.push(`\\restrict ${this.#key}\n`);
    let at = 0;
    while (at < head.length) {
      const end = head.indexOf(0x0a, at);
      const line = head.subarray(at, end < 0 ? head.length : end).toString('latin1');
      const theirs = RESTRICT.exec(line)?.[1];
      if (line === BEGIN_OF_DUMP) this.#isDump = true;
      // The first statement.
      if (theirs === undefined && !/^\s*(?:--.*)?$/.test(line)) break;
      if (end < 0) break;
      if (theirs === undefined) this.push(head.subarray(at, end + 1));
      else this.#closing = Buffer.from(`\n\\unrestrict ${theirs}\n`);
      at = end + 1;
    }
    this.#pass(head.subarray(at));
    return null;
  }

  #pass(chunk: Buffer): void {
    if (this.#closing === null) {
      this.push(chunk);
      return;
    }
    const all = Buffer.concat([this.#rest, chunk]);
    const found = all.indexOf(this.#closing);
    const kept = this.#closing.length - 1;
    if (found < 0) {
      const end = Math.max(0, all.length - kept);
      this.push(all.subarray(0, end));
      this.#rest = all.subarray(end);
      return;
    }
    this.push(all.subarray(0, found + 1));
    const after = all.subarray(found + this.#closing.length);
    // The line occurs once per dump.
    this.#closing = null;
    this.#rest = Buffer.alloc(0);
    this.push(after);
  }
}

/** Puts statements before the first one of a dump in SQL. */
export class DumpPrelude extends Transform {
  #statements: string;
  #head = Buffer.alloc(0);

  /** Empty: all goes through as it is. */
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

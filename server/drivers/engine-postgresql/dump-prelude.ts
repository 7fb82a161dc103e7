import { Transform, type TransformCallback } from 'node:stream';

/** The first statement of every dump of pg_dump; what stands before it are comments. */
const FIRST = Buffer.from('\nSET statement_timeout');

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
    const at = this.#head.indexOf(FIRST);
    if (at < 0) return;
    this.push(this.#head.subarray(0, at + 1));
    this.push(this.#statements);
    this.push(this.#head.subarray(at + 1));
    this.#statements = '';
  }
}

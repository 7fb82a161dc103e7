/** Splits dumps of several databases, as joined by joinedDump() (dump-streams.ts). */
import { Readable } from 'node:stream';
import { LoadFailed } from '../../../databases/engine.ts';

const HEAD = /^-- Cloudlet dump ([A-Za-z0-9]{32})\n/;
const HEAD_BYTES = 64;
/** Longer than the line of any mark: the file is of a user. */
const MOST_LINE = 4096;

/** The parts of a dump, in order. A dump of one database has a single part. */
export class DumpParts {
  readonly #source: AsyncIterator<Buffer>;
  #rest: Buffer = Buffer.alloc(0);
  /** Prefix of each mark; null: none. */
  #mark: Buffer | null = null;
  #handed: Readable | null = null;
  /** Whether `#rest` begins after a mark. */
  #isAtMark = false;

  private constructor(dump: Readable) {
    this.#source = dump[Symbol.asyncIterator]();
  }

  static async of(dump: Readable): Promise<DumpParts> {
    const parts = new DumpParts(dump);
    while (parts.#rest.length < HEAD_BYTES && (await parts.#more()));
    const [head = '', key] = HEAD.exec(parts.#rest.subarray(0, HEAD_BYTES).toString('latin1')) ?? [];
    if (key === undefined) return parts;
    parts.#mark = Buffer.from(`\n-- ${key} `);
    parts.#rest = parts.#rest.subarray(head.length);
    return parts;
  }

  /** Number of the first line of the content. */
  get firstLine(): number {
    return this.#mark === null ? 1 : 2;
  }

  /** The content up to the next mark. nextName() skips the unread rest. */
  content(): Readable {
    this.#handed = Readable.from(this.#content(), { objectMode: false }).once('error', () => {});
    return this.#handed;
  }

  /** The name of the next database, whose content() follows; null: none. */
  async nextName(): Promise<string | null> {
    await this.#takeBack();
    for (;;) {
      for await (const _ of this.#content());
      if (!this.#isAtMark) return null;
      const name = /^database (".*")$/.exec(await this.#line())?.[1];
      if (name === undefined) continue;
      for await (const _ of this.#content());
      // Statements for clients, which Cloudlet must not run.
      if (this.#isAtMark) await this.#line();
      return parsed(name);
    }
  }

  /** Whether the content is incomplete according to its dump. */
  async isBroken(): Promise<boolean> {
    while (this.#isAtMark && this.#rest.length < 'broken'.length && (await this.#more()));
    return this.#isAtMark && this.#rest.subarray(0, 'broken'.length).toString() === 'broken';
  }

  /** Earlier parts are no longer read. */
  async #takeBack(): Promise<void> {
    const handed = this.#handed;
    if (handed === null || handed.closed) return;
    const closed = new Promise((resolve) => handed.once('close', resolve));
    handed.destroy();
    await closed;
  }

  async *#content(): AsyncGenerator<Buffer> {
    if (this.#isAtMark) return;
    for (;;) {
      const at = this.#mark === null ? -1 : this.#rest.indexOf(this.#mark);
      if (this.#mark !== null && at >= 0) {
        const found = this.#rest.subarray(0, at + 1);
        this.#rest = this.#rest.subarray(at + this.#mark.length);
        this.#isAtMark = true;
        yield found;
        return;
      }
      const end = this.#mark === null ? this.#rest.length : this.#rest.length - this.#mark.length + 1;
      if (end > 0) {
        const piece = this.#rest.subarray(0, end);
        this.#rest = this.#rest.subarray(end);
        yield piece;
      }
      if (await this.#more()) continue;
      const last = this.#rest;
      this.#rest = Buffer.alloc(0);
      if (last.length > 0) yield last;
      return;
    }
  }

  /** The rest of a mark's line. Throws LoadFailed if it is too long. */
  async #line(): Promise<string> {
    let at = this.#rest.indexOf(0x0a);
    while (at < 0 && this.#rest.length <= MOST_LINE && (await this.#more())) at = this.#rest.indexOf(0x0a);
    if (at < 0 && this.#rest.length > MOST_LINE)
      throw new LoadFailed('The dump is damaged: a line that begins a further database has no end');
    const end = at < 0 ? this.#rest.length : at;
    const line = this.#rest.subarray(0, end).toString();
    this.#rest = this.#rest.subarray(Math.min(this.#rest.length, end + 1));
    this.#isAtMark = false;
    return line;
  }

  async #more(): Promise<boolean> {
    const { value, done } = await this.#source.next();
    if (done) return false;
    this.#rest = Buffer.concat([this.#rest, value]);
    return true;
  }
}

/** A database cannot have a name that is not text. */
function parsed(name: string): string {
  try {
    return String(JSON.parse(name));
  } catch {
    return '';
  }
}

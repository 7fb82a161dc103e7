/** Parts of a dump that a load leaves out because this server or tenant cannot have them. */

/** Maximum notes that are kept and shown. */
const MOST_NOTES = 10;
const MOST_TEXT = 200;

export interface LoadNote {
  /** Line of the file; null: the file has no lines. */
  readonly line: number | null;
  /** Beginning of the omitted or altered statement. */
  readonly text: string;
  readonly reason: string;
}

export class LeftOut {
  readonly #notes: LoadNote[] = [];
  #count = 0;

  add({ line, text, reason }: LoadNote): void {
    this.#count++;
    if (this.#notes.length >= MOST_NOTES) return;
    const short = text.replace(/\s+/g, ' ').trim();
    const shown = short.length > MOST_TEXT ? `${short.slice(0, MOST_TEXT)}…` : short;
    this.#notes.push({ line, text: shown, reason });
  }

  /** Counts parts without notes. */
  addCount(count: number): void {
    this.#count += count;
  }

  get count(): number {
    return this.#count;
  }

  /** The first notes. */
  get notes(): readonly LoadNote[] {
    return this.#notes;
  }

  /** Hint for errors caused by omitted statements; undefined: nothing was omitted. */
  get hint(): string | undefined {
    // Other statements need an object sooner than a setting.
    const found = this.#notes.find(({ text }) => /^create\b/i.test(text)) ?? this.#notes[0];
    if (found === undefined) return undefined;
    const where = found.line === null ? '' : ` in line ${found.line}`;
    const more = this.#count === 1 ? '' : ` It was one of ${this.#count}`;
    return `"${found.text}"${where} was left out before: ${found.reason}.${more}`;
  }
}

export interface LoadHow {
  readonly signal: AbortSignal;
  /** Collects omitted statements; missing: unsupported statements are refused. */
  readonly leftOut?: LeftOut | undefined;
  /**
   * The engine calls this before it adds the rows of a data-only dump (`pg_dump --data-only`) to
   * the existing tables: all of them, or none. May throw. Missing: the dump replaces the database,
   * like any other.
   */
  readonly adding?: (() => void) | undefined;
}

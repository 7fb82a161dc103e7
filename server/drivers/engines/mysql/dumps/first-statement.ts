/** Whether a text for the client has any statement, and not blanks and comments alone. */
export class FirstStatement {
  #isFound = false;
  /** The end of the comment that the text is in; null: in none. */
  #awaited: '\n' | '*/' | null = null;
  /** Bytes that mean nothing without the following ones. */
  #rest = '';

  get isFound(): boolean {
    return this.#isFound;
  }

  /** Takes the next bytes; those after the first statement are not read. */
  take(bytes: Buffer): void {
    if (this.#isFound) return;
    let text = this.#rest + bytes.toString('latin1');
    while (!this.#isFound) {
      if (this.#awaited !== null) {
        const end = text.indexOf(this.#awaited);
        if (end < 0) break;
        text = text.slice(end + this.#awaited.length);
        this.#awaited = null;
      }
      text = text.replace(BLANK, '');
      if (text === '' || UNCLEAR.has(text)) break;
      const [opens] = COMMENT.exec(text) ?? [];
      if (opens === undefined) this.#isFound = true;
      else this.#awaited = opens === '/*' ? '*/' : '\n';
      text = text.slice(opens === '/*' ? 2 : 0);
    }
    // Only the end of a comment matters, which may come with the next bytes.
    this.#rest = this.#awaited === null ? text : text.slice(-1);
  }

  /** Call at the end of the text. */
  end(): void {
    if (this.#awaited === null && this.#rest !== '') this.#isFound = true;
  }
}

const BLANK = /^[\s;]+/;
/** The beginning of a comment; servers run those with `!`. */
const COMMENT = /^(?:#|--(?=\s)|\/\*(?!M?!))/;
const UNCLEAR = new Set(['-', '--', '/', '/*', '/*M']);

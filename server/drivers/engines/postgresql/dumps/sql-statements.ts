/**
 * Finds the statements of a text for psql, like psql's own lexer (psqlscan.l), without holding the
 * text: strings, quoted names, dollar quotes, comments and the data of COPY pass unchanged. A
 * statement beyond MAX_STATEMENT bytes passes without inspection.
 */
import { LoadFailed } from '../../../../databases/engine.ts';

const MAX_STATEMENT = 65_536;
/** Longer words are neither dollar-quote tags nor names. */
const MAX_WORD = 256;
const TOO_DEEP = 'comments are nested too deeply';
/** psql reads the rest of a line again for each comment within a comment. */
const MOST_NESTED = 200;
const [LF, CR, QUOTE, NAME, DOLLAR, BACKSLASH] = [10, 13, 39, 34, 36, 92];
const [OPEN, CLOSE, STAR, DASH, DOT, SLASH, SEMICOLON] = [40, 41, 42, 45, 46, 47, 59];
/** 1: a word may contain it. */
const IN_WORD = Uint8Array.from({ length: 256 }, (_, byte) =>
  byte >= 128 || /[\w$]/.test(String.fromCharCode(byte)) ? 1 : 0,
);
const FROM_STDIN = /^copy\s[\s\S]*\sfrom\s+stdin\b/i;
const OLD_STRINGS = /^set\s+standard_conforming_strings\s*(?:=|to)\s*'?(?:off|false|0)\b/i;
const TAG = /^\$(?:[A-Za-z_\x80-\xff][\w\x80-\xff]*)?\$/;
const MAYBE_TAG = /^\$[\w\x80-\xff]*$/;

export interface StatementJudge {
  /** Whether to inspect statements with this first word (lower case). */
  asksAbout(word: string): boolean;
  /**
   * Replacement with no more lines; null: unchanged. `line`: first line. Without COPY, its rows are left
   * out, too.
   */
  statement(text: string, line: number): string | null;
  /** A command of psql, such as `\connect`, and its replacement; null: unchanged. */
  command(text: string, line: number): string | null;
}

type State =
  | 'sql'
  | 'comment'
  | 'block'
  | 'text'
  | 'escapes'
  | 'name'
  | 'dollar'
  | 'command'
  | 'before copy'
  | 'copy'
  | 'in copy line';

export class SqlStatements {
  readonly #judge: StatementJudge;
  #hasStatement = false;
  #out: Buffer[] = [];
  #all: Buffer = Buffer.alloc(0);
  #isEnd = false;
  #at = 0;
  /** Everything before this was passed on. */
  #kept = 0;
  /** Start of the current statement; -1: between statements. */
  #begin = -1;
  #isTooLong = false;
  #state: State = 'sql';
  #comments = 0;
  #tag = '';
  #hasOldStrings = false;
  /** The first four words of the statement, and the end of the last one. */
  #words: string[] = [];
  #wordEnd = -1;
  #isEscape = false;
  /** Within rows whose COPY is left out. */
  #isLeftOut = false;
  #parentheses = 0;
  #blocks = 0;
  /** The line of `#counted`. */
  #line: number;
  #counted = 0;

  /** `line`: number of the first line. */
  constructor(judge: StatementJudge, line = 1) {
    this.#judge = judge;
    this.#line = line;
  }

  /** Processes the next piece; returns output that is final. */
  take(piece: Buffer): Buffer[] {
    this.#all = this.#all.length === 0 ? piece : Buffer.concat([this.#all, piece]);
    this.#scan();
    if (this.#begin >= 0 && this.#at - this.#begin > MAX_STATEMENT) this.#isTooLong = true;
    const decided = this.#begin < 0 || this.#isTooLong ? this.#at : this.#begin;
    this.#lineAt(decided);
    this.#passTo(decided);
    this.#all = this.#all.subarray(this.#kept);
    this.#at -= this.#kept;
    this.#counted -= this.#kept;
    this.#wordEnd -= this.#kept;
    if (this.#begin >= 0) this.#begin = Math.max(0, this.#begin - this.#kept);
    this.#kept = 0;
    return this.#taken();
  }

  /** The rest, at the end of the text. */
  end(): Buffer[] {
    this.#isEnd = true;
    this.#scan();
    if (this.#state === 'command') this.#endCommand();
    // psql also sends a statement without its semicolon.
    else if (this.#begin >= 0 && this.#state === 'sql') this.#endStatement();
    this.#passTo(this.#all.length);
    return this.#taken();
  }

  /** Whether there is any statement. */
  get hasStatement(): boolean {
    return this.#hasStatement;
  }

  /** Whether the text so far ends within a comment, which psql does not require to end. */
  get isWithinComment(): boolean {
    return this.#state === 'block';
  }

  /** The first word of a statement whose end has not come yet, in lower case. */
  get openWord(): string {
    return this.#words[0] ?? '';
  }

  /** Whether the text so far ends within COPY data, which psql does not require to end. */
  get isWithinCopy(): boolean {
    return this.#state === 'copy' || this.#state === 'before copy' || this.#state === 'in copy line';
  }

  #taken(): Buffer[] {
    const out = this.#out;
    this.#out = [];
    return out;
  }

  #passTo(end: number): void {
    if (end > this.#kept) {
      const bytes = this.#all.subarray(this.#kept, end);
      this.#out.push(this.#isLeftOut ? lineEndsOf(bytes) : bytes);
    }
    this.#kept = Math.max(this.#kept, end);
  }

  #lineAt(index: number): number {
    for (let at = this.#counted; at < index; at++) if (this.#all[at] === LF) this.#line++;
    this.#counted = Math.max(this.#counted, index);
    return this.#line;
  }

  #scan(): void {
    while (this.#at < this.#all.length && this.#step());
  }

  /** False: it needs more bytes. */
  #step(): boolean {
    switch (this.#state) {
      case 'sql':
        return this.#sql();
      case 'comment':
        return this.#pastNext(LF, 'sql');
      case 'block':
        return this.#block();
      case 'text':
        return this.#pastNext(QUOTE, 'sql');
      case 'escapes':
        return this.#escapes();
      case 'name':
        return this.#pastNext(NAME, 'sql');
      case 'dollar':
        return this.#dollar();
      case 'command':
        return this.#command();
      case 'before copy':
      case 'in copy line':
        return this.#pastNext(LF, 'copy');
      case 'copy':
        return this.#copy();
    }
  }

  #pastNext(byte: number, next: State): boolean {
    const found = this.#all.indexOf(byte, this.#at);
    this.#at = found < 0 ? this.#all.length : found + 1;
    if (found >= 0) this.#state = next;
    return true;
  }

  #lacks(bytes: number): boolean {
    return !this.#isEnd && this.#at + bytes > this.#all.length;
  }

  #sql(): boolean {
    const all = this.#all;
    while (this.#at < all.length) {
      const byte = all[this.#at] ?? 0;
      if (byte <= 32) {
        this.#at++;
        continue;
      }
      if ((byte === DASH || byte === SLASH) && this.#lacks(2)) return false;
      const next = all[this.#at + 1];
      if (byte === DASH && next === DASH) return this.#enter('comment', 2);
      if (byte === SLASH && next === STAR) {
        this.#comments = 1;
        return this.#enter('block', 2);
      }
      const isFirst = this.#begin < 0;
      if (isFirst && byte !== SEMICOLON) this.#begin = this.#at;
      if (byte === BACKSLASH && isFirst) return this.#enter('command', 1);
      if (byte === QUOTE) {
        const hasEscapes = this.#hasOldStrings || (this.#isEscape && this.#wordEnd === this.#at);
        return this.#enter(hasEscapes ? 'escapes' : 'text', 1);
      }
      if (byte === NAME) return this.#enter('name', 1);
      if (byte === DOLLAR) return this.#dollarSign();
      if (IN_WORD[byte] === 1) return this.#word();
      this.#at++;
      if (byte === OPEN) this.#parentheses++;
      else if (byte === CLOSE) this.#parentheses = Math.max(0, this.#parentheses - 1);
      else if (byte === SEMICOLON && this.#parentheses === 0 && this.#blocks === 0) {
        if (!isFirst) this.#endStatement();
        return true;
      }
    }
    return true;
  }

  #enter(state: State, bytes: number): boolean {
    this.#state = state;
    this.#at += bytes;
    return true;
  }

  #word(): boolean {
    const all = this.#all;
    let end = this.#at;
    while (end < all.length && IN_WORD[all[end] ?? 0] === 1) end++;
    if (end === all.length && !this.#isEnd && end - this.#at < MAX_WORD) return false;
    // Words are not needed within long lists of values.
    const isRead = this.#words.length < 4 || this.#words[0] === 'create' || end - this.#at === 1;
    const word = isRead ? all.toString('latin1', this.#at, end).toLowerCase() : '';
    this.#isEscape = word === 'e';
    this.#at = end;
    this.#wordEnd = end;
    if (this.#words.length < 4) this.#words.push(word);
    if (isRead && this.#parentheses === 0 && this.#isRoutine()) this.#noteBlock(word);
    return true;
  }

  /** A routine in standard SQL has statements of its own, up to the END of its BEGIN ATOMIC. */
  #isRoutine(): boolean {
    const [first, second, third, fourth] = this.#words;
    if (first !== 'create') return false;
    const kind = second === 'or' && third === 'replace' ? fourth : second;
    return kind === 'function' || kind === 'procedure';
  }

  #noteBlock(word: string): void {
    if (word === 'begin' || (word === 'case' && this.#blocks > 0)) this.#blocks++;
    else if (word === 'end' && this.#blocks > 0) this.#blocks--;
  }

  #dollarSign(): boolean {
    const text = this.#all.toString('latin1', this.#at, this.#at + MAX_WORD);
    if (this.#lacks(MAX_WORD) && MAYBE_TAG.test(text)) return false;
    const tag = TAG.exec(text)?.[0];
    if (tag === undefined) return this.#enter('sql', 1);
    this.#tag = tag;
    return this.#enter('dollar', tag.length);
  }

  #dollar(): boolean {
    const found = this.#all.indexOf(this.#tag, this.#at, 'latin1');
    if (found >= 0) {
      this.#at = found;
      return this.#enter('sql', this.#tag.length);
    }
    this.#at = Math.max(this.#at, this.#all.length - (this.#isEnd ? 0 : this.#tag.length - 1));
    return false;
  }

  #escapes(): boolean {
    const all = this.#all;
    for (; this.#at < all.length; this.#at++) {
      const byte = all[this.#at];
      if (byte !== BACKSLASH && byte !== QUOTE) continue;
      if (this.#lacks(2)) return false;
      if (byte === QUOTE && all[this.#at + 1] !== QUOTE) return this.#enter('sql', 1);
      this.#at++;
    }
    this.#at = Math.min(this.#at, all.length);
    return true;
  }

  #block(): boolean {
    const all = this.#all;
    for (; this.#at < all.length; this.#at++) {
      const byte = all[this.#at];
      if (byte !== STAR && byte !== SLASH) continue;
      if (this.#lacks(2)) return false;
      const next = all[this.#at + 1];
      const change = byte === STAR && next === SLASH ? -1 : byte === SLASH && next === STAR ? 1 : 0;
      if (change === 0) continue;
      this.#comments += change;
      if (this.#comments > MOST_NESTED) throw new LoadFailed(`line ${this.#lineAt(this.#at)}: ${TOO_DEEP}`);
      this.#at++;
      if (this.#comments === 0) return this.#enter('sql', 1);
    }
    this.#at = Math.min(this.#at, all.length);
    return true;
  }

  /** Copies lines up to `\.`. */
  #copy(): boolean {
    const all = this.#all;
    if (all[this.#at] === BACKSLASH) {
      if (this.#lacks(4)) return false;
      const end = all[this.#at + 2] === CR ? all[this.#at + 3] : all[this.#at + 2];
      if (all[this.#at + 1] === DOT && (end === LF || end === undefined)) {
        this.#pastNext(LF, 'sql');
        // The text may end there, without a line end.
        this.#state = 'sql';
        if (this.#isLeftOut) this.#passTo(this.#at);
        this.#isLeftOut = false;
        return true;
      }
    }
    this.#state = 'in copy line';
    return true;
  }

  #command(): boolean {
    const hasEnd = this.#all.includes(LF, this.#at);
    this.#pastNext(LF, 'sql');
    if (hasEnd) this.#endCommand();
    return true;
  }

  #endCommand(): void {
    const { text, line } = this.#ended(this.#at);
    const instead = this.#judge.command(text.trim(), line);
    if (instead !== null) this.#replace(text, instead);
    this.#begin = -1;
  }

  #endStatement(): void {
    this.#hasStatement = true;
    const [first = ''] = this.#words;
    const isCopy = first === 'copy';
    const isAsked = !this.#isTooLong && (isCopy || first === 'set' || this.#judge.asksAbout(first));
    if (isAsked) {
      const { text, line } = this.#ended(this.#at);
      if (OLD_STRINGS.test(text)) this.#hasOldStrings = true;
      else if (/^set\s+standard_conforming_strings\b/i.test(text)) this.#hasOldStrings = false;
      const instead = this.#judge.asksAbout(first) ? this.#judge.statement(text, line) : null;
      if (instead !== null) this.#replace(text, instead);
      if (isCopy && FROM_STDIN.test(text)) {
        this.#state = 'before copy';
        this.#isLeftOut = instead === '';
      }
    }
    this.#begin = -1;
    this.#isTooLong = false;
    this.#words = [];
    this.#parentheses = 0;
    this.#blocks = 0;
  }

  #ended(end: number): { readonly text: string; readonly line: number } {
    return { text: this.#all.toString('utf8', this.#begin, end), line: this.#lineAt(this.#begin) };
  }

  /** Keeps the number of lines, so that psql reports those of the file. */
  #replace(text: string, instead: string): void {
    this.#passTo(this.#begin);
    const missing = text.split('\n').length - instead.split('\n').length;
    this.#out.push(Buffer.from(instead + '\n'.repeat(Math.max(0, missing))));
    this.#kept = this.#at;
  }
}

/** Empty lines of the same number, so that psql reports the lines of the file. */
const lineEndsOf = (bytes: Buffer) => Buffer.alloc(bytes.filter((byte) => byte === LF).length, LF);

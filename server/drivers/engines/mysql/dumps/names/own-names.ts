/**
 * Names of a dump's own database before other names, which are left out because the dump is loaded into a
 * database of another name: `shop.goods` becomes `goods`. A table can have the name of its database, so
 * `shop.id` stays where it may be a column.
 */
import { isName, namesAt, tokensOf } from './sql-parts.ts';

/** Words before the name of a table, view or program. */
const HEADS = new Set(
  'from join straight_join into update table tables view trigger procedure function event call references to desc describe'.split(
    ' ',
  ),
);
/** Functions whose argument is a sequence. */
const OF_SEQUENCE = /^(?:nextval|lastval|setval)$/;
/** Words between those and the name. */
const BETWEEN = new Set('if not exists ignore low_priority high_priority delayed quick as'.split(' '));
/** Words after which no list of tables goes on. */
const ENDS = new Set(
  'select where group order having limit union except intersect window set values value for begin do then else on'.split(
    ' ',
  ),
);

/** Parentheses within each other that are told apart: a user chooses how many there are. */
const MOST_LEVELS = 10_000;

interface Level {
  /** Within a list of tables. */
  isList: boolean;
}

export class OwnNames {
  readonly #name: string;
  readonly #mention: RegExp;
  #levels: Level[] = [{ isList: false }];
  /** Open parentheses beyond those levels. */
  #deeper = 0;
  #awaits = false;
  /** Before FOR EACH ROW of a trigger, whose ON names a table. */
  #isTriggerHead = false;

  /** `name`: with one character per byte. */
  constructor(name: string) {
    this.#name = name;
    // Each alternative begins where no match of it can begin in the character before.
    const inQuotes = `(?<!\`)\`${RegExp.escape(name.replaceAll('`', '``'))}\``;
    const bare = /^[\w$\x80-\xff]+$/.test(name) ? `|(?<![\\w$\\x80-\\xff])${RegExp.escape(name)}` : '';
    this.#mention = new RegExp(`(?:${inQuotes}${bare})\\s*\\.`);
  }

  get name(): string {
    return this.#name;
  }

  /** The line without the name. `isFirst`: it begins a statement. */
  without(line: string, isFirst: boolean): string {
    if (isFirst) {
      this.#levels = [{ isList: false }];
      this.#deeper = 0;
      this.#awaits = false;
      this.#isTriggerHead = false;
    }
    const tokens = tokensOf(line);
    let [made, end] = ['', 0];
    for (let at = 0; at < tokens.length; at++) {
      const { text, from } = tokens[at] as { text: string; from: number };
      if (!isName(text)) {
        this.#mark(text);
        continue;
      }
      const names = namesAt(tokens, at);
      const follows = tokens[at + 2 * names.length - 1]?.text;
      if (names.length === 1 && this.#word(text)) continue;
      const isOwn = names.length === 3 || (names.length === 2 && (this.#awaits || follows === '('));
      if (isOwn && names[0] === this.#name) {
        made += line.slice(end, from);
        end = (tokens[at + 2] as { from: number }).from;
      }
      this.#awaits = false;
      at += 2 * (names.length - 1);
    }
    return made + line.slice(end);
  }

  /** Whether a line has the name before a point. */
  isIn(line: string): boolean {
    return this.#mention.test(line);
  }

  #mark(text: string): void {
    const level = this.#levels.at(-1) as Level;
    if (text === '(') {
      if (this.#levels.length < MOST_LEVELS) this.#levels.push({ isList: this.#awaits });
      else this.#deeper++;
    } else if (text === ')') {
      if (this.#deeper > 0) this.#deeper--;
      else if (this.#levels.length > 1) this.#levels.pop();
      this.#awaits = false;
    } else if (text === ',') this.#awaits = level.isList;
  }

  /** Whether it is a word of the language that decides about the next names. */
  #word(text: string): boolean {
    const level = this.#levels.at(-1) as Level;
    const word = text.toLowerCase();
    if (word === 'trigger') this.#isTriggerHead = true;
    if (word === 'each') this.#isTriggerHead = false;
    if (HEADS.has(word) || OF_SEQUENCE.test(word) || (word === 'on' && this.#isTriggerHead)) {
      level.isList = true;
      this.#awaits = true;
      return true;
    }
    if (this.#awaits && BETWEEN.has(word)) return true;
    if (!ENDS.has(word)) return false;
    if (word !== 'on') level.isList = false;
    this.#awaits = false;
    return true;
  }
}

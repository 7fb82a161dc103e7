/** Parts of one SQL statement of MySQL, by its names and parentheses. */

/** Text in quotes. Without its last quote it reaches to the end: a search from each would be quadratic. */
export const STRING = /'(?:[^'\\]|\\[\s\S]?|'')*(?:'|$)|"(?:[^"\\]|\\[\s\S]?|"")*(?:"|$)/;
const QUOTED_NAME = /`(?:[^`]|``)*(?:`|$)/;
/** Quoted text of any kind, which must not be altered. */
export const QUOTED_TEXT = new RegExp(`${STRING.source}|${QUOTED_NAME.source}`);
const COMMENT = /(?:--\s|#)[^\n]*/;
/** Quoted text and comments, except those between slashes and stars. */
export const QUOTED_OR_COMMENT = new RegExp(`${QUOTED_TEXT.source}|${COMMENT.source}`);
const QUOTED = new RegExp(QUOTED_OR_COMMENT.source, 'g');
const TOKEN = new RegExp(`${QUOTED.source}|[\\w$\\x80-\\xff]+|[(),.]`, 'g');
/** Calls whose arguments may have a FROM of their own. */
const WITH_FROM = /^(?:extract|trim|substr|substring|mid)$/i;
const JOINS = /^(?:from|join|straight_join)$/i;
const ENDS_FROM = /^(?:select|where|group|order|having|limit|union|except|intersect|window|procedure|for)$/i;
const NAME = /^(?:`|[\w$\x80-\xff])/;

/** A quoted name. */
export const quoted = (name: string) => `\`${name.replaceAll('`', '``')}\``;

/** Text as bytes, each a character. */
export const asBytes = (text: string) => Buffer.from(text).toString('latin1');

/** Literals, and names before a dot: of a statement as SHOW CREATE answers it. */
export const QUOTED_PARTS = /'(?:[^'\\]|\\[\s\S]|'')*'|`(?:[^`]|``)*`\.?/g;

const ACCOUNT = '(?:`(?:[^`]|``)*`|"(?:[^"]|"")*"|[^\\s`"@]+)';
const DEFINER = new RegExp(
  `^(CREATE (?:OR REPLACE )?(?:ALGORITHM=\\w+ )?)DEFINER=${ACCOUNT}(?:@${ACCOUNT})? `,
);

/** The answer of SHOW CREATE without its definer: the definition belongs to the user who loads it. */
export function withoutDefiner(create: string): string {
  return create.replace(DEFINER, '$1');
}

/** A word, name or mark of a text, and where it begins. */
export interface Token {
  readonly text: string;
  readonly from: number;
}

/** The names that a query uses, without quotes. */
export interface UsedNames {
  readonly databases: ReadonlySet<string>;
  readonly tables: ReadonlySet<string>;
}

/** The text, as long as before, with a character that is in no word for quoted parts and comments. */
export function masked(text: string): string {
  return text.replace(QUOTED, (quoted) => '\0'.repeat(quoted.length));
}

/** Where the parenthesis that opens at `open` closes in a masked text; -1: nowhere. */
export function closing(bare: string, open: number): number {
  let depth = 0;
  for (let at = open; at < bare.length; at++) {
    if (bare[at] === '(') depth++;
    else if (bare[at] === ')' && --depth === 0) return at;
  }
  return -1;
}

/** The parts of a list between `from` and `to` of a masked text, as offsets of their beginnings and ends. */
export function elementsOf(bare: string, from: number, to: number): (readonly [number, number])[] {
  const found: (readonly [number, number])[] = [];
  let [depth, start] = [0, from];
  for (let at = from; at < to; at++) {
    if (bare[at] === '(') depth++;
    else if (bare[at] === ')') depth--;
    else if (bare[at] === ',' && depth === 0) {
      found.push([start, at]);
      start = at + 1;
    }
  }
  return [...found, [start, to]];
}

interface Level {
  /** Within the list of tables. */
  isFrom: boolean;
  /** Within the arguments of a call with a FROM of its own. */
  readonly isCall: boolean;
}

/** Databases and tables that a query reads, and databases whose routines it calls. */
export function usedNames(query: string): UsedNames {
  const tokens = tokensOf(query);
  const databases = new Set<string>();
  const tables = new Set<string>();
  const levels: Level[] = [{ isFrom: false, isCall: false }];
  let awaitsTable = false;
  for (let at = 0; at < tokens.length; at++) {
    const { text: token } = tokens[at] as Token;
    const level = levels.at(-1) as Level;
    if (token === '(') {
      levels.push({
        isFrom: awaitsTable,
        isCall: !awaitsTable && WITH_FROM.test(tokens[at - 1]?.text ?? ''),
      });
    } else if (token === ')') {
      if (levels.length > 1) levels.pop();
      awaitsTable = false;
    } else if (token === ',') awaitsTable = level.isFrom;
    else if (JOINS.test(token) && !level.isCall) {
      level.isFrom = true;
      awaitsTable = true;
    } else if (ENDS_FROM.test(token)) {
      level.isFrom = false;
      awaitsTable = false;
    } else if (isName(token)) {
      const names = namesAt(tokens, at);
      at += 2 * (names.length - 1);
      const isQualified =
        names.length === 3 || (names.length === 2 && (awaitsTable || tokens[at + 1]?.text === '('));
      if (isQualified) databases.add(names[0] as string);
      else if (awaitsTable) tables.add(names[0] as string);
      awaitsTable = false;
    }
  }
  return { databases, tables };
}

/** The tokens of a text; quoted strings and comments are none. */
export function tokensOf(text: string): Token[] {
  const tokens: Token[] = [];
  for (const { 0: token, index } of text.matchAll(TOKEN))
    if (!/^['"#-]/.test(token)) tokens.push({ text: token, from: index });
  return tokens;
}

/** Whether a token is a name or a word. */
export const isName = (token: string): boolean => NAME.test(token);

/** The names joined by dots from a token on. */
export function namesAt(tokens: readonly Token[], from: number): string[] {
  const names = [plainName((tokens[from] as Token).text)];
  for (let at = from + 1; tokens[at]?.text === '.' && isName(tokens[at + 1]?.text ?? ''); at += 2)
    names.push(plainName((tokens[at + 1] as Token).text));
  return names;
}

/** A name without its quotes. */
export function plainName(name: string): string {
  return name.startsWith('`') ? name.slice(1, -1).replaceAll('``', '`') : name;
}

/**
 * Finds the SQL in the sources. Loads each store module with its texts as functions, so that constants and
 * calls in a text have values. Texts that need more, such as an argument, have no value; the caller supplies
 * one with a call.
 */
import { globSync, readFileSync } from 'node:fs';
import { registerHooks, stripTypeScriptTypes } from 'node:module';
import { fileURLToPath } from 'node:url';

export interface WrittenSql {
  readonly texts: ReadonlySet<string>;
  readonly open: readonly OpenText[];
}

/** A text with parts that are known only when its function is called. */
export interface OpenText {
  readonly file: string;
  /** The constant texts between these parts. */
  readonly pieces: readonly string[];
}

const ROOT = new URL('../..', import.meta.url);
/** All SQL is in these files (tidy/table-rules.ts). Drivers and migrations belong to one engine. */
const FILES = ['server/**/{store,*-store,*-sql}.ts', 'server/metadata/{,secrets/}*.ts'];
/** Loads a module once more, beside the one that others import. */
const MARK = '?sql';
const STATEMENT = /^\s*(?:SELECT|INSERT INTO|UPDATE|DELETE FROM|WITH)\b/;
const LATER_PART = /\b(?:FROM|WHERE|ON CONFLICT)\b/;

export async function writtenSql(): Promise<WrittenSql> {
  const files = globSync(FILES, { cwd: ROOT }).filter(
    (file) => !/\.test\.ts$|\/(?:drivers|testing)\/|\/migrate\.ts$/.test(file),
  );
  const urls = new Map(files.map((file) => [new URL(file + MARK, ROOT).href, file] as const));
  const literals = new Map<string, readonly Literal[]>();
  const hooks = registerHooks({
    load: (url, context, next) => {
      if (!url.endsWith(MARK)) return next(url, context);
      const code = stripTypeScriptTypes(readFileSync(fileURLToPath(url), 'utf8'));
      const found = literalsIn(code).filter(({ pieces }) => mayBeSql(pieces));
      literals.set(url, found);
      // A private field has no meaning outside its class.
      const thunks = found.map(({ source }) => `() => ${source.replaceAll('this.#', 'this.')}`);
      const source = `${code}\nexport const writtenSql = [${thunks.join(',\n')}];`;
      return { format: 'module', shortCircuit: true, source };
    },
  });
  const texts = new Set<string>();
  const open: OpenText[] = [];
  try {
    for (const [url, file] of urls) {
      const { writtenSql: thunks } = (await import(url)) as { writtenSql: readonly (() => string)[] };
      for (const [i, thunk] of thunks.entries()) {
        try {
          const text = thunk();
          if (STATEMENT.test(text)) texts.add(text);
        } catch {
          open.push({ file, pieces: literals.get(url)?.[i]?.pieces ?? [] });
        }
      }
    }
  } finally {
    hooks.deregister();
  }
  return { texts, open };
}

/** Whether `text` matches the open text. */
export function isOf({ pieces }: OpenText, text: string): boolean {
  let at = 0;
  for (const piece of pieces) {
    const found = text.indexOf(piece, at);
    if (found < 0) return false;
    at = found + piece.length;
  }
  return true;
}

function mayBeSql([first = '', ...rest]: readonly string[]): boolean {
  return STATEMENT.test(first) || (first.trim() === '' && rest.some((piece) => LATER_PART.test(piece)));
}

interface Literal {
  readonly source: string;
  readonly pieces: readonly string[];
}

/** Quoted and template literals, without those inside others. */
function literalsIn(code: string): Literal[] {
  const found: Literal[] = [];
  for (let at = 0; at < code.length; ) {
    const end = endOfComment(code, at) ?? endOfLiteral(code, at)?.end ?? at + 1;
    const literal = endOfComment(code, at) === null ? endOfLiteral(code, at) : null;
    if (literal !== null) found.push({ source: code.slice(at, end), pieces: literal.pieces });
    at = end;
  }
  return found;
}

function endOfComment(code: string, at: number): number | null {
  const ends: Readonly<Record<string, string>> = { '//': '\n', '/*': '*/' };
  const end = ends[code.slice(at, at + 2)];
  if (end === undefined) return null;
  const found = code.indexOf(end, at + 2);
  return found < 0 ? code.length : found + end.length;
}

function endOfLiteral(code: string, from: number): { end: number; pieces: string[] } | null {
  const quote = code[from];
  if (quote !== "'" && quote !== '"' && quote !== '`') return null;
  const pieces: string[] = [];
  let begin = from + 1;
  for (let at = begin; at < code.length; ) {
    if (code[at] === '\\') at += 2;
    else if (code[at] === quote) return { end: at + 1, pieces: [...pieces, code.slice(begin, at)] };
    else if (quote === '`' && code.startsWith('${', at)) {
      pieces.push(code.slice(begin, at));
      begin = at = endOfBraces(code, at + 2);
    } else at++;
  }
  return null;
}

/** After the brace that closes the one before `from`. */
function endOfBraces(code: string, from: number): number {
  let depth = 1;
  let at = from;
  while (at < code.length && depth > 0) {
    const literal = endOfLiteral(code, at);
    if (literal === null) depth += code[at] === '{' ? 1 : code[at] === '}' ? -1 : 0;
    at = literal?.end ?? at + 1;
  }
  return at;
}

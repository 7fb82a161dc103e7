/** Splits a text into statements, like the engine. */
import type { Grammar } from './grammar.ts';

export interface Statement {
  readonly text: string;
  /** Offset in the whole text. */
  readonly from: number;
}

const COMMENT = String.raw`--[^\n]*|/\*[\s\S]*?\*/`;
const QUOTED = `"(?:[^"]|"")*"`;
const ESCAPED = String.raw`'(?:[^'\\]|''|\\[\s\S])*'`;
const PLAIN = `'(?:[^']|'')*'`;

/** Comments and quoted text, in which `;` does not end a statement. */
const WHOLE: Readonly<Record<Grammar, readonly string[]>> = {
  standard: [COMMENT, PLAIN, QUOTED],
  sqlite: [COMMENT, PLAIN, QUOTED, String.raw`\[[^\]]*\]`, '`[^`]*`'],
  postgresql: [COMMENT, String.raw`\b[eE]${ESCAPED}`, PLAIN, QUOTED, String.raw`(\$\w*\$)[\s\S]*?\1`],
  mysql: [COMMENT, String.raw`#[^\n]*`, ESCAPED, String.raw`"(?:[^"\\]|""|\\[\s\S])*"`, '`[^`]*`'],
  documents: [String.raw`"(?:[^"\\]|\\.)*"`],
};

const SQL_MARKS = String.raw`;|\b(?:END\s+(?:IF|LOOP|WHILE|REPEAT|FOR)|END(?:\s+CASE)?|BEGIN|CASE)\b`;
/** Their bodies contain statements, up to END. */
const WITH_BODY =
  /^\s*(?:BEGIN\s+NOT\s+ATOMIC|CREATE\b[^;('"]*?\b(?:TRIGGER|PROCEDURE|FUNCTION|EVENT|PACKAGE))\b/i;

export function statementsOf(grammar: Grammar, text: string): Statement[] {
  const isSql = grammar !== 'documents';
  const found: Statement[] = [];
  let from = 0;
  let depth = 0;
  let hasWords = false;
  const end = (at: number) => {
    const piece = text.slice(from, at);
    const blank = piece.length - piece.trimStart().length;
    if (hasWords) found.push({ text: piece.trim(), from: from + blank });
    from = isSql ? at + 1 : at;
    depth = 0;
    hasWords = false;
  };
  const tokens = new RegExp(`${WHOLE[grammar].join('|')}|${isSql ? SQL_MARKS : '[{}]'}|\\S`, 'gi');
  for (const { 0: token, index } of text.matchAll(tokens)) {
    if (token === ';' && isSql) {
      if (depth === 0) end(index);
      continue;
    }
    if (!/^(?:--|\/\*|#)/.test(token) || !isSql) hasWords = true;
    depth += isSql ? sqlStep(token, () => text.slice(from, index + token.length)) : jsonStep(token);
    if (!isSql && token === '}' && depth === 0) end(index + 1);
  }
  end(text.length);
  return found;
}

function sqlStep(token: string, before: () => string): number {
  if (!/^(?:BEGIN|CASE|END(?:\s+CASE)?)$/i.test(token) || !WITH_BODY.test(`${before()} `)) return 0;
  return /^END/i.test(token) ? -1 : 1;
}

function jsonStep(token: string): number {
  return token === '{' ? 1 : token === '}' ? -1 : 0;
}

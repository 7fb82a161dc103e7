/**
 * Objects of a dump that do not exist here because their statements were left out, and statements without
 * rows that need them: a view of a foreign table, a trigger with a function in C. A table that needs one is
 * still refused by the server, with its reason: its rows must not get lost.
 */
import type { Refused } from './refused-statements.ts';
import { mentionsOf, pattern, qualifiedName, remember, withoutTexts } from './sql-names.ts';

const MADE = pattern(
  '^CREATE(?: OR REPLACE)? (?:FOREIGN TABLE|FUNCTION|PROCEDURE|AGGREGATE|TYPE|DOMAIN|(?:MATERIALIZED |RECURSIVE )?VIEW|' +
    'SERVER|OPERATOR CLASS|OPERATOR FAMILY|TEXT SEARCH (?:PARSER|TEMPLATE|DICTIONARY|CONFIGURATION)) (?:IF NOT EXISTS )?' +
    '((?:ID\\.)?ID)',
);
/** Statements that may need one and have no rows. */
const NEEDS = pattern(
  '^(?:ALTER|COMMENT|GRANT|REVOKE|REFRESH|CREATE(?: OR REPLACE)?(?: UNIQUE| CONSTRAINT| TRUSTED| MATERIALIZED| RECURSIVE)? ' +
    '(?:VIEW|INDEX|TRIGGER|RULE|POLICY|STATISTICS|FUNCTION|PROCEDURE|AGGREGATE|OPERATOR|CAST|TYPE|DOMAIN|TEXT|CONVERSION)) ',
);
/** Part of a table, which its own name does not show. */
const PART = pattern(
  '^(?:CREATE(?: OR REPLACE)?(?: CONSTRAINT)?|COMMENT ON|ALTER) (TRIGGER|RULE|POLICY|CONSTRAINT) (ID)(?:\\s[^;]*?)? ON ((?:ID\\.)?ID)',
);
const SWITCHED = pattern(
  '^ALTER TABLE (?:ONLY )?((?:ID\\.)?ID) (?:(?:DISABLE|ENABLE)(?: REPLICA| ALWAYS)?|VALIDATE) (TRIGGER|RULE|CONSTRAINT) (ID)',
);
const RULE = pattern('^CREATE(?: OR REPLACE)? RULE (ID) AS ON \\w+ TO ((?:ID\\.)?ID)');
const INDEX = pattern('^CREATE(?: UNIQUE)? INDEX (?:IF NOT EXISTS )?(ID) ON (?:ONLY )?((?:ID\\.)?)ID');
const TABLE = pattern('^(?:CREATE(?: UNLOGGED)?|ALTER) TABLE (?:IF NOT EXISTS |ONLY )*((?:ID\\.)?ID)');
const CONSTRAINT = pattern('\\bCONSTRAINT (ID)');
const LANGUAGE = pattern(' LANGUAGE (ID)');
const ROUTINE = pattern('^CREATE(?: OR REPLACE)? (?:FUNCTION|PROCEDURE) ');
const NATIVE = new Set(['c', 'internal']);
const PARENTHESES = /\([^()]*\)/g;
/** Nested parentheses in a head, such as numeric(10,2) in arguments. */
const MOST_NESTED = 8;
const BASE_TYPE = pattern('^CREATE TYPE (?:ID\\.)?ID(?: \\([\\s\\S]*\\bINPUT =[\\s\\S]*)?\\s*;?$');
const LEAKPROOF = pattern('^(CREATE(?: OR REPLACE)? FUNCTION\\s(?:(?! AS )[\\s\\S])*?) LEAKPROOF(?=\\s)');
const CAST = pattern(
  '^(?:CREATE|COMMENT ON) CAST \\(((?:(?! AS )[^()])+)(?:\\([\\d,\\s]*\\))? AS ([^()]+?)(?:\\([\\d,\\s]*\\))?\\)',
);
const BINARY = pattern(' WITHOUT FUNCTION\\b');
const CATALOG = pattern('^(?:UPDATE|DELETE FROM) (?:ONLY )?pg_catalog\\.');
const DEPENDS = pattern('^ALTER [\\s\\S]+ DEPENDS ON EXTENSION (ID)\\s*;?$');

export interface ServerThings {
  readonly languages: ReadonlySet<string>;
  /** Types that the server has, in lower case. */
  readonly types: ReadonlySet<string>;
}

export class AbsentThings {
  readonly #names = new Set<string>();

  /** Call for each statement that is left out, or for which another one runs. */
  note(text: string, instead = ''): void {
    const table = TABLE.exec(text)?.[1];
    if (table !== undefined) this.#noteConstraints(qualifiedName(table), text, instead);
    if (instead !== '') return;
    const name = MADE.exec(text)?.[1];
    if (name !== undefined) remember(this.#names, qualifiedName(name));
    const part = /^CREATE/i.test(text) ? partOf(text) : undefined;
    if (part !== undefined) remember(this.#names, part);
    const [, index, schema = ''] = INDEX.exec(text) ?? [];
    if (index !== undefined) remember(this.#names, qualifiedName(`${schema}${index}`));
  }

  #noteConstraints(table: string, text: string, instead: string): void {
    const kept = withoutTexts(instead);
    for (const [clause, name = ''] of withoutTexts(text).matchAll(new RegExp(CONSTRAINT.source, 'gi')))
      if (!kept.includes(clause)) remember(this.#names, partName('constraint', name, table));
  }

  /** Call for each statement that runs: a function of that name can have other arguments. */
  noteMade(text: string): void {
    const name = this.#names.size === 0 ? undefined : MADE.exec(text)?.[1];
    if (name !== undefined) this.#names.delete(qualifiedName(name));
  }

  /** Why a statement cannot run without what was left out; null: it needs none of it. */
  neededBy(text: string): Refused | null {
    if (this.#names.size === 0 || !NEEDS.test(text)) return null;
    const own = qualifiedName(MADE.exec(text)?.[1] ?? '');
    const mentioned = [partOf(text) ?? '', ...mentionsOf(text)];
    const needed = mentioned.find((name) => name !== own && this.#names.has(name));
    return needed === undefined ? null : { reason: `it needs ${needed}, which was left out` };
  }
}

const partName = (kind: string, name: string, table: string) =>
  `${kind.toLowerCase()} ${qualifiedName(name)} of ${qualifiedName(table)}`;

/** The trigger, rule, policy or constraint that a statement makes or is about. */
function partOf(text: string): string | undefined {
  const [, ruled, of] = RULE.exec(text) ?? [];
  if (ruled !== undefined && of !== undefined) return partName('rule', ruled, of);
  const [, kind, name, on] = PART.exec(text) ?? [];
  if (kind !== undefined && name !== undefined && on !== undefined) return partName(kind, name, on);
  const [, table, what, switched] = SWITCHED.exec(text) ?? [];
  if (table === undefined || what === undefined || switched === undefined) return undefined;
  return partName(what, switched, table);
}

/** Why only administrators could create it, or nobody here; null: anyone can. */
export function ofAdministrators(text: string, { languages, types }: ServerThings): Refused | null {
  if (BASE_TYPE.test(text)) return { reason: 'only server administrators can create base types' };
  if (CATALOG.test(text)) return { reason: 'only server administrators can change the system catalogs' };
  const [, from = '', to = ''] = CAST.exec(text) ?? [];
  const areOfServer = types.has(from.trim().toLowerCase()) && types.has(to.trim().toLowerCase());
  if (from !== '' && (areOfServer || BINARY.test(text)))
    return { reason: 'only server administrators can create casts between types of PostgreSQL' };
  const language = languageOf(text);
  if (language !== null && NATIVE.has(language))
    return { reason: 'functions written in C are not allowed here' };
  if (language !== null && !languages.has(language))
    return { reason: `the language ${language} is not available here` };
  if (!LEAKPROOF.test(text)) return null;
  const reason = 'only server administrators can declare functions LEAKPROOF';
  return { instead: text.replace(LEAKPROOF, '$1'), reason };
}

/** The extension of a dependency; undefined: not a dependency. */
export function neededExtension(text: string): string | undefined {
  const name = DEPENDS.exec(text)?.[1];
  return name && qualifiedName(name);
}

/** The language of a created routine; null: not a routine, or without a language. */
function languageOf(text: string): string | null {
  if (!ROUTINE.test(text)) return null;
  let head = withoutTexts(text.replaceAll(/(\sLANGUAGE\s+)'(\w+)'/gi, '$1$2'));
  for (let depth = 0; depth < MOST_NESTED && head.includes('('); depth++)
    head = head.replaceAll(PARENTHESES, '');
  const name = LANGUAGE.exec(head)?.[1];
  return name === undefined ? null : qualifiedName(name);
}

/**
 * Statements of a newer pg_dump, rewritten for an older server: the same columns and rows, in the
 * same lines. pg_dump writes each element of a table in its own line.
 */
import type { Refused } from './refused-statements.ts';
import type { ServerFacts } from './server-facts-store.ts';
import { pattern, withoutTexts } from './sql-names.ts';

/** First versions with these statements. */
const [RULES, MAINTAIN, BUILTIN, NAMED_NOT_NULL] = [16, 17, 17, 18];

const TABLE = pattern('^CREATE (?:UNLOGGED )?TABLE (?:IF NOT EXISTS )?((?:ID\\.)?ID) \\(\\s*$');
const NOT_NULL = pattern('^\\s*(?:CONSTRAINT ID )?NOT NULL (ID)(?: NO INHERIT)?,?$');
const UUID = pattern('^(\\s*ID .*? DEFAULT )(?:pg_catalog\\.)?(uuidv[47]\\(\\))(.*)$');
const DEFAULT = pattern('^(\\s*ID .*?) DEFAULT (.*?)( NOT NULL)?(,?)$');
/** Functions of PostgreSQL 16 to 18 that a column may have as its default. */
const NEW_FUNCTIONS =
  /(?<![\w$."])(array_(?:reverse|sample|shuffle|sort)|casefold|date_(?:add|subtract)|random_normal|to_(?:bin|oct)|uuidv[47])\s*\(/;
const ICU_RULES = /,\s*rules\s*=\s*'(?:[^']|'')*'/i;
const TRUNCATES = /,?\s*(?:toast\.)?vacuum_truncate\s*=\s*'?auto'?/gi;
const ALONE = / NOT NULL NO INHERIT(,?)$/;
const VIRTUAL = pattern(
  '( GENERATED ALWAYS AS \\((?:(?! GENERATED ALWAYS ).)*\\))( VIRTUAL)?((?: CONSTRAINT ID)? NOT NULL)?(,?)$',
);
const UNCHECKED = pattern('^\\s*CONSTRAINT ID (?:CHECK|FOREIGN KEY) .* NOT ENFORCED,?$');
const ADDED = pattern('^ALTER TABLE (?:ONLY )?((?:ID\\.)?ID) ADD (?:CONSTRAINT ID )?');
const ADDED_NOT_NULL = pattern('^NOT NULL (ID)(?: NO INHERIT)?( NOT VALID)?\\s*;?$');
const ADDED_UNCHECKED = /\sNOT\s+ENFORCED\s*;?$/i;
const COLLATION = pattern('^(CREATE COLLATION [^(]*)\\(([\\s\\S]*)\\)\\s*;?$');
const MAINTAINS = /^(?:GRANT|REVOKE)\s[^']*?\bMAINTAIN\b[^']*?\sON\s/i;

const NO_VIRTUAL = 'generated columns are stored';
const NO_NAMES = 'a NOT NULL constraint belongs to a column, and has no name';
const NO_UNCHECKED = 'constraints are always enforced';

/** The statement for a server of that version; null: unchanged. */
export function olderForm(statement: string, { version, functions }: ServerFacts): Refused | null {
  const major = Number.parseInt(version, 10);
  const found =
    (major < RULES ? withoutRules(statement) : null) ??
    (major < MAINTAIN ? withoutMaintain(statement) : null) ??
    (major < BUILTIN ? ofLibrary(statement) : null) ??
    (major < NAMED_NOT_NULL ? (ofTable(statement, functions) ?? ofAddition(statement)) : null);
  return found && { ...found, reason: `in PostgreSQL ${version} ${found.reason}` };
}

function withoutRules(text: string): Refused | null {
  if (!COLLATION.test(text) || !ICU_RULES.test(text)) return null;
  return { instead: text.replace(ICU_RULES, ''), reason: 'collations have no rules of their own' };
}

function withoutMaintain(text: string): Refused | null {
  if (!MAINTAINS.test(text)) return null;
  const instead = text.replace(/\bMAINTAIN\s*,\s*|\s*,\s*MAINTAIN\b/i, '');
  const reason = 'there is no MAINTAIN privilege';
  return instead === text ? { reason } : { reason, instead };
}

/** PostgreSQL's own collations compare bytes, as do the C library's of the same names. */
function ofLibrary(text: string): Refused | null {
  const [, head = '', options = ''] = COLLATION.exec(text) ?? [];
  if (!/\bprovider\s*=\s*'?builtin\b/i.test(options)) return null;
  const locale = /\blocale\s*=\s*'C'/i.test(options) ? 'C' : 'C.UTF-8';
  const instead = `${head}(provider = libc, locale = '${locale}');`;
  return {
    instead,
    reason: `there is no builtin provider of collations: ${locale} of the C library is used`,
  };
}

function ofTable(text: string, functions: ServerFacts['functions']): Refused | null {
  const lines = text.split('\n');
  const table = TABLE.exec(lines[0] ?? '')?.[1];
  const end = lines.findIndex((line) => line.startsWith(')'));
  if (table === undefined || end < 0) return null;
  const [reasons, later] = [new Set<string>(), [] as string[]];
  const elements = lines.slice(1, end).map((line) => {
    const column = NOT_NULL.exec(line)?.[1];
    if (column !== undefined) later.push(` ALTER TABLE ONLY ${table} ALTER COLUMN ${column} SET NOT NULL;`);
    const [instead, reason] = column === undefined ? olderElement(line, functions) : ['', NO_NAMES];
    if (reason !== null) reasons.add(reason);
    return instead;
  });
  const options = lines.slice(end).join('\n');
  const kept = options
    .replaceAll(TRUNCATES, '')
    .replace(/\(\s*,\s*/, '(')
    .replace(/\s*WITH\s*\(\s*\)/i, '');
  if (kept !== options) reasons.add('vacuum_truncate has no value auto');
  if (reasons.size === 0) return null;
  const last = elements.findLastIndex((line) => line !== '');
  const closed = elements.map((line, at) => (at === last ? line.replace(/,$/, '') : line));
  const instead = [lines[0], ...closed, kept].join('\n') + later.join('');
  return { instead, reason: [...reasons].join('; ') };
}

/** The rewritten line of an element, and the reason; null: unchanged. */
function olderElement(line: string, functions: ServerFacts['functions']): [string, string | null] {
  if (UNCHECKED.test(line)) return ['', NO_UNCHECKED];
  const uuid = UUID.exec(line)?.[2];
  if (uuid !== undefined)
    return [
      line.replace(UUID, '$1gen_random_uuid()$3'),
      `there is no ${uuid}: new rows get random ones by gen_random_uuid()`,
    ];
  const name = NEW_FUNCTIONS.exec(withoutTexts(DEFAULT.exec(line)?.[2] ?? ''))?.[1];
  if (name !== undefined && !functions.has(name))
    return [line.replace(DEFAULT, '$1$3$4'), `there is no ${name}(): the column has no default`];
  if (ALONE.test(line)) return [line.replace(ALONE, ' NOT NULL$1'), NO_NAMES];
  if (VIRTUAL.test(line)) return [line.replace(VIRTUAL, '$1 STORED$3$4'), NO_VIRTUAL];
  return [line, null];
}

function ofAddition(text: string): Refused | null {
  const [head, table] = ADDED.exec(text) ?? [];
  if (head === undefined) return null;
  if (ADDED_UNCHECKED.test(text)) return { reason: NO_UNCHECKED };
  const [, column, isUnchecked] = ADDED_NOT_NULL.exec(text.slice(head.length)) ?? [];
  if (column === undefined) return null;
  if (isUnchecked !== undefined) return { reason: 'NOT NULL is checked at once' };
  return { reason: NO_NAMES, instead: `ALTER TABLE ONLY ${table} ALTER COLUMN ${column} SET NOT NULL;` };
}

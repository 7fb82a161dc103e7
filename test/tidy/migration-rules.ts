/**
 * Nodes of the previous version continue while the first node of the next one migrates, so a migration only
 * adds. A removal, or a new requirement for rows, waits for the version after the last that needed the old
 * state.
 */
import { LANDINGS } from '../long/earlier-code.ts';
import { type Finding, findAll, type SourceFile } from './source-files.ts';

/** Earlier ones are older than clusters. SQLite, with one process, has no such limits. */
const FIRST = 45;
const PATH = /^server\/metadata\/migrations\/postgresql\/(\d{4})-/;
const NARROWS = new RegExp(
  [
    String.raw`\bDROP\s+(?:TABLE|COLUMN|VIEW|FUNCTION|DEFAULT)\b`,
    // No statement of a node names an index.
    String.raw`(?<!\bALTER\s+INDEX\s+\w+\s+)\bRENAME\b`,
    String.raw`\bSET\s+NOT\s+NULL\b`,
    String.raw`\bALTER\s+COLUMN\s+\w+\s+(?:SET\s+DATA\s+)?TYPE\b`,
    String.raw`\bADD\s+(?:CONSTRAINT|CHECK|UNIQUE|FOREIGN|PRIMARY)\b`,
    String.raw`\bCREATE\s+UNIQUE\s+INDEX\b`,
    String.raw`\bADD\s+(?:COLUMN\s+)?\w+\s+[^,;]*\bNOT\s+NULL\b(?![^,;]*\bDEFAULT\b)(?<!\bDEFAULT\b[^,;]*)`,
  ].join('|'),
  'gi',
);
/** The first version whose migrations of indexes alone are run beside those who write. */
const FIRST_APART = 60;
/** As postgresql-schema.ts takes them. */
const APART =
  /^\s*(?:(?:CREATE INDEX (?!IF\b)\w+ ON\b[^;]*|DROP INDEX (?!IF\b)\w+);\s*)+(?:ALTER INDEX \w[^;]*;\s*)*$/;
const INDEX_OF = /\bCREATE\s+INDEX\s+\w+\s+ON\s+(\w+)/gi;
/** `-- Unneeded since 0a1b2c3d: why`. */
const UNNEEDED = /^-- Unneeded since ([0-9a-f]{8}): \S/m;

export function checkNarrowing(files: readonly SourceFile[]): Finding[] {
  const message =
    'nodes of the version before still run: add in this version, and take away in the next, with a line ' +
    '`-- Unneeded since COMMIT: why` that names a version of LANDINGS which did without';
  return files
    .filter(({ path }) => Number(PATH.exec(path)?.[1] ?? 0) >= FIRST)
    .filter(({ text }) => !LANDINGS.some((each) => each === UNNEEDED.exec(text)?.[1]))
    .flatMap((file) => findAll(withoutComments(file), NARROWS, message));
}

/** In a transaction with other changes, the index of a large table stops all writes for minutes. */
export function checkIndexes(files: readonly SourceFile[]): Finding[] {
  const message =
    'an index of a table that exists is built while nodes write: in a migration of its own, which creates and ' +
    'drops indexes, and then renames them';
  return files
    .filter(({ path }) => Number(PATH.exec(path)?.[1] ?? 0) >= FIRST_APART)
    .map(withoutComments)
    .filter(({ text }) => !APART.test(text))
    .flatMap((file) => {
      const isNew = (table: string) =>
        new RegExp(String.raw`\bCREATE\s+TABLE\s+${table}\b`, 'i').test(file.text);
      const tables = [...file.text.matchAll(INDEX_OF)].flatMap(([, table = '']) =>
        isNew(table) ? [] : table,
      );
      const ofOld = new RegExp(String.raw`\bCREATE\s+INDEX\s+\w+\s+ON\s+(?:${tables.join('|')})\b`, 'gi');
      return tables.length === 0 ? [] : findAll(file, ofOld, message);
    });
}

function withoutComments({ path, text }: SourceFile): SourceFile {
  return { path, text: text.replace(/--.*$/gm, '') };
}

/** Connection settings that programs query and that change nothing here. */

const ASKED = /^\s*PRAGMA\s+(?:(?:main|temp)\s*\.\s*)?(\w+)\s*(?:=\s*[^;]+|\([^;)]*\))?\s*;?\s*$/i;
const MOST_CHARACTERS = 200;
/** SQLite answers these settings, when set, with the new value. */
const ANSWERED: ReadonlySet<string> = new Set(
  'busy_timeout journal_size_limit mmap_size threads wal_autocheckpoint'.split(' '),
);

/**
 * SQL that answers such a statement as SQLite would, with the values in force here; other statements are
 * unchanged. The path of the file stays hidden.
 */
export function harmless(sql: string): string {
  if (sql.length > MOST_CHARACTERS) return sql;
  const name = ASKED.exec(sql)?.[1]?.toLowerCase();
  if (name === undefined) return sql;
  if (name === 'database_list') return "SELECT 0 AS seq, 'main' AS name, '' AS file";
  return ANSWERED.has(name) ? `PRAGMA ${name}` : sql;
}

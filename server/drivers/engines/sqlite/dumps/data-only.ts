/** Whether SQL text has rows alone, as `sqlite3 shop.db ".dump --data-only"` writes it. */

/** Comments, and statements before the first of the content. */
const BEFORE = /\ufeff|\s+|;|--[^\n]*(?:\n|$)|\/\*[\s\S]*?\*\/|(?:PRAGMA|BEGIN|SAVEPOINT)\b[^;]*;/iy;
/** `.dump` writes virtual tables into the schema itself. */
const DATA =
  /(?:(?:INSERT|REPLACE)\s+(?:OR\s+\w+\s+)?INTO|DELETE\s+FROM)\s+(?!["'\x60[]?sqlite_(?:schema|master))/iy;

/** `start`: the beginning of the text. */
export function isDataOnly(start: string): boolean {
  let at = 0;
  for (;;) {
    BEFORE.lastIndex = at;
    if (!BEFORE.test(start)) break;
    at = BEFORE.lastIndex;
  }
  DATA.lastIndex = at;
  return DATA.test(start);
}

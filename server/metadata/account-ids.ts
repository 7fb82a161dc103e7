/** Account ids are never reused, not even those of accounts lost in a restore. */
import type { Statement } from './metadata.ts';

const SETTING = 'last_account_id';
/** Ids of accounts, and the last skipped id. */
const USED = `(SELECT id FROM accounts UNION ALL SELECT CAST(value AS BIGINT) FROM settings WHERE name = '${SETTING}')`;

/** Query of `id`: the highest id that must not be reused; 0 if there is none. */
export const LAST_ACCOUNT_ID = `SELECT coalesce(max(id), 0) AS id FROM ${USED} AS used`;

/** Skips ids up to `last`. */
export function skipAccountIds(last: number): Statement {
  return {
    sql: `INSERT INTO settings (name, value) VALUES ('${SETTING}', ?) ON CONFLICT (name)
          DO UPDATE SET value = excluded.value
          WHERE CAST(settings.value AS BIGINT) < CAST(excluded.value AS BIGINT)`,
    params: [String(last)],
  };
}

/** Skips `count` ids after the last. */
export function skipNextAccountIds(count: number): Statement {
  return {
    sql: `INSERT INTO settings (name, value)
          SELECT '${SETTING}', CAST(coalesce(max(id), 0) + ${count} AS TEXT) FROM ${USED} AS used
          WHERE true ON CONFLICT (name) DO UPDATE SET value = excluded.value`,
    params: [],
  };
}

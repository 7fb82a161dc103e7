/** Hrana, the protocol of libSQL's drivers, for one SQLite file. See README.md. */

export type { Piece } from './format.ts';
export { HRANA_LIMITS, type HranaLimits, HranaSessions } from './sessions.ts';
export { endsStatement, readSql } from './sql.ts';

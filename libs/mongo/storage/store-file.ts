/** Connections to the file of a database. */
import { DatabaseSync } from 'node:sqlite';

/** 2: each document has a checksum; null if it was written by format 1 and not since. */
const FORMAT = 2;
/** Bytes of the log kept after a checkpoint. */
const LOG_KEPT_BYTES = 8 * 2 ** 20;
/** Maximum pages kept in memory, KiB; the cache fills with use. */
const CACHE_KIB = 8192;
const TRANSACTION_CACHE_KIB = 2048;

/** The first connection, which creates the tables. Throws if the file has a newer format. */
export function openStoreFile(file: string): DatabaseSync {
  const database = connect(file, CACHE_KIB);
  const { user_version: format } = database.prepare('PRAGMA user_version').get() as {
    user_version: number;
  };
  if (format > FORMAT) throw new Error(`the file was written by a newer Cloudlet (format ${format})`);
  database.exec(`PRAGMA auto_vacuum = INCREMENTAL; PRAGMA journal_mode = WAL;
    PRAGMA journal_size_limit = ${LOG_KEPT_BYTES};
    CREATE TABLE IF NOT EXISTS collections (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE,
      uuid BLOB NOT NULL, options BLOB NOT NULL, documents INTEGER NOT NULL, bytes INTEGER NOT NULL) STRICT;
    CREATE TABLE IF NOT EXISTS indexes (id INTEGER PRIMARY KEY, collection INTEGER NOT NULL,
      spec BLOB NOT NULL, multikey INTEGER NOT NULL) STRICT;
    ${format === 1 ? addChecksums(database) : ''}
    PRAGMA user_version = ${FORMAT};`);
  return database;
}

/** An additional connection for a transaction. */
export function openForTransaction(file: string): DatabaseSync {
  return connect(file, TRANSACTION_CACHE_KIB);
}

function connect(file: string, cacheKib: number): DatabaseSync {
  const database = new DatabaseSync(file, { timeout: 0, allowExtension: false, defensive: true });
  database.exec(`PRAGMA trusted_schema = OFF; PRAGMA cell_size_check = ON; PRAGMA mmap_size = 0;
    PRAGMA synchronous = NORMAL; PRAGMA temp_store = MEMORY; PRAGMA cache_size = -${cacheKib};`);
  return database;
}

function addChecksums(database: DatabaseSync): string {
  const tables = database.prepare('SELECT id FROM collections').all();
  return `BEGIN; ${tables.map(({ id }) => `ALTER TABLE c${id} ADD COLUMN s INTEGER;`).join(' ')} COMMIT;`;
}

/** Maximum remembered commits, so that a repeated one gets the same reply. */
const KEPT_COMMITS = 1000;

/** Records a commit, in the same transaction. `at`: ms. */
export function noteCommit(
  database: DatabaseSync,
  { session, number, at }: { session: string; number: bigint; at: number },
): void {
  database.exec(`CREATE TABLE IF NOT EXISTS committed (id INTEGER PRIMARY KEY, session TEXT NOT NULL UNIQUE,
    number INTEGER NOT NULL, at INTEGER NOT NULL) STRICT`);
  database
    .prepare('INSERT OR REPLACE INTO committed(session, number, at) VALUES (?, ?, ?)')
    .run(session, number, at);
  database.exec(`DELETE FROM committed WHERE id <= (SELECT max(id) FROM committed) - ${KEPT_COMMITS}`);
}

export function wasCommitted(database: DatabaseSync, session: string, number: bigint): boolean {
  const isThere = database.prepare("SELECT 1 FROM sqlite_schema WHERE name = 'committed'").get();
  if (isThere === undefined) return false;
  const sql = 'SELECT 1 FROM committed WHERE session = ? AND number = ?';
  return database.prepare(sql).get(session, number) !== undefined;
}

/** Statements that test the SQL engines against their originals. */

export interface Probe {
  readonly what: string;
  /** Run one after the other; the last one decides. */
  readonly statements: readonly string[];
  /** Whether the original accepts it, by its manual. */
  readonly original: boolean;
  /** The first value of the first row must match this; without it, the statement must be accepted. */
  readonly wants?: RegExp;
  /** Run afterwards: it must be refused. */
  readonly refused?: string;
}

const probe = (what: string, original: boolean, ...statements: readonly string[]): Probe => ({
  what,
  original,
  statements,
});
const value = (what: string, wants: RegExp, ...statements: readonly string[]): Probe => ({
  ...probe(what, true, ...statements),
  wants,
});

/** Each probe has a table `t (id, a, j, s)` with one row; created objects are named `made`. */
export const MYSQL: readonly Probe[] = [
  value(
    'column type `JSON` of its own',
    /json/i,
    "SELECT data_type FROM information_schema.columns WHERE table_name = 't' AND column_name = 'j'",
  ),
  probe("`j->'$.a'`, `j->>'$.a'`", true, "SELECT j->'$.a', j->>'$.a' FROM t"),
  probe(
    '`JSON_EXTRACT`, `JSON_SET`, `JSON_MERGE_PATCH`',
    true,
    "SELECT JSON_MERGE_PATCH(JSON_SET(j, '$.b', JSON_EXTRACT(j, '$.a')), '{}') FROM t",
  ),
  probe('`JSON_TABLE`', true, "SELECT x.a FROM t, JSON_TABLE(j, '$' COLUMNS (a INT PATH '$.a')) x"),
  probe('`JSON_ARRAYAGG`, `JSON_OBJECTAGG`', true, 'SELECT JSON_ARRAYAGG(a), JSON_OBJECTAGG(id, a) FROM t'),
  probe('`JSON_OVERLAPS`', true, "SELECT JSON_OVERLAPS('[1]', '[1]')"),
  probe('`MEMBER OF`', true, "SELECT 1 MEMBER OF ('[1]')"),
  probe('`JSON_SCHEMA_VALID`', true, "SELECT JSON_SCHEMA_VALID('{}', '{}')"),
  probe('`JSON_STORAGE_SIZE`', true, 'SELECT JSON_STORAGE_SIZE(j) FROM t'),
  probe('functional indexes', true, 'CREATE INDEX made ON t ((a + 1))'),
  probe('multi-valued indexes', true, "CREATE INDEX made ON t ((CAST(j->'$.l' AS UNSIGNED ARRAY)))"),
  probe('descending indexes', true, 'CREATE INDEX made ON t (a DESC)'),
  probe('invisible indexes', true, 'CREATE INDEX made ON t (a) INVISIBLE'),
  probe(
    'generated columns',
    true,
    'CREATE TABLE made (a INT, b INT AS (a + 1) STORED, c INT AS (a + 2) VIRTUAL)',
  ),
  probe('invisible columns', true, 'CREATE TABLE made (a INT, b INT DEFAULT 1 INVISIBLE)'),
  probe(
    '`DEFAULT (expression)`',
    true,
    'CREATE TABLE made (a INT DEFAULT (1 + 1), b CHAR(36) DEFAULT (UUID()))',
  ),
  {
    ...probe('check constraints', true, 'CREATE TABLE made (a INT CHECK (a > 0))'),
    refused: 'INSERT INTO made VALUES (-1)',
  },
  probe('`CHECK … NOT ENFORCED`', true, 'CREATE TABLE made (a INT, CHECK (a > 0) NOT ENFORCED)'),
  probe('`LATERAL`', true, 'SELECT * FROM t, LATERAL (SELECT t.a + 1) AS x'),
  probe(
    '`WITH`, `WITH RECURSIVE … SELECT`',
    true,
    'WITH n AS (SELECT 1 AS i) SELECT * FROM n',
    'WITH RECURSIVE n AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM n WHERE i < 3) SELECT * FROM n',
  ),
  probe('`WITH … UPDATE`', true, 'WITH x AS (SELECT 1 AS id) UPDATE t, x SET t.a = 2 WHERE t.id = x.id'),
  probe('`WITH … DELETE`', true, 'WITH x AS (SELECT 9 AS id) DELETE FROM t WHERE id IN (SELECT id FROM x)'),
  probe(
    'window functions, named windows',
    true,
    'SELECT RANK() OVER w, LAG(a) OVER w FROM t WINDOW w AS (ORDER BY a)',
  ),
  probe('`GROUPING()` with `WITH ROLLUP`', true, 'SELECT a, GROUPING(a) FROM t GROUP BY a WITH ROLLUP'),
  probe('`ANY_VALUE`', true, 'SELECT ANY_VALUE(a) FROM t'),
  probe('`INTERSECT`, `EXCEPT`', true, 'SELECT 1 INTERSECT SELECT 1 EXCEPT SELECT 2'),
  probe('`VALUES ROW(…)`', true, 'VALUES ROW(1, 2), ROW(3, 4)'),
  probe('`TABLE t`', true, 'TABLE t'),
  probe(
    '`INSERT … AS new ON DUPLICATE KEY UPDATE a = new.a`',
    true,
    'INSERT INTO t (id, a) VALUES (1, 5) AS new ON DUPLICATE KEY UPDATE a = new.a',
  ),
  probe(
    '`ON DUPLICATE KEY UPDATE a = VALUES(a)`',
    true,
    'INSERT INTO t (id, a) VALUES (1, 5) ON DUPLICATE KEY UPDATE a = VALUES(a)',
  ),
  probe(
    '`FOR UPDATE SKIP LOCKED`, `NOWAIT`',
    true,
    'SELECT * FROM t FOR UPDATE SKIP LOCKED',
    'SELECT * FROM t FOR UPDATE NOWAIT',
  ),
  probe('`FOR SHARE`', true, 'SELECT * FROM t FOR SHARE'),
  probe('`FOR UPDATE OF t`', true, 'SELECT * FROM t FOR UPDATE OF t'),
  value(
    'optimizer hints change something',
    /^262144$/,
    'SELECT /*+ SET_VAR(sort_buffer_size = 262144) */ @@sort_buffer_size',
  ),
  probe(
    '`USE INDEX`, `FORCE INDEX`',
    true,
    'SELECT * FROM t USE INDEX (PRIMARY)',
    'SELECT * FROM t FORCE INDEX (PRIMARY)',
  ),
  probe('`EXPLAIN ANALYZE`', true, 'EXPLAIN ANALYZE SELECT * FROM t'),
  probe('`EXPLAIN FORMAT=TREE`', true, 'EXPLAIN FORMAT=TREE SELECT * FROM t'),
  probe('`EXPLAIN FORMAT=JSON`', true, 'EXPLAIN FORMAT=JSON SELECT * FROM t'),
  probe('`REGEXP_LIKE`', true, "SELECT REGEXP_LIKE('a', 'a')"),
  probe(
    '`REGEXP_REPLACE`, `REGEXP_SUBSTR`',
    true,
    "SELECT REGEXP_REPLACE('a', 'a', 'b'), REGEXP_SUBSTR('a', 'a')",
  ),
  probe('`UUID_TO_BIN`, `BIN_TO_UUID`', true, 'SELECT BIN_TO_UUID(UUID_TO_BIN(UUID()))'),
  probe('collation `utf8mb4_0900_ai_ci`', true, "SELECT 'a' COLLATE utf8mb4_0900_ai_ci"),
  probe(
    '`ALTER TABLE … RENAME COLUMN`',
    true,
    'CREATE TABLE made (a INT)',
    'ALTER TABLE made RENAME COLUMN a TO b',
  ),
  probe(
    '`ALGORITHM=INSTANT`',
    true,
    'CREATE TABLE made (a INT)',
    'ALTER TABLE made ADD COLUMN b INT, ALGORITHM=INSTANT',
  ),
  probe(
    'full-text indexes',
    true,
    'CREATE FULLTEXT INDEX made ON t (s)',
    "SELECT MATCH (s) AGAINST ('a' IN BOOLEAN MODE) FROM t",
  ),
  probe('spatial indexes', true, 'CREATE TABLE made (p POINT NOT NULL, SPATIAL INDEX (p))'),
  probe('`SRID` of a column', true, 'CREATE TABLE made (p POINT NOT NULL SRID 4326)'),
  probe(
    '`ST_Distance_Sphere`, `ST_AsGeoJSON`',
    true,
    'SELECT ST_AsGeoJSON(POINT(1, 2)), ST_Distance_Sphere(POINT(1, 2), POINT(2, 3))',
  ),
  probe('partitions', true, 'CREATE TABLE made (a INT) PARTITION BY HASH (a) PARTITIONS 2'),
  probe('views', true, 'CREATE VIEW made AS SELECT * FROM t'),
  probe('triggers', true, 'CREATE TRIGGER made BEFORE INSERT ON t FOR EACH ROW SET NEW.a = 1'),
  probe(
    'procedures and functions',
    true,
    'CREATE FUNCTION made () RETURNS INT DETERMINISTIC RETURN 1',
    'CREATE PROCEDURE made () SELECT made()',
    'CALL made()',
  ),
  probe('events', true, 'CREATE EVENT made ON SCHEDULE EVERY 1 DAY DO SET @a = 1'),
  probe('another database, named `test_…`', true, 'CREATE DATABASE test_made'),
  probe('another database, of any name', true, 'CREATE DATABASE made'),
  probe('users', true, "CREATE USER made IDENTIFIED BY 'a long password'"),
  probe('`SET PERSIST`', true, 'SET PERSIST sort_buffer_size = 262144'),
  probe('`SET GLOBAL`', true, 'SET GLOBAL sort_buffer_size = 262144'),
  probe('`XA` transactions', true, "XA START 'made'", "XA END 'made'", "XA ROLLBACK 'made'"),
  probe('`INSERT … RETURNING`', false, 'INSERT INTO t (id, a) VALUES (7, 7) RETURNING id'),
  probe('`DELETE … RETURNING`', false, 'DELETE FROM t WHERE id = 7 RETURNING id'),
  probe('sequences', false, 'CREATE SEQUENCE made'),
  probe('system-versioned tables', false, 'CREATE TABLE made (a INT) WITH SYSTEM VERSIONING'),
  probe('`CREATE OR REPLACE TABLE`', false, 'CREATE OR REPLACE TABLE made (a INT)'),
  probe('column types `UUID`, `INET6`', false, 'CREATE TABLE made (a UUID, b INET6)'),
];

export const POSTGRESQL: readonly Probe[] = [
  probe('another database', true, 'CREATE DATABASE made'),
  probe('another schema', true, 'CREATE SCHEMA made'),
  probe('roles', true, 'CREATE ROLE made'),
  probe('extensions of the list below', true, 'CREATE EXTENSION IF NOT EXISTS pg_trgm'),
  probe(
    'functions in SQL and PL/pgSQL',
    true,
    "CREATE FUNCTION made () RETURNS int LANGUAGE sql AS 'SELECT 1'",
    "CREATE OR REPLACE FUNCTION made () RETURNS int LANGUAGE plpgsql AS 'BEGIN RETURN 1; END'",
  ),
  probe(
    'triggers, rules',
    true,
    "CREATE FUNCTION made () RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END'",
    'CREATE TRIGGER made BEFORE INSERT ON t FOR EACH ROW EXECUTE FUNCTION made()',
    'DROP TRIGGER made ON t',
    'CREATE RULE made AS ON DELETE TO t DO INSTEAD NOTHING',
    'DROP RULE made ON t',
  ),
  probe(
    'views, materialized views',
    true,
    'CREATE MATERIALIZED VIEW made AS SELECT 1',
    'DROP MATERIALIZED VIEW made',
    'CREATE VIEW made AS SELECT 1',
    'DROP VIEW made',
  ),
  probe(
    'event triggers',
    true,
    "CREATE FUNCTION made () RETURNS event_trigger LANGUAGE plpgsql AS 'BEGIN END'",
    'CREATE EVENT TRIGGER made ON ddl_command_end EXECUTE FUNCTION made()',
  ),
  probe(
    'row-level security',
    true,
    'CREATE TABLE made (a int)',
    'ALTER TABLE made ENABLE ROW LEVEL SECURITY',
    'CREATE POLICY made ON made USING (a > 0)',
  ),
  probe(
    'unlogged and temporary tables',
    true,
    'CREATE TEMPORARY TABLE made (a int)',
    'DROP TABLE made',
    'CREATE UNLOGGED TABLE made (a int)',
  ),
  probe('tablespaces', true, "CREATE TABLESPACE made LOCATION '/tmp'"),
  probe('large objects', true, 'SELECT lo_create(0)'),
  probe('`LISTEN`, `NOTIFY`', true, 'LISTEN made', 'NOTIFY made'),
  probe('advisory locks', true, 'SELECT pg_advisory_lock(1)'),
  probe('prepared transactions', true, 'BEGIN', "PREPARE TRANSACTION 'made'"),
  probe('publications', true, 'CREATE PUBLICATION made FOR TABLE t'),
  probe('logical replication slots', true, "SELECT pg_create_logical_replication_slot('made', 'pgoutput')"),
  probe('`COPY … FROM PROGRAM`', true, "COPY t FROM PROGRAM 'true'"),
  probe('`COPY … TO` a file', true, "COPY t TO '/tmp/made'"),
  probe('`ALTER SYSTEM`', true, "ALTER SYSTEM SET work_mem = '5MB'"),
  probe('`ALTER ROLE CURRENT_USER SET`', true, "ALTER ROLE CURRENT_USER SET work_mem = '5MB'"),
  probe(
    '`VACUUM`, `ANALYZE`, `REINDEX`, `CLUSTER`',
    true,
    'VACUUM ANALYZE t',
    'REINDEX TABLE t',
    'CLUSTER t USING t_pkey',
  ),
  probe(
    '`pg_stat_activity`, `pg_cancel_backend` of own sessions',
    true,
    'SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE usename = session_user AND pid <> pg_backend_pid()',
  ),
  probe(
    '`pg_stat_statements`',
    true,
    'CREATE EXTENSION pg_stat_statements',
    'SELECT query FROM pg_stat_statements',
  ),
];

/** The original is libSQL, the library. */
export const LIBSQL: readonly Probe[] = [
  probe('`STRICT` tables, generated columns', true, 'CREATE TABLE made (a INT, b INT AS (a + 1)) STRICT'),
  probe(
    '`RETURNING`, upserts',
    true,
    'INSERT INTO t (id, a) VALUES (1, 2) ON CONFLICT (id) DO UPDATE SET a = 2 RETURNING a',
  ),
  probe(
    '`WITH RECURSIVE`, window functions',
    true,
    'WITH RECURSIVE n AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM n WHERE i < 3) SELECT i, ROW_NUMBER() OVER () FROM n',
  ),
  probe(
    'JSON and JSONB functions',
    true,
    `SELECT json_extract('{"a":1}', '$.a'), jsonb_extract('{"a":1}', '$.a')`,
  ),
  probe('mathematical functions', true, 'SELECT sqrt(4), log(8)'),
  probe('full-text search (FTS5)', true, 'CREATE VIRTUAL TABLE made USING fts5(a)'),
  probe('R*Tree', true, 'CREATE VIRTUAL TABLE made USING rtree(id, x1, x2)'),
  probe('temporary tables', true, 'CREATE TEMP TABLE made (a)'),
  probe(
    'views, triggers',
    true,
    'CREATE VIEW made AS SELECT * FROM t',
    'DROP VIEW made',
    'CREATE TRIGGER made AFTER INSERT ON t BEGIN SELECT 1; END',
  ),
  probe('savepoints', true, 'SAVEPOINT made'),
  probe(
    '`PRAGMA foreign_keys`, `table_info`, `index_list`',
    true,
    'PRAGMA foreign_keys = ON',
    'PRAGMA index_list(t)',
    'PRAGMA table_info(t)',
  ),
  probe('`PRAGMA user_version = 1`', true, 'PRAGMA user_version = 1'),
  probe('`PRAGMA journal_mode = DELETE`', true, 'PRAGMA journal_mode = DELETE'),
  probe('`VACUUM`', true, 'VACUUM'),
  probe('`ATTACH`', true, "ATTACH ':memory:' AS made"),
  probe('`load_extension`', true, "SELECT load_extension('x')"),
  probe(
    'vectors: `vector32`, `vector_distance_cos`',
    true,
    "SELECT vector_distance_cos(vector32('[1,2]'), vector32('[2,1]'))",
  ),
  probe(
    'vector indexes: `libsql_vector_idx`',
    true,
    'CREATE TABLE made (v F32_BLOB(2))',
    'CREATE INDEX made_v ON made (libsql_vector_idx(v))',
  ),
  probe(
    '`ALTER TABLE … ALTER COLUMN`',
    true,
    'CREATE TABLE made (a INT)',
    'ALTER TABLE made ALTER COLUMN a TO a INT NOT NULL',
  ),
  probe('`RANDOM ROWID`', true, 'CREATE TABLE made (a INT) RANDOM ROWID'),
];

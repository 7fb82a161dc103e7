-- Queries that accounts keep with a database, by name.

CREATE SEQUENCE saved_queries_id_seq INCREMENT 64;
CREATE TABLE saved_queries (
  id BIGINT PRIMARY KEY DEFAULT nextval('saved_queries_id_seq'),
  saved_query_id TEXT COLLATE "C" NOT NULL UNIQUE,
  database_id BIGINT NOT NULL REFERENCES databases(id) ON DELETE CASCADE,
  name TEXT COLLATE "C" NOT NULL,
  text TEXT COLLATE "C" NOT NULL,         -- statements, or a command as JSON
  updated_at BIGINT NOT NULL,
  UNIQUE (database_id, name)
);

-- Queries that accounts keep with a database, by name.

CREATE TABLE saved_queries (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  saved_query_id TEXT NOT NULL UNIQUE,
  database_id INTEGER NOT NULL REFERENCES databases(id) ON DELETE CASCADE,
  name TEXT NOT NULL,
  text TEXT NOT NULL,                     -- statements, or a command as JSON
  updated_at INTEGER NOT NULL,
  UNIQUE (database_id, name)
) STRICT;

-- Nodes that share the database know of each other's calls by rows: where an operation runs, how far it is and
-- whether it is to end; and log-ins of programs, which another node may approve or fetch.

ALTER TABLE operations ADD COLUMN node TEXT NOT NULL DEFAULT '';            -- that runs it; '': the only one
ALTER TABLE operations ADD COLUMN is_cancellable INTEGER NOT NULL DEFAULT 0 CHECK (is_cancellable IN (0, 1));
ALTER TABLE operations ADD COLUMN cancel_asked INTEGER NOT NULL DEFAULT 0 CHECK (cancel_asked IN (0, 1));
ALTER TABLE operations ADD COLUMN progress TEXT;                            -- JSON; of several nodes only
CREATE INDEX operations_to_cancel ON operations(node) WHERE cancel_asked = 1 AND ended_at IS NULL;

CREATE TABLE short_tokens (
  id INTEGER PRIMARY KEY,
  kind TEXT NOT NULL,                     -- 'device' or 'code': log-ins; 'ticket': a used one
  hash TEXT NOT NULL,                     -- of the secret
  other_hash TEXT UNIQUE,                 -- of a second secret: the code that a user types
  owner TEXT NOT NULL,                    -- whose number is limited: an account, or where the request came from
  content TEXT NOT NULL,                  -- JSON
  created_at INTEGER NOT NULL,
  ends_at INTEGER NOT NULL,
  UNIQUE (kind, hash)
) STRICT;
CREATE INDEX short_tokens_owner ON short_tokens(kind, owner, created_at);
CREATE INDEX short_tokens_ends ON short_tokens(ends_at);

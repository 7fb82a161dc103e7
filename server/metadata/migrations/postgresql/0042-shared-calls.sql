-- Nodes that share the database know of each other's calls by rows: where an operation runs, how far it is and
-- whether it is to end; and log-ins of programs, which another node may approve or fetch.

ALTER TABLE operations ADD COLUMN node TEXT COLLATE "C" NOT NULL DEFAULT ''; -- that runs it; '': the only one
ALTER TABLE operations ADD COLUMN is_cancellable BIGINT NOT NULL DEFAULT 0 CHECK (is_cancellable IN (0, 1));
ALTER TABLE operations ADD COLUMN cancel_asked BIGINT NOT NULL DEFAULT 0 CHECK (cancel_asked IN (0, 1));
ALTER TABLE operations ADD COLUMN progress TEXT COLLATE "C";                 -- JSON; of several nodes only
CREATE INDEX operations_to_cancel ON operations(node) WHERE cancel_asked = 1 AND ended_at IS NULL;

CREATE SEQUENCE short_tokens_id_seq INCREMENT 64;
CREATE TABLE short_tokens (
  id BIGINT PRIMARY KEY DEFAULT nextval('short_tokens_id_seq'),
  kind TEXT COLLATE "C" NOT NULL,         -- 'device' or 'code': log-ins; 'ticket': a used one
  hash TEXT COLLATE "C" NOT NULL,         -- of the secret
  other_hash TEXT COLLATE "C" UNIQUE,     -- of a second secret: the code that a user types
  owner TEXT COLLATE "C" NOT NULL,        -- whose number is limited: an account, or where the request came from
  content TEXT COLLATE "C" NOT NULL,      -- JSON
  created_at BIGINT NOT NULL,
  ends_at BIGINT NOT NULL,
  UNIQUE (kind, hash)
);
CREATE INDEX short_tokens_owner ON short_tokens(kind, owner, created_at);
CREATE INDEX short_tokens_ends ON short_tokens(ends_at);

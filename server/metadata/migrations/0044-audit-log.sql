-- Who did what: one row for each call that changes, shows a secret or signs in, written in the commit of its effect.
-- Ranges of rows are sealed later, each with the hash of the one before (decision 0044).

CREATE TABLE audit_rows (
  id INTEGER PRIMARY KEY,
  at INTEGER NOT NULL,
  account_id INTEGER NOT NULL,            -- whose things; no reference: rows outlive accounts; 0: the cloud's
  actor_id INTEGER NOT NULL,              -- the account that acted; 0: the operator, or nobody known
  actor TEXT NOT NULL,                    -- its name then
  via TEXT NOT NULL,
  credential TEXT NOT NULL,               -- id of the access key, or empty
  address TEXT NOT NULL,
  agent TEXT NOT NULL,
  action TEXT NOT NULL,                   -- id of the operation
  target TEXT NOT NULL,
  outcome TEXT NOT NULL CHECK (outcome IN ('done', 'refused', 'failed')),
  status INTEGER NOT NULL,
  code TEXT NOT NULL,                     -- of the error, or empty
  request_id TEXT NOT NULL,
  detail TEXT NOT NULL,                   -- JSON, or empty
  times INTEGER NOT NULL,                 -- calls that this row stands for
  seal INTEGER NOT NULL DEFAULT 0         -- number of its range; 0: none yet
) STRICT;
CREATE INDEX audit_rows_account ON audit_rows(account_id, id);
CREATE INDEX audit_rows_seal ON audit_rows(seal, id);

CREATE TABLE audit_seals (
  id INTEGER PRIMARY KEY,
  first_at INTEGER NOT NULL,
  last_at INTEGER NOT NULL,
  rows INTEGER NOT NULL,
  bytes INTEGER NOT NULL,
  digest TEXT NOT NULL,                   -- SHA-256 of the rows
  head TEXT NOT NULL,                     -- SHA-256 of the head before and of this range
  sealed_at INTEGER NOT NULL,
  removed_at INTEGER                      -- when its rows became too old
) STRICT;

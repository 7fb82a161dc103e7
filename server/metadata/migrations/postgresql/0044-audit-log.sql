-- Who did what: one row for each call that changes, shows a secret or signs in, written in the commit of its effect.
-- Ranges of rows are sealed later, each with the hash of the one before (decision 0044).

CREATE SEQUENCE audit_rows_id_seq INCREMENT 64;
CREATE TABLE audit_rows (
  id BIGINT PRIMARY KEY DEFAULT nextval('audit_rows_id_seq'),
  at BIGINT NOT NULL,
  account_id BIGINT NOT NULL,            -- whose things; no reference: rows outlive accounts; 0: the cloud's
  actor_id BIGINT NOT NULL,              -- the account that acted; 0: the operator, or nobody known
  actor TEXT COLLATE "C" NOT NULL,                    -- its name then
  via TEXT COLLATE "C" NOT NULL,
  credential TEXT COLLATE "C" NOT NULL,               -- id of the access key, or empty
  address TEXT COLLATE "C" NOT NULL,
  agent TEXT COLLATE "C" NOT NULL,
  action TEXT COLLATE "C" NOT NULL,                   -- id of the operation
  target TEXT COLLATE "C" NOT NULL,
  outcome TEXT COLLATE "C" NOT NULL CHECK (outcome IN ('done', 'refused', 'failed')),
  status BIGINT NOT NULL,
  code TEXT COLLATE "C" NOT NULL,                     -- of the error, or empty
  request_id TEXT COLLATE "C" NOT NULL,
  detail TEXT COLLATE "C" NOT NULL,                   -- JSON, or empty
  times BIGINT NOT NULL,                 -- calls that this row stands for
  seal BIGINT NOT NULL DEFAULT 0         -- number of its range; 0: none yet
);
CREATE INDEX audit_rows_account ON audit_rows(account_id, id);
CREATE INDEX audit_rows_seal ON audit_rows(seal, id);

CREATE TABLE audit_seals (
  id BIGINT PRIMARY KEY,
  first_at BIGINT NOT NULL,
  last_at BIGINT NOT NULL,
  rows BIGINT NOT NULL,
  bytes BIGINT NOT NULL,
  digest TEXT COLLATE "C" NOT NULL,                   -- SHA-256 of the rows
  head TEXT COLLATE "C" NOT NULL,                     -- SHA-256 of the head before and of this range
  sealed_at BIGINT NOT NULL,
  removed_at BIGINT                      -- when its rows became too old
);

-- Accounts of recovery points that were restored as new ones, and what of theirs is there again.

CREATE TABLE restored_things (
  account_id BIGINT NOT NULL REFERENCES accounts(id), -- the new one
  source TEXT NOT NULL,         -- 'account', or kind and id of the thing in the point
  point_id TEXT NOT NULL,
  made TEXT NOT NULL,           -- id of the new thing; of the account, that of the old one
  at BIGINT NOT NULL,
  PRIMARY KEY (account_id, source)
);

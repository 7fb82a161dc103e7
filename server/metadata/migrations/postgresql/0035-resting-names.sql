-- Names that were given up and rest for the account that had them, so that nobody else gets at once what is
-- sent to them.

CREATE TABLE resting_names (
  kind TEXT COLLATE "C" NOT NULL,         -- 'bucket': a name on the S3 door; 'host': the host name of a machine
  name TEXT COLLATE "C" NOT NULL,
  account_id BIGINT NOT NULL REFERENCES accounts(id),
  ends_at BIGINT NOT NULL,                -- ms since 1970
  PRIMARY KEY (kind, name)
);
CREATE INDEX resting_names_account ON resting_names(account_id, kind, ends_at);
CREATE INDEX resting_names_due ON resting_names(ends_at);

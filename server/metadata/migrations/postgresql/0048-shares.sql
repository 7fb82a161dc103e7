-- Links to files and folders that their owners see, limit and end.

CREATE SEQUENCE shares_id_seq INCREMENT 64;
CREATE TABLE shares (
  id BIGINT PRIMARY KEY DEFAULT nextval('shares_id_seq'),
  share_id TEXT COLLATE "C" NOT NULL UNIQUE,
  account_id BIGINT NOT NULL,            -- its owner; sets what each account may have
  bucket_id BIGINT NOT NULL REFERENCES buckets(id) ON DELETE CASCADE,
  name TEXT COLLATE "C" NOT NULL,                     -- of an object; ends with "/" or empty: all below
  key_id TEXT COLLATE "C",                            -- the access key that made it, with which it ends; null: the owner
  password_hash TEXT COLLATE "C",                     -- argon2id; null: none is asked for
  expires_at BIGINT,                     -- null: until it is ended
  max_downloads BIGINT,                  -- null: no limit
  downloads BIGINT NOT NULL DEFAULT 0,
  last_at BIGINT,                        -- of the last download
  created_at BIGINT NOT NULL
);
CREATE INDEX shares_account ON shares(account_id, id);
CREATE INDEX shares_bucket ON shares(bucket_id, id);
CREATE INDEX shares_end ON shares(expires_at) WHERE expires_at IS NOT NULL;

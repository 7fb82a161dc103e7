-- Links to files and folders that their owners see, limit and end.

CREATE TABLE shares (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  share_id TEXT NOT NULL UNIQUE,
  account_id INTEGER NOT NULL,            -- its owner; sets what each account may have
  bucket_id INTEGER NOT NULL REFERENCES buckets(id) ON DELETE CASCADE,
  name TEXT NOT NULL,                     -- of an object; ends with "/" or empty: all below
  key_id TEXT,                            -- the access key that made it, with which it ends; null: the owner
  password_hash TEXT,                     -- argon2id; null: none is asked for
  expires_at INTEGER,                     -- null: until it is ended
  max_downloads INTEGER,                  -- null: no limit
  downloads INTEGER NOT NULL DEFAULT 0,
  last_at INTEGER,                        -- of the last download
  created_at INTEGER NOT NULL
) STRICT;
CREATE INDEX shares_account ON shares(account_id, id);
CREATE INDEX shares_bucket ON shares(bucket_id, id);
CREATE INDEX shares_end ON shares(expires_at) WHERE expires_at IS NOT NULL;

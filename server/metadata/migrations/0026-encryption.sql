-- Keys of the client (SSE-C) and named keys of the account (SSE-KMS), which encrypt objects that S3 clients send.

CREATE TABLE encryption_keys (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  account_id INTEGER NOT NULL REFERENCES accounts(id),
  key_id TEXT NOT NULL COLLATE BINARY,    -- chosen by the account
  sealed BLOB NOT NULL,                   -- 32 bytes under the master key
  created_at INTEGER NOT NULL,
  UNIQUE (account_id, key_id)
) STRICT;

ALTER TABLE blobs ADD COLUMN customer BLOB;  -- salt, and salted HMAC, of the client's key; null: none
ALTER TABLE blobs ADD COLUMN named_key INTEGER REFERENCES encryption_keys(id);  -- it wraps the data key
CREATE INDEX blobs_customer ON blobs(id) WHERE customer IS NOT NULL;
CREATE INDEX blobs_named_key ON blobs(named_key) WHERE named_key IS NOT NULL;

ALTER TABLE uploads ADD COLUMN customer BLOB;
ALTER TABLE uploads ADD COLUMN named_key INTEGER REFERENCES encryption_keys(id);
CREATE INDEX uploads_named_key ON uploads(named_key) WHERE named_key IS NOT NULL;

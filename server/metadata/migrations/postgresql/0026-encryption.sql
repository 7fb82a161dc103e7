-- Keys of the client (SSE-C) and named keys of the account (SSE-KMS), which encrypt objects that S3 clients send.

CREATE SEQUENCE encryption_keys_id_seq INCREMENT 64;

CREATE TABLE encryption_keys (
  id BIGINT PRIMARY KEY DEFAULT nextval('encryption_keys_id_seq'),
  account_id BIGINT NOT NULL REFERENCES accounts(id),
  key_id TEXT NOT NULL COLLATE "C",       -- chosen by the account
  sealed BYTEA NOT NULL,                  -- 32 bytes under the master key
  created_at BIGINT NOT NULL,
  UNIQUE (account_id, key_id)
);

ALTER TABLE blobs ADD COLUMN customer BYTEA;  -- salt, and salted HMAC, of the client's key; null: none
ALTER TABLE blobs ADD COLUMN named_key BIGINT REFERENCES encryption_keys(id);  -- it wraps the data key
CREATE INDEX blobs_customer ON blobs(id) WHERE customer IS NOT NULL;
CREATE INDEX blobs_named_key ON blobs(named_key) WHERE named_key IS NOT NULL;

ALTER TABLE uploads ADD COLUMN customer BYTEA;
ALTER TABLE uploads ADD COLUMN named_key BIGINT REFERENCES encryption_keys(id);
CREATE INDEX uploads_named_key ON uploads(named_key) WHERE named_key IS NOT NULL;

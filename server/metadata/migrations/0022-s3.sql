-- Multipart uploads, null versions, and what S3 clients store with an object.

-- 1: made while versioning was off or suspended; S3 calls it the null version. An object has at most one.
ALTER TABLE versions ADD COLUMN is_null INTEGER NOT NULL DEFAULT 0;
ALTER TABLE versions ADD COLUMN headers TEXT;   -- JSON object of Cache-Control, Content-Encoding and so on
ALTER TABLE versions ADD COLUMN tags TEXT;      -- JSON object
ALTER TABLE versions ADD COLUMN checksum TEXT;  -- JSON: algorithm, type, value in base64
ALTER TABLE blobs ADD COLUMN upload INTEGER;    -- of uploads, whose parts are the bytes; null: they are its own

-- From now on: 0 never versioned, 1 versioned, 2 suspended.
UPDATE buckets SET versioning = 2 WHERE versioning = 0 AND (version_count <> object_count OR EXISTS
  (SELECT 1 FROM objects o WHERE o.bucket_id = buckets.id AND o.current IS NULL));
UPDATE versions SET is_null = 1 WHERE id IN
  (SELECT o.current FROM objects o JOIN buckets b ON b.id = o.bucket_id WHERE b.versioning <> 1);

CREATE TABLE uploads (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  upload_id TEXT NOT NULL UNIQUE,
  bucket_id INTEGER NOT NULL,             -- of buckets; it may be gone once the upload has ended
  account_id INTEGER NOT NULL REFERENCES accounts(id),
  name TEXT NOT NULL COLLATE BINARY,
  state INTEGER NOT NULL DEFAULT 0,       -- 0 open, 1 completed, 2 aborted: its parts are to be removed
  size_bytes INTEGER NOT NULL DEFAULT 0,  -- of all parts
  changes INTEGER NOT NULL DEFAULT 0,     -- of its parts
  encryption INTEGER NOT NULL,
  mime_type TEXT NOT NULL,
  metadata TEXT,
  headers TEXT,
  tags TEXT,
  checksum TEXT,                          -- JSON: algorithm, type
  created_at INTEGER NOT NULL,
  ended_at INTEGER,
  result TEXT                             -- JSON: what completing it gave
) STRICT;
CREATE INDEX uploads_open ON uploads(bucket_id, name, id) WHERE state = 0;
CREATE INDEX uploads_aborted ON uploads(id) WHERE state = 2;

CREATE TABLE upload_parts (
  upload INTEGER NOT NULL REFERENCES uploads(id),
  number INTEGER NOT NULL,
  blob INTEGER NOT NULL,                  -- of blobs, counted by its refs
  size_bytes INTEGER NOT NULL,
  etag TEXT NOT NULL,
  checksum TEXT,                          -- base64
  created_at INTEGER NOT NULL,
  PRIMARY KEY (upload, number)
) STRICT, WITHOUT ROWID;
CREATE INDEX upload_parts_blob ON upload_parts(blob);

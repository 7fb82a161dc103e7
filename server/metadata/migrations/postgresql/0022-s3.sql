-- Multipart uploads, null versions, and what S3 clients store with an object.

-- 1: made while versioning was off or suspended; S3 calls it the null version. An object has at most one.
ALTER TABLE versions ADD COLUMN is_null BIGINT NOT NULL DEFAULT 0;
ALTER TABLE versions ADD COLUMN headers TEXT COLLATE "C";   -- JSON object of Cache-Control, Content-Encoding and so on
ALTER TABLE versions ADD COLUMN tags TEXT COLLATE "C";      -- JSON object
ALTER TABLE versions ADD COLUMN checksum TEXT COLLATE "C";  -- JSON: algorithm, type, value in base64
ALTER TABLE blobs ADD COLUMN upload BIGINT;                 -- of uploads, whose parts are the bytes; null: they are its own

-- From now on: 0 never versioned, 1 versioned, 2 suspended.
UPDATE buckets SET versioning = 2 WHERE versioning = 0 AND (version_count <> object_count OR EXISTS
  (SELECT 1 FROM objects o WHERE o.bucket_id = buckets.id AND o.current IS NULL));
UPDATE versions SET is_null = 1 WHERE id IN
  (SELECT o.current FROM objects o JOIN buckets b ON b.id = o.bucket_id WHERE b.versioning <> 1);

CREATE SEQUENCE uploads_id_seq INCREMENT 64;

CREATE TABLE uploads (
  id BIGINT PRIMARY KEY DEFAULT nextval('uploads_id_seq'),
  upload_id TEXT COLLATE "C" NOT NULL UNIQUE,
  bucket_id BIGINT NOT NULL,             -- of buckets; it may be gone once the upload has ended
  account_id BIGINT NOT NULL REFERENCES accounts(id),
  name TEXT COLLATE "C" NOT NULL,
  state BIGINT NOT NULL DEFAULT 0,       -- 0 open, 1 completed, 2 aborted: its parts are to be removed
  size_bytes BIGINT NOT NULL DEFAULT 0,  -- of all parts
  changes BIGINT NOT NULL DEFAULT 0,     -- of its parts
  encryption BIGINT NOT NULL,
  mime_type TEXT COLLATE "C" NOT NULL,
  metadata TEXT COLLATE "C",
  headers TEXT COLLATE "C",
  tags TEXT COLLATE "C",
  checksum TEXT COLLATE "C",             -- JSON: algorithm, type
  created_at BIGINT NOT NULL,
  ended_at BIGINT,
  result TEXT COLLATE "C"                -- JSON: what completing it gave
);
CREATE INDEX uploads_open ON uploads(bucket_id, name, id) WHERE state = 0;
CREATE INDEX uploads_aborted ON uploads(id) WHERE state = 2;

CREATE TABLE upload_parts (
  upload BIGINT NOT NULL REFERENCES uploads(id),
  number BIGINT NOT NULL,
  blob BIGINT NOT NULL,                  -- of blobs, counted by its refs
  size_bytes BIGINT NOT NULL,
  etag TEXT COLLATE "C" NOT NULL,
  checksum TEXT COLLATE "C",             -- base64
  created_at BIGINT NOT NULL,
  PRIMARY KEY (upload, number)
);
CREATE INDEX upload_parts_blob ON upload_parts(blob);

-- What S3 clients set on a bucket: tags, CORS, lifecycle and so on, read with the bucket.

ALTER TABLE buckets ADD COLUMN settings TEXT COLLATE "C";  -- JSON object, by name of the setting; null: none

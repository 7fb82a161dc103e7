-- What S3's lists show of a live object beside its size and time, so that they need not read its version. It is
-- that of the version whose row id is `listed`: code that does not know these columns sets `current` alone.

ALTER TABLE objects ADD COLUMN listed INTEGER;
ALTER TABLE objects ADD COLUMN etag TEXT;
ALTER TABLE objects ADD COLUMN storage_class TEXT;
ALTER TABLE objects ADD COLUMN checksum_kind TEXT;   -- 'CRC32 FULL_OBJECT'; null: none

-- Checksums of what users gave with a bucket, as those of objects. Null: a row of an earlier version, until
-- the scrub has seen it.

ALTER TABLE buckets ADD COLUMN row_crc INTEGER;      -- CRC-32 of name, region and time
ALTER TABLE buckets ADD COLUMN settings_crc INTEGER; -- of versioning, encryption and settings
ALTER TABLE buckets ADD COLUMN damaged_at INTEGER;   -- set by the scrub
CREATE INDEX buckets_damaged ON buckets(id) WHERE damaged_at IS NOT NULL;

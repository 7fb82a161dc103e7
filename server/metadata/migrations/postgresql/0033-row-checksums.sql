-- Checksums of what users gave with an object, so that a flipped bit in a row is found. Null: a row of an
-- earlier version, until the scrub has seen it.

ALTER TABLE objects ADD COLUMN row_crc BIGINT;   -- CRC-32 of object_id and name
ALTER TABLE versions ADD COLUMN row_crc BIGINT;  -- of what never changes
ALTER TABLE versions ADD COLUMN tags_crc BIGINT;
ALTER TABLE versions ADD COLUMN acl_crc BIGINT;
ALTER TABLE versions ADD COLUMN lock_crc BIGINT;
ALTER TABLE versions ADD COLUMN damaged_at BIGINT; -- set by the scrub
CREATE INDEX versions_damaged ON versions(id) WHERE damaged_at IS NOT NULL;

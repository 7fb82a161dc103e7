-- What folders are sorted by, and names that can be restored, without a look at every version.

ALTER TABLE objects ADD COLUMN size_bytes INTEGER;  -- of the live version
ALTER TABLE objects ADD COLUMN changed_at INTEGER;  -- when that was made, or when the object was deleted
UPDATE objects SET (size_bytes, changed_at) =
  (SELECT v.size_bytes, v.created_at FROM versions v WHERE v.id = objects.current) WHERE current IS NOT NULL;
UPDATE objects SET changed_at = (SELECT max(v.created_at) FROM versions v WHERE v.object = objects.id)
  WHERE current IS NULL;
CREATE INDEX objects_size ON objects(bucket_id, size_bytes) WHERE current IS NOT NULL;
CREATE INDEX objects_changed ON objects(bucket_id, changed_at) WHERE current IS NOT NULL;
CREATE INDEX objects_deleted ON objects(bucket_id, name) WHERE current IS NULL AND changed_at IS NOT NULL;

-- Names and sizes of live objects are read from the index alone: SQLite takes no row's `current` for granted.

DROP INDEX objects_live;
CREATE INDEX objects_live ON objects(bucket_id, name, size_bytes, current) WHERE current IS NOT NULL;

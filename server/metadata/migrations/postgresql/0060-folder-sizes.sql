-- Names and sizes of live objects are read from the index alone.

DROP INDEX objects_live;
CREATE INDEX objects_live ON objects(bucket_id, name) INCLUDE (size_bytes) WHERE current IS NOT NULL;

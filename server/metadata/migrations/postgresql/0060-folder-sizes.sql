-- Names and sizes of live objects are read from the index alone. The old index goes last: its end alone
-- keeps other nodes from reading the table.

CREATE INDEX objects_live_sizes ON objects(bucket_id, name) INCLUDE (size_bytes) WHERE current IS NOT NULL;
DROP INDEX objects_live;
ALTER INDEX objects_live_sizes RENAME TO objects_live;

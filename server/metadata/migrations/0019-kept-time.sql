-- How long the last dump of a deleted database is kept: counted, so that no jump of the clock ends it.

ALTER TABLE databases ADD COLUMN keep_left_ms INTEGER;  -- in deleting: while Cloudlet runs; null: nothing is kept
UPDATE databases SET keep_left_ms = max(0, deletes_at - unixepoch() * 1000)
  WHERE state = 'deleting' AND deletes_at IS NOT NULL;

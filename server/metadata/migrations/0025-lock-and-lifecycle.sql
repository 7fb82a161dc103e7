-- Versions that nobody may remove before a date or while a legal hold is on them, and rules that remove
-- objects by themselves.
ALTER TABLE versions ADD COLUMN lock_mode TEXT;        -- GOVERNANCE, COMPLIANCE; null: no retention
ALTER TABLE versions ADD COLUMN retain_until INTEGER;  -- ms since 1970, as the client said
ALTER TABLE versions ADD COLUMN locked_until INTEGER;  -- the same in steady time
ALTER TABLE versions ADD COLUMN legal_hold INTEGER;    -- 1 on, 0 off; null: never set
ALTER TABLE uploads ADD COLUMN lock TEXT;              -- JSON: the lock that the object is to have

-- Rules that remove objects by themselves are run over a whole bucket, a part at a time.
ALTER TABLE buckets ADD COLUMN lifecycle_due INTEGER;  -- when they run next, ms; null: there are none
ALTER TABLE buckets ADD COLUMN lifecycle_cursor TEXT;  -- JSON: where the run that has begun goes on; null: at the start
CREATE INDEX buckets_lifecycle ON buckets(lifecycle_due) WHERE lifecycle_due IS NOT NULL;

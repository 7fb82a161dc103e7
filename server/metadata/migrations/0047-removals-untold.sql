-- Removals by rules that no event has told of yet: counted in the commit that removes, so that a kill loses none.

ALTER TABLE buckets ADD COLUMN lifecycle_removed INTEGER NOT NULL DEFAULT 0;

-- What verification finds wrong with a recovery point; and how a deleted one is had back.

ALTER TABLE recovery_points ADD COLUMN damage TEXT NOT NULL DEFAULT '[]'; -- JSON: the first of what is damaged
ALTER TABLE recovery_points ADD COLUMN damaged_files INTEGER NOT NULL DEFAULT 0; -- of the target: all of them
ALTER TABLE recovery_points ADD COLUMN state_before TEXT;                 -- in deleting: what undelete gives back
ALTER TABLE recovery_points ADD COLUMN grace_left_ms INTEGER;             -- in deleting: counted while Cloudlet runs

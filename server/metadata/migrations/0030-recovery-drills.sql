-- Restore drills of recovery points.

ALTER TABLE recovery_points ADD COLUMN drilled_at INTEGER; -- last drill that passed
ALTER TABLE recovery_points ADD COLUMN drill TEXT;         -- JSON: the last drill

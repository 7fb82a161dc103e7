-- Recovery points that the schedule made: only these are removed by its keep rules.

ALTER TABLE recovery_points ADD COLUMN scheduled_at INTEGER;  -- the time it was due, ms; null: made by hand

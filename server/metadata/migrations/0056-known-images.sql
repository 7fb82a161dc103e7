-- Images of the kept list: their name there, and how much of the source has been fetched.

ALTER TABLE images ADD COLUMN short_name TEXT;
ALTER TABLE images ADD COLUMN fetched_bytes INTEGER NOT NULL DEFAULT 0;
ALTER TABLE images ADD COLUMN total_bytes INTEGER;

-- Each version remembers its own last download: that of one says nothing of the others.

ALTER TABLE versions ADD COLUMN last_accessed INTEGER;
UPDATE versions SET last_accessed = o.last_accessed FROM objects o
WHERE o.current = versions.id AND o.last_accessed IS NOT NULL;
ALTER TABLE objects DROP COLUMN last_accessed;

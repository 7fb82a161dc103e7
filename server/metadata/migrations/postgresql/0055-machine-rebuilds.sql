-- How often the disk of a machine was replaced by a new one: the engine replaces one that is behind.

ALTER TABLE vms ADD COLUMN rebuilds BIGINT NOT NULL DEFAULT 0;

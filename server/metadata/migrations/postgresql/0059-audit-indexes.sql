-- Here ids are not in the order of commits, so each row is in the indexes from the beginning.

ALTER TABLE audit_seals ADD COLUMN last_id BIGINT NOT NULL DEFAULT 0;   -- rows up to it are sealed; 0: unknown
CREATE VIEW audit_order AS SELECT 0::bigint AS by_id;   -- whether ids are in the order of commits

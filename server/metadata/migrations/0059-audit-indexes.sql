-- Rows of the audit log are in its indexes only once they are sealed: each index is a page more to write in the
-- commit of the effect. Here ids are in the order of commits, so unsealed rows are those above the last sealed id.

ALTER TABLE audit_seals ADD COLUMN last_id INTEGER NOT NULL DEFAULT 0;  -- rows up to it are sealed; 0: unknown
UPDATE audit_seals SET last_id = COALESCE((SELECT max(id) FROM audit_rows WHERE seal = audit_seals.id), 0);
-- Rows that came from PostgreSQL may have ids below those of sealed ones.
UPDATE audit_seals SET last_id = 0 WHERE last_id >= (SELECT min(id) FROM audit_rows WHERE seal = 0);
CREATE VIEW audit_order AS SELECT 1 AS by_id;   -- whether ids are in the order of commits

DROP INDEX audit_rows_account;
DROP INDEX audit_rows_seal;
CREATE INDEX audit_rows_account ON audit_rows(account_id, id) WHERE seal > 0;
CREATE INDEX audit_rows_seal ON audit_rows(seal, id) WHERE seal > 0;

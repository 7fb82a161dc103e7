-- Webhooks that receive entries of the audit log: 1: of their account; 2: of all, while it is an administrator's.

ALTER TABLE webhooks ADD COLUMN hears_audit BIGINT NOT NULL DEFAULT 0 CHECK (hears_audit IN (0, 1, 2));
CREATE INDEX webhooks_audit ON webhooks(account_id) WHERE hears_audit > 0;

-- Accounts that read what administrators read, and change nothing.

ALTER TABLE accounts ADD COLUMN is_auditor INTEGER NOT NULL DEFAULT 0 CHECK (is_auditor IN (0, 1));

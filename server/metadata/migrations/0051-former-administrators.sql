-- Accounts that were an administrator's: no other administrator opens them by API, as when they were.

ALTER TABLE accounts ADD COLUMN was_admin INTEGER NOT NULL DEFAULT 0 CHECK (was_admin IN (0, 1));

-- When a session gave the password last, accounts that their owners have closed and can still open again,
-- and links that set a new password.

ALTER TABLE sessions ADD COLUMN password_at INTEGER NOT NULL DEFAULT 0;
UPDATE sessions SET password_at = created_at;

ALTER TABLE accounts ADD COLUMN removal_at INTEGER; -- null unless closed by the owner: removed from then on

ALTER TABLE setup_links ADD COLUMN account_id INTEGER REFERENCES accounts(id); -- whose password; null: the first administrator is made
CREATE INDEX accounts_removal_at ON accounts(removal_at) WHERE removal_at IS NOT NULL;

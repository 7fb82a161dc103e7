-- Mail that waits to be sent, and what became of it; addresses that their holders have confirmed; what an
-- account wants mail about; links that confirm an address.

CREATE TABLE mails (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  mail_id TEXT NOT NULL UNIQUE,
  account_id INTEGER NOT NULL,            -- whose mails wait for each other; no reference; 0: of no account
  kind TEXT NOT NULL,
  topic TEXT NOT NULL DEFAULT '',         -- code of the alarm that it tells of
  recipient TEXT NOT NULL,                -- folded, as addresses are compared
  sealed BLOB,                            -- subject and text, until it was sent or given up
  state TEXT NOT NULL CHECK (state IN ('asked', 'pending', 'sent', 'failed')),
  reason TEXT,                            -- why it failed, or what the last attempt met
  tries INTEGER NOT NULL DEFAULT 0,
  next_at INTEGER CHECK ((state = 'pending') = (next_at IS NOT NULL)),
  created_at INTEGER NOT NULL,
  expires_at INTEGER NOT NULL,            -- of no use from then on
  ended_at INTEGER                        -- sent or given up
) STRICT;
CREATE INDEX mails_due ON mails(account_id, next_at, id) WHERE state = 'pending';
CREATE INDEX mails_asked ON mails(id) WHERE state = 'asked';
CREATE INDEX mails_recent ON mails(kind, recipient, created_at);
CREATE INDEX mails_age ON mails(created_at);

ALTER TABLE accounts ADD COLUMN email_verified_at INTEGER; -- null: nobody has shown that the address is theirs
ALTER TABLE accounts ADD COLUMN mail_about TEXT NOT NULL DEFAULT ''; -- what it gets mail about, such as `credits,alarms`
ALTER TABLE setup_links ADD COLUMN purpose TEXT NOT NULL DEFAULT 'password' CHECK (purpose IN ('password', 'email'));
ALTER TABLE setup_links ADD COLUMN email TEXT;            -- the address that the link confirms
ALTER TABLE invitations ADD COLUMN is_mailed INTEGER NOT NULL DEFAULT 0 CHECK (is_mailed IN (0, 1)); -- 1: only its mail has the link

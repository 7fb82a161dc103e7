-- Invitations, of one person or of a class by one link; accounts that end at a time, and passwords that have
-- to be changed at the next sign-in.

CREATE TABLE invitations (
  id TEXT PRIMARY KEY,
  token_hash TEXT NOT NULL UNIQUE,        -- SHA-256 of the link's token
  host TEXT NOT NULL,                     -- the host name of the link, which is good nowhere else; '': any
  label TEXT NOT NULL DEFAULT '',         -- for whom, in the administrator's words
  username TEXT,                          -- null: whoever uses the link chooses it
  email TEXT,                             -- null: likewise
  plan TEXT NOT NULL,
  credits_micro INTEGER NOT NULL,         -- granted at registration; the sign-up credits come on top
  account_expires_at INTEGER,             -- null: the accounts do not end
  max_uses INTEGER NOT NULL CHECK (max_uses > 0),
  uses INTEGER NOT NULL DEFAULT 0 CHECK (uses <= max_uses),
  created_at INTEGER NOT NULL,
  expires_at INTEGER NOT NULL,
  revoked_at INTEGER,
  created_by TEXT NOT NULL                -- name of the administrator, or the operator
) STRICT, WITHOUT ROWID;

ALTER TABLE accounts ADD COLUMN invitation_id TEXT REFERENCES invitations(id); -- the invitation that made it
ALTER TABLE accounts ADD COLUMN expires_at INTEGER;       -- end: suspended from then on; null: never
ALTER TABLE accounts ADD COLUMN must_change INTEGER NOT NULL DEFAULT 0 CHECK (must_change IN (0, 1)); -- 1: the password, at the next sign-in
ALTER TABLE setup_links ADD COLUMN host TEXT NOT NULL DEFAULT ''; -- the host name of the link
CREATE INDEX accounts_invitation ON accounts(invitation_id) WHERE invitation_id IS NOT NULL;
CREATE INDEX accounts_expires_at ON accounts(expires_at) WHERE expires_at IS NOT NULL;

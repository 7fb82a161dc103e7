-- Invitations, of one person or of a class by one link; accounts that end at a time, and passwords that have
-- to be changed at the next sign-in.

CREATE TABLE invitations (
  id TEXT COLLATE "C" PRIMARY KEY,
  token_hash TEXT COLLATE "C" NOT NULL UNIQUE, -- SHA-256 of the link's token
  host TEXT COLLATE "C" NOT NULL,              -- the host name of the link, which is good nowhere else; '': any
  label TEXT COLLATE "C" NOT NULL DEFAULT '',  -- for whom, in the administrator's words
  username TEXT COLLATE "C",                   -- null: whoever uses the link chooses it
  email TEXT COLLATE "C",                      -- null: likewise
  plan TEXT COLLATE "C" NOT NULL,
  credits_micro BIGINT NOT NULL,               -- granted at registration; the sign-up credits come on top
  account_expires_at BIGINT,                   -- null: the accounts do not end
  max_uses BIGINT NOT NULL CHECK (max_uses > 0),
  uses BIGINT NOT NULL DEFAULT 0 CHECK (uses <= max_uses),
  created_at BIGINT NOT NULL,
  expires_at BIGINT NOT NULL,
  revoked_at BIGINT,
  created_by TEXT COLLATE "C" NOT NULL         -- name of the administrator, or the operator
);

ALTER TABLE accounts ADD COLUMN invitation_id TEXT COLLATE "C" REFERENCES invitations(id); -- the invitation that made it
ALTER TABLE accounts ADD COLUMN expires_at BIGINT;       -- end: suspended from then on; null: never
ALTER TABLE accounts ADD COLUMN must_change BIGINT NOT NULL DEFAULT 0 CHECK (must_change IN (0, 1)); -- 1: the password, at the next sign-in
ALTER TABLE setup_links ADD COLUMN host TEXT COLLATE "C" NOT NULL DEFAULT ''; -- the host name of the link
CREATE INDEX accounts_invitation ON accounts(invitation_id) WHERE invitation_id IS NOT NULL;
CREATE INDEX accounts_expires_at ON accounts(expires_at) WHERE expires_at IS NOT NULL;

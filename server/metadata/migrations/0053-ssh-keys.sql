-- SSH keys of accounts, by name, for new machines.

CREATE TABLE ssh_keys (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  account_id INTEGER NOT NULL REFERENCES accounts(id),
  name TEXT NOT NULL,
  public_key TEXT NOT NULL,               -- an OpenSSH public key line
  created_at INTEGER NOT NULL,
  UNIQUE (account_id, name)
) STRICT;

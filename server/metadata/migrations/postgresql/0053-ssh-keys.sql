-- SSH keys of accounts, by name, for new machines.

CREATE SEQUENCE ssh_keys_id_seq INCREMENT 64;
CREATE TABLE ssh_keys (
  id BIGINT PRIMARY KEY DEFAULT nextval('ssh_keys_id_seq'),
  account_id BIGINT NOT NULL REFERENCES accounts(id),
  name TEXT COLLATE "C" NOT NULL,
  public_key TEXT COLLATE "C" NOT NULL,   -- an OpenSSH public key line
  created_at BIGINT NOT NULL,
  UNIQUE (account_id, name)
);

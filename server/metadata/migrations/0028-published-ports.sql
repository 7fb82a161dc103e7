-- Ports of machines that answer on a port of this host, or under a host name.

CREATE TABLE vm_ports (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  port_id TEXT NOT NULL UNIQUE,
  vm_id TEXT NOT NULL REFERENCES vms(vm_id) ON DELETE CASCADE,
  account_id INTEGER NOT NULL REFERENCES accounts(id),
  guest_port INTEGER NOT NULL,
  public_port INTEGER UNIQUE,             -- null: it has a host name
  hostname TEXT COLLATE BINARY UNIQUE,    -- the label below CLOUDLET_APPS_DOMAIN; null: it has a port
  created_at INTEGER NOT NULL,
  CHECK ((public_port IS NULL) <> (hostname IS NULL))
) STRICT;
CREATE INDEX vm_ports_vm ON vm_ports(vm_id);
CREATE INDEX vm_ports_account ON vm_ports(account_id);

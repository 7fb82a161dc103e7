-- A public port whose machine has not run for 24 hours goes to who needs it: then its row has neither a port nor
-- a host name, until the machine runs again.

ALTER TABLE vm_ports RENAME TO vm_ports_before;
CREATE TABLE vm_ports (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  port_id TEXT NOT NULL UNIQUE,
  vm_id TEXT NOT NULL REFERENCES vms(vm_id) ON DELETE CASCADE,
  account_id INTEGER NOT NULL REFERENCES accounts(id),
  guest_port INTEGER NOT NULL,
  public_port INTEGER UNIQUE,             -- null: it has a host name, or its port was given away
  former_port INTEGER,                    -- the one that was given away
  hostname TEXT COLLATE BINARY UNIQUE,    -- the label below CLOUDLET_APPS_DOMAIN; null: it has a port
  created_at INTEGER NOT NULL,
  CHECK (public_port IS NULL OR hostname IS NULL),
  CHECK (public_port IS NOT NULL OR hostname IS NOT NULL OR former_port IS NOT NULL)
) STRICT;
INSERT INTO vm_ports (id, port_id, vm_id, account_id, guest_port, public_port, hostname, created_at)
  SELECT id, port_id, vm_id, account_id, guest_port, public_port, hostname, created_at FROM vm_ports_before;
DROP TABLE vm_ports_before;
CREATE INDEX vm_ports_vm ON vm_ports(vm_id);
CREATE INDEX vm_ports_account ON vm_ports(account_id);

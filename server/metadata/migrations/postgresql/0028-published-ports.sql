-- Ports of machines that answer on a port of this host, or under a host name.

CREATE SEQUENCE vm_ports_id_seq INCREMENT 64;

CREATE TABLE vm_ports (
  id BIGINT PRIMARY KEY DEFAULT nextval('vm_ports_id_seq'),
  port_id TEXT NOT NULL UNIQUE,
  vm_id TEXT NOT NULL REFERENCES vms(vm_id) ON DELETE CASCADE,
  account_id BIGINT NOT NULL REFERENCES accounts(id),
  guest_port BIGINT NOT NULL,
  public_port BIGINT UNIQUE,              -- null: it has a host name
  hostname TEXT COLLATE "C" UNIQUE,       -- the label below CLOUDLET_APPS_DOMAIN; null: it has a port
  created_at BIGINT NOT NULL,
  CHECK ((public_port IS NULL) <> (hostname IS NULL))
);
CREATE INDEX vm_ports_vm ON vm_ports(vm_id);
CREATE INDEX vm_ports_account ON vm_ports(account_id);

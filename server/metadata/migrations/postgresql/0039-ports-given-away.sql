-- A public port whose machine has not run for 24 hours goes to who needs it: then its row has neither a port nor
-- a host name, until the machine runs again.

ALTER TABLE vm_ports ADD COLUMN former_port BIGINT;  -- the one that was given away
ALTER TABLE vm_ports DROP CONSTRAINT vm_ports_check;
ALTER TABLE vm_ports ADD CHECK (public_port IS NULL OR hostname IS NULL);
ALTER TABLE vm_ports ADD CHECK (public_port IS NOT NULL OR hostname IS NOT NULL OR former_port IS NOT NULL);

-- Databases whose connection URIs a machine is given.

ALTER TABLE vms ADD COLUMN databases TEXT; -- JSON array of their names

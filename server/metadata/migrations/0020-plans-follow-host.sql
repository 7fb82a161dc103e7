-- The limits that the first plan comes with follow from the size of the host: they are made anew at each
-- start, until an operator sets others. One who did so before keeps those.

ALTER TABLE plans ADD COLUMN follows_host INTEGER NOT NULL DEFAULT 0;     -- quotas are those of the host
UPDATE plans SET follows_host = 1
WHERE name = 'free' AND quotas = '{"vms":50,"vcpus":200,"buckets":1000,"databases":50}';

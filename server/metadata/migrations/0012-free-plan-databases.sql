-- As 0010, for databases: an operator who set limits keeps those.

UPDATE plans SET quotas = json_set(quotas, '$.databases', 50)
WHERE name = 'free' AND quotas = '{"vms":50,"vcpus":200,"buckets":1000}';

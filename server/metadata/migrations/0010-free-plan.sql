-- The plan that everybody who registers gets has limits, generous for a person, so that nobody can take all
-- of a host. What an account has already stays; an operator who set limits keeps those.

UPDATE plans SET quotas = '{"vms":50,"vcpus":200,"buckets":1000}' WHERE name = 'free' AND quotas = '{}';

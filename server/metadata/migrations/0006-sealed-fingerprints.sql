-- What an Idempotency-Key was used with is sealed with the answer from now on: a hash of a request with a
-- password in it let that be guessed. The old answers go with the hashes, at most a day early.

DELETE FROM idempotency;
ALTER TABLE idempotency DROP COLUMN fingerprint;

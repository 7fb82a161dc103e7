-- What is kept of responses is counted per account. null: stored before it was counted, see calls/kept-sizes.ts.

ALTER TABLE idempotency ADD COLUMN kept_bytes INTEGER;
ALTER TABLE operations ADD COLUMN kept_bytes INTEGER;   -- null too while it runs

DROP INDEX idempotency_account;
CREATE INDEX idempotency_account ON idempotency(account_id, created_at, kept_bytes);
CREATE INDEX idempotency_uncounted ON idempotency(created_at) WHERE kept_bytes IS NULL;
DROP INDEX operations_account;
CREATE INDEX operations_account ON operations(account_id, created_at, kept_bytes);
CREATE INDEX operations_uncounted ON operations(created_at) WHERE kept_bytes IS NULL AND ended_at IS NOT NULL;

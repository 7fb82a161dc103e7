-- Whose answers are kept, so that each account has a bounded number of them.

ALTER TABLE idempotency ADD COLUMN account_id INTEGER NOT NULL DEFAULT 0; -- 0: nobody's, or the operator's
CREATE INDEX idempotency_account ON idempotency(account_id, created_at);
CREATE INDEX operations_account ON operations(account_id, created_at);

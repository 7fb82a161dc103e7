-- Named keys can be disabled: what they encrypt is kept, and nobody reads it.

ALTER TABLE encryption_keys ADD COLUMN disabled_at INTEGER;  -- null: enabled

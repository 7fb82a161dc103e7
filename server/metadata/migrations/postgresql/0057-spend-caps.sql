-- Spend caps of accounts by calendar month (UTC), and what was spent in the month, which each rating adds to.

ALTER TABLE billing_accounts ADD COLUMN own_cap_micro BIGINT CHECK (own_cap_micro >= 0);     -- null: none
ALTER TABLE billing_accounts ADD COLUMN admin_cap_micro BIGINT CHECK (admin_cap_micro >= 0); -- an administrator's
ALTER TABLE billing_accounts ADD COLUMN warn_percents TEXT COLLATE "C" NOT NULL DEFAULT '50,80';
ALTER TABLE billing_accounts ADD COLUMN spent_micro BIGINT NOT NULL DEFAULT 0;       -- in the month of spent_from
ALTER TABLE billing_accounts ADD COLUMN spent_from BIGINT NOT NULL DEFAULT 0;        -- when that month began
ALTER TABLE billing_accounts ADD COLUMN spent_settlement BIGINT NOT NULL DEFAULT 0;  -- the rating it is as of
ALTER TABLE billing_accounts ADD COLUMN warned_from BIGINT NOT NULL DEFAULT 0;       -- the month of the last warning
ALTER TABLE billing_accounts ADD COLUMN warned_percent BIGINT NOT NULL DEFAULT 0;
ALTER TABLE billing_accounts ADD COLUMN capped_at BIGINT;                            -- null: below the cap

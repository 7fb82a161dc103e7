-- The spend cap that an invitation gives its accounts, which only an administrator can change.

ALTER TABLE invitations ADD COLUMN spend_cap_micro BIGINT CHECK (spend_cap_micro >= 0); -- null: none

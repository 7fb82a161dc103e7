-- The last account id that must not be given again, where it is beyond those of all accounts: a restore skips
-- ids. SQLite's own sequence held it before, which no other engine has.

INSERT INTO settings (name, value)
SELECT 'last_account_id', CAST(seq AS TEXT) FROM sqlite_sequence WHERE name = 'accounts';

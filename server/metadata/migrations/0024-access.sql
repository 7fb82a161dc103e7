-- Who may reach what by S3: accounts and buckets get names that others can use, objects a list of grants.

ALTER TABLE accounts ADD COLUMN canonical_id TEXT;  -- 64 hex digits at random, the account's name for others
UPDATE accounts SET canonical_id = lower(hex(randomblob(32)));
CREATE UNIQUE INDEX accounts_canonical ON accounts(canonical_id);

-- Its name where it is the one that other accounts reach by that name; null: another bucket has it.
ALTER TABLE buckets ADD COLUMN global_name TEXT COLLATE BINARY;
UPDATE buckets SET global_name = name WHERE id IN (SELECT min(b.id) FROM buckets b
  JOIN accounts a ON a.id = b.account_id WHERE a.closed_at IS NULL GROUP BY b.name);
CREATE UNIQUE INDEX buckets_global ON buckets(global_name);

ALTER TABLE versions ADD COLUMN acl TEXT;           -- JSON: owner and grants; null: the bucket's owner, alone
ALTER TABLE uploads ADD COLUMN acl TEXT;            -- the same, with the initiator

CREATE TABLE migrations (
  number INTEGER PRIMARY KEY,
  name TEXT NOT NULL,
  checksum TEXT NOT NULL,               -- SHA-256 of the text
  applied_at INTEGER NOT NULL
) STRICT;
CREATE TABLE settings (
  name TEXT PRIMARY KEY,
  value TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE secrets (
  name TEXT PRIMARY KEY,
  sealed BLOB NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE accounts (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  username TEXT NOT NULL,
  username_folded TEXT UNIQUE,          -- null once closed, so that the name is free again
  email TEXT NOT NULL,
  email_folded TEXT UNIQUE,
  password_hash TEXT NOT NULL,          -- empty: no password login
  plan TEXT NOT NULL DEFAULT 'free',
  is_admin INTEGER NOT NULL DEFAULT 0,
  is_active INTEGER NOT NULL DEFAULT 1,
  suspended_reason TEXT,
  credits_micro INTEGER NOT NULL DEFAULT 0,
  storage_bytes INTEGER NOT NULL DEFAULT 0, -- all versions
  created_at INTEGER NOT NULL,
  last_login INTEGER,
  closed_at INTEGER
, canonical_id TEXT, removal_at INTEGER) STRICT;
CREATE TABLE api_keys (
  key_hash TEXT PRIMARY KEY,
  account_id INTEGER NOT NULL REFERENCES accounts(id),
  key_id TEXT NOT NULL UNIQUE,
  kind TEXT NOT NULL CHECK (kind IN ('main', 'access')),
  sealed_key BLOB,                      -- main keys only, so that the profile can show them
  name TEXT NOT NULL DEFAULT '',
  scopes TEXT NOT NULL DEFAULT '["*"]', -- JSON array
  bucket_limits TEXT,                   -- JSON array of {bucket, prefix}
  s3_access_key TEXT UNIQUE,
  s3_sealed_secret BLOB,
  created_at INTEGER NOT NULL,
  expires_at INTEGER,                   -- for a rotated main key: the end of the overlap
  last_used_at INTEGER
) STRICT, WITHOUT ROWID;
CREATE TABLE sessions (
  token_hash TEXT PRIMARY KEY,
  account_id INTEGER NOT NULL REFERENCES accounts(id),
  created_at INTEGER NOT NULL,
  last_seen_at INTEGER NOT NULL,
  expires_at INTEGER NOT NULL
, session_id TEXT NOT NULL DEFAULT '', user_agent TEXT NOT NULL DEFAULT '', address TEXT NOT NULL DEFAULT '', password_at INTEGER NOT NULL DEFAULT 0, page_token_hash TEXT NOT NULL DEFAULT '') STRICT, WITHOUT ROWID;
CREATE TABLE setup_links (
  token_hash TEXT PRIMARY KEY,
  expires_at INTEGER NOT NULL
, account_id INTEGER REFERENCES accounts(id)) STRICT, WITHOUT ROWID;
CREATE TABLE idempotency (
  scope TEXT NOT NULL,                  -- who and which route
  key TEXT NOT NULL,
  status INTEGER NOT NULL,
  sealed_body BLOB NOT NULL,
  created_at INTEGER NOT NULL, account_id INTEGER NOT NULL DEFAULT 0, kept_bytes INTEGER,
  PRIMARY KEY (scope, key)
) STRICT, WITHOUT ROWID;
CREATE TABLE ledger_transfers (
  seq INTEGER PRIMARY KEY,
  id TEXT NOT NULL UNIQUE,
  debit TEXT NOT NULL,
  credit TEXT NOT NULL,
  amount_micro INTEGER NOT NULL CHECK (amount_micro > 0),
  code TEXT NOT NULL,
  reference TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  prev_hash TEXT NOT NULL,
  hash TEXT NOT NULL UNIQUE
) STRICT;
CREATE TABLE buckets (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  account_id INTEGER NOT NULL REFERENCES accounts(id),
  name TEXT NOT NULL,
  region TEXT NOT NULL,
  versioning INTEGER NOT NULL,
  encryption INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  object_count INTEGER NOT NULL DEFAULT 0,  -- live objects
  size_bytes INTEGER NOT NULL DEFAULT 0,    -- of live objects
  version_count INTEGER NOT NULL DEFAULT 0, -- versions with bytes, live ones included
  total_bytes INTEGER NOT NULL DEFAULT 0, settings TEXT, global_name TEXT COLLATE BINARY, lifecycle_due INTEGER, lifecycle_cursor TEXT, metadata_bytes INTEGER NOT NULL DEFAULT 0,   -- of all versions
  UNIQUE (account_id, name)
) STRICT;
CREATE TABLE objects (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  object_id TEXT NOT NULL UNIQUE,
  bucket_id INTEGER NOT NULL REFERENCES buckets(id),
  name TEXT NOT NULL COLLATE BINARY,        -- UTF-8 byte order
  current INTEGER, size_bytes INTEGER, changed_at INTEGER, row_crc INTEGER,
  UNIQUE (bucket_id, name)
) STRICT;
CREATE TABLE versions (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  version_id TEXT NOT NULL UNIQUE,
  object INTEGER NOT NULL REFERENCES objects(id),
  blob INTEGER,                             -- of blobs, counted by its refs; null: a delete marker
  size_bytes INTEGER NOT NULL,
  etag TEXT NOT NULL,
  mime_type TEXT NOT NULL,
  storage_class TEXT NOT NULL,
  metadata TEXT,                            -- JSON object as sent
  created_at INTEGER NOT NULL
, last_accessed INTEGER, is_null INTEGER NOT NULL DEFAULT 0, headers TEXT, tags TEXT, checksum TEXT, acl TEXT, lock_mode TEXT, retain_until INTEGER, locked_until INTEGER, legal_hold INTEGER, row_crc INTEGER, tags_crc INTEGER, acl_crc INTEGER, lock_crc INTEGER, damaged_at INTEGER, metadata_bytes INTEGER NOT NULL DEFAULT 0) STRICT;
CREATE TABLE blobs (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  name TEXT UNIQUE,                         -- of the file; null when inline
  refs INTEGER NOT NULL DEFAULT 1 CHECK (refs >= 0),
  size_bytes INTEGER NOT NULL,
  data BLOB,
  checksum INTEGER,                         -- CRC-32 of data; files carry their own
  wrapped_key BLOB,                         -- data key under the master key; null: not encrypted
  damaged_at INTEGER                        -- set by the scrubber
, upload INTEGER, customer BLOB, named_key INTEGER REFERENCES encryption_keys(id)) STRICT;
CREATE TABLE blob_garbage (
  blob INTEGER PRIMARY KEY REFERENCES blobs(id),
  not_before INTEGER NOT NULL
) STRICT;
CREATE TABLE job_runs (
  job TEXT PRIMARY KEY,
  started_at INTEGER NOT NULL,
  finished_at INTEGER,
  state TEXT NOT NULL,                      -- JSON: progress and result
  cursor TEXT
) STRICT, WITHOUT ROWID;
CREATE TABLE vms (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  vm_id TEXT NOT NULL UNIQUE,
  account_id INTEGER NOT NULL REFERENCES accounts(id),
  name TEXT NOT NULL,
  instance_type TEXT NOT NULL,
  region TEXT NOT NULL,
  tags TEXT NOT NULL,                   -- comma-separated, as sent
  vcpus INTEGER NOT NULL,
  memory_mb INTEGER NOT NULL,
  disk_gb INTEGER NOT NULL,
  price_micro INTEGER NOT NULL,         -- per hour
  image_id TEXT NOT NULL,
  ssh_keys TEXT NOT NULL,               -- JSON array
  user_data TEXT,
  ports TEXT NOT NULL,                  -- JSON array of guest ports that the address answers on
  outbound INTEGER NOT NULL,
  uuid TEXT NOT NULL UNIQUE,
  mac TEXT NOT NULL UNIQUE,
  address TEXT UNIQUE,                  -- null once it is being deleted: free for the next
  state TEXT NOT NULL CHECK (state IN ('created','starting','running','stopping','stopped','error','deleting')),
  desired_state TEXT NOT NULL CHECK (desired_state IN ('running','stopped','deleted')),
  generation INTEGER NOT NULL DEFAULT 0, -- of every change of state; a commit names the one it saw
  reason_code TEXT,
  reason_message TEXT,
  handle TEXT,                          -- the engine's, of the present run
  accel TEXT,
  accel_reason TEXT,
  state_changed_at INTEGER NOT NULL,
  started_at INTEGER,                   -- of the present run
  ready_at INTEGER,                     -- first sign of life in the present run
  created_at INTEGER NOT NULL
, databases TEXT) STRICT;
CREATE TABLE vm_usage (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  vm_id TEXT NOT NULL,
  account_id INTEGER NOT NULL,
  event TEXT NOT NULL CHECK (event IN ('created','started','stopped','deleted')),
  instance_type TEXT NOT NULL,
  price_micro INTEGER NOT NULL,
  disk_gb INTEGER NOT NULL,
  at INTEGER NOT NULL
) STRICT;
CREATE TABLE vm_samples (
  vm INTEGER NOT NULL REFERENCES vms(id) ON DELETE CASCADE,
  step_seconds INTEGER NOT NULL,
  at INTEGER NOT NULL,
  cpu_percent REAL,
  memory_used_bytes INTEGER,
  memory_total_bytes INTEGER,
  resident_bytes INTEGER,
  disk_read_bytes INTEGER,
  disk_write_bytes INTEGER,
  network_rx_bytes INTEGER,
  network_tx_bytes INTEGER,
  PRIMARY KEY (vm, step_seconds, at)
) STRICT, WITHOUT ROWID;
CREATE TABLE images (
  image_id TEXT PRIMARY KEY,
  name TEXT NOT NULL,
  state TEXT NOT NULL CHECK (state IN ('importing','ready','failed')),
  reason_code TEXT,                     -- why it failed
  reason_message TEXT,
  size_bytes INTEGER NOT NULL,          -- 0 until it is ready
  virtual_bytes INTEGER NOT NULL,       -- of the disk that a guest sees; 0 until it is ready
  source TEXT NOT NULL,                 -- for people; holds no secret
  source_format TEXT CHECK (source_format IN ('raw','qcow2')), -- what the bytes were recognised as
  sha256 TEXT,                          -- of the source, hexadecimal; null until all of it came
  created_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE billing_accounts (
  account_id INTEGER PRIMARY KEY REFERENCES accounts(id),
  settlement INTEGER NOT NULL DEFAULT 0,  -- number of the last one
  settled_at INTEGER NOT NULL DEFAULT 0,
  written_off_micro INTEGER NOT NULL DEFAULT 0 CHECK (written_off_micro >= 0), -- it could not pay
  held_micro INTEGER NOT NULL DEFAULT 0 CHECK (held_micro >= 0), -- cached sum of the ledger's held:<id>
  state TEXT NOT NULL DEFAULT 'ok' CHECK (state IN ('ok','low','critical','grace','suspended')),
  state_at INTEGER NOT NULL DEFAULT 0,
  state_seq INTEGER NOT NULL DEFAULT 0,   -- the ledger's last transfer when the state began: later ones count as a top-up
  exhausted_at INTEGER,                   -- in grace and suspended
  grace_ends_at INTEGER,                  -- in grace, as it is shown
  grace_until INTEGER,                    -- in grace, steady: what ends it
  resume_due INTEGER NOT NULL DEFAULT 0,  -- machines stopped for want of credits are yet to be started
  quotas TEXT NOT NULL DEFAULT '{}',      -- JSON; goes before the plan's, null: unlimited
  vm_count INTEGER NOT NULL DEFAULT 0 CHECK (vm_count >= 0),
  vcpu_count INTEGER NOT NULL DEFAULT 0 CHECK (vcpu_count >= 0),
  bucket_count INTEGER NOT NULL DEFAULT 0 CHECK (bucket_count >= 0),
  database_count INTEGER NOT NULL DEFAULT 0 CHECK (database_count >= 0)
) STRICT;
CREATE TABLE usage_lines (
  meter TEXT NOT NULL,
  resource_id TEXT NOT NULL,
  account_id INTEGER NOT NULL REFERENCES accounts(id),
  name TEXT NOT NULL,
  variant TEXT NOT NULL,                  -- what the price depends on: the instance type; '' else
  level INTEGER NOT NULL,
  level_since INTEGER NOT NULL,           -- steady, ticks of the meter
  pending INTEGER NOT NULL DEFAULT 0,     -- below 0 after an end that was earlier than thought
  settled_to INTEGER NOT NULL,            -- steady, ticks of the meter
  carry INTEGER NOT NULL DEFAULT 0,       -- what the last charge left of a micro-credit
  is_closed INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (meter, resource_id)
) STRICT, WITHOUT ROWID;
CREATE TABLE usage_windows (
  account_id INTEGER NOT NULL,
  window_start INTEGER NOT NULL,          -- wall time, a whole hour
  meter TEXT NOT NULL,
  resource_id TEXT NOT NULL,
  name TEXT NOT NULL,
  variant TEXT NOT NULL,
  price_nano INTEGER NOT NULL,            -- of a unit
  quantity INTEGER NOT NULL,
  cost_micro INTEGER NOT NULL,
  -- With the price: a plan that changes within an hour makes two of it.
  PRIMARY KEY (account_id, window_start, meter, resource_id, price_nano)
) STRICT, WITHOUT ROWID;
CREATE TABLE holds (
  resource_id TEXT PRIMARY KEY,
  account_id INTEGER NOT NULL REFERENCES accounts(id),
  amount_micro INTEGER NOT NULL CHECK (amount_micro >= 0),
  placed_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE prices (
  meter TEXT NOT NULL,
  variant TEXT NOT NULL,
  plan TEXT NOT NULL,                     -- '' for all
  effective_from INTEGER NOT NULL,        -- wall time, a whole hour
  price_nano INTEGER NOT NULL CHECK (price_nano >= 0),
  PRIMARY KEY (meter, variant, plan, effective_from)
) STRICT, WITHOUT ROWID;
CREATE TABLE plans (
  name TEXT PRIMARY KEY,
  monthly_micro INTEGER NOT NULL DEFAULT 0, -- granted at the beginning of each month
  quotas TEXT NOT NULL DEFAULT '{}',      -- JSON; a quota that is missing is unlimited
  created_at INTEGER NOT NULL
, follows_host INTEGER NOT NULL DEFAULT 0) STRICT, WITHOUT ROWID;
CREATE TABLE steady_clock (
  id INTEGER PRIMARY KEY CHECK (id = 1),
  boot_id TEXT NOT NULL,
  uptime_ms REAL NOT NULL,
  wall_ms INTEGER NOT NULL,
  steady_ms INTEGER NOT NULL
) STRICT;
CREATE TABLE webhooks (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  webhook_id TEXT NOT NULL UNIQUE,
  account_id INTEGER NOT NULL REFERENCES accounts(id),
  url TEXT NOT NULL,
  description TEXT NOT NULL,
  events TEXT NOT NULL,                 -- JSON array of event types, or ["*"]
  is_enabled INTEGER NOT NULL DEFAULT 1,
  disabled_code TEXT,                   -- why it is not enabled
  disabled_message TEXT,
  sealed_secret BLOB NOT NULL,
  sealed_old_secret BLOB,               -- signs too, until old_secret_until
  old_secret_until INTEGER,
  failing_since INTEGER,                -- since the last attempt that succeeded
  created_at INTEGER NOT NULL
) STRICT;
CREATE TABLE webhook_events (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  event_id TEXT NOT NULL UNIQUE,        -- sent as webhook-id
  account_id INTEGER NOT NULL REFERENCES accounts(id),
  type TEXT NOT NULL,
  body TEXT NOT NULL,                   -- the very text that is signed and sent
  is_pending INTEGER NOT NULL DEFAULT 1, -- has no deliveries yet
  at INTEGER NOT NULL
) STRICT;
CREATE TABLE webhook_deliveries (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  delivery_id TEXT NOT NULL UNIQUE,
  webhook INTEGER NOT NULL REFERENCES webhooks(id) ON DELETE CASCADE,
  event INTEGER NOT NULL REFERENCES webhook_events(id) ON DELETE CASCADE,
  state TEXT NOT NULL CHECK (state IN ('pending','delivered','failed')),
  reason TEXT,                          -- why it failed, beyond what its last attempt says
  tries INTEGER NOT NULL DEFAULT 0,     -- since it was made, or replayed
  next_at INTEGER CHECK ((state = 'pending') = (next_at IS NOT NULL)),
  created_at INTEGER NOT NULL,
  UNIQUE (webhook, event)
) STRICT;
CREATE TABLE webhook_attempts (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  delivery INTEGER NOT NULL REFERENCES webhook_deliveries(id) ON DELETE CASCADE,
  at INTEGER NOT NULL,
  status INTEGER,                       -- null: there was no answer
  duration_ms INTEGER NOT NULL,
  response TEXT,                        -- the beginning of it
  error TEXT
) STRICT;
CREATE TABLE operations (
  operation_id TEXT PRIMARY KEY,
  account_id INTEGER NOT NULL REFERENCES accounts(id),
  credential_id TEXT NOT NULL,          -- who asked
  name TEXT NOT NULL,                   -- of the route
  created_at INTEGER NOT NULL,
  ended_at INTEGER,
  status INTEGER,                       -- the answer, once it has ended
  sealed_body BLOB
, kept_bytes INTEGER) STRICT, WITHOUT ROWID;
CREATE TABLE databases (
  id INTEGER PRIMARY KEY AUTOINCREMENT,   -- never used again: engines derive users of the host from it
  database_id TEXT NOT NULL UNIQUE,
  account_id INTEGER NOT NULL REFERENCES accounts(id),
  name TEXT NOT NULL,
  engine TEXT NOT NULL CHECK (engine IN ('sqlite','postgresql','mysql','mongodb')),
  version TEXT,                           -- of the engine that made it
  region TEXT NOT NULL,
  state TEXT NOT NULL CHECK (state IN ('creating','ready','read_only','suspended','error','deleting')),
  reason_code TEXT,
  reason_message TEXT,
  generation INTEGER NOT NULL DEFAULT 0,  -- of every change of what is wanted; a commit names the one it saw
  applied INTEGER NOT NULL DEFAULT -1,    -- generation that the engine was brought in line with
  engine_database TEXT NOT NULL UNIQUE,   -- its name inside the engine
  username TEXT NOT NULL UNIQUE,
  sealed_password BLOB NOT NULL,
  sealed_next_password BLOB,              -- while a rotation is under way
  password_hash BLOB NOT NULL UNIQUE,     -- SHA-256 of the newest one, for engines that log in through Cloudlet
  size_limit_bytes INTEGER NOT NULL,
  size_bytes INTEGER NOT NULL DEFAULT 0,  -- as last measured
  is_protected INTEGER NOT NULL DEFAULT 0,
  created_at INTEGER NOT NULL,
  state_changed_at INTEGER NOT NULL,
  deletes_at INTEGER,                     -- in deleting: until then it can be had back; null: it never was ready
  is_dropped INTEGER NOT NULL DEFAULT 0,  -- in deleting: the engine has it no more
  kept_dump_bytes INTEGER                 -- in deleting: size of the last dump
, keep_left_ms INTEGER) STRICT;
CREATE TABLE recovery_points (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  point_id TEXT NOT NULL UNIQUE,
  state TEXT NOT NULL CHECK (state IN
    ('creating','complete','verified','drilled','failed','cancelled','damaged','deleting')),
  reason TEXT,                            -- why it failed or is damaged
  target TEXT NOT NULL,
  percent REAL NOT NULL DEFAULT 0,
  created_at INTEGER NOT NULL,            -- ms since 1970; of the cut
  completed_at INTEGER,
  verified_at INTEGER,
  size_bytes INTEGER NOT NULL DEFAULT 0,  -- of all that is in it
  stored_bytes INTEGER NOT NULL DEFAULT 0, -- that were new to the target
  contents TEXT NOT NULL DEFAULT '{}',    -- JSON: counts
  gaps TEXT NOT NULL DEFAULT '[]',        -- JSON
  manifest_sha256 TEXT,                   -- of the stored bytes
  deletes_at INTEGER                      -- in deleting: until then it can be had back
, damage TEXT NOT NULL DEFAULT '[]', damaged_files INTEGER NOT NULL DEFAULT 0, state_before TEXT, grace_left_ms INTEGER, scheduled_at INTEGER, drilled_at INTEGER, drill TEXT) STRICT;
CREATE TABLE recovery_holds (
  point_id TEXT PRIMARY KEY,
  renewed_at INTEGER NOT NULL             -- ms since 1970
) STRICT, WITHOUT ROWID;
CREATE TABLE database_samples (
  database INTEGER NOT NULL REFERENCES databases(id) ON DELETE CASCADE,
  step_seconds INTEGER NOT NULL,
  at INTEGER NOT NULL,
  size_bytes INTEGER,
  connections REAL,                       -- REAL: a coarse row has the mean
  statements INTEGER,
  rows_returned INTEGER,
  rows_written INTEGER,
  PRIMARY KEY (database, step_seconds, at)
) STRICT, WITHOUT ROWID;
CREATE TABLE identity (
  id INTEGER PRIMARY KEY CHECK (id = 1),
  cloud_id TEXT NOT NULL,
  starts INTEGER NOT NULL                 -- times that it was started on these files; 0 once it was restored
) STRICT;
CREATE TABLE uploads (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  upload_id TEXT NOT NULL UNIQUE,
  bucket_id INTEGER NOT NULL,             -- of buckets; it may be gone once the upload has ended
  account_id INTEGER NOT NULL REFERENCES accounts(id),
  name TEXT NOT NULL COLLATE BINARY,
  state INTEGER NOT NULL DEFAULT 0,       -- 0 open, 1 completed, 2 aborted: its parts are to be removed
  size_bytes INTEGER NOT NULL DEFAULT 0,  -- of all parts
  changes INTEGER NOT NULL DEFAULT 0,     -- of its parts
  encryption INTEGER NOT NULL,
  mime_type TEXT NOT NULL,
  metadata TEXT,
  headers TEXT,
  tags TEXT,
  checksum TEXT,                          -- JSON: algorithm, type
  created_at INTEGER NOT NULL,
  ended_at INTEGER,
  result TEXT                             -- JSON: what completing it gave
, acl TEXT, lock TEXT, customer BLOB, named_key INTEGER REFERENCES encryption_keys(id), metadata_bytes INTEGER NOT NULL DEFAULT 0) STRICT;
CREATE TABLE upload_parts (
  upload INTEGER NOT NULL REFERENCES uploads(id),
  number INTEGER NOT NULL,
  blob INTEGER NOT NULL,                  -- of blobs, counted by its refs
  size_bytes INTEGER NOT NULL,
  etag TEXT NOT NULL,
  checksum TEXT,                          -- base64
  created_at INTEGER NOT NULL,
  PRIMARY KEY (upload, number)
) STRICT, WITHOUT ROWID;
CREATE TABLE encryption_keys (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  account_id INTEGER NOT NULL REFERENCES accounts(id),
  key_id TEXT NOT NULL COLLATE BINARY,    -- chosen by the account
  sealed BLOB NOT NULL,                   -- 32 bytes under the master key
  created_at INTEGER NOT NULL, disabled_at INTEGER,
  UNIQUE (account_id, key_id)
) STRICT;
CREATE TABLE restored_things (
  account_id INTEGER NOT NULL REFERENCES accounts(id), -- the new one
  source TEXT NOT NULL,         -- 'account', or kind and id of the thing in the point
  point_id TEXT NOT NULL,
  made TEXT NOT NULL,           -- id of the new thing; of the account, that of the old one
  at INTEGER NOT NULL,
  PRIMARY KEY (account_id, source)
) STRICT, WITHOUT ROWID;
CREATE TABLE resting_names (
  kind TEXT NOT NULL,                     -- 'bucket': a name on the S3 door; 'host': the host name of a machine
  name TEXT NOT NULL COLLATE BINARY,
  account_id INTEGER NOT NULL REFERENCES accounts(id),
  ends_at INTEGER NOT NULL,               -- ms since 1970
  PRIMARY KEY (kind, name)
) STRICT, WITHOUT ROWID;
CREATE TABLE vm_ports (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  port_id TEXT NOT NULL UNIQUE,
  vm_id TEXT NOT NULL REFERENCES vms(vm_id) ON DELETE CASCADE,
  account_id INTEGER NOT NULL REFERENCES accounts(id),
  guest_port INTEGER NOT NULL,
  public_port INTEGER UNIQUE,             -- null: it has a host name, or its port was given away
  former_port INTEGER,                    -- the one that was given away
  hostname TEXT COLLATE BINARY UNIQUE,    -- the label below CLOUDLET_APPS_DOMAIN; null: it has a port
  created_at INTEGER NOT NULL,
  CHECK (public_port IS NULL OR hostname IS NULL),
  CHECK (public_port IS NOT NULL OR hostname IS NOT NULL OR former_port IS NOT NULL)
) STRICT;
INSERT INTO migrations VALUES (1, 'initial', '814f4228bab1e2e8acfdd0e01a8d27f7b714afb6237536fd0d5935a06312dab7', 1795920916559);
INSERT INTO migrations VALUES (2, 'machines', '27abbfd63f00b2a9b93a60e7958825ef4afa8135c71e31444b091964da0f6fee', 1795920916559);
INSERT INTO migrations VALUES (3, 'images', 'f04f2484274a02cd21a10399d045b1a64601bb79048b7e8819661ceeaf68ec19', 1795920916559);
INSERT INTO migrations VALUES (4, 'billing', '1b62b42729c9e9912adadfe53a7e149f46d4a9a891e20adb63db04915540052b', 1795920916559);
INSERT INTO migrations VALUES (5, 'webhooks', 'bd089ab55e3fcb01007c243ee985892100f6a820deb97a61448b09be5a2e7c68', 1795920916559);
INSERT INTO migrations VALUES (6, 'sealed fingerprints', 'fdaf05a37e4d53bccb34ecec49ff2a7686e4263a013c56c69d3f3760a117df6e', 1795920916559);
INSERT INTO migrations VALUES (7, 'operations', '47967728d0d6fef4be769798c52639b719c0520f44e52a297a62ac263778cd27', 1795920916559);
INSERT INTO migrations VALUES (8, 'version access', 'd0b9e827faf0ff9db77baa6f331d90a4d4a478dadae43ecb0a216af42c4353f4', 1795920916559);
INSERT INTO migrations VALUES (9, 'kept answers', 'd18d47290d2020bc827ba42407b830555eb6cb86172e0a33b7b76379310ecebf', 1795920916559);
INSERT INTO migrations VALUES (10, 'free plan', 'cf77d24eca215569afa11e0459054e7e570ea9a916d3eeacacc98917caa013e9', 1795920916559);
INSERT INTO migrations VALUES (11, 'databases', 'e0b50e1946d9a9419a2101465f78b6a69a7a9c4acb45076419c751c0bdd2bca7', 1795920916559);
INSERT INTO migrations VALUES (12, 'free plan databases', '764808813be813f05c79749abdb331e29757be802a23e2ddaa01be8b9eaa264c', 1795920916559);
INSERT INTO migrations VALUES (13, 'recovery', '70991a25df82d19fae2684f7cc0f285e43d5b0785a3fa756e095072f6c96261b', 1795920916559);
INSERT INTO migrations VALUES (14, 'database samples', '10790b88ea381296d04cc23e4fd340372f4f0d9c70e14adcf1a011006f0a8d08', 1795920916559);
INSERT INTO migrations VALUES (15, 'point damage', 'e3d832eef6d74d13e04c0c2244ea7ca2f8ae50d25ccf70d0427233a05cc46b6c', 1795920916559);
INSERT INTO migrations VALUES (16, 'session names', 'dd26ecbbd83382c2c40bde2087de49469b4b88e9264896d773671712291c6f2e', 1795920916559);
INSERT INTO migrations VALUES (17, 'object order', '421d7bd228fce6e48929ec68872faed66af951ca221db840c8071a4c35a518ce', 1795920916559);
INSERT INTO migrations VALUES (18, 'identity', '3d4389febce8db5e30ca1f2f0cadfb54304f605501469724ca0f5b5afceee6cf', 1795920916559);
INSERT INTO migrations VALUES (19, 'kept time', '72e68a33d319d2bc8f2cd224fbd1c70d08607b7d66449e57c455320c8e0914d4', 1795920916559);
INSERT INTO migrations VALUES (20, 'plans follow host', 'e8a1b7daff80aea89d64fa3df5c49b1ab89a69664c5d2298fa85253c26a5f382', 1795920916559);
INSERT INTO migrations VALUES (21, 'account ids', '399a7b17efcc7a06c23f230243453bbe1c3122f917fbfe95b87f79548ae373af', 1795920916559);
INSERT INTO migrations VALUES (22, 's3', 'a2c391c17dbd6036ac77ba2c751ba4fdb728c38b3ac1f812ccced017f8107284', 1795920916559);
INSERT INTO migrations VALUES (23, 'bucket settings', 'a84e3ae983899fcd8005f7dc0b3274b468f8ebed36327cc07aac460fd0592d4a', 1795920916559);
INSERT INTO migrations VALUES (24, 'access', '7e29f153a230ac2df3232a478baceaf52255a7452db212856fb0a4a62cdd1fa3', 1795920916559);
INSERT INTO migrations VALUES (25, 'lock and lifecycle', 'fc3a28c757f18ab9e3a74590057660247e9e38e37658edb8cbe8afcd4ddc2756', 1795920916559);
INSERT INTO migrations VALUES (26, 'encryption', '68270b215a3c09c327534ebae2ac0d900c71fe60175a32c6986c21798bcd8ed8', 1795920916559);
INSERT INTO migrations VALUES (27, 'disabled encryption keys', '8f8ab8b6eb724706988bd86c01bb53732687c807a3860d4c0d9ee3d373d7fce6', 1795920916559);
INSERT INTO migrations VALUES (28, 'published ports', '6dcdaca10105f7cc774a5530b8236a7ae5196b1f031d79400dab6edceda0f76c', 1795920916559);
INSERT INTO migrations VALUES (29, 'scheduled recovery points', '98754d88b50b13936a0d9d694e4e560eea2d22b71f3510f66ea637257f699cb7', 1795920916559);
INSERT INTO migrations VALUES (30, 'recovery drills', '17f77b242b0f72c67d98c5c3fd604b43f7942af766c87e219729e140606a11e6', 1795920916559);
INSERT INTO migrations VALUES (31, 'databases of machines', '7afd84675e4bf85f000f063cb0526b867c80afcd60b227b83d9f9f94e28032b1', 1795920916559);
INSERT INTO migrations VALUES (32, 'restored accounts', '36d83ca734fa4b75db607cac4275acd1e130b6cfdf2af871e67123ec9409c699', 1795920916559);
INSERT INTO migrations VALUES (33, 'row checksums', '8509844b356c3ca6298d341643cf1da48d605abb693b4f93b3624481993bfeee', 1795920916559);
INSERT INTO migrations VALUES (34, 'kept bytes', 'a6165718d54c895209098e5c7536e380ee5b3c010f35b60f9ff912f7b1d82e9a', 1795920916559);
INSERT INTO migrations VALUES (35, 'resting names', '315d272a41b5b97af63f9b8817f7f31839a2ca4e203984a4659e25fdd35412ba', 1795920916559);
INSERT INTO migrations VALUES (36, 'passwords given again', 'f0f1d50406509aa3df0bb4b871e713ad3095ee315dae1efc983328c31ca51f64', 1795920916559);
INSERT INTO migrations VALUES (37, 'session tokens', 'fcd8ce74f18cec090811ba9f62923dc11c30902f8cf55a758fa3b765af9ecece', 1795920916559);
INSERT INTO migrations VALUES (38, 'metadata bytes', '4d1cdbb8c937e8e9d95eaa5a5be25f0be00ee598c0cedddd178b673bbcf594c4', 1795920916559);
INSERT INTO migrations VALUES (39, 'ports given away', '699f0d0fc8a3cba9aca01319c062e49575a446e56f389b063d14da5424458a4c', 1795920916559);
INSERT INTO secrets VALUES ('links', X'01D6FC1C39607885E8D4545A215BDA49B4AB519AB7169DFD51A323654E855E8E3E0DA06B8F5495A8D36D6621A19971B3330CE0E7DEC5623591497D929071C2B0030EAF9B76');
INSERT INTO secrets VALUES ('recovery-key', X'01D6FC1C39607885E83DE15AF634B7A2FDF29D69FA35ABBB7B0193B2A910D8238B7602C20368B88F134959A31CC014A541DF953056607FA51B77AD4920CB961B1FBBA64F5C');
INSERT INTO secrets VALUES ('recovery-repository', X'01D6FC1C39607885E8F4ADFC25F1277BE600697ABE5C4698634BF698BB43F80CE78B9D1B867A7D79D34E40717392C6E1C9C0EE64BE1F770B3DF64F67FBF74328CA3B7F3177');
INSERT INTO secrets VALUES ('recovery-writer', X'01D6FC1C39607885E853E8C6DC8D93F7560C6E040EF888C87F7226C71029B9341910F1BEB5291083C4776EE86645C7E9DC8B2783F97A6FC7A277B4B82069C5B10848A8B1DF');
INSERT INTO accounts VALUES (1, 'admin', 'admin', 'admin@localhost', NULL, '', 'free', 1, 1, NULL, 10000000, 0, 1795920917567, NULL, NULL, '5882cf888d71c3eaa283bae19b2c2226f70c6955116c82b31e3f23adff98f2f6', NULL);
INSERT INTO accounts VALUES (2, 'user-22128-3', 'user-22128-3', 'user-22128-3@example.org', 'user-22128-3@example.org', '$argon2id$v=19$m=47104,t=1,p=1$gtrqocU5AvtyAZX76KsV3w$v5UV6oAV5abwfGpUw0sZIxWjdngu2yOq2TgHyQHFnRM', 'free', 0, 1, NULL, 10000000, 128102, 1795920921141, NULL, NULL, '0e766cbabf4271fe94b0e8a2f5a26811b275d9a44d17ee995f49c39b98670fea', NULL);
INSERT INTO api_keys VALUES ('07c3289ea3999c892d97e44db43b672271647995770d8d4d01495aa16f9612c0', 2, 'key-01m8jkn0kjpjtppgg102h59b2y', 'access', NULL, 'reader', '["storage:read"]', NULL, 'CLAKWBBF5AB3ESQF3NF6', X'01D6FC1C39607885E8EE75635AC8B29887D6B5CD4575D8CEF82677C6D2DA92C977ECDA65E7E2CDB25C7D1C3DF8C8F81CC9B13BC508E5BAEAD2719AD46F17F1DB20294972CA37F2D94ACA7E43C1', 1795920921203, NULL, NULL);
INSERT INTO api_keys VALUES ('756d38a52628b9608cd29b56078841ab1f3e45439e445006721441afa103b7ed', 1, 'key-01m8jkmx1zzy559hsdkgfxhpbz', 'main', X'01D6FC1C39607885E8E64709ABFA21F5363764AECD14F4CBD9CCF73111C3545344D61903C42B5C9D87C034C19A0C87042216741008736F3C856A23C876669609F2BF33962D2C', '', '["*"]', NULL, NULL, NULL, 1795920917567, NULL, 1795920980914);
INSERT INTO api_keys VALUES ('b848c297ad3acb5f71387eb43e689d7c90afa3fca2d2edad23957c900a834ca2', 2, 'key-01m8jkn0hp114jd90ec7p9hw9s', 'main', X'01D6FC1C39607885E887BF0DC36213DA0E4A8C241EC6B12A1C52FBAB58FA4403E80B6696C58C9E420C859904A661F8ED6DA144EB60DB01F7539523976916FD452C4BEFF71FFFA1A79993552C9A22A3', '', '["*"]', NULL, NULL, NULL, 1795920921142, NULL, 1795920980755);
INSERT INTO ledger_transfers VALUES (1, 'signup:1', 'system:grants', 'account:1', 10000000, 'signup_grant', '10 credits at registration', 1795920917567, '0000000000000000000000000000000000000000000000000000000000000000', 'e30d308e51569daba6d3d96ab64c9a392dc635585f92f28a3c7b4b28d74db460');
INSERT INTO ledger_transfers VALUES (2, 'signup:2', 'system:grants', 'account:2', 10000000, 'signup_grant', '10 credits at registration', 1795920921141, 'e30d308e51569daba6d3d96ab64c9a392dc635585f92f28a3c7b4b28d74db460', 'b4117c8f10edd026976c863281ace99d4dfb013e641da8067db8d9eaa3d543ac');
INSERT INTO ledger_transfers VALUES (3, 'hold-op-01m8jkpndbxjsxpjr5a1vhr2ry', 'account:2', 'held:2', 11600, 'hold', 'vm-01m8jkpn2gr37mptw4fsyvs6hx', 1795920975274, 'b4117c8f10edd026976c863281ace99d4dfb013e641da8067db8d9eaa3d543ac', '919e91fe7820c4e07ec6fd0abe28d4fafb81e7a3938c1c196fce4e9d687e818c');
INSERT INTO ledger_transfers VALUES (4, 'release-op-01m8jkptmh1hntwxe8y88w30qm', 'held:2', 'account:2', 11600, 'release', 'vm-01m8jkpn2gr37mptw4fsyvs6hx', 1795920980625, '919e91fe7820c4e07ec6fd0abe28d4fafb81e7a3938c1c196fce4e9d687e818c', '3c1a885f754c78c7428444811f9187b87d03b5b5d2fbb62b0d96a08b76e2ed3d');
INSERT INTO buckets VALUES (1, 2, 'plain', 'us-east-1', 1, 0, 1795920921245, 1, 64000, 2, 64015, NULL, 'plain', NULL, NULL, 36);
INSERT INTO buckets VALUES (2, 2, 'sealed', 'us-east-1', 1, 1, 1795920922133, 1, 64000, 2, 64015, NULL, 'sealed', NULL, NULL, 36);
INSERT INTO objects VALUES (1, 'obj-01m8jkn0w29j0547gsx7918p1x', 1, 'note.txt', 2, 64000, 1795920922117, 685147133);
INSERT INTO objects VALUES (2, 'obj-01m8jkn1hz6p73c5qrejn3d1vf', 2, 'note.txt', 4, 64000, 1795920922211, 3516333999);
INSERT INTO versions VALUES (1, 'ver-01m8jkn0w2ztwsjnqv2dypmpws', 1, 1, 15, '518b13184fe43682d9671ba588289a1b', 'text/plain', 'STANDARD', NULL, 1795920921474, NULL, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 3194483022, NULL, NULL, NULL, NULL, 18);
INSERT INTO versions VALUES (2, 'ver-01m8jkn1g55macvjdf35j303wr', 1, 2, 64000, 'cb7ea5d69f0aea940de33be820ed7886', 'text/plain', 'STANDARD', NULL, 1795920922117, NULL, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 3190325187, NULL, NULL, NULL, NULL, 18);
INSERT INTO versions VALUES (3, 'ver-01m8jkn1hzeapb8yc2yq9mxzh7', 2, 3, 15, '518b13184fe43682d9671ba588289a1b', 'text/plain', 'STANDARD', NULL, 1795920922175, NULL, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 1024991967, NULL, NULL, NULL, NULL, 18);
INSERT INTO versions VALUES (4, 'ver-01m8jkn1k3wgr1y24yjsc44y99', 2, 4, 64000, 'cb7ea5d69f0aea940de33be820ed7886', 'text/plain', 'STANDARD', NULL, 1795920922211, NULL, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 4088107571, NULL, NULL, NULL, NULL, 18);
INSERT INTO blobs VALUES (1, NULL, 1, 15, X'746865206669727374206E6F74650A', 2011756644, NULL, NULL, NULL, NULL, NULL);
INSERT INTO blobs VALUES (2, 'blob-01m8jkn0y8ax941g4vvyte6q8x', 1, 64000, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO blobs VALUES (3, NULL, 1, 15, X'7F83BF43EC657185DC75A5577939910BD7E1B4988F60A22FE44DC6AE163634', 392022412, X'01D6FC1C39607885E86EFF5380509F2D6DF6F9EFE3A49546AF862149B8F67B043183C017DD947950E666816BF8A18E3C5FC8C3801C5558247F681FEFBEFD92351055BDFEC1', NULL, NULL, NULL, NULL);
INSERT INTO blobs VALUES (4, 'blob-01m8jkn1jmjnq64gdmgkmm9kbw', 1, 64000, NULL, NULL, X'01D6FC1C39607885E88C03EB592B9A63406FF1E9D2A6E7D4475F3D695078D36E62A94F6CFF9619354414692CB062EB04D2293AC9162F2736A835B511CEB16840E8C195A7A7', NULL, NULL, NULL, NULL);
INSERT INTO vms VALUES (1, 'vm-01m8jkpn2gr37mptw4fsyvs6hx', 2, 'web', 't2.micro', 'us-east-1', '', 1, 1024, 30, 11600, 'tiny', '[]', NULL, '[22,80,443,8080]', 0, '2207a5f9-9b37-4a83-90cf-4b7efac9b8e4', '52:84:fd:74:2d:55', '127.233.192.1', 'stopped', 'stopped', 4, 'powered_off', 'The virtual machine was powered off', NULL, NULL, NULL, 1795920980625, NULL, NULL, 1795920974928, NULL);
INSERT INTO vm_usage VALUES (1, 'vm-01m8jkpn2gr37mptw4fsyvs6hx', 2, 'created', 't2.micro', 11600, 30, 1795920974928);
INSERT INTO vm_usage VALUES (2, 'vm-01m8jkpn2gr37mptw4fsyvs6hx', 2, 'started', 't2.micro', 11600, 30, 1795920978189);
INSERT INTO vm_usage VALUES (3, 'vm-01m8jkpn2gr37mptw4fsyvs6hx', 2, 'stopped', 't2.micro', 11600, 30, 1795920980625);
INSERT INTO billing_accounts VALUES (1, 0, 0, 0, 0, 'ok', 0, 0, NULL, NULL, NULL, 0, '{}', 0, 0, 0, 0);
INSERT INTO billing_accounts VALUES (2, 1, 1795920978060, 0, 0, 'ok', 0, 0, NULL, NULL, NULL, 0, '{}', 1, 1, 2, 4);
INSERT INTO usage_lines VALUES ('database.storage', 'db-01m8jkn1kh5gatt92e8b9a7f3s', 2, 'of-sqlite', 'sqlite', 12288, 1795920978, 0, 1795920978, 0, 0);
INSERT INTO usage_lines VALUES ('database.storage', 'db-01m8jkn5vkjfx6v4kmwsk8h5ex', 2, 'of-postgresql', 'postgresql', 170852, 1795920978, 0, 1795920978, 0, 0);
INSERT INTO usage_lines VALUES ('database.storage', 'db-01m8jknwpsybbgg1w1bs8gpdeb', 2, 'of-mysql', 'mysql', 66035, 1795920978, 0, 1795920978, 0, 0);
INSERT INTO usage_lines VALUES ('database.storage', 'db-01m8jkpdaf3541665sbg41ceaq', 2, 'of-mongodb', 'mongodb', 28672, 1795920978, 0, 1795920978, 0, 0);
INSERT INTO usage_lines VALUES ('egress', '1', 2, 'plain', '', 0, 1795920921, 0, 1795920921, 0, 0);
INSERT INTO usage_lines VALUES ('egress', '2', 2, 'sealed', '', 0, 1795920922, 0, 1795920922, 0, 0);
INSERT INTO usage_lines VALUES ('storage', '1', 2, 'plain', '', 64051, 1795920978, 0, 1795920978, 0, 0);
INSERT INTO usage_lines VALUES ('storage', '2', 2, 'sealed', '', 64051, 1795920978, 0, 1795920978, 0, 0);
INSERT INTO usage_lines VALUES ('vm.disk', 'vm-01m8jkpn2gr37mptw4fsyvs6hx', 2, 'web', 't2.micro', 30, 1795920978058, 0, 1795920978058, 0, 0);
INSERT INTO usage_lines VALUES ('vm.time', 'vm-01m8jkpn2gr37mptw4fsyvs6hx', 2, 'web', 't2.micro', 0, 1795920980624, 2437, 1795920978187, 0, 0);
INSERT INTO usage_windows VALUES (2, 1795917600000, 'database.storage', 'db-01m8jkn1kh5gatt92e8b9a7f3s', 'of-sqlite', 'sqlite', 0, 614400, 0);
INSERT INTO usage_windows VALUES (2, 1795917600000, 'database.storage', 'db-01m8jkn5vkjfx6v4kmwsk8h5ex', 'of-postgresql', 'postgresql', 0, 4271300, 0);
INSERT INTO usage_windows VALUES (2, 1795917600000, 'database.storage', 'db-01m8jknwpsybbgg1w1bs8gpdeb', 'of-mysql', 'mysql', 0, 660350, 0);
INSERT INTO usage_windows VALUES (2, 1795917600000, 'storage', '1', 'plain', '', 0, 3586889, 0);
INSERT INTO usage_windows VALUES (2, 1795917600000, 'storage', '2', 'sealed', '', 0, 3586856, 0);
INSERT INTO usage_windows VALUES (2, 1795917600000, 'vm.disk', 'vm-01m8jkpn2gr37mptw4fsyvs6hx', 'web', 't2.micro', 0, 86640, 0);
INSERT INTO plans VALUES ('free', 0, '{"vms":68,"vcpus":128,"memory_mb":17408,"storage_bytes":53687091200,"buckets":1000,"databases":50}', 0, 1);
INSERT INTO steady_clock VALUES (1, 'e3375156-ba50-435b-9aaf-c059d907b26d', 31667683.129, 1795920995257, 1795920995256);
INSERT INTO webhooks VALUES (1, 'whk-01m8jkptve2psh9p4zgmgma5ry', 2, 'https://example.org/hook', '', '["*"]', 1, NULL, NULL, X'01D6FC1C39607885E87BD7F37BE3D9D8E59A07D890D0B0A54CF3A267D61539D3740D4BDD33147FD40D4277B8B2536D8BB454768CB672CB1938071806BD625A5C12A906DAD2207CF95F79B263995561D1964E4981CD7B80', NULL, NULL, NULL, 1795920980847);
INSERT INTO databases VALUES (1, 'db-01m8jkn1kh5gatt92e8b9a7f3s', 2, 'of-sqlite', 'sqlite', '3.53.4', 'us-east-1', 'ready', NULL, NULL, 1, 1, 'd_9yd40jta1b1yw92c', 'u_9yd40jta1b1yw92c', X'01D6FC1C39607885E83964FBB5D53CAC78CBCD40E385AA0F99E6CF4DEFED5E75B09A1A3BF8E2FF53645173479B5255AD506162B2A7B49C4A865D3B6BBA7AE9B595E6E64E7C', NULL, X'0782803267E887CF271BD4840E84BA40C6D9DB5CFA7DAB04D72FDF20A59D4633', 1073741824, 12288, 0, 1795920922225, 1795920926306, NULL, 0, NULL, NULL);
INSERT INTO databases VALUES (2, 'db-01m8jkn5vkjfx6v4kmwsk8h5ex', 2, 'of-postgresql', 'postgresql', '15.20', 'us-east-1', 'ready', NULL, NULL, 1, 1, 'd_k7mjk7yt5q529nks', 'u_k7mjk7yt5q529nks', X'01D6FC1C39607885E871D40838866FD44118BB47911E3ED2451B71120EFC17A21D18ACE8B2DC4CB64DBACFF5E4D018495A54FB62794D5613464CBE0E53E64FE88744F5316B', NULL, X'35ABA27BD2B2967060CB9A0EFCD0344FB1016DC527FC7A80EAD8A2405C1C5CD9', 1073741824, 170852, 0, 1795920926579, 1795920949167, NULL, 0, NULL, NULL);
INSERT INTO databases VALUES (3, 'db-01m8jknwpsybbgg1w1bs8gpdeb', 2, 'of-mysql', 'mysql', '10.11.19-MariaDB', 'us-east-1', 'ready', NULL, NULL, 1, 1, 'd_ak5hxzfcnmepndt8', 'u_ak5hxzfcnmepndt8', X'01D6FC1C39607885E855317AE401F6E02D723EE7DD06FCA9970364E185D74BD4985617E71377FFB51DAA268CEE8ADEF97122D32D581633AA8E59A626C17F032A3B2F72D72D', NULL, X'E72A731B1C218A8E30D2EE385394382469CB90A06C7F6989C9D24408C97541C3', 1073741824, 66035, 0, 1795920949977, 1795920966719, NULL, 0, NULL, NULL);
INSERT INTO databases VALUES (4, 'db-01m8jkpdaf3541665sbg41ceaq', 2, 'of-mongodb', 'mongodb', '7.0.0-cloudlet', 'us-east-1', 'ready', NULL, NULL, 1, 1, 'd_x9pp6fvef08h2c8t', 'u_x9pp6fvef08h2c8t', X'01D6FC1C39607885E83B7BF7A9D514A39506696F21C8A53C7057054291028C56F55B7E45177BDF3182D7487AE225A5E456D06E20E82390CC17BA2E96F9801EC91FF617DD23', NULL, X'812AD39A7739FBB767D16DCF563122A2C4558F79742A62243187B6694ADBAA5A', 1073741824, 28672, 0, 1795920966991, 1795920974224, NULL, 0, NULL, NULL);
INSERT INTO recovery_points VALUES (1, 'drp-01m8jkpvp4280a5fapft17cmfn', 'complete', NULL, '/tmp/cloudlet-upgrade-xOg0XE/recovery', 100.0, 1795920981700, 1795920990401, NULL, 32213039929, 92129, '{"accounts":2,"buckets":2,"objects":2,"versions":4,"vms":1,"databases":4}', '[]', 'ecf0e958a98ea9ca3d20d3ff161dffc41f6e056722c6c94ec9bcc36e0747ae86', NULL, '[]', 0, NULL, NULL, NULL, NULL, NULL);
INSERT INTO database_samples VALUES (1, 5, 1795920928149, 12288, 0.0, 2, 0, 1);
INSERT INTO database_samples VALUES (1, 5, 1795920933218, 12288, 0.0, 2, 0, 1);
INSERT INTO database_samples VALUES (1, 5, 1795920988600, 12288, 0.0, 2, 0, 1);
INSERT INTO database_samples VALUES (2, 5, 1795920953379, 170852, 0.0, 12, NULL, 15);
INSERT INTO database_samples VALUES (2, 5, 1795920958379, 170852, 0.0, 12, NULL, 15);
INSERT INTO database_samples VALUES (2, 5, 1795920988600, 170852, 0.0, 15, NULL, 15);
INSERT INTO database_samples VALUES (3, 5, 1795920968395, 66035, 0.0, 9, 0, 1);
INSERT INTO database_samples VALUES (3, 5, 1795920973399, 66035, 0.0, 9, 0, 1);
INSERT INTO database_samples VALUES (4, 5, 1795920978593, 28672, 0.0, 2, 0, 1);
INSERT INTO database_samples VALUES (4, 5, 1795920983601, 28672, 0.0, 2, 0, 1);
INSERT INTO database_samples VALUES (4, 5, 1795920988600, 28672, 0.0, 2, 0, 1);
INSERT INTO identity VALUES (1, 'cld-01m8jkmwtwz25ctf48mtraatx2', 1);
CREATE INDEX api_keys_account ON api_keys(account_id);
CREATE INDEX sessions_account ON sessions(account_id);
CREATE INDEX idempotency_age ON idempotency(created_at);
CREATE INDEX ledger_debit ON ledger_transfers(debit, seq, amount_micro);
CREATE INDEX ledger_credit ON ledger_transfers(credit, seq, amount_micro);
CREATE TRIGGER ledger_no_update BEFORE UPDATE ON ledger_transfers
BEGIN SELECT RAISE(ABORT, 'the ledger is insert-only'); END;
CREATE TRIGGER ledger_no_delete BEFORE DELETE ON ledger_transfers
BEGIN SELECT RAISE(ABORT, 'the ledger is insert-only'); END;
CREATE INDEX objects_live ON objects(bucket_id, name) WHERE current IS NOT NULL;
CREATE INDEX versions_object ON versions(object, id);
CREATE INDEX versions_blob ON versions(blob) WHERE blob IS NOT NULL;
CREATE INDEX blob_garbage_due ON blob_garbage(not_before);
CREATE INDEX vms_account ON vms(account_id, id);
CREATE INDEX vms_active ON vms(state) WHERE state NOT IN ('created', 'stopped', 'error');
CREATE INDEX vm_usage_vm ON vm_usage(vm_id, id);
CREATE INDEX vm_usage_account ON vm_usage(account_id, at);
CREATE INDEX vm_samples_age ON vm_samples(step_seconds, at);
CREATE INDEX vms_image ON vms(image_id) WHERE image_id <> 'tiny';
CREATE INDEX billing_accounts_watched ON billing_accounts(account_id) WHERE state <> 'ok' OR resume_due = 1;
CREATE TRIGGER accounts_billed AFTER INSERT ON accounts
BEGIN INSERT INTO billing_accounts (account_id) VALUES (NEW.id); END;
CREATE INDEX usage_lines_account ON usage_lines(account_id);
CREATE INDEX ledger_time ON ledger_transfers(created_at);
CREATE INDEX holds_account ON holds(account_id);
CREATE INDEX webhooks_account ON webhooks(account_id, id);
CREATE INDEX webhook_events_pending ON webhook_events(id) WHERE is_pending = 1;
CREATE INDEX webhook_events_age ON webhook_events(at);
CREATE INDEX webhook_deliveries_due ON webhook_deliveries(webhook, next_at, id) WHERE state = 'pending';
CREATE INDEX webhook_deliveries_log ON webhook_deliveries(webhook, id);
CREATE INDEX webhook_deliveries_event ON webhook_deliveries(event);
CREATE INDEX webhook_attempts_delivery ON webhook_attempts(delivery, id);
CREATE INDEX operations_age ON operations(created_at);
CREATE INDEX databases_account ON databases(account_id, id);
CREATE UNIQUE INDEX databases_name ON databases(account_id, name) WHERE state <> 'deleting';
CREATE INDEX databases_unsettled ON databases(id)
  WHERE applied <> generation OR state IN ('creating', 'deleting');
CREATE INDEX database_samples_age ON database_samples(step_seconds, at);
CREATE UNIQUE INDEX sessions_id ON sessions(session_id);
CREATE INDEX objects_size ON objects(bucket_id, size_bytes) WHERE current IS NOT NULL;
CREATE INDEX objects_changed ON objects(bucket_id, changed_at) WHERE current IS NOT NULL;
CREATE INDEX objects_deleted ON objects(bucket_id, name) WHERE current IS NULL AND changed_at IS NOT NULL;
CREATE INDEX uploads_open ON uploads(bucket_id, name, id) WHERE state = 0;
CREATE INDEX uploads_aborted ON uploads(id) WHERE state = 2;
CREATE INDEX upload_parts_blob ON upload_parts(blob);
CREATE UNIQUE INDEX accounts_canonical ON accounts(canonical_id);
CREATE UNIQUE INDEX buckets_global ON buckets(global_name);
CREATE INDEX buckets_lifecycle ON buckets(lifecycle_due) WHERE lifecycle_due IS NOT NULL;
CREATE INDEX blobs_customer ON blobs(id) WHERE customer IS NOT NULL;
CREATE INDEX blobs_named_key ON blobs(named_key) WHERE named_key IS NOT NULL;
CREATE INDEX uploads_named_key ON uploads(named_key) WHERE named_key IS NOT NULL;
CREATE INDEX versions_damaged ON versions(id) WHERE damaged_at IS NOT NULL;
CREATE INDEX idempotency_account ON idempotency(account_id, created_at, kept_bytes);
CREATE INDEX idempotency_uncounted ON idempotency(created_at) WHERE kept_bytes IS NULL;
CREATE INDEX operations_account ON operations(account_id, created_at, kept_bytes);
CREATE INDEX operations_uncounted ON operations(created_at) WHERE kept_bytes IS NULL AND ended_at IS NOT NULL;
CREATE INDEX resting_names_account ON resting_names(account_id, kind, ends_at);
CREATE INDEX resting_names_due ON resting_names(ends_at);
CREATE INDEX accounts_removal_at ON accounts(removal_at) WHERE removal_at IS NOT NULL;
CREATE UNIQUE INDEX sessions_page_token ON sessions(page_token_hash);
CREATE INDEX vm_ports_vm ON vm_ports(vm_id);
CREATE INDEX vm_ports_account ON vm_ports(account_id);

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
  total_bytes INTEGER NOT NULL DEFAULT 0, settings TEXT, global_name TEXT COLLATE BINARY, lifecycle_due INTEGER, lifecycle_cursor TEXT, metadata_bytes INTEGER NOT NULL DEFAULT 0, row_crc INTEGER, settings_crc INTEGER, damaged_at INTEGER,   -- of all versions
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
INSERT INTO migrations VALUES (1, 'initial', '814f4228bab1e2e8acfdd0e01a8d27f7b714afb6237536fd0d5935a06312dab7', 1795952984149);
INSERT INTO migrations VALUES (2, 'machines', '27abbfd63f00b2a9b93a60e7958825ef4afa8135c71e31444b091964da0f6fee', 1795952984149);
INSERT INTO migrations VALUES (3, 'images', 'f04f2484274a02cd21a10399d045b1a64601bb79048b7e8819661ceeaf68ec19', 1795952984149);
INSERT INTO migrations VALUES (4, 'billing', '1b62b42729c9e9912adadfe53a7e149f46d4a9a891e20adb63db04915540052b', 1795952984149);
INSERT INTO migrations VALUES (5, 'webhooks', 'bd089ab55e3fcb01007c243ee985892100f6a820deb97a61448b09be5a2e7c68', 1795952984149);
INSERT INTO migrations VALUES (6, 'sealed fingerprints', 'fdaf05a37e4d53bccb34ecec49ff2a7686e4263a013c56c69d3f3760a117df6e', 1795952984149);
INSERT INTO migrations VALUES (7, 'operations', '47967728d0d6fef4be769798c52639b719c0520f44e52a297a62ac263778cd27', 1795952984149);
INSERT INTO migrations VALUES (8, 'version access', 'd0b9e827faf0ff9db77baa6f331d90a4d4a478dadae43ecb0a216af42c4353f4', 1795952984149);
INSERT INTO migrations VALUES (9, 'kept answers', 'd18d47290d2020bc827ba42407b830555eb6cb86172e0a33b7b76379310ecebf', 1795952984149);
INSERT INTO migrations VALUES (10, 'free plan', 'cf77d24eca215569afa11e0459054e7e570ea9a916d3eeacacc98917caa013e9', 1795952984149);
INSERT INTO migrations VALUES (11, 'databases', 'e0b50e1946d9a9419a2101465f78b6a69a7a9c4acb45076419c751c0bdd2bca7', 1795952984149);
INSERT INTO migrations VALUES (12, 'free plan databases', '764808813be813f05c79749abdb331e29757be802a23e2ddaa01be8b9eaa264c', 1795952984149);
INSERT INTO migrations VALUES (13, 'recovery', '70991a25df82d19fae2684f7cc0f285e43d5b0785a3fa756e095072f6c96261b', 1795952984149);
INSERT INTO migrations VALUES (14, 'database samples', '10790b88ea381296d04cc23e4fd340372f4f0d9c70e14adcf1a011006f0a8d08', 1795952984149);
INSERT INTO migrations VALUES (15, 'point damage', 'e3d832eef6d74d13e04c0c2244ea7ca2f8ae50d25ccf70d0427233a05cc46b6c', 1795952984149);
INSERT INTO migrations VALUES (16, 'session names', 'dd26ecbbd83382c2c40bde2087de49469b4b88e9264896d773671712291c6f2e', 1795952984149);
INSERT INTO migrations VALUES (17, 'object order', '421d7bd228fce6e48929ec68872faed66af951ca221db840c8071a4c35a518ce', 1795952984149);
INSERT INTO migrations VALUES (18, 'identity', '3d4389febce8db5e30ca1f2f0cadfb54304f605501469724ca0f5b5afceee6cf', 1795952984149);
INSERT INTO migrations VALUES (19, 'kept time', '72e68a33d319d2bc8f2cd224fbd1c70d08607b7d66449e57c455320c8e0914d4', 1795952984149);
INSERT INTO migrations VALUES (20, 'plans follow host', 'e8a1b7daff80aea89d64fa3df5c49b1ab89a69664c5d2298fa85253c26a5f382', 1795952984149);
INSERT INTO migrations VALUES (21, 'account ids', '399a7b17efcc7a06c23f230243453bbe1c3122f917fbfe95b87f79548ae373af', 1795952984149);
INSERT INTO migrations VALUES (22, 's3', 'a2c391c17dbd6036ac77ba2c751ba4fdb728c38b3ac1f812ccced017f8107284', 1795952984149);
INSERT INTO migrations VALUES (23, 'bucket settings', 'a84e3ae983899fcd8005f7dc0b3274b468f8ebed36327cc07aac460fd0592d4a', 1795952984149);
INSERT INTO migrations VALUES (24, 'access', '7e29f153a230ac2df3232a478baceaf52255a7452db212856fb0a4a62cdd1fa3', 1795952984149);
INSERT INTO migrations VALUES (25, 'lock and lifecycle', 'fc3a28c757f18ab9e3a74590057660247e9e38e37658edb8cbe8afcd4ddc2756', 1795952984149);
INSERT INTO migrations VALUES (26, 'encryption', '68270b215a3c09c327534ebae2ac0d900c71fe60175a32c6986c21798bcd8ed8', 1795952984149);
INSERT INTO migrations VALUES (27, 'disabled encryption keys', '8f8ab8b6eb724706988bd86c01bb53732687c807a3860d4c0d9ee3d373d7fce6', 1795952984149);
INSERT INTO migrations VALUES (28, 'published ports', '6dcdaca10105f7cc774a5530b8236a7ae5196b1f031d79400dab6edceda0f76c', 1795952984149);
INSERT INTO migrations VALUES (29, 'scheduled recovery points', '98754d88b50b13936a0d9d694e4e560eea2d22b71f3510f66ea637257f699cb7', 1795952984149);
INSERT INTO migrations VALUES (30, 'recovery drills', '17f77b242b0f72c67d98c5c3fd604b43f7942af766c87e219729e140606a11e6', 1795952984149);
INSERT INTO migrations VALUES (31, 'databases of machines', '7afd84675e4bf85f000f063cb0526b867c80afcd60b227b83d9f9f94e28032b1', 1795952984149);
INSERT INTO migrations VALUES (32, 'restored accounts', '36d83ca734fa4b75db607cac4275acd1e130b6cfdf2af871e67123ec9409c699', 1795952984149);
INSERT INTO migrations VALUES (33, 'row checksums', '8509844b356c3ca6298d341643cf1da48d605abb693b4f93b3624481993bfeee', 1795952984149);
INSERT INTO migrations VALUES (34, 'kept bytes', 'a6165718d54c895209098e5c7536e380ee5b3c010f35b60f9ff912f7b1d82e9a', 1795952984149);
INSERT INTO migrations VALUES (35, 'resting names', '315d272a41b5b97af63f9b8817f7f31839a2ca4e203984a4659e25fdd35412ba', 1795952984149);
INSERT INTO migrations VALUES (36, 'passwords given again', 'f0f1d50406509aa3df0bb4b871e713ad3095ee315dae1efc983328c31ca51f64', 1795952984149);
INSERT INTO migrations VALUES (37, 'session tokens', 'fcd8ce74f18cec090811ba9f62923dc11c30902f8cf55a758fa3b765af9ecece', 1795952984149);
INSERT INTO migrations VALUES (38, 'metadata bytes', '4d1cdbb8c937e8e9d95eaa5a5be25f0be00ee598c0cedddd178b673bbcf594c4', 1795952984149);
INSERT INTO migrations VALUES (39, 'ports given away', '699f0d0fc8a3cba9aca01319c062e49575a446e56f389b063d14da5424458a4c', 1795952984149);
INSERT INTO migrations VALUES (40, 'bucket checksums', 'ebcfc967e9a76a977d6c32824920211c394465ac26ee03295e8ea7eb7b954fd3', 1795952984149);
INSERT INTO secrets VALUES ('links', X'01C9FF015E36B6D040D158BD1AFAC1EDFCBDD6398B623B0F1CA684F58164DFFF3E9026C0EC30C4A83362D72AEAE10A4C92585E5C32B4608142E048AA99BEF50C4456039031');
INSERT INTO secrets VALUES ('recovery-key', X'01C9FF015E36B6D040B86E0C832FC46DD0FDAA20545E9D722B78E10A2EE834D5AB80E5E7E5B0AD9A5E8CAAAAA01615DB738FA05A86B376601F5477F596D20A2B7E677E994A');
INSERT INTO secrets VALUES ('recovery-repository', X'01C9FF015E36B6D040FCC90313AD7F9047C3530DC98154C312BA3510C028F95127E6440E079B3DE6F53298D8D1BD6011AD44C536D5628262263F6C3646A66B133E17FF28C1');
INSERT INTO secrets VALUES ('recovery-writer', X'01C9FF015E36B6D040F1E620FF0683997C2F6B2E1833A9F6CC7F174793427C79D25628C1718325ED48D4AD3D99E28A73892A554368C4914B6DB95F9113BEA6C8F31443342E');
INSERT INTO accounts VALUES (1, 'admin', 'admin', 'admin@localhost', NULL, '', 'free', 1, 1, NULL, 10000000, 0, 1795952985089, NULL, NULL, '3c8ae661907c982e7f636a46a8514270969d69f4de03e0651c4610105901c309', NULL);
INSERT INTO accounts VALUES (2, 'user-7337-1', 'user-7337-1', 'user-7337-1@example.org', 'user-7337-1@example.org', '$argon2id$v=19$m=47104,t=1,p=1$FRoCC3iowRd+WLA6QFW1/A$NsgqGQ3wQ1nVmUVJruxhGXr9qBMnvy9Uatb100KZSFc', 'free', 0, 1, NULL, 10000000, 128102, 1795952988674, NULL, NULL, 'b8bd510435741de699908c34498c1faf5659e60dfeee873a29d48a8ed767c133', NULL);
INSERT INTO api_keys VALUES ('756d38a52628b9608cd29b56078841ab1f3e45439e445006721441afa103b7ed', 1, 'key-01m8kj7h01ehed5d28r6y84wqe', 'main', X'01C9FF015E36B6D0405714C9A0284571A163FC99BCB1E1D8AE4FC1499EB11043B969DC02C6E84AAE11429853FBC25D30B2175BD00F483B39097D55D533C7E932CAD1E1DCCEAD', '', '["*"]', NULL, NULL, NULL, 1795952985091, NULL, 1795953020849);
INSERT INTO api_keys VALUES ('aa6c0944b4f142e1679bfb726c074da89990a46e978b98825673eded9304faa8', 2, 'key-01m8kj7mjzj0z2mn4rrctw46fp', 'access', NULL, 'reader', '["storage:read"]', NULL, 'CLAK6X2RTY2F63YAAM54', X'01C9FF015E36B6D04091E8A76357CBF44BDB84519ECF7AB3EAB331C3CB4694D42B75FE4105E0464B7ACCF201A0A834E18B1E67D701FFA153DE9C1C20B0BDB1207746D6D74BF550E11837383539', 1795952988768, NULL, NULL);
INSERT INTO api_keys VALUES ('ad8cda98a9e35ab6435f11b8a4d82fa3e830a21724ee1310fa8c78857feb8704', 2, 'key-01m8kj7mg2xsq0wm5ytwe8fkym', 'main', X'01C9FF015E36B6D0401BFAD0FAA26A1BE7AE0DB8BFC1F4BB32818A08CBC847183CC2FB9A88E13774DAAB7970354E783C8B38DBAFC9731A501171DCB42838738D30D12B52695569DEB39B02533B5CC7', '', '["*"]', NULL, NULL, NULL, 1795952988675, NULL, 1795953020832);
INSERT INTO ledger_transfers VALUES (1, 'signup:1', 'system:grants', 'account:1', 10000000, 'signup_grant', '10 credits at registration', 1795952985089, '0000000000000000000000000000000000000000000000000000000000000000', '057e16fd9c9d2b70973951c77fee0404fbc07c6b80afaba43796ddfda31e3d1f');
INSERT INTO ledger_transfers VALUES (2, 'signup:2', 'system:grants', 'account:2', 10000000, 'signup_grant', '10 credits at registration', 1795952988674, '057e16fd9c9d2b70973951c77fee0404fbc07c6b80afaba43796ddfda31e3d1f', 'ee1a9d9585f1a9a848d61b7bf7f76d2b674c96b1f7b13f2f551a5bcd2e126087');
INSERT INTO ledger_transfers VALUES (3, 'hold-op-01m8kj8j865vtva5pgkv0534tm', 'account:2', 'held:2', 11600, 'hold', 'vm-01m8kj8j17afyrbcbcxg95vy5v', 1795953019140, 'ee1a9d9585f1a9a848d61b7bf7f76d2b674c96b1f7b13f2f551a5bcd2e126087', '77bb1059929fd8dac0c8ab6b7869ccf1bc5b788c33e6e2c496a66dd242b98ca6');
INSERT INTO ledger_transfers VALUES (4, 'release-op-01m8kj8kw6m2t26xwz3jj5aqwn', 'held:2', 'account:2', 11600, 'release', 'vm-01m8kj8j17afyrbcbcxg95vy5v', 1795953020806, '77bb1059929fd8dac0c8ab6b7869ccf1bc5b788c33e6e2c496a66dd242b98ca6', '5fcfcb4bf23ed90f2a5b70841488159de687dcfe1c769e61bdcaf41e437e76c4');
INSERT INTO buckets VALUES (1, 2, 'plain', 'us-east-1', 1, 0, 1795952988799, 1, 64000, 2, 64015, NULL, 'plain', NULL, NULL, 36, 406667538, 3038422348, NULL);
INSERT INTO buckets VALUES (2, 2, 'sealed', 'us-east-1', 1, 1, 1795952989092, 1, 64000, 2, 64015, NULL, 'sealed', NULL, NULL, 36, 3969978791, 2885784589, NULL);
INSERT INTO objects VALUES (1, 'obj-01m8kj7mpfwkv3r67dtcjksmqw', 1, 'note.txt', 2, 64000, 1795952989077, 2546001146);
INSERT INTO objects VALUES (2, 'obj-01m8kj7mxdyps8v7cqdrf4jza6', 2, 'note.txt', 4, 64000, 1795952989119, 1043078095);
INSERT INTO versions VALUES (1, 'ver-01m8kj7mpfy865s6x7r4ybrjek', 1, 1, 15, '518b13184fe43682d9671ba588289a1b', 'text/plain', 'STANDARD', NULL, 1795952988879, NULL, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 2836995966, NULL, NULL, NULL, NULL, 18);
INSERT INTO versions VALUES (2, 'ver-01m8kj7mwnkn4hgy6b3fp6k2q7', 1, 2, 64000, 'cb7ea5d69f0aea940de33be820ed7886', 'text/plain', 'STANDARD', NULL, 1795952989077, NULL, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 232190280, NULL, NULL, NULL, NULL, 18);
INSERT INTO versions VALUES (3, 'ver-01m8kj7mxd5jtdep6ehb46mej7', 2, 3, 15, '518b13184fe43682d9671ba588289a1b', 'text/plain', 'STANDARD', NULL, 1795952989101, NULL, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 1979035318, NULL, NULL, NULL, NULL, 18);
INSERT INTO versions VALUES (4, 'ver-01m8kj7mxzgqqpvh23wq7xbq4x', 2, 4, 64000, 'cb7ea5d69f0aea940de33be820ed7886', 'text/plain', 'STANDARD', NULL, 1795952989119, NULL, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 2484386186, NULL, NULL, NULL, NULL, 18);
INSERT INTO blobs VALUES (1, NULL, 1, 15, X'746865206669727374206E6F74650A', 2011756644, NULL, NULL, NULL, NULL, NULL);
INSERT INTO blobs VALUES (2, 'blob-01m8kj7mq5ej3k3e6c134z20y7', 1, 64000, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO blobs VALUES (3, NULL, 1, 15, X'79CF3DE2CC4DFE3F59BCA9B9943B4A8819331EFC406447D2B2346A375C8293', 1192699242, X'01C9FF015E36B6D040C0056F4D66634CAA4283143423B29BDCA30FF1FEFFC4EC58CC3428552C53D90D6A2E4E0F47C76C097E1635CFC96ECBD6EC38C9110388A4DA978BF42F', NULL, NULL, NULL, NULL);
INSERT INTO blobs VALUES (4, 'blob-01m8kj7mxnr5jmycev1mkhjqwe', 1, 64000, NULL, NULL, X'01C9FF015E36B6D0407A35000FDEE272A63FF6DE06CE636D251CE642331E30E89A7DC1245F41B6063ECC370018B32E9A755A35AB0E3DFDCB0E66BE47466239BEAD8E13D879', NULL, NULL, NULL, NULL);
INSERT INTO vms VALUES (1, 'vm-01m8kj8j17afyrbcbcxg95vy5v', 2, 'web', 't2.micro', 'us-east-1', '', 1, 1024, 30, 11600, 'tiny', '[]', NULL, '[22,80,443,8080]', 0, '64b3c347-5fea-42f5-8931-c89cd4c1cda4', '52:9e:69:70:8a:5c', '127.242.164.1', 'stopped', 'stopped', 4, 'powered_off', 'The virtual machine was powered off', NULL, NULL, NULL, 1795953020805, NULL, NULL, 1795953018919, NULL);
INSERT INTO vm_usage VALUES (1, 'vm-01m8kj8j17afyrbcbcxg95vy5v', 2, 'created', 't2.micro', 11600, 30, 1795953018919);
INSERT INTO vm_usage VALUES (2, 'vm-01m8kj8j17afyrbcbcxg95vy5v', 2, 'started', 't2.micro', 11600, 30, 1795953020512);
INSERT INTO vm_usage VALUES (3, 'vm-01m8kj8j17afyrbcbcxg95vy5v', 2, 'stopped', 't2.micro', 11600, 30, 1795953020805);
INSERT INTO billing_accounts VALUES (1, 0, 0, 0, 0, 'ok', 0, 0, NULL, NULL, NULL, 0, '{}', 0, 0, 0, 0);
INSERT INTO billing_accounts VALUES (2, 0, 0, 0, 0, 'ok', 0, 0, NULL, NULL, NULL, 0, '{}', 1, 1, 2, 4);
INSERT INTO usage_lines VALUES ('database.storage', 'db-01m8kj7mykvrqe8twr5fxdm5qv', 2, 'of-sqlite', 'sqlite', 12288, 1795952995, 0, 1795952995, 0, 0);
INSERT INTO usage_lines VALUES ('database.storage', 'db-01m8kj7pfqg9egke9y7c0mky7p', 2, 'of-postgresql', 'postgresql', 170852, 1795953010, 0, 1795953010, 0, 0);
INSERT INTO usage_lines VALUES ('database.storage', 'db-01m8kj8711wjqygkk54w20wr96', 2, 'of-mysql', 'mysql', 66035, 1795953020, 0, 1795953020, 0, 0);
INSERT INTO usage_lines VALUES ('database.storage', 'db-01m8kj8fhajx3xbzqz04jf3geh', 2, 'of-mongodb', 'mongodb', 28672, 1795953020, 0, 1795953020, 0, 0);
INSERT INTO usage_lines VALUES ('egress', '1', 2, 'plain', '', 0, 1795952988, 0, 1795952988, 0, 0);
INSERT INTO usage_lines VALUES ('egress', '2', 2, 'sealed', '', 0, 1795952989, 0, 1795952989, 0, 0);
INSERT INTO usage_lines VALUES ('storage', '1', 2, 'plain', '', 64051, 1795952989, 33, 1795952988, 0, 0);
INSERT INTO usage_lines VALUES ('storage', '2', 2, 'sealed', '', 64051, 1795952989, 0, 1795952989, 0, 0);
INSERT INTO usage_lines VALUES ('vm.disk', 'vm-01m8kj8j17afyrbcbcxg95vy5v', 2, 'web', 't2.micro', 30, 1795953019087, 0, 1795953019087, 0, 0);
INSERT INTO usage_lines VALUES ('vm.time', 'vm-01m8kj8j17afyrbcbcxg95vy5v', 2, 'web', 't2.micro', 0, 1795953020805, 294, 1795953020511, 0, 0);
INSERT INTO plans VALUES ('free', 0, '{"vms":68,"vcpus":128,"memory_mb":17408,"storage_bytes":53687091200,"buckets":1000,"databases":50}', 0, 1);
INSERT INTO steady_clock VALUES (1, 'e3375156-ba50-435b-9aaf-c059d907b26d', 63698258.16, 1795953025832, 1795953025831);
INSERT INTO webhooks VALUES (1, 'whk-01m8kj8kx8e4vm66qgztjk4s87', 2, 'https://example.org/hook', '', '["*"]', 1, NULL, NULL, X'01C9FF015E36B6D040FF850ABDB423B065C71117F39941024E4ECFF6BD0329B7D5C275C44833F6CA36AA0DCD31F6F6196336F527C5AB23613B559EF3CD5D88974E63345BA875B2294CD88A9FA75B280B1BAF082D9DDD94', NULL, NULL, NULL, 1795953020841);
INSERT INTO databases VALUES (1, 'db-01m8kj7mykvrqe8twr5fxdm5qv', 2, 'of-sqlite', 'sqlite', '3.53.4', 'us-east-1', 'ready', NULL, NULL, 1, 1, 'd_cxfm9xv8tjmv11vh', 'u_cxfm9xv8tjmv11vh', X'01C9FF015E36B6D040C00E86FDC251A76358CBFE6C523877B5AAEB3343007E18305C65E5F453E64F9D58632CE4AFABA072A6928C70332C60B5F24B8F3059316262933BBA44', NULL, X'2CBB25675857E012CFB46C65C68C6E60FD5F07CC5C1F4B0907CA2734150FA9FB', 1073741824, 12288, 0, 1795952989139, 1795952990592, NULL, 0, NULL, NULL);
INSERT INTO databases VALUES (2, 'db-01m8kj7pfqg9egke9y7c0mky7p', 2, 'of-postgresql', 'postgresql', '15.20', 'us-east-1', 'ready', NULL, NULL, 1, 1, 'd_sfm61btmqg957ex5', 'u_sfm61btmqg957ex5', X'01C9FF015E36B6D0408592DBC1EA148101E1D6B5DA5EB7EBBFB5A6630C954EACDBBC2599F5D67FE1AE5CC71C9BD9209E6966A90D64598BCDB64F70923D9EE5C9A8EDF25F9C', NULL, X'A663348B241E4C15BAABDC526AC04695CB5047B9D27DAB8E71656B2166C01529', 1073741824, 170852, 0, 1795952990711, 1795953007342, NULL, 0, NULL, NULL);
INSERT INTO databases VALUES (3, 'db-01m8kj8711wjqygkk54w20wr96', 2, 'of-mysql', 'mysql', '10.11.19-MariaDB', 'us-east-1', 'ready', NULL, NULL, 1, 1, 'd_g81fws719jmmm6qa', 'u_g81fws719jmmm6qa', X'01C9FF015E36B6D0400ABD60A56E3811E5065A4476C0BBDCEF7AD60756B5A88954568C3A614A9D57146E43B65DB16566119A87097BE83B0C609CE8FE0BE51EFE7E479D69C0', NULL, X'2193FC8EFEF358D0112F45D990F49E7EE35B191D9FE9A74A173EA56C0231A289', 1073741824, 66035, 0, 1795953007650, 1795953016251, NULL, 0, NULL, NULL);
INSERT INTO databases VALUES (4, 'db-01m8kj8fhajx3xbzqz04jf3geh', 2, 'of-mongodb', 'mongodb', '7.0.0-cloudlet', 'us-east-1', 'ready', NULL, NULL, 1, 1, 'd_v1w941zf8td36dfy', 'u_v1w941zf8td36dfy', X'01C9FF015E36B6D040079DD260E81DB78446F7CCC4CC8A64DDF4624AA06EABF896EF1C309107FFEDBE459BE7F58DD9C3694D09A7E986D4F1DBE6577921D53FF7071FC2E484', NULL, X'68A702F599853F234E45895F635CF934ECA782264E3A732D2F2A601F650DDCCC', 1073741824, 28672, 0, 1795953016362, 1795953018473, NULL, 0, NULL, NULL);
INSERT INTO recovery_points VALUES (1, 'drp-01m8kj8m3y6w6s7e86py9pe3g9', 'complete', NULL, '/tmp/cloudlet-upgrade-EgRRqT/recovery', 100.0, 1795953021054, 1795953023600, NULL, 32213039929, 92084, '{"accounts":2,"buckets":2,"objects":2,"versions":4,"vms":1,"databases":4}', '[]', '9dc9179d8c13fe4593e978a9df551de8c483e5b7a53ad03a2d5f7e031e0d8b48', NULL, '[]', 0, NULL, NULL, NULL, NULL, NULL);
INSERT INTO database_samples VALUES (1, 5, 1795952995300, 12288, 0.0, 2, 0, 1);
INSERT INTO database_samples VALUES (1, 5, 1795953000324, 12288, 0.0, 2, 0, 1);
INSERT INTO database_samples VALUES (1, 300, 1795952700000, 12288, 0.0, 2, 0, 1);
INSERT INTO database_samples VALUES (2, 5, 1795953010325, 170852, 0.0, 12, NULL, 15);
INSERT INTO database_samples VALUES (2, 5, 1795953015325, 170852, 0.0, 12, NULL, 15);
INSERT INTO database_samples VALUES (3, 5, 1795953020326, 66035, 0.0, 9, 0, 1);
INSERT INTO database_samples VALUES (4, 5, 1795953020326, 28672, 0.0, 2, 0, 1);
INSERT INTO identity VALUES (1, 'cld-01m8kj7gswwb466x5jb8qcfy7j', 1);
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
CREATE INDEX buckets_damaged ON buckets(id) WHERE damaged_at IS NOT NULL;

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
) STRICT;
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
, session_id TEXT NOT NULL DEFAULT '', user_agent TEXT NOT NULL DEFAULT '', address TEXT NOT NULL DEFAULT '') STRICT, WITHOUT ROWID;
CREATE TABLE setup_links (
  token_hash TEXT PRIMARY KEY,
  expires_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE idempotency (
  scope TEXT NOT NULL,                  -- who and which route
  key TEXT NOT NULL,
  status INTEGER NOT NULL,
  sealed_body BLOB NOT NULL,
  created_at INTEGER NOT NULL, account_id INTEGER NOT NULL DEFAULT 0,
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
  total_bytes INTEGER NOT NULL DEFAULT 0,   -- of all versions
  UNIQUE (account_id, name)
) STRICT;
CREATE TABLE objects (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  object_id TEXT NOT NULL UNIQUE,
  bucket_id INTEGER NOT NULL REFERENCES buckets(id),
  name TEXT NOT NULL COLLATE BINARY,        -- UTF-8 byte order
  current INTEGER, size_bytes INTEGER, changed_at INTEGER,
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
, last_accessed INTEGER) STRICT;
CREATE TABLE blobs (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  name TEXT UNIQUE,                         -- of the file; null when inline
  refs INTEGER NOT NULL DEFAULT 1 CHECK (refs >= 0),
  size_bytes INTEGER NOT NULL,
  data BLOB,
  checksum INTEGER,                         -- CRC-32 of data; files carry their own
  wrapped_key BLOB,                         -- data key under the master key; null: not encrypted
  damaged_at INTEGER                        -- set by the scrubber
) STRICT;
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
) STRICT;
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
) STRICT, WITHOUT ROWID;
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
) STRICT, WITHOUT ROWID;
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
) STRICT;
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
, damage TEXT NOT NULL DEFAULT '[]', damaged_files INTEGER NOT NULL DEFAULT 0, state_before TEXT, grace_left_ms INTEGER) STRICT;
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
INSERT INTO migrations VALUES (1, 'initial', '814f4228bab1e2e8acfdd0e01a8d27f7b714afb6237536fd0d5935a06312dab7', 1795893728723);
INSERT INTO migrations VALUES (2, 'machines', '27abbfd63f00b2a9b93a60e7958825ef4afa8135c71e31444b091964da0f6fee', 1795893728723);
INSERT INTO migrations VALUES (3, 'images', 'f04f2484274a02cd21a10399d045b1a64601bb79048b7e8819661ceeaf68ec19', 1795893728723);
INSERT INTO migrations VALUES (4, 'billing', '1b62b42729c9e9912adadfe53a7e149f46d4a9a891e20adb63db04915540052b', 1795893728723);
INSERT INTO migrations VALUES (5, 'webhooks', 'bd089ab55e3fcb01007c243ee985892100f6a820deb97a61448b09be5a2e7c68', 1795893728723);
INSERT INTO migrations VALUES (6, 'sealed fingerprints', 'fdaf05a37e4d53bccb34ecec49ff2a7686e4263a013c56c69d3f3760a117df6e', 1795893728723);
INSERT INTO migrations VALUES (7, 'operations', '47967728d0d6fef4be769798c52639b719c0520f44e52a297a62ac263778cd27', 1795893728723);
INSERT INTO migrations VALUES (8, 'version access', 'd0b9e827faf0ff9db77baa6f331d90a4d4a478dadae43ecb0a216af42c4353f4', 1795893728723);
INSERT INTO migrations VALUES (9, 'kept answers', 'd18d47290d2020bc827ba42407b830555eb6cb86172e0a33b7b76379310ecebf', 1795893728723);
INSERT INTO migrations VALUES (10, 'free plan', 'cf77d24eca215569afa11e0459054e7e570ea9a916d3eeacacc98917caa013e9', 1795893728723);
INSERT INTO migrations VALUES (11, 'databases', 'e0b50e1946d9a9419a2101465f78b6a69a7a9c4acb45076419c751c0bdd2bca7', 1795893728723);
INSERT INTO migrations VALUES (12, 'free plan databases', '764808813be813f05c79749abdb331e29757be802a23e2ddaa01be8b9eaa264c', 1795893728723);
INSERT INTO migrations VALUES (13, 'recovery', '70991a25df82d19fae2684f7cc0f285e43d5b0785a3fa756e095072f6c96261b', 1795893728723);
INSERT INTO migrations VALUES (14, 'database samples', '10790b88ea381296d04cc23e4fd340372f4f0d9c70e14adcf1a011006f0a8d08', 1795893728723);
INSERT INTO migrations VALUES (15, 'point damage', 'e3d832eef6d74d13e04c0c2244ea7ca2f8ae50d25ccf70d0427233a05cc46b6c', 1795893728723);
INSERT INTO migrations VALUES (16, 'session names', 'dd26ecbbd83382c2c40bde2087de49469b4b88e9264896d773671712291c6f2e', 1795893728723);
INSERT INTO migrations VALUES (17, 'object order', '421d7bd228fce6e48929ec68872faed66af951ca221db840c8071a4c35a518ce', 1795893728723);
INSERT INTO secrets VALUES ('links', X'01514970F6285B72B837FF049258D90B30F9BA864E102995EC8300828B2B2C5F80C6E260909C69D577EA3F01996CAEFB0C96F596E40B750B7B6106FA7B5D76C1FDEFB61E33');
INSERT INTO secrets VALUES ('recovery-key', X'01514970F6285B72B84BCF3B93CFD19F03D33F8A298FF46E6E2225FE7E82003F855178616774546BEA2A08966C3A2D645FD79DAA410F6C92550BC3C8D187CFDEFB500ECD93');
INSERT INTO secrets VALUES ('recovery-repository', X'01514970F6285B72B80C91F869C998F609FCAB72CB99ACFB56CBA441C2EF84AD0A92605CBF320E9A31F8587DA1C851C9E1164B7F037F97CF18D566EA4FC544C1A31477C40D');
INSERT INTO secrets VALUES ('recovery-writer', X'01514970F6285B72B824C0742CEBAD9EF6C560E862FE6AC1E2007F5E635431DF5D13EFA05ED746962CFE454618EB46BA08000F28C3673AB80BE5610EC3D3A3363490DB4408');
INSERT INTO accounts VALUES (1, 'admin', 'admin', 'admin@localhost', NULL, '', 'free', 1, 1, NULL, 10000000, 0, 1795893730405, NULL, NULL);
INSERT INTO accounts VALUES (2, 'user-13476-1', 'user-13476-1', 'user-13476-1@example.org', 'user-13476-1@example.org', '$argon2id$v=19$m=47104,t=1,p=1$KKSBYaUo+yDZn6Oe12+O1A$AhksHZ7oAKcAfotsFNzmsNQ4zJspMklf9xlxCDhPjeU', 'free', 0, 1, NULL, 10000000, 128030, 1795893736398, NULL, NULL);
INSERT INTO api_keys VALUES ('1ce36e9669cd849f32eccf48c4e057ac2c07eac9642f483885ae8f39c617cad7', 2, 'key-01m8hsqcyfx5zs07t86f86zmw0', 'main', X'01514970F6285B72B8FDF272BC3CB08F76A4FB07115BA943B880B91F78F056F09EF5648CD600ACE6E703E536043474C7E0FFE3FB2FEEC380D72418DDB7398FDBDC21418534D321D578B9400823EC06', '', '["*"]', NULL, NULL, NULL, 1795893736399, NULL, 1795893798801);
INSERT INTO api_keys VALUES ('756d38a52628b9608cd29b56078841ab1f3e45439e445006721441afa103b7ed', 1, 'key-01m8hsq735bw28spqf7yzqdf8g', 'main', X'01514970F6285B72B8798D8448099F32467947C497ED84B8FEAD1A9D4FFBE2AC40E31F3AF92CB463BB47728B8E57E2AD1C3E476CF34FDD4D2F39EE3690CD77F6F288F9BE75EA', '', '["*"]', NULL, NULL, NULL, 1795893730406, NULL, 1795893798913);
INSERT INTO api_keys VALUES ('d8b2b32039e06ceca57a20888b40f14eb50c105aafe99694f0793c17a6360b46', 2, 'key-01m8hsqdcrx99wyfxy386kdg05', 'access', NULL, 'reader', '["storage:read"]', NULL, 'CLAKJEOI4O6IHE2ANMVQ', X'01514970F6285B72B85887B565AC758C35A8ADC84B6673FD16F3A8F937E48EA7A99600AA5E80EE80C1AD0B827552E27A0538E8B91C51AEF7E5C88789941FF8B5AF754F010AEB08512EAB268E20', 1795893736857, NULL, NULL);
INSERT INTO ledger_transfers VALUES (1, 'signup:1', 'system:grants', 'account:1', 10000000, 'signup_grant', '10 credits at registration', 1795893730405, '0000000000000000000000000000000000000000000000000000000000000000', '5f4dd56b7f7d4732a9fbb87805c905ac5d9ac168ba89005243535b7650778081');
INSERT INTO ledger_transfers VALUES (2, 'signup:2', 'system:grants', 'account:2', 10000000, 'signup_grant', '10 credits at registration', 1795893736398, '5f4dd56b7f7d4732a9fbb87805c905ac5d9ac168ba89005243535b7650778081', 'e4d14040c0b7ab9220ec648328cbf590bdcf67f84963acbb4f3e6c1863c87887');
INSERT INTO ledger_transfers VALUES (3, 'hold-op-01m8hss581jcy6q8fs6jfjyrh4', 'account:2', 'held:2', 11600, 'hold', 'vm-01m8hss4gr3bjwshnvg1f1ac6f', 1795893794049, 'e4d14040c0b7ab9220ec648328cbf590bdcf67f84963acbb4f3e6c1863c87887', 'f7ee646d0f5c0f68c4eeceb8982b43d93ebdc5f69b7a1a41796d9bcf2226d1fe');
INSERT INTO ledger_transfers VALUES (4, 'release-op-01m8hss9rgwqc46gxfccem0z87', 'held:2', 'account:2', 11600, 'release', 'vm-01m8hss4gr3bjwshnvg1f1ac6f', 1795893798672, 'f7ee646d0f5c0f68c4eeceb8982b43d93ebdc5f69b7a1a41796d9bcf2226d1fe', 'eb9a7bed0a0e95619e3ec00d176688802e9b40795a03c5a939b325ddb59392dc');
INSERT INTO buckets VALUES (1, 2, 'plain', 'us-east-1', 1, 0, 1795893737092, 1, 64000, 2, 64015);
INSERT INTO buckets VALUES (2, 2, 'sealed', 'us-east-1', 1, 1, 1795893740031, 1, 64000, 2, 64015);
INSERT INTO objects VALUES (1, 'obj-01m8hsqdw8dsjb2te1jvyb5vpx', 1, 'note.txt', 2, 64000, 1795893739942);
INSERT INTO objects VALUES (2, 'obj-01m8hsqgm329gmh4rnttqn8tgv', 2, 'note.txt', 4, 64000, 1795893740502);
INSERT INTO versions VALUES (1, 'ver-01m8hsqdw83m9b73pd8s64g5ke', 1, 1, 15, '518b13184fe43682d9671ba588289a1b', 'text/plain', 'STANDARD', NULL, 1795893737352, NULL);
INSERT INTO versions VALUES (2, 'ver-01m8hsqgd5pyrw7m3at85qay74', 1, 2, 64000, 'cb7ea5d69f0aea940de33be820ed7886', 'text/plain', 'STANDARD', NULL, 1795893739942, NULL);
INSERT INTO versions VALUES (3, 'ver-01m8hsqgm3zhx7yz96fafp4awf', 2, 3, 15, '518b13184fe43682d9671ba588289a1b', 'text/plain', 'STANDARD', NULL, 1795893740163, NULL);
INSERT INTO versions VALUES (4, 'ver-01m8hsqgypmmtats4sq5jbtyv7', 2, 4, 64000, 'cb7ea5d69f0aea940de33be820ed7886', 'text/plain', 'STANDARD', NULL, 1795893740502, NULL);
INSERT INTO blobs VALUES (1, NULL, 1, 15, X'746865206669727374206E6F74650A', 2011756644, NULL, NULL);
INSERT INTO blobs VALUES (2, 'blob-01m8hsqe3cgaqqg9hbesm8attg', 1, 64000, NULL, NULL, NULL, NULL);
INSERT INTO blobs VALUES (3, NULL, 1, 15, X'5CEBDF856B7E94D2605AB38CF7C29D1B662981F59E1C82979D8B00EC69CCDB', 2177606674, X'01514970F6285B72B80DC0470437D0D6413E7E44CEB47C42EF1C9F67CA8AE87DEEF8C67755BDE04EA3F1994E877D3D30294E095D123946E78A7E4E967BC87139EE39DF83C2', NULL);
INSERT INTO blobs VALUES (4, 'blob-01m8hsqgx785h67fszhfafv21d', 1, 64000, NULL, NULL, X'01514970F6285B72B8A633DA682F1C3FC2D06797A7CBC33290D94D5A918F79BA9BCA0EFFD3280EED22C1BBD134D2E2B3F3644FE7681B8261C70D9DECA3D39E4A674A27E19A', NULL);
INSERT INTO vms VALUES (1, 'vm-01m8hss4gr3bjwshnvg1f1ac6f', 2, 'web', 't2.micro', 'us-east-1', '', 1, 1024, 30, 11600, 'tiny', '[]', NULL, '[22,80,443,8080]', 0, 'dd4cba5a-bd63-4a24-b96e-f61768ba256d', '52:02:a7:b5:3a:1c', '127.218.144.1', 'stopped', 'stopped', 4, 'powered_off', 'The machine was powered off without waiting any longer', NULL, NULL, NULL, 1795893798656, NULL, NULL, 1795893793304);
INSERT INTO vm_usage VALUES (1, 'vm-01m8hss4gr3bjwshnvg1f1ac6f', 2, 'created', 't2.micro', 11600, 30, 1795893793304);
INSERT INTO vm_usage VALUES (2, 'vm-01m8hss4gr3bjwshnvg1f1ac6f', 2, 'started', 't2.micro', 11600, 30, 1795893797188);
INSERT INTO vm_usage VALUES (3, 'vm-01m8hss4gr3bjwshnvg1f1ac6f', 2, 'stopped', 't2.micro', 11600, 30, 1795893798656);
INSERT INTO billing_accounts VALUES (1, 0, 0, 0, 0, 'ok', 0, 0, NULL, NULL, NULL, 0, '{}', 0, 0, 0, 0);
INSERT INTO billing_accounts VALUES (2, 1, 1795893791239, 0, 0, 'ok', 0, 0, NULL, NULL, NULL, 0, '{}', 1, 1, 2, 4);
INSERT INTO usage_lines VALUES ('database.storage', 'db-01m8hsqjbgna9pb5ndrd1ann00', 2, 'of-sqlite', 'sqlite', 12288, 1795893791, 0, 1795893791, 0, 0);
INSERT INTO usage_lines VALUES ('database.storage', 'db-01m8hsqsqx8jhr7sma39wpgb6a', 2, 'of-postgresql', 'postgresql', 170852, 1795893791, 0, 1795893791, 0, 0);
INSERT INTO usage_lines VALUES ('database.storage', 'db-01m8hsrg1nydqavh2erbz68vba', 2, 'of-mysql', 'mysql', 66035, 1795893791, 0, 1795893791, 0, 0);
INSERT INTO usage_lines VALUES ('database.storage', 'db-01m8hsrsnvs0ynqm6ewe1cakz9', 2, 'of-mongodb', 'mongodb', 28672, 1795893796, 0, 1795893796, 0, 0);
INSERT INTO usage_lines VALUES ('egress', '1', 2, 'plain', '', 0, 1795893737, 0, 1795893737, 0, 0);
INSERT INTO usage_lines VALUES ('egress', '2', 2, 'sealed', '', 0, 1795893740, 0, 1795893740, 0, 0);
INSERT INTO usage_lines VALUES ('storage', '1', 2, 'plain', '', 64015, 1795893791, 0, 1795893791, 0, 0);
INSERT INTO usage_lines VALUES ('storage', '2', 2, 'sealed', '', 64015, 1795893791, 0, 1795893791, 0, 0);
INSERT INTO usage_lines VALUES ('vm.disk', 'vm-01m8hss4gr3bjwshnvg1f1ac6f', 2, 'web', 't2.micro', 30, 1795893793745, 0, 1795893793745, 0, 0);
INSERT INTO usage_lines VALUES ('vm.time', 'vm-01m8hss4gr3bjwshnvg1f1ac6f', 2, 'web', 't2.micro', 0, 1795893798655, 1468, 1795893797187, 0, 0);
INSERT INTO usage_windows VALUES (2, 1795892400000, 'database.storage', 'db-01m8hsqjbgna9pb5ndrd1ann00', 'of-sqlite', 'sqlite', 0, 491520, 0);
INSERT INTO usage_windows VALUES (2, 1795892400000, 'database.storage', 'db-01m8hsqsqx8jhr7sma39wpgb6a', 'of-postgresql', 'postgresql', 0, 3376080, 0);
INSERT INTO usage_windows VALUES (2, 1795892400000, 'database.storage', 'db-01m8hsrg1nydqavh2erbz68vba', 'of-mysql', 'mysql', 0, 264140, 0);
INSERT INTO usage_windows VALUES (2, 1795892400000, 'storage', '1', 'plain', '', 0, 3328810, 0);
INSERT INTO usage_windows VALUES (2, 1795892400000, 'storage', '2', 'sealed', '', 0, 3264765, 0);
INSERT INTO plans VALUES ('free', 0, '{"vms":50,"vcpus":200,"buckets":1000,"databases":50}', 0);
INSERT INTO steady_clock VALUES (1, 'e3375156-ba50-435b-9aaf-c059d907b26d', 4484795.223, 1795893812369, 1795893812368);
INSERT INTO webhooks VALUES (1, 'whk-01m8hss9xy72qb68cmxhm9fqd8', 2, 'https://example.org/hook', '', '["*"]', 1, NULL, NULL, X'01514970F6285B72B8A63B3FBFB3636A9CC34FF04EB07F1AC69390C15F50655527FE151A4C49980DB096AE0EEE663B1EE77B4E21969C0030680490FAEA4C3AF16A456D5921208ADCAEB1675E575A75271AC57C907F24A0', NULL, NULL, NULL, 1795893798848);
INSERT INTO databases VALUES (1, 'db-01m8hsqjbgna9pb5ndrd1ann00', 2, 'of-sqlite', 'sqlite', '3.53.4', 'us-east-1', 'ready', NULL, NULL, 1, 1, 'd_662j603ph8m7c8c3', 'u_662j603ph8m7c8c3', X'01514970F6285B72B86E87A33953DD7DA55D4F90BB3642C5D01DCE136C8A7AD99DEA076E9050BC124DBDC593A682AF8DE06110F8053B5F1B1377760153A4AC7430C75C4DED', NULL, X'BF79BBDEA962D972ECB91B52D4395FA85139FF1EB3FCDD702B8DF876C5B0FA4D', 1073741824, 12288, 0, 1795893741937, 1795893745846, NULL, 0, NULL);
INSERT INTO databases VALUES (2, 'db-01m8hsqsqx8jhr7sma39wpgb6a', 2, 'of-postgresql', 'postgresql', '15.20', 'us-east-1', 'ready', NULL, NULL, 1, 1, 'd_j48h4xn14zmndpv8', 'u_j48h4xn14zmndpv8', X'01514970F6285B72B8B779C446FC4AEB9DDB72E83DB75FAFC1E2976159978F4B35792321738028999B83C3176325B0E210A385F58C295F4A7D780D90ECD003305FD572E726', NULL, X'D8B9ADA8D339FBE2DBD3F12966CB13DBDB1AA2CBE036037BA293699596578994', 1073741824, 170852, 0, 1795893749501, 1795893771271, NULL, 0, NULL);
INSERT INTO databases VALUES (3, 'db-01m8hsrg1nydqavh2erbz68vba', 2, 'of-mysql', 'mysql', '10.11.19-MariaDB', 'us-east-1', 'ready', NULL, NULL, 1, 1, 'd_gj31w16fwh01m1q3', 'u_gj31w16fwh01m1q3', X'01514970F6285B72B8873E6430726356E4792F7B76269637C17DCE5E48829CDAC00BF4805725E20749709EEEFB378CB284DDB2354338531C94F5FFDC24BB85E0FA059B8D06', NULL, X'B5242E6EDCBEB902CBD25736F29A1BE8313C5906272AC37029E9559EB718ABA1', 1073741824, 66035, 0, 1795893772341, 1795893781923, NULL, 0, NULL);
INSERT INTO databases VALUES (4, 'db-01m8hsrsnvs0ynqm6ewe1cakz9', 2, 'of-mongodb', 'mongodb', '7.0.0-cloudlet', 'us-east-1', 'ready', NULL, NULL, 1, 1, 'd_s1q6jbft439jdhj6', 'u_s1q6jbft439jdhj6', X'01514970F6285B72B81F7468D7A2097C44D182C58AB047E8ACA86B78633B12C2997ECAC8AF99B67751FACCCDFD7AFD28E195DCF8C3828FF52454B50CE6D705196BB9405F4C', NULL, X'67168057D2212819F36C0AB8E26E604250665BA24A282DDB29EFC718C52F1A07', 1073741824, 28672, 0, 1795893782203, 1795893789991, NULL, 0, NULL);
INSERT INTO recovery_points VALUES (1, 'drp-01m8hssarfygna7hx3xe8f9cbx', 'complete', NULL, '/tmp/cloudlet-upgrade-3NdiC1/recovery', 100.0, 1795893799695, 1795893808635, NULL, 32212892428, 85975, '{"accounts":2,"buckets":2,"objects":2,"versions":4,"vms":1,"databases":4}', '[]', '33080ddd6d8f621abe247af86d2850f9a2226a903a8af215da24d108daa6bb93', NULL, '[]', 0, NULL, NULL);
INSERT INTO database_samples VALUES (1, 5, 1795893751560, 12288, 0.0, 2, 0, 1);
INSERT INTO database_samples VALUES (1, 5, 1795893756564, 12288, 0.0, 2, 0, 1);
INSERT INTO database_samples VALUES (1, 5, 1795893806971, 12288, 0.0, 2, 0, 1);
INSERT INTO database_samples VALUES (2, 5, 1795893771573, 162660, 0.0, 2, NULL, 1);
INSERT INTO database_samples VALUES (2, 5, 1795893776576, 170852, 0.0, 6, NULL, 15);
INSERT INTO database_samples VALUES (2, 5, 1795893781583, 170852, 0.0, 6, NULL, 15);
INSERT INTO database_samples VALUES (3, 5, 1795893786628, 66035, 0.0, 4, 0, 1);
INSERT INTO database_samples VALUES (3, 5, 1795893791790, 66035, 0.0, 4, 0, 1);
INSERT INTO database_samples VALUES (4, 5, 1795893791790, 0, 0.0, 0, 0, 0);
INSERT INTO database_samples VALUES (4, 5, 1795893796854, 28672, 0.0, 1, 0, 1);
INSERT INTO database_samples VALUES (4, 5, 1795893806971, 28672, 0.0, 1, 0, 1);
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
CREATE INDEX idempotency_account ON idempotency(account_id, created_at);
CREATE INDEX operations_account ON operations(account_id, created_at);
CREATE INDEX databases_account ON databases(account_id, id);
CREATE UNIQUE INDEX databases_name ON databases(account_id, name) WHERE state <> 'deleting';
CREATE INDEX databases_unsettled ON databases(id)
  WHERE applied <> generation OR state IN ('creating', 'deleting');
CREATE INDEX database_samples_age ON database_samples(step_seconds, at);
CREATE UNIQUE INDEX sessions_id ON sessions(session_id);
CREATE INDEX objects_size ON objects(bucket_id, size_bytes) WHERE current IS NOT NULL;
CREATE INDEX objects_changed ON objects(bucket_id, changed_at) WHERE current IS NOT NULL;
CREATE INDEX objects_deleted ON objects(bucket_id, name) WHERE current IS NULL AND changed_at IS NOT NULL;

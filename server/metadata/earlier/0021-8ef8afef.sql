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
CREATE TABLE identity (
  id INTEGER PRIMARY KEY CHECK (id = 1),
  cloud_id TEXT NOT NULL,
  starts INTEGER NOT NULL                 -- times that it was started on these files; 0 once it was restored
) STRICT;
INSERT INTO migrations VALUES (1, 'initial', '814f4228bab1e2e8acfdd0e01a8d27f7b714afb6237536fd0d5935a06312dab7', 1795894583391);
INSERT INTO migrations VALUES (2, 'machines', '27abbfd63f00b2a9b93a60e7958825ef4afa8135c71e31444b091964da0f6fee', 1795894583391);
INSERT INTO migrations VALUES (3, 'images', 'f04f2484274a02cd21a10399d045b1a64601bb79048b7e8819661ceeaf68ec19', 1795894583391);
INSERT INTO migrations VALUES (4, 'billing', '1b62b42729c9e9912adadfe53a7e149f46d4a9a891e20adb63db04915540052b', 1795894583391);
INSERT INTO migrations VALUES (5, 'webhooks', 'bd089ab55e3fcb01007c243ee985892100f6a820deb97a61448b09be5a2e7c68', 1795894583391);
INSERT INTO migrations VALUES (6, 'sealed fingerprints', 'fdaf05a37e4d53bccb34ecec49ff2a7686e4263a013c56c69d3f3760a117df6e', 1795894583391);
INSERT INTO migrations VALUES (7, 'operations', '47967728d0d6fef4be769798c52639b719c0520f44e52a297a62ac263778cd27', 1795894583391);
INSERT INTO migrations VALUES (8, 'version access', 'd0b9e827faf0ff9db77baa6f331d90a4d4a478dadae43ecb0a216af42c4353f4', 1795894583391);
INSERT INTO migrations VALUES (9, 'kept answers', 'd18d47290d2020bc827ba42407b830555eb6cb86172e0a33b7b76379310ecebf', 1795894583391);
INSERT INTO migrations VALUES (10, 'free plan', 'cf77d24eca215569afa11e0459054e7e570ea9a916d3eeacacc98917caa013e9', 1795894583391);
INSERT INTO migrations VALUES (11, 'databases', 'e0b50e1946d9a9419a2101465f78b6a69a7a9c4acb45076419c751c0bdd2bca7', 1795894583391);
INSERT INTO migrations VALUES (12, 'free plan databases', '764808813be813f05c79749abdb331e29757be802a23e2ddaa01be8b9eaa264c', 1795894583391);
INSERT INTO migrations VALUES (13, 'recovery', '70991a25df82d19fae2684f7cc0f285e43d5b0785a3fa756e095072f6c96261b', 1795894583391);
INSERT INTO migrations VALUES (14, 'database samples', '10790b88ea381296d04cc23e4fd340372f4f0d9c70e14adcf1a011006f0a8d08', 1795894583391);
INSERT INTO migrations VALUES (15, 'point damage', 'e3d832eef6d74d13e04c0c2244ea7ca2f8ae50d25ccf70d0427233a05cc46b6c', 1795894583391);
INSERT INTO migrations VALUES (16, 'session names', 'dd26ecbbd83382c2c40bde2087de49469b4b88e9264896d773671712291c6f2e', 1795894583391);
INSERT INTO migrations VALUES (17, 'object order', '421d7bd228fce6e48929ec68872faed66af951ca221db840c8071a4c35a518ce', 1795894583391);
INSERT INTO migrations VALUES (18, 'identity', '3d4389febce8db5e30ca1f2f0cadfb54304f605501469724ca0f5b5afceee6cf', 1795894583391);
INSERT INTO migrations VALUES (19, 'kept time', '72e68a33d319d2bc8f2cd224fbd1c70d08607b7d66449e57c455320c8e0914d4', 1795894583391);
INSERT INTO migrations VALUES (20, 'plans follow host', 'e8a1b7daff80aea89d64fa3df5c49b1ab89a69664c5d2298fa85253c26a5f382', 1795894583391);
INSERT INTO migrations VALUES (21, 'account ids', '399a7b17efcc7a06c23f230243453bbe1c3122f917fbfe95b87f79548ae373af', 1795894583391);
INSERT INTO secrets VALUES ('links', X'0172E8B2AF606430522A6DC75F00CAA86C848B3554E89DFACACEB5DB73581906479B77372E0A0F62D2B4EB117B02F4501BDDBB6D045E255EFAFE43AB1188B2E9E41D280679');
INSERT INTO secrets VALUES ('recovery-key', X'0172E8B2AF606430529AD203883DD92066A9F1C5E1505A3BD7BEC651B6D6FFD8DDE7BF911177B7B88A890924C9BA089F9D674B99FD9595D0FFEB7FC5619FD585206E4DC517');
INSERT INTO secrets VALUES ('recovery-repository', X'0172E8B2AF606430528509D7BCAA44CC0D672262F6A23F4137303E8CD0EBDF964022041E1B79E3D339FA5ABCB845DE4CD570924609B6A7F7DDB8A0A00778998B035FC8A033');
INSERT INTO secrets VALUES ('recovery-writer', X'0172E8B2AF60643052F0ED9F8B8886ABDC7CAD0554A177A5CA8BA5D6CAD28E981DFBC6E33389AD50B127ECB27EC500497B4477044FABAC4C02102EB90A0E345A535D43A465');
INSERT INTO accounts VALUES (1, 'admin', 'admin', 'admin@localhost', NULL, '', 'free', 1, 1, NULL, 10000000, 0, 1795894590018, NULL, NULL);
INSERT INTO accounts VALUES (2, 'user-26572-1', 'user-26572-1', 'user-26572-1@example.org', 'user-26572-1@example.org', '$argon2id$v=19$m=47104,t=1,p=1$T8kiVDAwRocSfOchNAu0xw$uAENtuRHb9UU28mmPIpj34VC2LG3ycm3DfxSvkD/zJ0', 'free', 0, 1, NULL, 10000000, 128030, 1795894607492, NULL, NULL);
INSERT INTO api_keys VALUES ('05535e02432730742a7e1b49fd050dab9760d1f84f6e3dfef7ac1dc3028388b1', 2, 'key-01m8htj0axr140djtqrna7pknt', 'access', NULL, 'reader', '["storage:read"]', NULL, 'CLAKKJQZAO2RENMCTD7L', X'0172E8B2AF60643052FCA7C58564570391D85D06355352F023A5F3FB52FF0D1FCF688186F88DA8BD61C9C8CE421EB2DC59F59C92E574A2278D7A3F760A6987197505D1BCC25C40FA4367A8247C', 1795894608222, NULL, NULL);
INSERT INTO api_keys VALUES ('756d38a52628b9608cd29b56078841ab1f3e45439e445006721441afa103b7ed', 1, 'key-01m8hthejfhhe7e1452k9xy4pb', 'main', X'0172E8B2AF60643052D9C74B00F7F544602F3E015C425056E6DEE2D4C3EC6A03FCB6D25E6E54AFC22323399AE1E29AAF8559AC7473B29590D900124FFAF71526F919F7EA04D1', '', '["*"]', NULL, NULL, NULL, 1795894590067, NULL, 1795894682394);
INSERT INTO api_keys VALUES ('d18740c2e25905d561f2f9d86bff00688a96b6a577f42ed458d79cc7db4f52f3', 2, 'key-01m8hthzm4eekfnvxfg3t7p9m7', 'main', X'0172E8B2AF60643052F60AC139C62B6A523B3829C166D351C3B8B052E008622B355C229E46B079499B80F67A920D0BA87E714616F915C8B984718668D006767834CCA6AE330DA6563FC64972695CB1', '', '["*"]', NULL, NULL, NULL, 1795894607493, NULL, 1795894682098);
INSERT INTO ledger_transfers VALUES (1, 'signup:1', 'system:grants', 'account:1', 10000000, 'signup_grant', '10 credits at registration', 1795894590018, '0000000000000000000000000000000000000000000000000000000000000000', '3a99dbafe8bbbe413d47a7888e8c38faf8da3e994b2c2bd36df30c28d9a40988');
INSERT INTO ledger_transfers VALUES (2, 'signup:2', 'system:grants', 'account:2', 10000000, 'signup_grant', '10 credits at registration', 1795894607492, '3a99dbafe8bbbe413d47a7888e8c38faf8da3e994b2c2bd36df30c28d9a40988', 'aa4cc3996f111c261b8f86fefc1444f5d86541d143f7bfd96966789743565f59');
INSERT INTO ledger_transfers VALUES (3, 'hold-op-01m8htm310b5ch1h98n3hgbqrk', 'account:2', 'held:2', 11600, 'hold', 'vm-01m8htm1xkyzcs33k5rckj3s7d', 1795894676512, 'aa4cc3996f111c261b8f86fefc1444f5d86541d143f7bfd96966789743565f59', '79cefa22f85ed3728b6f598dc003b1438bb2a00cd25607309970265bafb489dd');
INSERT INTO ledger_transfers VALUES (4, 'release-op-01m8htm87gx0tvwfs7sb1v70nf', 'held:2', 'account:2', 11600, 'release', 'vm-01m8htm1xkyzcs33k5rckj3s7d', 1795894681862, '79cefa22f85ed3728b6f598dc003b1438bb2a00cd25607309970265bafb489dd', '4d86195a9bcd097ad1951e5adbfddb312631b87163696dd56134001ab269293f');
INSERT INTO buckets VALUES (1, 2, 'plain', 'us-east-1', 1, 0, 1795894608414, 1, 64000, 2, 64015);
INSERT INTO buckets VALUES (2, 2, 'sealed', 'us-east-1', 1, 1, 1795894612597, 1, 64000, 2, 64015);
INSERT INTO objects VALUES (1, 'obj-01m8htj0vhr3964ee23q3e4ezt', 1, 'note.txt', 2, 64000, 1795894612340);
INSERT INTO objects VALUES (2, 'obj-01m8htj4t919bf2gkvhmbmztk4', 2, 'note.txt', 4, 64000, 1795894613347);
INSERT INTO versions VALUES (1, 'ver-01m8htj0vhy0t312969thjy6jr', 1, 1, 15, '518b13184fe43682d9671ba588289a1b', 'text/plain', 'STANDARD', NULL, 1795894608753, NULL);
INSERT INTO versions VALUES (2, 'ver-01m8htj4bm0fxvcfzv8s0qkvqn', 1, 2, 64000, 'cb7ea5d69f0aea940de33be820ed7886', 'text/plain', 'STANDARD', NULL, 1795894612340, NULL);
INSERT INTO versions VALUES (3, 'ver-01m8htj4t9p4fcxhzhp8q3nemq', 2, 3, 15, '518b13184fe43682d9671ba588289a1b', 'text/plain', 'STANDARD', NULL, 1795894612809, NULL);
INSERT INTO versions VALUES (4, 'ver-01m8htj5b31fdf21m5y3xyxk6w', 2, 4, 64000, 'cb7ea5d69f0aea940de33be820ed7886', 'text/plain', 'STANDARD', NULL, 1795894613347, NULL);
INSERT INTO blobs VALUES (1, NULL, 1, 15, X'746865206669727374206E6F74650A', 2011756644, NULL, NULL);
INSERT INTO blobs VALUES (2, 'blob-01m8htj11g89t881jx7qegabs5', 1, 64000, NULL, NULL, NULL, NULL);
INSERT INTO blobs VALUES (3, NULL, 1, 15, X'8349E2E7925C45858B93B360171CD6B7FCDB208128D62E1D2D979A26FD5CB4', 4107190695, X'0172E8B2AF606430527FF944E5604D62497CF1427C5EDE27E8837E8D3FB0085B374A1846596A4AA1373DB574A0C6B779EF3FBD4539FE91C43C7B9BFF078A3AE08036206CE7', NULL);
INSERT INTO blobs VALUES (4, 'blob-01m8htj57cp937fry444qz6prj', 1, 64000, NULL, NULL, X'0172E8B2AF6064305283E4A325A948732AE173C6003286D430D618FE3D2A063B241796B60806CF87DCE8C4A02B7CDF13904B9EBC6A7D44758AF744D9710F7878755EE7FFD1', NULL);
INSERT INTO vms VALUES (1, 'vm-01m8htm1xkyzcs33k5rckj3s7d', 2, 'web', 't2.micro', 'us-east-1', '', 1, 1024, 30, 11600, 'tiny', '[]', NULL, '[22,80,443,8080]', 0, '2a30cd70-a81a-4224-9f60-a6626600d39f', '52:a9:a9:b0:f0:39', '127.183.48.1', 'stopped', 'stopped', 4, 'powered_off', 'The virtual machine was powered off', NULL, NULL, NULL, 1795894681839, NULL, NULL, 1795894675379);
INSERT INTO vm_usage VALUES (1, 'vm-01m8htm1xkyzcs33k5rckj3s7d', 2, 'created', 't2.micro', 11600, 30, 1795894675379);
INSERT INTO vm_usage VALUES (2, 'vm-01m8htm1xkyzcs33k5rckj3s7d', 2, 'started', 't2.micro', 11600, 30, 1795894679659);
INSERT INTO vm_usage VALUES (3, 'vm-01m8htm1xkyzcs33k5rckj3s7d', 2, 'stopped', 't2.micro', 11600, 30, 1795894681839);
INSERT INTO vm_samples VALUES (1, 5, 1795894680780, NULL, NULL, NULL, NULL, NULL, NULL, 0, 0);
INSERT INTO billing_accounts VALUES (1, 0, 0, 0, 0, 'ok', 0, 0, NULL, NULL, NULL, 0, '{}', 0, 0, 0, 0);
INSERT INTO billing_accounts VALUES (2, 1, 1795894655203, 0, 0, 'ok', 0, 0, NULL, NULL, NULL, 0, '{}', 1, 1, 2, 4);
INSERT INTO usage_lines VALUES ('database.storage', 'db-01m8htj5hng7hsw1wkq6mnkv9x', 2, 'of-sqlite', 'sqlite', 12288, 1795894655, 0, 1795894655, 0, 0);
INSERT INTO usage_lines VALUES ('database.storage', 'db-01m8htj97q81sbgf1tkmwyzw3t', 2, 'of-postgresql', 'postgresql', 0, 1795894708, 9055156, 1795894655, 0, 0);
INSERT INTO usage_lines VALUES ('database.storage', 'db-01m8htkaw5fqzzq2sgwc4fx5rg', 2, 'of-mysql', 'mysql', 66035, 1795894670, 0, 1795894670, 0, 0);
INSERT INTO usage_lines VALUES ('database.storage', 'db-01m8htkwm4gt5cft74p5vagq0s', 2, 'of-mongodb', 'mongodb', 28672, 1795894675, 0, 1795894675, 0, 0);
INSERT INTO usage_lines VALUES ('egress', '1', 2, 'plain', '', 0, 1795894608, 0, 1795894608, 0, 0);
INSERT INTO usage_lines VALUES ('egress', '2', 2, 'sealed', '', 0, 1795894612, 0, 1795894612, 0, 0);
INSERT INTO usage_lines VALUES ('storage', '1', 2, 'plain', '', 64015, 1795894655, 0, 1795894655, 0, 0);
INSERT INTO usage_lines VALUES ('storage', '2', 2, 'sealed', '', 64015, 1795894655, 0, 1795894655, 0, 0);
INSERT INTO usage_lines VALUES ('vm.disk', 'vm-01m8htm1xkyzcs33k5rckj3s7d', 2, 'web', 't2.micro', 30, 1795894676182, 0, 1795894676182, 0, 0);
INSERT INTO usage_lines VALUES ('vm.time', 'vm-01m8htm1xkyzcs33k5rckj3s7d', 2, 'web', 't2.micro', 0, 1795894681839, 2180, 1795894679659, 0, 0);
INSERT INTO usage_windows VALUES (2, 1795892400000, 'database.storage', 'db-01m8htj5hng7hsw1wkq6mnkv9x', 'of-sqlite', 'sqlite', 0, 430080, 0);
INSERT INTO usage_windows VALUES (2, 1795892400000, 'database.storage', 'db-01m8htj97q81sbgf1tkmwyzw3t', 'of-postgresql', 'postgresql', 0, 813300, 0);
INSERT INTO usage_windows VALUES (2, 1795892400000, 'storage', '1', 'plain', '', 0, 2752705, 0);
INSERT INTO usage_windows VALUES (2, 1795892400000, 'storage', '2', 'sealed', '', 0, 2688645, 0);
INSERT INTO plans VALUES ('free', 0, '{"vms":68,"vcpus":128,"memory_mb":17408,"storage_bytes":53687091200,"buckets":1000,"databases":50}', 0, 1);
INSERT INTO steady_clock VALUES (1, 'e3375156-ba50-435b-9aaf-c059d907b26d', 5395137.278, 1795894722711, 1795894722710);
INSERT INTO webhooks VALUES (1, 'whk-01m8htm8jbpzb0tynq5v0x8c9n', 2, 'https://example.org/hook', '', '["*"]', 1, NULL, NULL, X'0172E8B2AF6064305231267C0373066E255042864EDDA88B79D3FB5E18D8348A77171BB37D4DC0605BC0EC5E06E5EFA0814B179600F61D0AB00844A6A48CD390FC9C744EA526E3E87FEAB25EC3F2EC9DB754C41535B83B', NULL, NULL, NULL, 1795894682188);
INSERT INTO databases VALUES (1, 'db-01m8htj5hng7hsw1wkq6mnkv9x', 2, 'of-sqlite', 'sqlite', '3.53.4', 'us-east-1', 'ready', NULL, NULL, 1, 1, 'd_awdaqgwrxrxj8rcc', 'u_awdaqgwrxrxj8rcc', X'0172E8B2AF6064305269D345CB54D36538171E78FBD373AEE023E1405839227267D0C5E29F1B61DBBF349F9016D0E1B6A446595F68DBE10A27B1DA293409498588C5F3D820', NULL, X'F754B3F74979C4B9902254C1601E81264AE441CE63A9E1AC3E4F3666CA78E52E', 1073741824, 12288, 0, 1795894613590, 1795894613752, NULL, 0, NULL, NULL);
INSERT INTO databases VALUES (2, 'db-01m8htj97q81sbgf1tkmwyzw3t', 2, 'of-postgresql', 'postgresql', '15.20', 'us-east-1', 'ready', NULL, NULL, 1, 1, 'd_p6nz5060ywh40gsk', 'u_p6nz5060ywh40gsk', X'0172E8B2AF60643052518841CC77ED0F2DC79BF17565595418E46D1CFE50E10561C2E90EFF191D5736CDECDC3850B52EF618113D5CABD95FAE59F89AC4F611FDC8AE598417', NULL, X'C1F739E1EA45B8DCD0403A3144A0108175172F69A27309895A626C00C3D82C96', 1073741824, 0, 0, 1795894617335, 1795894649984, NULL, 0, NULL, NULL);
INSERT INTO databases VALUES (3, 'db-01m8htkaw5fqzzq2sgwc4fx5rg', 2, 'of-mysql', 'mysql', '10.11.19-MariaDB', 'us-east-1', 'ready', NULL, NULL, 1, 1, 'd_h1vq4z96f3aextqk', 'u_h1vq4z96f3aextqk', X'0172E8B2AF6064305257AA73BA87E057414C99056F23AC5D4B7013C5AA08F7ED342A6223FFAA7EC8F227BBE0CBE4EDA0C74E85CC7505F9281569A01884A4167D138195A72C', NULL, X'5A1D9359C721B4061EA226AF188090D65AF68B77DA9FE40FB331911AD5095FE3', 1073741824, 66035, 0, 1795894651781, 1795894669263, NULL, 0, NULL, NULL);
INSERT INTO databases VALUES (4, 'db-01m8htkwm4gt5cft74p5vagq0s', 2, 'of-mongodb', 'mongodb', '7.0.0-cloudlet', 'us-east-1', 'ready', NULL, NULL, 1, 1, 'd_pxaed17fe00ntb3j', 'u_pxaed17fe00ntb3j', X'0172E8B2AF606430528C6D7BE657692C35DF4BE7ED47E860465C6D5926FC894B74212E11B1EE8FF93294698BF72F87010FFECF3008D863CFCB327761F2D434AD1B9C51F6F3', NULL, X'1C780942BC32F7465ECED5693D858EFF7BF99823D4AC952D9EE95B16C1CB91CE', 1073741824, 28672, 0, 1795894669956, 1795894670542, NULL, 0, NULL, NULL);
INSERT INTO recovery_points VALUES (1, 'drp-01m8htmayykts8jd2shqbjy44n', 'complete', NULL, '/tmp/cloudlet-upgrade-pgnYAZ/recovery', 100.0, 1795894684638, 1795894712047, NULL, 32212896569, 86496, '{"accounts":2,"buckets":2,"objects":2,"versions":4,"vms":1,"databases":4}', '[]', '901c6bd8693ec552bfbbf0e430f5b204ac2b5fd7cc5aba300352f2d01b97cf2c', NULL, '[]', 0, NULL, NULL);
INSERT INTO database_samples VALUES (1, 5, 1795894615601, 0, 0.0, 0, 0, 0);
INSERT INTO database_samples VALUES (1, 5, 1795894620646, 12288, 0.0, 2, 0, 1);
INSERT INTO database_samples VALUES (1, 5, 1795894625619, 12288, 0.0, 2, 0, 1);
INSERT INTO database_samples VALUES (1, 5, 1795894708819, 12288, 0.0, 2, 0, 1);
INSERT INTO database_samples VALUES (2, 5, 1795894650686, 162660, 1.0, 3, NULL, 1);
INSERT INTO database_samples VALUES (2, 5, 1795894655691, 170852, 0.0, 6, NULL, 15);
INSERT INTO database_samples VALUES (2, 5, 1795894660700, 170852, 0.0, 6, NULL, 15);
INSERT INTO database_samples VALUES (2, 5, 1795894708819, 0, 0.0, 9, NULL, 15);
INSERT INTO database_samples VALUES (3, 5, 1795894675803, 66035, 0.0, 4, 0, 1);
INSERT INTO database_samples VALUES (3, 5, 1795894680803, 66035, 0.0, 4, 0, 1);
INSERT INTO database_samples VALUES (4, 5, 1795894675803, 28672, 0.0, 1, 0, 1);
INSERT INTO database_samples VALUES (4, 5, 1795894680803, 28672, 0.0, 1, 0, 1);
INSERT INTO database_samples VALUES (4, 5, 1795894708819, 28672, 0.0, 1, 0, 1);
INSERT INTO identity VALUES (1, 'cld-01m8hthahmkjthw30kxye625s2', 1);
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

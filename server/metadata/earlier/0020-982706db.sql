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
INSERT INTO migrations VALUES (1, 'initial', '814f4228bab1e2e8acfdd0e01a8d27f7b714afb6237536fd0d5935a06312dab7', 1795893933711);
INSERT INTO migrations VALUES (2, 'machines', '27abbfd63f00b2a9b93a60e7958825ef4afa8135c71e31444b091964da0f6fee', 1795893933711);
INSERT INTO migrations VALUES (3, 'images', 'f04f2484274a02cd21a10399d045b1a64601bb79048b7e8819661ceeaf68ec19', 1795893933711);
INSERT INTO migrations VALUES (4, 'billing', '1b62b42729c9e9912adadfe53a7e149f46d4a9a891e20adb63db04915540052b', 1795893933711);
INSERT INTO migrations VALUES (5, 'webhooks', 'bd089ab55e3fcb01007c243ee985892100f6a820deb97a61448b09be5a2e7c68', 1795893933711);
INSERT INTO migrations VALUES (6, 'sealed fingerprints', 'fdaf05a37e4d53bccb34ecec49ff2a7686e4263a013c56c69d3f3760a117df6e', 1795893933711);
INSERT INTO migrations VALUES (7, 'operations', '47967728d0d6fef4be769798c52639b719c0520f44e52a297a62ac263778cd27', 1795893933711);
INSERT INTO migrations VALUES (8, 'version access', 'd0b9e827faf0ff9db77baa6f331d90a4d4a478dadae43ecb0a216af42c4353f4', 1795893933711);
INSERT INTO migrations VALUES (9, 'kept answers', 'd18d47290d2020bc827ba42407b830555eb6cb86172e0a33b7b76379310ecebf', 1795893933711);
INSERT INTO migrations VALUES (10, 'free plan', 'cf77d24eca215569afa11e0459054e7e570ea9a916d3eeacacc98917caa013e9', 1795893933711);
INSERT INTO migrations VALUES (11, 'databases', 'e0b50e1946d9a9419a2101465f78b6a69a7a9c4acb45076419c751c0bdd2bca7', 1795893933711);
INSERT INTO migrations VALUES (12, 'free plan databases', '764808813be813f05c79749abdb331e29757be802a23e2ddaa01be8b9eaa264c', 1795893933711);
INSERT INTO migrations VALUES (13, 'recovery', '70991a25df82d19fae2684f7cc0f285e43d5b0785a3fa756e095072f6c96261b', 1795893933711);
INSERT INTO migrations VALUES (14, 'database samples', '10790b88ea381296d04cc23e4fd340372f4f0d9c70e14adcf1a011006f0a8d08', 1795893933711);
INSERT INTO migrations VALUES (15, 'point damage', 'e3d832eef6d74d13e04c0c2244ea7ca2f8ae50d25ccf70d0427233a05cc46b6c', 1795893933711);
INSERT INTO migrations VALUES (16, 'session names', 'dd26ecbbd83382c2c40bde2087de49469b4b88e9264896d773671712291c6f2e', 1795893933711);
INSERT INTO migrations VALUES (17, 'object order', '421d7bd228fce6e48929ec68872faed66af951ca221db840c8071a4c35a518ce', 1795893933711);
INSERT INTO migrations VALUES (18, 'identity', '3d4389febce8db5e30ca1f2f0cadfb54304f605501469724ca0f5b5afceee6cf', 1795893933711);
INSERT INTO migrations VALUES (19, 'kept time', '72e68a33d319d2bc8f2cd224fbd1c70d08607b7d66449e57c455320c8e0914d4', 1795893933711);
INSERT INTO migrations VALUES (20, 'plans follow host', 'e8a1b7daff80aea89d64fa3df5c49b1ab89a69664c5d2298fa85253c26a5f382', 1795893933711);
INSERT INTO secrets VALUES ('links', X'012BBCE110B1E06B6B349574D44943884C5DC5A8364A59D368696F8B8CD8402AD0055054A93E7049BDEFD1D17661542264CE5A4EFC22295B626277A6226E3D2CFAAF0BF2AC');
INSERT INTO secrets VALUES ('recovery-key', X'012BBCE110B1E06B6B748AB7BB60FF17DE16E7B917A495D37B7444136D855BBC4F438EF6C8DAE600A02D74204593F369A2B40AB535FEC544E8B186ADF9FAA77C58AE9DDB1D');
INSERT INTO secrets VALUES ('recovery-repository', X'012BBCE110B1E06B6B20BCF854321CB891F99975FA1F2F7BDADFB69A254C45962AC86B48F5BAE07EDC9DADBE8CB1737EAB42E3C13AD17A5BEEE1F16D1C833629E0776B293B');
INSERT INTO secrets VALUES ('recovery-writer', X'012BBCE110B1E06B6B701F8314DA2A78274EEB6698E38C42894A82BD5A0018B431CF1F88A15E2F34E810E981F8CABE16516B42229277FA06AD72D97C067B7E887177A61BD6');
INSERT INTO accounts VALUES (1, 'admin', 'admin', 'admin@localhost', NULL, '', 'free', 1, 1, NULL, 10000000, 0, 1795893938349, NULL, NULL);
INSERT INTO accounts VALUES (2, 'user-13476-2', 'user-13476-2', 'user-13476-2@example.org', 'user-13476-2@example.org', '$argon2id$v=19$m=47104,t=1,p=1$V2PBgBh1T9q/oildeF3t4g$638zi+mbKv7fbPXXeGppi8sWwJTmYoAahx8RJWQWww8', 'free', 0, 1, NULL, 9999996, 128030, 1795893952044, NULL, NULL);
INSERT INTO api_keys VALUES ('756d38a52628b9608cd29b56078841ab1f3e45439e445006721441afa103b7ed', 1, 'key-01m8hsxj5djy7x4x8edx7aeyy4', 'main', X'012BBCE110B1E06B6B0A9F52FA1D663D73AF4C032D704B301BAFF70DA5E4C2CF4CE3571A1D283762C3D30E59ADA6181B3847D7253ECFEB01E2563E3C9E2E16221C951F41A38B', '', '["*"]', NULL, NULL, NULL, 1795893938380, NULL, 1795893994635);
INSERT INTO api_keys VALUES ('8fd576f50b7fbc025b9568332c77a6cc510fcbb6475d175cb53962743d1b482a', 2, 'key-01m8hsxzhc7xmka9qxhjym3wat', 'main', X'012BBCE110B1E06B6B555E3788C6D9F1D4023CE27F1DC49A76C885CDD86126DDB97C6E72730D3C1D69B36795709770C2F197E3548189DD888461E21D02D1B0F62F490F95369DF8FE912D5A36563627', '', '["*"]', NULL, NULL, NULL, 1795893952045, NULL, 1795893994386);
INSERT INTO api_keys VALUES ('a8f20ed4c050c2a2495a2606c2b08f0ce927136defd1acf2ba159a6ff5ec003a', 2, 'key-01m8hsxzs1b08w0mzwcmqnqcd5', 'access', NULL, 'reader', '["storage:read"]', NULL, 'CLAK5JZ76B4HGXTVP2NN', X'012BBCE110B1E06B6BD58F027162A494AC0D1806CD202672262C69145CB9660F30121300B70D1A8E4878FCD9513F349DEEA227F0135872C548EFA333D04368453798F60A879A2D7FF379A2E69A', 1795893952305, NULL, NULL);
INSERT INTO ledger_transfers VALUES (1, 'signup:1', 'system:grants', 'account:1', 10000000, 'signup_grant', '10 credits at registration', 1795893938349, '0000000000000000000000000000000000000000000000000000000000000000', 'bef37dc5329ac692efafe1f68fb3b898c5e8ab316e3df03e1eb117e77077261f');
INSERT INTO ledger_transfers VALUES (2, 'signup:2', 'system:grants', 'account:2', 10000000, 'signup_grant', '10 credits at registration', 1795893952044, 'bef37dc5329ac692efafe1f68fb3b898c5e8ab316e3df03e1eb117e77077261f', '787e1814ab67c303b8771119e338dfeea9c7d82ae12112d5bff815e30e9808c1');
INSERT INTO ledger_transfers VALUES (3, 'hold-op-01m8hsz42570ycs3ffkdx4d8p5', 'account:2', 'held:2', 11600, 'hold', 'vm-01m8hsz2kr4dettf582yhm5v9q', 1795893989445, '787e1814ab67c303b8771119e338dfeea9c7d82ae12112d5bff815e30e9808c1', '0bdfe94c1f68952fe29c56e198ec2b743f5c7461ed641b2b4ea074570c103d55');
INSERT INTO ledger_transfers VALUES (4, 'release-op-01m8hsz8n6yvkfn2s4zx2q5p1z', 'held:2', 'account:2', 11600, 'release', 'vm-01m8hsz2kr4dettf582yhm5v9q', 1795893994150, '0bdfe94c1f68952fe29c56e198ec2b743f5c7461ed641b2b4ea074570c103d55', 'b0129b685a9770455ddaca7eaec56828b550169df9a51f18a1f2862810874c29');
INSERT INTO ledger_transfers VALUES (5, 'usage-2-1-compute-free', 'account:2', 'system:revenue-compute', 4, 'usage', 'compute of account:2', 1795894003797, 'b0129b685a9770455ddaca7eaec56828b550169df9a51f18a1f2862810874c29', 'bdd71a20ba45fb7f8e670ec9f7b16b098f3ae62173b88a5e5b5322d579a9830a');
INSERT INTO buckets VALUES (1, 2, 'plain', 'us-east-1', 1, 0, 1795893952474, 1, 64000, 2, 64015);
INSERT INTO buckets VALUES (2, 2, 'sealed', 'us-east-1', 1, 1, 1795893955007, 1, 64000, 2, 64015);
INSERT INTO objects VALUES (1, 'obj-01m8hsy041haxh6zawn0wxbxcy', 1, 'note.txt', 2, 64000, 1795893954799);
INSERT INTO objects VALUES (2, 'obj-01m8hsy2fnzddrg8d0gttwbjx0', 2, 'note.txt', 4, 64000, 1795893955203);
INSERT INTO versions VALUES (1, 'ver-01m8hsy041sbxe4qrbxbn58wxp', 1, 1, 15, '518b13184fe43682d9671ba588289a1b', 'text/plain', 'STANDARD', NULL, 1795893952641, NULL);
INSERT INTO versions VALUES (2, 'ver-01m8hsy27f21p2wg5trw59mc03', 1, 2, 64000, 'cb7ea5d69f0aea940de33be820ed7886', 'text/plain', 'STANDARD', NULL, 1795893954799, NULL);
INSERT INTO versions VALUES (3, 'ver-01m8hsy2fn2v1cxp8dgsjw206w', 2, 3, 15, '518b13184fe43682d9671ba588289a1b', 'text/plain', 'STANDARD', NULL, 1795893955061, NULL);
INSERT INTO versions VALUES (4, 'ver-01m8hsy2m37p5a08vnjegag17n', 2, 4, 64000, 'cb7ea5d69f0aea940de33be820ed7886', 'text/plain', 'STANDARD', NULL, 1795893955203, NULL);
INSERT INTO blobs VALUES (1, NULL, 1, 15, X'746865206669727374206E6F74650A', 2011756644, NULL, NULL);
INSERT INTO blobs VALUES (2, 'blob-01m8hsy0d3zvszc73jq7ek1rv9', 1, 64000, NULL, NULL, NULL, NULL);
INSERT INTO blobs VALUES (3, NULL, 1, 15, X'807A3BF92D972FE8A9E1ACDB19833CCD818D0842568BFC70F0D907B3E540BA', 1895232654, X'012BBCE110B1E06B6B78E85A65256EDD8769879B4B5D671E854A3EB9A48BC60F26248D8B30704886C06AC6AFA4BC6F733A107B96EB40B2A00C87BDC7D1A845A72BD896B154', NULL);
INSERT INTO blobs VALUES (4, 'blob-01m8hsy2j4pygybrwey0fpdzt2', 1, 64000, NULL, NULL, X'012BBCE110B1E06B6BD5BD11A544312FE461A5918B59D1A721204A93CA3A18DF9E4A3F8B532B181FB10DDAD6084D60F4146EBCE8CA6CE802850C8C176ECC8EE27630641E63', NULL);
INSERT INTO vms VALUES (1, 'vm-01m8hsz2kr4dettf582yhm5v9q', 2, 'web', 't2.micro', 'us-east-1', '', 1, 1024, 30, 11600, 'tiny', '[]', NULL, '[22,80,443,8080]', 0, 'e9476933-8a3f-45a2-8e29-1acea0f6626f', '52:10:61:34:7a:15', '127.218.144.1', 'stopped', 'stopped', 4, 'powered_off', 'The machine was powered off without waiting any longer', NULL, NULL, NULL, 1795893994126, NULL, NULL, 1795893987960);
INSERT INTO vm_usage VALUES (1, 'vm-01m8hsz2kr4dettf582yhm5v9q', 2, 'created', 't2.micro', 11600, 30, 1795893987960);
INSERT INTO vm_usage VALUES (2, 'vm-01m8hsz2kr4dettf582yhm5v9q', 2, 'started', 't2.micro', 11600, 30, 1795893992740);
INSERT INTO vm_usage VALUES (3, 'vm-01m8hsz2kr4dettf582yhm5v9q', 2, 'stopped', 't2.micro', 11600, 30, 1795893994126);
INSERT INTO billing_accounts VALUES (1, 0, 0, 0, 0, 'ok', 0, 0, NULL, NULL, NULL, 0, '{}', 0, 0, 0, 0);
INSERT INTO billing_accounts VALUES (2, 1, 1795894003797, 0, 0, 'ok', 0, 0, NULL, NULL, NULL, 0, '{}', 1, 1, 2, 4);
INSERT INTO usage_lines VALUES ('database.storage', 'db-01m8hsy2nqkfjsrxkpt83qesv0', 2, 'of-sqlite', 'sqlite', 12288, 1795894003, 0, 1795894003, 0, 0);
INSERT INTO usage_lines VALUES ('database.storage', 'db-01m8hsy618wjhqd7yk0ybxbh4z', 2, 'of-postgresql', 'postgresql', 170852, 1795894003, 0, 1795894003, 0, 0);
INSERT INTO usage_lines VALUES ('database.storage', 'db-01m8hsynmzd775kxf6t874egep', 2, 'of-mysql', 'mysql', 66035, 1795894003, 0, 1795894003, 0, 0);
INSERT INTO usage_lines VALUES ('database.storage', 'db-01m8hsyytqthmsc98rc7fk2c0r', 2, 'of-mongodb', 'mongodb', 28672, 1795894003, 0, 1795894003, 0, 0);
INSERT INTO usage_lines VALUES ('egress', '1', 2, 'plain', '', 0, 1795893952, 0, 1795893952, 0, 0);
INSERT INTO usage_lines VALUES ('egress', '2', 2, 'sealed', '', 0, 1795893955, 0, 1795893955, 0, 0);
INSERT INTO usage_lines VALUES ('storage', '1', 2, 'plain', '', 64015, 1795894003, 0, 1795894003, 0, 0);
INSERT INTO usage_lines VALUES ('storage', '2', 2, 'sealed', '', 64015, 1795894003, 0, 1795894003, 0, 0);
INSERT INTO usage_lines VALUES ('vm.disk', 'vm-01m8hsz2kr4dettf582yhm5v9q', 2, 'web', 't2.micro', 30, 1795894003796, 0, 1795894003796, 0, 0);
INSERT INTO usage_lines VALUES ('vm.time', 'vm-01m8hsz2kr4dettf582yhm5v9q', 2, 'web', 't2.micro', 0, 1795894003796, 0, 1795894003796, 1677600000, 0);
INSERT INTO usage_windows VALUES (2, 1795892400000, 'database.storage', 'db-01m8hsy2nqkfjsrxkpt83qesv0', 'of-sqlite', 'sqlite', 0, 512000, 0);
INSERT INTO usage_windows VALUES (2, 1795892400000, 'database.storage', 'db-01m8hsy618wjhqd7yk0ybxbh4z', 'of-postgresql', 'postgresql', 0, 4271300, 0);
INSERT INTO usage_windows VALUES (2, 1795892400000, 'database.storage', 'db-01m8hsynmzd775kxf6t874egep', 'of-mysql', 'mysql', 0, 1320700, 0);
INSERT INTO usage_windows VALUES (2, 1795892400000, 'database.storage', 'db-01m8hsyytqthmsc98rc7fk2c0r', 'of-mongodb', 'mongodb', 0, 430080, 0);
INSERT INTO usage_windows VALUES (2, 1795892400000, 'storage', '1', 'plain', '', 0, 3136765, 0);
INSERT INTO usage_windows VALUES (2, 1795892400000, 'storage', '2', 'sealed', '', 0, 3072720, 0);
INSERT INTO usage_windows VALUES (2, 1795892400000, 'vm.disk', 'vm-01m8hsz2kr4dettf582yhm5v9q', 'web', 't2.micro', 0, 438240, 0);
INSERT INTO usage_windows VALUES (2, 1795892400000, 'vm.time', 'vm-01m8hsz2kr4dettf582yhm5v9q', 'web', 't2.micro', 11600000, 1386, 4);
INSERT INTO plans VALUES ('free', 0, '{"vms":68,"vcpus":128,"memory_mb":17408,"storage_bytes":53687091200,"buckets":1000,"databases":50}', 0, 1);
INSERT INTO steady_clock VALUES (1, 'e3375156-ba50-435b-9aaf-c059d907b26d', 4688365.785, 1795894015939, 1795894015938);
INSERT INTO webhooks VALUES (1, 'whk-01m8hsz8yn3q3z6ccgeemakj40', 2, 'https://example.org/hook', '', '["*"]', 1, NULL, NULL, X'012BBCE110B1E06B6B2B83ED3C6E0F6F3860F179F3976F540752E0DD61468622296C779DE6B4F2584883F2F09F468151AE223C7FCB6088C5921321650EB6E34883A6D7A0EBEF71FB9B5C46553F68BC3123975FE6A0C670', NULL, NULL, NULL, 1795893994471);
INSERT INTO databases VALUES (1, 'db-01m8hsy2nqkfjsrxkpt83qesv0', 2, 'of-sqlite', 'sqlite', '3.53.4', 'us-east-1', 'ready', NULL, NULL, 1, 1, 'd_3k18maxhwzej5re0', 'u_3k18maxhwzej5re0', X'012BBCE110B1E06B6B61C559482271FC9A6A7E5086641B9F178D1C2B58DD2C7D730D69FA9C32C721271F36350DBB7E547219B2202467862F8AF7E7F63A15D1537248C0DD6C', NULL, X'D8A5BEA579D14E660C51B5C726F32F279C4BB3FC9FB5E270FC671A40CD6AB179', 1073741824, 12288, 0, 1795893955256, 1795893955293, NULL, 0, NULL, NULL);
INSERT INTO databases VALUES (2, 'db-01m8hsy618wjhqd7yk0ybxbh4z', 2, 'of-postgresql', 'postgresql', '15.20', 'us-east-1', 'ready', NULL, NULL, 1, 1, 'd_zty7p0s5ke5y5f6n', 'u_zty7p0s5ke5y5f6n', X'012BBCE110B1E06B6B6C26394CA5871FD6A12CDECC9D3B34B55F12D6625F6FE24867E559170A3CD09E3D090484C30ABCDA0A0A02B2921FEE30AF03199AD3FA3AED728A74F3', NULL, X'32B6F8CF365F9017290FA9502DE6690E86EE3281F9215C0BFD1AB6F2539F0CCD', 1073741824, 170852, 0, 1795893958696, 1795893973949, NULL, 0, NULL, NULL);
INSERT INTO databases VALUES (3, 'db-01m8hsynmzd775kxf6t874egep', 2, 'of-mysql', 'mysql', '10.11.19-MariaDB', 'us-east-1', 'ready', NULL, NULL, 1, 1, 'd_h4yznx049xn6pjbh', 'u_h4yznx049xn6pjbh', X'012BBCE110B1E06B6BBCDD365D25FF065B94A6D5C5BCA524D0BC61EB8F096842FF8584BCE0E1580F3DD8BF501D01A07F1A6DD7CA2CABB7C0E9F2CCA7157481011215EEBA9A', NULL, X'7B1F179C850BC22DDF0690E8DD6774DB97980E2BFD67CFFED511759D86C975C1', 1073741824, 66035, 0, 1795893974687, 1795893982915, NULL, 0, NULL, NULL);
INSERT INTO databases VALUES (4, 'db-01m8hsyytqthmsc98rc7fk2c0r', 2, 'of-mongodb', 'mongodb', '7.0.0-cloudlet', 'us-east-1', 'ready', NULL, NULL, 1, 1, 'd_9d988abpzr51th49', 'u_9d988abpzr51th49', X'012BBCE110B1E06B6B862BADAD3D1F8C5A75AAB1C0E8CCFA7C9BC907511C55D2A7AB87B3B8C8CDC5B5BB046646780053FE4B65C7B46A15503D81F7A700E809BA920F325B21', NULL, X'98FF0F7DFCE1C043032B96E2FA0C9229DF857087DD2A102105D5A450EB7DFE99', 1073741824, 28672, 0, 1795893984087, 1795893984275, NULL, 0, NULL, NULL);
INSERT INTO recovery_points VALUES (1, 'drp-01m8hsza6mf42866cd9xdsmybj', 'complete', NULL, '/tmp/cloudlet-upgrade-TZvZHT/recovery', 100.0, 1795893995732, 1795894010916, NULL, 32212896569, 86199, '{"accounts":2,"buckets":2,"objects":2,"versions":4,"vms":1,"databases":4}', '[]', '27ca6f712fa874202163195ef9df3f6391b0ff49f405486260dfa477e4f10efb', NULL, '[]', 0, NULL, NULL);
INSERT INTO database_samples VALUES (1, 5, 1795893958657, 4096, 0.0, 0, 0, 0);
INSERT INTO database_samples VALUES (1, 5, 1795893963663, 12288, 0.0, 2, 0, 1);
INSERT INTO database_samples VALUES (1, 5, 1795894009208, 12288, 0.0, 2, 0, 1);
INSERT INTO database_samples VALUES (2, 5, 1795893978668, 170852, 0.0, 6, NULL, 15);
INSERT INTO database_samples VALUES (2, 5, 1795893983831, 170852, 0.0, 6, NULL, 15);
INSERT INTO database_samples VALUES (3, 5, 1795893983831, 66035, 1.0, 3, 0, 0);
INSERT INTO database_samples VALUES (3, 5, 1795893988900, 66035, 0.0, 4, 0, 1);
INSERT INTO database_samples VALUES (3, 5, 1795893993899, 66035, 0.0, 4, 0, 1);
INSERT INTO database_samples VALUES (4, 5, 1795893988900, 28672, 0.0, 1, 0, 1);
INSERT INTO database_samples VALUES (4, 5, 1795893993899, 28672, 0.0, 1, 0, 1);
INSERT INTO database_samples VALUES (4, 5, 1795894009208, 28672, 0.0, 1, 0, 1);
INSERT INTO identity VALUES (1, 'cld-01m8hsxfa7m5cff31w0s7jjwpr', 1);
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

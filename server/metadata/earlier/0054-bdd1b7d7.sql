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
, canonical_id TEXT, removal_at INTEGER, invitation_id TEXT REFERENCES invitations(id), expires_at INTEGER, must_change INTEGER NOT NULL DEFAULT 0 CHECK (must_change IN (0, 1)), email_verified_at INTEGER, mail_about TEXT NOT NULL DEFAULT '', is_auditor INTEGER NOT NULL DEFAULT 0 CHECK (is_auditor IN (0, 1)), was_admin INTEGER NOT NULL DEFAULT 0 CHECK (was_admin IN (0, 1))) STRICT;
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
, account_id INTEGER REFERENCES accounts(id), host TEXT NOT NULL DEFAULT '', purpose TEXT NOT NULL DEFAULT 'password' CHECK (purpose IN ('password', 'email')), email TEXT) STRICT, WITHOUT ROWID;
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
  total_bytes INTEGER NOT NULL DEFAULT 0, settings TEXT, global_name TEXT COLLATE BINARY, lifecycle_due INTEGER, lifecycle_cursor TEXT, metadata_bytes INTEGER NOT NULL DEFAULT 0, row_crc INTEGER, settings_crc INTEGER, damaged_at INTEGER, lifecycle_removed INTEGER NOT NULL DEFAULT 0,   -- of all versions
  UNIQUE (account_id, name)
) STRICT;
CREATE TABLE objects (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  object_id TEXT NOT NULL UNIQUE,
  bucket_id INTEGER NOT NULL REFERENCES buckets(id),
  name TEXT NOT NULL COLLATE BINARY,        -- UTF-8 byte order
  current INTEGER, size_bytes INTEGER, changed_at INTEGER, row_crc INTEGER, listed INTEGER, etag TEXT, storage_class TEXT, checksum_kind TEXT,
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
, hears_audit INTEGER NOT NULL DEFAULT 0 CHECK (hears_audit IN (0, 1, 2))) STRICT;
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
, kept_bytes INTEGER, node TEXT NOT NULL DEFAULT '', is_cancellable INTEGER NOT NULL DEFAULT 0 CHECK (is_cancellable IN (0, 1)), cancel_asked INTEGER NOT NULL DEFAULT 0 CHECK (cancel_asked IN (0, 1)), progress TEXT) STRICT, WITHOUT ROWID;
CREATE TABLE databases (
  id INTEGER PRIMARY KEY AUTOINCREMENT,   -- never used again: engines derive users of the host from it
  database_id TEXT NOT NULL UNIQUE,
  account_id INTEGER NOT NULL REFERENCES accounts(id),
  name TEXT NOT NULL,
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
, keep_left_ms INTEGER, engine TEXT NOT NULL DEFAULT '') STRICT;
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
CREATE TABLE short_tokens (
  id INTEGER PRIMARY KEY,
  kind TEXT NOT NULL,                     -- 'device' or 'code': log-ins; 'ticket': a used one
  hash TEXT NOT NULL,                     -- of the secret
  other_hash TEXT UNIQUE,                 -- of a second secret: the code that a user types
  owner TEXT NOT NULL,                    -- whose number is limited: an account, or where the request came from
  content TEXT NOT NULL,                  -- JSON
  created_at INTEGER NOT NULL,
  ends_at INTEGER NOT NULL,
  UNIQUE (kind, hash)
) STRICT;
CREATE TABLE invitations (
  id TEXT PRIMARY KEY,
  token_hash TEXT NOT NULL UNIQUE,        -- SHA-256 of the link's token
  host TEXT NOT NULL,                     -- the host name of the link, which is good nowhere else; '': any
  label TEXT NOT NULL DEFAULT '',         -- for whom, in the administrator's words
  username TEXT,                          -- null: whoever uses the link chooses it
  email TEXT,                             -- null: likewise
  plan TEXT NOT NULL,
  credits_micro INTEGER NOT NULL,         -- granted at registration; the sign-up credits come on top
  account_expires_at INTEGER,             -- null: the accounts do not end
  max_uses INTEGER NOT NULL CHECK (max_uses > 0),
  uses INTEGER NOT NULL DEFAULT 0 CHECK (uses <= max_uses),
  created_at INTEGER NOT NULL,
  expires_at INTEGER NOT NULL,
  revoked_at INTEGER,
  created_by TEXT NOT NULL                -- name of the administrator, or the operator
, is_mailed INTEGER NOT NULL DEFAULT 0 CHECK (is_mailed IN (0, 1))) STRICT, WITHOUT ROWID;
CREATE TABLE audit_rows (
  id INTEGER PRIMARY KEY,
  at INTEGER NOT NULL,
  account_id INTEGER NOT NULL,            -- whose things; no reference: rows outlive accounts; 0: the cloud's
  actor_id INTEGER NOT NULL,              -- the account that acted; 0: the operator, or nobody known
  actor TEXT NOT NULL,                    -- its name then
  via TEXT NOT NULL,
  credential TEXT NOT NULL,               -- id of the access key, or empty
  address TEXT NOT NULL,
  agent TEXT NOT NULL,
  action TEXT NOT NULL,                   -- id of the operation
  target TEXT NOT NULL,
  outcome TEXT NOT NULL CHECK (outcome IN ('done', 'refused', 'failed')),
  status INTEGER NOT NULL,
  code TEXT NOT NULL,                     -- of the error, or empty
  request_id TEXT NOT NULL,
  detail TEXT NOT NULL,                   -- JSON, or empty
  times INTEGER NOT NULL,                 -- calls that this row stands for
  seal INTEGER NOT NULL DEFAULT 0         -- number of its range; 0: none yet
) STRICT;
CREATE TABLE audit_seals (
  id INTEGER PRIMARY KEY,
  first_at INTEGER NOT NULL,
  last_at INTEGER NOT NULL,
  rows INTEGER NOT NULL,
  bytes INTEGER NOT NULL,
  digest TEXT NOT NULL,                   -- SHA-256 of the rows
  head TEXT NOT NULL,                     -- SHA-256 of the head before and of this range
  sealed_at INTEGER NOT NULL,
  removed_at INTEGER                      -- when its rows became too old
) STRICT;
CREATE TABLE mails (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  mail_id TEXT NOT NULL UNIQUE,
  account_id INTEGER NOT NULL,            -- whose mails wait for each other; no reference; 0: of no account
  kind TEXT NOT NULL,
  topic TEXT NOT NULL DEFAULT '',         -- code of the alarm that it tells of
  recipient TEXT NOT NULL,                -- folded, as addresses are compared
  sealed BLOB,                            -- subject and text, until it was sent or given up
  state TEXT NOT NULL CHECK (state IN ('asked', 'pending', 'sent', 'failed')),
  reason TEXT,                            -- why it failed, or what the last attempt met
  tries INTEGER NOT NULL DEFAULT 0,
  next_at INTEGER CHECK ((state = 'pending') = (next_at IS NOT NULL)),
  created_at INTEGER NOT NULL,
  expires_at INTEGER NOT NULL,            -- of no use from then on
  ended_at INTEGER                        -- sent or given up
) STRICT;
CREATE TABLE shares (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  share_id TEXT NOT NULL UNIQUE,
  account_id INTEGER NOT NULL,            -- its owner; sets what each account may have
  bucket_id INTEGER NOT NULL REFERENCES buckets(id) ON DELETE CASCADE,
  name TEXT NOT NULL,                     -- of an object; ends with "/" or empty: all below
  key_id TEXT,                            -- the access key that made it, with which it ends; null: the owner
  password_hash TEXT,                     -- argon2id; null: none is asked for
  expires_at INTEGER,                     -- null: until it is ended
  max_downloads INTEGER,                  -- null: no limit
  downloads INTEGER NOT NULL DEFAULT 0,
  last_at INTEGER,                        -- of the last download
  created_at INTEGER NOT NULL
) STRICT;
CREATE TABLE vm_snapshots (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  snapshot_id TEXT NOT NULL UNIQUE,
  vm_id TEXT NOT NULL REFERENCES vms(vm_id) ON DELETE CASCADE,
  name TEXT NOT NULL,
  size_bytes INTEGER NOT NULL,            -- on the host; charged with the disk, each as whole GB
  created_at INTEGER NOT NULL
) STRICT;
CREATE TABLE ssh_keys (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  account_id INTEGER NOT NULL REFERENCES accounts(id),
  name TEXT NOT NULL,
  public_key TEXT NOT NULL,               -- an OpenSSH public key line
  created_at INTEGER NOT NULL,
  UNIQUE (account_id, name)
) STRICT;
CREATE TABLE saved_queries (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  saved_query_id TEXT NOT NULL UNIQUE,
  database_id INTEGER NOT NULL REFERENCES databases(id) ON DELETE CASCADE,
  name TEXT NOT NULL,
  text TEXT NOT NULL,                     -- statements, or a command as JSON
  updated_at INTEGER NOT NULL,
  UNIQUE (database_id, name)
) STRICT;
INSERT INTO migrations VALUES (1, 'initial', '814f4228bab1e2e8acfdd0e01a8d27f7b714afb6237536fd0d5935a06312dab7', 1796072302218);
INSERT INTO migrations VALUES (2, 'machines', '27abbfd63f00b2a9b93a60e7958825ef4afa8135c71e31444b091964da0f6fee', 1796072302218);
INSERT INTO migrations VALUES (3, 'images', 'f04f2484274a02cd21a10399d045b1a64601bb79048b7e8819661ceeaf68ec19', 1796072302218);
INSERT INTO migrations VALUES (4, 'billing', '1b62b42729c9e9912adadfe53a7e149f46d4a9a891e20adb63db04915540052b', 1796072302218);
INSERT INTO migrations VALUES (5, 'webhooks', 'bd089ab55e3fcb01007c243ee985892100f6a820deb97a61448b09be5a2e7c68', 1796072302218);
INSERT INTO migrations VALUES (6, 'sealed fingerprints', 'fdaf05a37e4d53bccb34ecec49ff2a7686e4263a013c56c69d3f3760a117df6e', 1796072302218);
INSERT INTO migrations VALUES (7, 'operations', '47967728d0d6fef4be769798c52639b719c0520f44e52a297a62ac263778cd27', 1796072302218);
INSERT INTO migrations VALUES (8, 'version access', 'd0b9e827faf0ff9db77baa6f331d90a4d4a478dadae43ecb0a216af42c4353f4', 1796072302218);
INSERT INTO migrations VALUES (9, 'kept answers', 'd18d47290d2020bc827ba42407b830555eb6cb86172e0a33b7b76379310ecebf', 1796072302218);
INSERT INTO migrations VALUES (10, 'free plan', 'cf77d24eca215569afa11e0459054e7e570ea9a916d3eeacacc98917caa013e9', 1796072302218);
INSERT INTO migrations VALUES (11, 'databases', 'e0b50e1946d9a9419a2101465f78b6a69a7a9c4acb45076419c751c0bdd2bca7', 1796072302218);
INSERT INTO migrations VALUES (12, 'free plan databases', '764808813be813f05c79749abdb331e29757be802a23e2ddaa01be8b9eaa264c', 1796072302218);
INSERT INTO migrations VALUES (13, 'recovery', '70991a25df82d19fae2684f7cc0f285e43d5b0785a3fa756e095072f6c96261b', 1796072302218);
INSERT INTO migrations VALUES (14, 'database samples', '10790b88ea381296d04cc23e4fd340372f4f0d9c70e14adcf1a011006f0a8d08', 1796072302218);
INSERT INTO migrations VALUES (15, 'point damage', 'e3d832eef6d74d13e04c0c2244ea7ca2f8ae50d25ccf70d0427233a05cc46b6c', 1796072302218);
INSERT INTO migrations VALUES (16, 'session names', 'dd26ecbbd83382c2c40bde2087de49469b4b88e9264896d773671712291c6f2e', 1796072302218);
INSERT INTO migrations VALUES (17, 'object order', '421d7bd228fce6e48929ec68872faed66af951ca221db840c8071a4c35a518ce', 1796072302218);
INSERT INTO migrations VALUES (18, 'identity', '3d4389febce8db5e30ca1f2f0cadfb54304f605501469724ca0f5b5afceee6cf', 1796072302218);
INSERT INTO migrations VALUES (19, 'kept time', '72e68a33d319d2bc8f2cd224fbd1c70d08607b7d66449e57c455320c8e0914d4', 1796072302218);
INSERT INTO migrations VALUES (20, 'plans follow host', 'e8a1b7daff80aea89d64fa3df5c49b1ab89a69664c5d2298fa85253c26a5f382', 1796072302218);
INSERT INTO migrations VALUES (21, 'account ids', '399a7b17efcc7a06c23f230243453bbe1c3122f917fbfe95b87f79548ae373af', 1796072302218);
INSERT INTO migrations VALUES (22, 's3', 'a2c391c17dbd6036ac77ba2c751ba4fdb728c38b3ac1f812ccced017f8107284', 1796072302218);
INSERT INTO migrations VALUES (23, 'bucket settings', 'a84e3ae983899fcd8005f7dc0b3274b468f8ebed36327cc07aac460fd0592d4a', 1796072302218);
INSERT INTO migrations VALUES (24, 'access', '7e29f153a230ac2df3232a478baceaf52255a7452db212856fb0a4a62cdd1fa3', 1796072302218);
INSERT INTO migrations VALUES (25, 'lock and lifecycle', 'fc3a28c757f18ab9e3a74590057660247e9e38e37658edb8cbe8afcd4ddc2756', 1796072302218);
INSERT INTO migrations VALUES (26, 'encryption', '68270b215a3c09c327534ebae2ac0d900c71fe60175a32c6986c21798bcd8ed8', 1796072302218);
INSERT INTO migrations VALUES (27, 'disabled encryption keys', '8f8ab8b6eb724706988bd86c01bb53732687c807a3860d4c0d9ee3d373d7fce6', 1796072302218);
INSERT INTO migrations VALUES (28, 'published ports', '6dcdaca10105f7cc774a5530b8236a7ae5196b1f031d79400dab6edceda0f76c', 1796072302218);
INSERT INTO migrations VALUES (29, 'scheduled recovery points', '98754d88b50b13936a0d9d694e4e560eea2d22b71f3510f66ea637257f699cb7', 1796072302218);
INSERT INTO migrations VALUES (30, 'recovery drills', '17f77b242b0f72c67d98c5c3fd604b43f7942af766c87e219729e140606a11e6', 1796072302218);
INSERT INTO migrations VALUES (31, 'databases of machines', '7afd84675e4bf85f000f063cb0526b867c80afcd60b227b83d9f9f94e28032b1', 1796072302218);
INSERT INTO migrations VALUES (32, 'restored accounts', '36d83ca734fa4b75db607cac4275acd1e130b6cfdf2af871e67123ec9409c699', 1796072302218);
INSERT INTO migrations VALUES (33, 'row checksums', '8509844b356c3ca6298d341643cf1da48d605abb693b4f93b3624481993bfeee', 1796072302218);
INSERT INTO migrations VALUES (34, 'kept bytes', 'a6165718d54c895209098e5c7536e380ee5b3c010f35b60f9ff912f7b1d82e9a', 1796072302218);
INSERT INTO migrations VALUES (35, 'resting names', '315d272a41b5b97af63f9b8817f7f31839a2ca4e203984a4659e25fdd35412ba', 1796072302218);
INSERT INTO migrations VALUES (36, 'passwords given again', 'f0f1d50406509aa3df0bb4b871e713ad3095ee315dae1efc983328c31ca51f64', 1796072302218);
INSERT INTO migrations VALUES (37, 'session tokens', 'fcd8ce74f18cec090811ba9f62923dc11c30902f8cf55a758fa3b765af9ecece', 1796072302218);
INSERT INTO migrations VALUES (38, 'metadata bytes', '4d1cdbb8c937e8e9d95eaa5a5be25f0be00ee598c0cedddd178b673bbcf594c4', 1796072302218);
INSERT INTO migrations VALUES (39, 'ports given away', '699f0d0fc8a3cba9aca01319c062e49575a446e56f389b063d14da5424458a4c', 1796072302218);
INSERT INTO migrations VALUES (40, 'bucket checksums', 'ebcfc967e9a76a977d6c32824920211c394465ac26ee03295e8ea7eb7b954fd3', 1796072302218);
INSERT INTO migrations VALUES (41, 'any engine', 'b869cebd830ce0b8508df4aa996f854f565e81ca9cfa16d3976dd72356647936', 1796072302218);
INSERT INTO migrations VALUES (42, 'shared calls', '6146f827af82a1d18d89157c5c9e06b5d55e433051506b542a9e1cbcf00b49be', 1796072302218);
INSERT INTO migrations VALUES (43, 'invitations', 'e9c861a3edd1105e3236bcb9695eda5e8db3b1a7784044d993762cc5d19151d6', 1796072302218);
INSERT INTO migrations VALUES (44, 'audit log', '33dd1e5e5e802ea3ad4459038a1e397e7a4510f98f37476b0ba356f7a9587d72', 1796072302218);
INSERT INTO migrations VALUES (45, 'mail', '61ac4ef2adedec72500099409c86a2abbaea64e4a9b08746dc279364deb69141', 1796072302218);
INSERT INTO migrations VALUES (46, 'auditors', '0601ba3b38a27c532ea5bb29094d86522129d1e1fb8e1180258102c7372ccd24', 1796072302218);
INSERT INTO migrations VALUES (47, 'removals untold', '242b786c71ac64b76905664dbbe353f01068fba7a5e8f548c3f236031a82fe81', 1796072302218);
INSERT INTO migrations VALUES (48, 'shares', '19446b584801a38387f8727775110618ed77232fa90bdb62eff5a58ba2402f29', 1796072302218);
INSERT INTO migrations VALUES (49, 'listed objects', '8fb8e3d6a409d5aa88702a31f943d72d99b7c012ad32242e3f6822b13dc18cbe', 1796072302218);
INSERT INTO migrations VALUES (50, 'audit webhooks', '854c648efbd821c59df00eebab6544a448e7b361ce7c3b32868f0568619a755c', 1796072302218);
INSERT INTO migrations VALUES (51, 'former administrators', '26479e0f6c2357b807175e83d269e0de59401929bae3eccf7dde34f40abae2c6', 1796072302218);
INSERT INTO migrations VALUES (52, 'vm snapshots', 'fb70c1c6771ca97db91b1c411509c85dcae5f1af5518281c7a0743ebe910a020', 1796072302218);
INSERT INTO migrations VALUES (53, 'ssh keys', '0fe4da14da1c0eac178802a8caddd7f3c474d047cc1258e5b4e5418e55d0225a', 1796072302218);
INSERT INTO migrations VALUES (54, 'saved queries', '47ec2b0a23a67fa5d1d9db412b4159b5b63ca2f13381543851075d9a8d90c132', 1796072302218);
INSERT INTO settings VALUES ('recovery_alarms_told', '[]');
INSERT INTO secrets VALUES ('links', X'010690AD03CACB8B28CE9A83F0C69C3D8DC490419D95544C4D81EB755DD76CF37FE9024521D95C7B0299602D714D5663A6C0A31370F5F05969CE4A9CDE3E1ACCF49FCA76DA');
INSERT INTO secrets VALUES ('recovery-key', X'010690AD03CACB8B2844A49CA73E2AAE024E68A3C0C36A7FDDCE2063EFD68B1A5CFA3D8CA2E758D111B18F660E1C454A199814E019784649A8B912272F4C21BD0EE4E44143');
INSERT INTO secrets VALUES ('recovery-repository', X'010690AD03CACB8B281EF3EF6C4F152B9B68D55DA0FF6F49D3880ED926BFAB53E521424817DEEBB9AD177FCE8FA40879B1C00AFA9998A1C50C24A0B6724DCEF0F7307D2E6B');
INSERT INTO secrets VALUES ('recovery-writer', X'010690AD03CACB8B28E809A17613AAB0028FBF2A1CDE0964E0E61811FA12C0D44B04C65C5AD36B9A196360F566880D3BD46DD33720B34D3B77F1FD33FF0F2DE0EE11D9AC22');
INSERT INTO accounts VALUES (1, 'admin', 'admin', 'admin@localhost', NULL, '', 'free', 1, 1, NULL, 10000000, 0, 1796072303673, NULL, NULL, '19b3c501107cf88c70743a1d0af5511376b97e11c997f824aaef9becec2a86c7', NULL, NULL, NULL, 0, NULL, '', 0, 0);
INSERT INTO accounts VALUES (2, 'user-24447-1', 'user-24447-1', 'user-24447-1@example.org', 'user-24447-1@example.org', '$argon2id$v=19$m=47104,t=1,p=1$BTigWQCJrSwpuLn6v0Vu/w$ONF2QDLWnimFw4WlrMge5yD7IWBETnKedpkGD5aEJTw', 'free', 0, 1, NULL, 9999999, 128102, 1796072305201, 1796072305432, NULL, '6505da79fe4e473330b9d31348ffc2a1387dc0ce8deaa906706ad74a63bd8f22', NULL, NULL, NULL, 0, NULL, '', 0, 0);
INSERT INTO api_keys VALUES ('2636b2345521baa7755f67cd560fdc3ba21accdc37d2e50e1a77517d10bf86c9', 2, 'key-01m8q40wsb7a55ydam7se8atm6', 'access', NULL, 'reader', '["storage:read"]', NULL, 'CLAK2Q5MXWGANXRN2HTK', X'010690AD03CACB8B282315B2C127572105B751068CF5B1001FC194660EEB2162DFE9A47CB89CBACCA2447CED9BDA746AA1798E06CB24FD324834DC7D8D3956EEC9F91ADE70152F34614B7C0F7C', 1796072305451, NULL, NULL);
INSERT INTO api_keys VALUES ('756d38a52628b9608cd29b56078841ab1f3e45439e445006721441afa103b7ed', 1, 'key-01m8q40v1smysd1kkbvh1c0kxx', 'main', X'010690AD03CACB8B28861BC118CF47B3DD753E1871AFB9F5A82D5653610B181A3945FC80AD4E69D4B888219222804FA85D652BA1DC4D98F52020CA36B2DA0C4DB31B14AF28F2', '', '["*"]', NULL, NULL, NULL, 1796072303674, NULL, 1796072340304);
INSERT INTO api_keys VALUES ('b5c7a37e11516a95ebac912c9c3c09569f6716b94103eef55807b74410b277ed', 2, 'key-01m8q40whhb8ajmq47hjjt741a', 'main', X'010690AD03CACB8B2819F4B4BF316A9BB6678231D478A100DA6BB909B7325DB7B7A684DA13C7B09CF2BC924106C6848E864984058E624BC5EB22CB6D719185DFB37A944B5D951E948B93C01AB36A3B', '', '["*"]', NULL, NULL, NULL, 1796072305201, NULL, 1796072340289);
INSERT INTO sessions VALUES ('3a083b1f7039a1ef2722a03a09a16f1972ac5aaaeb457dc29312a4164304a4a0', 2, 1796072305432, 1796072305432, 1798664305432, 'ses-01m8q40wrsrrz71eyf53g49xng', 'node', '127.0.0.1', 1796072305432, 'db6b844b1f295f2b8ac9d33adbdd935381b6fa0275b3ac80f863c69a684a03e5');
INSERT INTO ledger_transfers VALUES (1, 'signup:1', 'system:grants', 'account:1', 10000000, 'signup_grant', '10 credits at registration', 1796072303673, '0000000000000000000000000000000000000000000000000000000000000000', '1e8f0492c3fcebaf1b7958ad1b49a2ab286f1794fd4d18724a183454243d8441');
INSERT INTO ledger_transfers VALUES (2, 'signup:2', 'system:grants', 'account:2', 10000000, 'signup_grant', '10 credits at registration', 1796072305201, '1e8f0492c3fcebaf1b7958ad1b49a2ab286f1794fd4d18724a183454243d8441', '961fda4f104c85f531c85bdb8bed17d5bd8e19ee7fba5969ddc3a7b4c972f624');
INSERT INTO ledger_transfers VALUES (3, 'hold-op-01m8q41wvg1jftj19ky2beqg02', 'account:2', 'held:2', 11600, 'hold', 'vm-01m8q41wtcv6phtvsq6p2ygng3', 1796072338287, '961fda4f104c85f531c85bdb8bed17d5bd8e19ee7fba5969ddc3a7b4c972f624', 'e44ccc8387747b827ad4cd3719479ede8e1949cb382020ab2582b8b606efab8d');
INSERT INTO ledger_transfers VALUES (4, 'release-op-01m8q41ysqe7ezmt1fs9pxy883', 'held:2', 'account:2', 11600, 'release', 'vm-01m8q41wtcv6phtvsq6p2ygng3', 1796072340279, 'e44ccc8387747b827ad4cd3719479ede8e1949cb382020ab2582b8b606efab8d', '86013e30bf63d2c6a32a8a5028c97046d163185cd14f96065e7d23a553324f99');
INSERT INTO ledger_transfers VALUES (5, 'usage-2-1-compute-free', 'account:2', 'system:revenue-compute', 1, 'usage', 'compute of account:2', 1796072362847, '86013e30bf63d2c6a32a8a5028c97046d163185cd14f96065e7d23a553324f99', '0cbcb90be08d5e07caaa5e0e3dc1b242c54481ed635998c100bc2a534a86a47f');
INSERT INTO buckets VALUES (1, 2, 'plain', 'us-east-1', 1, 0, 1796072305467, 1, 64000, 2, 64015, NULL, 'plain', NULL, NULL, 36, 1692792976, 3038422348, NULL, 0);
INSERT INTO buckets VALUES (2, 2, 'sealed', 'us-east-1', 1, 1, 1796072305592, 1, 64000, 2, 64015, NULL, 'sealed', NULL, NULL, 36, 497923322, 2885784589, NULL, 0);
INSERT INTO objects VALUES (1, 'obj-01m8q40wtkzdt8y3kwbeca7qhv', 1, 'note.txt', 2, 64000, 1796072305582, 4033317627, 2, 'cb7ea5d69f0aea940de33be820ed7886', 'STANDARD', NULL);
INSERT INTO objects VALUES (2, 'obj-01m8q40wybcgknr76kztnmg8nm', 2, 'note.txt', 4, 64000, 1796072305630, 827478029, 4, 'cb7ea5d69f0aea940de33be820ed7886', 'STANDARD', NULL);
INSERT INTO versions VALUES (1, 'ver-01m8q40wtk1k3p4nc52mhhda8s', 1, 1, 15, '518b13184fe43682d9671ba588289a1b', 'text/plain', 'STANDARD', NULL, 1796072305491, NULL, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 3013233450, NULL, NULL, NULL, NULL, 18);
INSERT INTO versions VALUES (2, 'ver-01m8q40wxe7w5ah00z3a6pkz97', 1, 2, 64000, 'cb7ea5d69f0aea940de33be820ed7886', 'text/plain', 'STANDARD', NULL, 1796072305582, NULL, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 1827593303, NULL, NULL, NULL, NULL, 18);
INSERT INTO versions VALUES (3, 'ver-01m8q40wybatkayctvv32qzh61', 2, 3, 15, '518b13184fe43682d9671ba588289a1b', 'text/plain', 'STANDARD', NULL, 1796072305611, NULL, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 1699083952, NULL, NULL, NULL, NULL, 18);
INSERT INTO versions VALUES (4, 'ver-01m8q40wyysvkzpp99nmzp0y6g', 2, 4, 64000, 'cb7ea5d69f0aea940de33be820ed7886', 'text/plain', 'STANDARD', NULL, 1796072305630, NULL, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 109030377, NULL, NULL, NULL, NULL, 18);
INSERT INTO blobs VALUES (1, NULL, 1, 15, X'746865206669727374206E6F74650A', 2011756644, NULL, NULL, NULL, NULL, NULL);
INSERT INTO blobs VALUES (2, 'blob-01m8q40wv3153z65yrydv95wfx', 1, 64000, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO blobs VALUES (3, NULL, 1, 15, X'3B6BC6111E0ADA22C01D6820540BDF0C21C7075932832A95A46F6B5294C1F9', 2022002543, X'010690AD03CACB8B28FDB74C710CE63E31FB9FEA35638DE3482BBB0BC73D09EAAD9604F0EEE51DCBEF24DC6726E9D40E11455831FB3237E92073C6963306052A692B92FD43', NULL, NULL, NULL, NULL);
INSERT INTO blobs VALUES (4, 'blob-01m8q40wysthjja0ry6f774gs5', 1, 64000, NULL, NULL, X'010690AD03CACB8B284445A2782E021D9C67EB8A39BE5BA66FB0D116D0B8CE2DFFAF8CA17F0ADB6CC53550E14647D6DF78E3A3B9A69727F790F36E82ED459F8BE73DDD8762', NULL, NULL, NULL, NULL);
INSERT INTO vms VALUES (1, 'vm-01m8q41wtcv6phtvsq6p2ygng3', 2, 'web', 't2.micro', 'us-east-1', '', 1, 1024, 30, 11600, 'tiny', '[]', NULL, '[22,80,443,8080]', 0, '9cd0684d-90c6-487a-9bed-57495ac690dc', '52:3f:d1:08:93:3c', '127.149.252.1', 'stopped', 'stopped', 4, 'powered_off', 'The virtual machine was powered off', NULL, NULL, NULL, 1796072340278, NULL, NULL, 1796072338252, NULL);
INSERT INTO vm_usage VALUES (1, 'vm-01m8q41wtcv6phtvsq6p2ygng3', 2, 'created', 't2.micro', 11600, 30, 1796072338252);
INSERT INTO vm_usage VALUES (2, 'vm-01m8q41wtcv6phtvsq6p2ygng3', 2, 'started', 't2.micro', 11600, 30, 1796072339957);
INSERT INTO vm_usage VALUES (3, 'vm-01m8q41wtcv6phtvsq6p2ygng3', 2, 'stopped', 't2.micro', 11600, 30, 1796072340278);
INSERT INTO billing_accounts VALUES (1, 0, 0, 0, 0, 'ok', 0, 0, NULL, NULL, NULL, 0, '{}', 0, 0, 0, 0);
INSERT INTO billing_accounts VALUES (2, 1, 1796072362847, 0, 0, 'ok', 0, 0, NULL, NULL, NULL, 0, '{}', 1, 1, 2, 4);
INSERT INTO usage_lines VALUES ('database.storage', 'db-01m8q40wz80q0snbnny6bm2vqz', 2, 'of-sqlite', 'sqlite', 12288, 1796072362, 0, 1796072362, 0, 0);
INSERT INTO usage_lines VALUES ('database.storage', 'db-01m8q40yqbwnp98qn250bcmpm7', 2, 'of-postgresql', 'postgresql', 170852, 1796072362, 0, 1796072362, 0, 0);
INSERT INTO usage_lines VALUES ('database.storage', 'db-01m8q41j94kc5y4spj723ktb6d', 2, 'of-mysql', 'mysql', 66035, 1796072362, 0, 1796072362, 0, 0);
INSERT INTO usage_lines VALUES ('database.storage', 'db-01m8q41tn2z3w1kb2h7faydse4', 2, 'of-mongodb', 'mongodb', 28672, 1796072362, 0, 1796072362, 0, 0);
INSERT INTO usage_lines VALUES ('egress', '1', 2, 'plain', '', 0, 1796072305, 0, 1796072305, 0, 0);
INSERT INTO usage_lines VALUES ('egress', '2', 2, 'sealed', '', 0, 1796072305, 0, 1796072305, 0, 0);
INSERT INTO usage_lines VALUES ('storage', '1', 2, 'plain', '', 64051, 1796072362, 0, 1796072362, 0, 0);
INSERT INTO usage_lines VALUES ('storage', '2', 2, 'sealed', '', 64051, 1796072362, 0, 1796072362, 0, 0);
INSERT INTO usage_lines VALUES ('vm.disk', 'vm-01m8q41wtcv6phtvsq6p2ygng3', 2, 'web', 't2.micro', 30, 1796072362846, 0, 1796072362846, 0, 0);
INSERT INTO usage_lines VALUES ('vm.time', 'vm-01m8q41wtcv6phtvsq6p2ygng3', 2, 'web', 't2.micro', 0, 1796072362846, 0, 1796072362846, 123600000, 0);
INSERT INTO usage_windows VALUES (2, 1796068800000, 'database.storage', 'db-01m8q40wz80q0snbnny6bm2vqz', 'of-sqlite', 'sqlite', 0, 638976, 0);
INSERT INTO usage_windows VALUES (2, 1796068800000, 'database.storage', 'db-01m8q40yqbwnp98qn250bcmpm7', 'of-postgresql', 'postgresql', 0, 5467264, 0);
INSERT INTO usage_windows VALUES (2, 1796068800000, 'database.storage', 'db-01m8q41j94kc5y4spj723ktb6d', 'of-mysql', 'mysql', 0, 1452770, 0);
INSERT INTO usage_windows VALUES (2, 1796068800000, 'database.storage', 'db-01m8q41tn2z3w1kb2h7faydse4', 'of-mongodb', 'mongodb', 0, 630784, 0);
INSERT INTO usage_windows VALUES (2, 1796068800000, 'storage', '1', 'plain', '', 0, 3650907, 0);
INSERT INTO usage_windows VALUES (2, 1796068800000, 'storage', '2', 'sealed', '', 0, 3650907, 0);
INSERT INTO usage_windows VALUES (2, 1796068800000, 'vm.disk', 'vm-01m8q41wtcv6phtvsq6p2ygng3', 'web', 't2.micro', 0, 737190, 0);
INSERT INTO usage_windows VALUES (2, 1796068800000, 'vm.time', 'vm-01m8q41wtcv6phtvsq6p2ygng3', 'web', 't2.micro', 11600000, 321, 1);
INSERT INTO plans VALUES ('free', 0, '{"vms":68,"vcpus":128,"memory_mb":17408,"storage_bytes":53687091200,"buckets":1000,"databases":50}', 0, 1);
INSERT INTO steady_clock VALUES (1, '02766951-f724-43dc-a25d-a02393170055', 2041542.36, 1796072376603, 1796072376602);
INSERT INTO webhooks VALUES (1, 'whk-01m8q41yt8mbzy38315d1tdw6c', 2, 'https://example.org/hook', '', '["*"]', 1, NULL, NULL, X'010690AD03CACB8B28DE59B0A5856C08EA8919EEB3D5491585C9425C43A4A779965D4071F96E3327621AF7AEA5360E441E8F84574CE1F73C41158D2F62F1C1E103910152204835B70118E58E7AD6ABA6D60BAC467BC38E', NULL, NULL, NULL, 1796072340296, 0);
INSERT INTO databases VALUES (1, 'db-01m8q40wz80q0snbnny6bm2vqz', 2, 'of-sqlite', '3.53.4', 'us-east-1', 'ready', NULL, NULL, 1, 1, 'd_1bbqbykdvzjhsq60', 'u_1bbqbykdvzjhsq60', X'010690AD03CACB8B281B82FB806672C172AD22DC2BF915520D9AB070F8305CBEAF333C24F76C755CF9C97B518EA77AAE9C957CB7A81AC6EBE57F3AA54F9A4F341F6EE5A597', NULL, X'FE1061C8EA38C50EA0BF960483F2D5ECFA50DC4076D342467B2C06E49110274A', 1073741824, 12288, 0, 1796072305640, 1796072307310, NULL, 0, NULL, NULL, 'sqlite');
INSERT INTO databases VALUES (2, 'db-01m8q40yqbwnp98qn250bcmpm7', 2, 'of-postgresql', '15.20', 'us-east-1', 'ready', NULL, NULL, 1, 1, 'd_tp7s792785hq4bxf', 'u_tp7s792785hq4bxf', X'010690AD03CACB8B285855A2B38803B74E57077F741F67A0219A773CFC363EFD92C64B80FA9D0A1D5FC4CFD6161B996A268F44418AF610AD172EF7821EDC448DADBF635FCC', NULL, X'A753E2E511BD4BB36B989DD466F850801F3FDFA8AB4D1E1297C5333AB00E7CAC', 1073741824, 170852, 0, 1796072307435, 1796072327352, NULL, 0, NULL, NULL, 'postgresql');
INSERT INTO databases VALUES (3, 'db-01m8q41j94kc5y4spj723ktb6d', 2, 'of-mysql', '10.11.19-MariaDB', 'us-east-1', 'ready', NULL, NULL, 1, 1, 'd_4m10th551b3f681d', 'u_4m10th551b3f681d', X'010690AD03CACB8B280EA93E005EAA57000747089080AE77FE2A387FFF4040E183DA07374981ACFC289057AB3C6CE5AE92011CF087B2A525D08D86575F5B88FD1FAB35A529', NULL, X'275B217B9B1A3A5F9E8B69E33497BCC9FB612C91BE772D9E8820A9460400AE90', 1073741824, 66035, 0, 1796072327460, 1796072335926, NULL, 0, NULL, NULL, 'mysql');
INSERT INTO databases VALUES (4, 'db-01m8q41tn2z3w1kb2h7faydse4', 2, 'of-mongodb', '7.0.0-cloudlet', 'us-east-1', 'ready', NULL, NULL, 1, 1, 'd_c9mrnny0v45f11cw', 'u_c9mrnny0v45f11cw', X'010690AD03CACB8B2895451887CB8A43A10C66BF31998F5CC1CAE6FE30E1E98926A032C1ADC0896D1CB5E681CB371CBB91DC752A1348B80798D0F89F67D5F69106535955CE', NULL, X'50DEB1EFD92B9B847ECE403F767AD9DCEAF8B087ED7D6A6FC9046794A298EFFA', 1073741824, 28672, 0, 1796072336034, 1796072338039, NULL, 0, NULL, NULL, 'mongodb');
INSERT INTO recovery_points VALUES (1, 'drp-01m8q41ywc84c88dzsqcbqn6yz', 'complete', NULL, '/tmp/cloudlet-upgrade-xp2s1J/recovery', 100.0, 1796072340365, 1796072372928, NULL, 32213187385, 93686, '{"accounts":2,"buckets":2,"objects":2,"versions":4,"vms":1,"databases":4}', '[]', 'a44037e532e89b818fc80cd9baaea73b9e52d07d9845b25de987fff43928e869', NULL, '[]', 0, NULL, NULL, NULL, NULL, NULL);
INSERT INTO database_samples VALUES (1, 5, 1796072310380, 12288, 0.0, 2, 0, 1);
INSERT INTO database_samples VALUES (1, 5, 1796072315381, 12288, 0.0, 2, 0, 1);
INSERT INTO database_samples VALUES (1, 5, 1796072345473, 12288, 0.0, 2, 0, 1);
INSERT INTO database_samples VALUES (1, 5, 1796072355832, 12288, 0.0, 2, 0, 1);
INSERT INTO database_samples VALUES (2, 5, 1796072330379, 170852, 0.0, 12, NULL, 15);
INSERT INTO database_samples VALUES (2, 5, 1796072335380, 170852, 0.0, 12, NULL, 15);
INSERT INTO database_samples VALUES (2, 5, 1796072355832, 170852, 1.0, 16, NULL, 15);
INSERT INTO database_samples VALUES (2, 5, 1796072360495, 170852, 1.0, 16, NULL, 15);
INSERT INTO database_samples VALUES (3, 5, 1796072340380, 66035, 0.0, 9, 0, 1);
INSERT INTO database_samples VALUES (4, 5, 1796072340380, 28672, 0.0, 2, 0, 1);
INSERT INTO database_samples VALUES (4, 5, 1796072345473, 28672, 0.0, 2, 0, 1);
INSERT INTO database_samples VALUES (4, 5, 1796072355832, 28672, 0.0, 2, 0, 1);
INSERT INTO identity VALUES (1, 'cld-01m8q40tj9nskn5qcrpkvs4zy8', 1);
INSERT INTO audit_rows VALUES (1, 1796072305202, 2, 2, 'user-24447-1', 'nobody', '', '127.0.0.1', 'node', 'register', '2', 'done', 201, '', 'req-01m8q40w7c28mpkc9zwzyfde12', '', 1, 0);
INSERT INTO audit_rows VALUES (2, 1796072305434, 2, 2, 'user-24447-1', 'nobody', '', '127.0.0.1', 'node', 'login', '2', 'done', 200, '', 'req-01m8q40wjvmjej0x8rekbp2769', '', 1, 0);
INSERT INTO audit_rows VALUES (3, 1796072305452, 2, 2, 'user-24447-1', 'key', 'key-01m8q40whhb8ajmq47hjjt741a', '127.0.0.1', 'node', 'createAccessKey', 'key-01m8q40wsb7a55ydam7se8atm6', 'done', 201, '', 'req-01m8q40ws3cehqney8qg6cfg5p', '{"name":"reader","scopes":["storage:read"]}', 1, 0);
INSERT INTO audit_rows VALUES (4, 1796072305470, 2, 2, 'user-24447-1', 'key', 'key-01m8q40whhb8ajmq47hjjt741a', '127.0.0.1', 'node', 'createBucket', 'plain', 'done', 201, '', 'req-01m8q40wsqg33a5kkd8hqgdq6f', '{"versioning":true,"encryption":false}', 1, 0);
INSERT INTO audit_rows VALUES (5, 1796072305592, 2, 2, 'user-24447-1', 'key', 'key-01m8q40whhb8ajmq47hjjt741a', '127.0.0.1', 'node', 'createBucket', 'sealed', 'done', 201, '', 'req-01m8q40wxqx4w6jptrhf53ht4e', '{"versioning":true,"encryption":true}', 1, 0);
INSERT INTO audit_rows VALUES (6, 1796072307310, 2, 2, 'user-24447-1', 'key', 'key-01m8q40whhb8ajmq47hjjt741a', '127.0.0.1', 'node', 'createDatabase', 'db-01m8q40wz80q0snbnny6bm2vqz', 'done', 201, '', 'req-01m8q40wz5mhbqqc7nnqm4tnqw', '{"name":"of-sqlite","engine":"sqlite"}', 1, 0);
INSERT INTO audit_rows VALUES (7, 1796072327352, 2, 2, 'user-24447-1', 'key', 'key-01m8q40whhb8ajmq47hjjt741a', '127.0.0.1', 'node', 'createDatabase', 'db-01m8q40yqbwnp98qn250bcmpm7', 'done', 201, '', 'req-01m8q40yq8hyszsc01fcm02vcg', '{"name":"of-postgresql","engine":"postgresql"}', 1, 0);
INSERT INTO audit_rows VALUES (8, 1796072335926, 2, 2, 'user-24447-1', 'key', 'key-01m8q40whhb8ajmq47hjjt741a', '127.0.0.1', 'node', 'createDatabase', 'db-01m8q41j94kc5y4spj723ktb6d', 'done', 201, '', 'req-01m8q41j92w31c9555nrp0nw62', '{"name":"of-mysql","engine":"mysql"}', 1, 0);
INSERT INTO audit_rows VALUES (9, 1796072338039, 2, 2, 'user-24447-1', 'key', 'key-01m8q40whhb8ajmq47hjjt741a', '127.0.0.1', 'node', 'createDatabase', 'db-01m8q41tn2z3w1kb2h7faydse4', 'done', 201, '', 'req-01m8q41tn0gqb3v84mh1pnh3y5', '{"name":"of-mongodb","engine":"mongodb"}', 1, 0);
INSERT INTO audit_rows VALUES (10, 1796072338275, 2, 2, 'user-24447-1', 'key', 'key-01m8q40whhb8ajmq47hjjt741a', '127.0.0.1', 'node', 'createVm', 'vm-01m8q41wtcv6phtvsq6p2ygng3', 'done', 201, '', 'req-01m8q41wpmy4fhvn0th8qq9wam', '{"name":"web","instance_type":"t2.micro"}', 1, 0);
INSERT INTO audit_rows VALUES (11, 1796072340149, 2, 2, 'user-24447-1', 'key', 'key-01m8q40whhb8ajmq47hjjt741a', '127.0.0.1', 'node', 'startVm', 'vm-01m8q41wtcv6phtvsq6p2ygng3', 'done', 200, '', 'req-01m8q41wvbdp2dm4z87afgvj1c', '', 1, 0);
INSERT INTO audit_rows VALUES (12, 1796072340279, 2, 2, 'user-24447-1', 'key', 'key-01m8q40whhb8ajmq47hjjt741a', '127.0.0.1', 'node', 'stopVm', 'vm-01m8q41wtcv6phtvsq6p2ygng3', 'done', 200, '', 'req-01m8q41yphfgs78pqb4e4qgab6', '', 1, 0);
INSERT INTO audit_rows VALUES (13, 1796072340297, 2, 2, 'user-24447-1', 'key', 'key-01m8q40whhb8ajmq47hjjt741a', '127.0.0.1', 'node', 'createWebhook', 'whk-01m8q41yt8mbzy38315d1tdw6c', 'done', 201, '', 'req-01m8q41yt164552c6yes5y8zze', '', 1, 0);
INSERT INTO audit_rows VALUES (14, 1796072340487, 1, 1, 'admin', 'key', 'key-01m8q40v1smysd1kkbvh1c0kxx', '127.0.0.1', 'node', 'createRecoveryPoint', 'drp-01m8q41ywc84c88dzsqcbqn6yz', 'done', 201, '', 'req-01m8q41ytfdbjg2p5pjwn0phnj', '', 1, 0);
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
CREATE INDEX operations_to_cancel ON operations(node) WHERE cancel_asked = 1 AND ended_at IS NULL;
CREATE INDEX short_tokens_owner ON short_tokens(kind, owner, created_at);
CREATE INDEX short_tokens_ends ON short_tokens(ends_at);
CREATE INDEX accounts_invitation ON accounts(invitation_id) WHERE invitation_id IS NOT NULL;
CREATE INDEX accounts_expires_at ON accounts(expires_at) WHERE expires_at IS NOT NULL;
CREATE INDEX audit_rows_account ON audit_rows(account_id, id);
CREATE INDEX audit_rows_seal ON audit_rows(seal, id);
CREATE INDEX mails_due ON mails(account_id, next_at, id) WHERE state = 'pending';
CREATE INDEX mails_asked ON mails(id) WHERE state = 'asked';
CREATE INDEX mails_recent ON mails(kind, recipient, created_at);
CREATE INDEX mails_age ON mails(created_at);
CREATE INDEX shares_account ON shares(account_id, id);
CREATE INDEX shares_bucket ON shares(bucket_id, id);
CREATE INDEX shares_end ON shares(expires_at) WHERE expires_at IS NOT NULL;
CREATE INDEX webhooks_audit ON webhooks(account_id) WHERE hears_audit > 0;
CREATE INDEX vm_snapshots_vm ON vm_snapshots(vm_id, id);

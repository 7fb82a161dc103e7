-- The schema of PostgreSQL as of migration 21. Same tables and columns as SQLite's (../../schema.sql), whose texts
-- hold for both: integers are BIGINT, texts compare as bytes, row ids come in blocks of 64. Later migrations have
-- a text for each engine.

CREATE SEQUENCE accounts_id_seq INCREMENT 64;
CREATE SEQUENCE blobs_id_seq INCREMENT 64;
CREATE SEQUENCE buckets_id_seq INCREMENT 64;
CREATE SEQUENCE databases_id_seq INCREMENT 64;
CREATE SEQUENCE objects_id_seq INCREMENT 64;
CREATE SEQUENCE recovery_points_id_seq INCREMENT 64;
CREATE SEQUENCE versions_id_seq INCREMENT 64;
CREATE SEQUENCE vm_usage_id_seq INCREMENT 64;
CREATE SEQUENCE vms_id_seq INCREMENT 64;
CREATE SEQUENCE webhook_attempts_id_seq INCREMENT 64;
CREATE SEQUENCE webhook_deliveries_id_seq INCREMENT 64;
CREATE SEQUENCE webhook_events_id_seq INCREMENT 64;
CREATE SEQUENCE webhooks_id_seq INCREMENT 64;

CREATE TABLE accounts (
  id BIGINT PRIMARY KEY DEFAULT nextval('accounts_id_seq'),
  username TEXT COLLATE "C" NOT NULL,
  username_folded TEXT COLLATE "C" UNIQUE,          -- null once closed, so that the name is free again
  email TEXT COLLATE "C" NOT NULL,
  email_folded TEXT COLLATE "C" UNIQUE,
  password_hash TEXT COLLATE "C" NOT NULL,          -- empty: no password login
  plan TEXT COLLATE "C" NOT NULL DEFAULT 'free',
  is_admin BIGINT NOT NULL DEFAULT 0,
  is_active BIGINT NOT NULL DEFAULT 1,
  suspended_reason TEXT COLLATE "C",
  credits_micro BIGINT NOT NULL DEFAULT 0,
  storage_bytes BIGINT NOT NULL DEFAULT 0, -- all versions
  created_at BIGINT NOT NULL,
  last_login BIGINT,
  closed_at BIGINT
);

CREATE TABLE api_keys (
  key_hash TEXT COLLATE "C" PRIMARY KEY,
  account_id BIGINT NOT NULL,
  key_id TEXT COLLATE "C" NOT NULL UNIQUE,
  kind TEXT COLLATE "C" NOT NULL CHECK (kind IN ('main', 'access')),
  sealed_key BYTEA,                      -- main keys only, so that the profile can show them
  name TEXT COLLATE "C" NOT NULL DEFAULT '',
  scopes TEXT COLLATE "C" NOT NULL DEFAULT '["*"]', -- JSON array
  bucket_limits TEXT COLLATE "C",                   -- JSON array of {bucket, prefix}
  s3_access_key TEXT COLLATE "C" UNIQUE,
  s3_sealed_secret BYTEA,
  created_at BIGINT NOT NULL,
  expires_at BIGINT,                   -- for a rotated main key: the end of the overlap
  last_used_at BIGINT
);

CREATE TABLE billing_accounts (
  account_id BIGINT PRIMARY KEY,
  settlement BIGINT NOT NULL DEFAULT 0,  -- number of the last one
  settled_at BIGINT NOT NULL DEFAULT 0,
  written_off_micro BIGINT NOT NULL DEFAULT 0 CHECK (written_off_micro >= 0), -- it could not pay
  held_micro BIGINT NOT NULL DEFAULT 0 CHECK (held_micro >= 0), -- cached sum of the ledger's held:<id>
  state TEXT COLLATE "C" NOT NULL DEFAULT 'ok' CHECK (state IN ('ok','low','critical','grace','suspended')),
  state_at BIGINT NOT NULL DEFAULT 0,
  state_seq BIGINT NOT NULL DEFAULT 0,   -- the ledger's last transfer when the state began: later ones count as a top-up
  exhausted_at BIGINT,                   -- in grace and suspended
  grace_ends_at BIGINT,                  -- in grace, as it is shown
  grace_until BIGINT,                    -- in grace, steady: what ends it
  resume_due BIGINT NOT NULL DEFAULT 0,  -- machines stopped for want of credits are yet to be started
  quotas TEXT COLLATE "C" NOT NULL DEFAULT '{}',      -- JSON; goes before the plan's, null: unlimited
  vm_count BIGINT NOT NULL DEFAULT 0 CHECK (vm_count >= 0),
  vcpu_count BIGINT NOT NULL DEFAULT 0 CHECK (vcpu_count >= 0),
  bucket_count BIGINT NOT NULL DEFAULT 0 CHECK (bucket_count >= 0),
  database_count BIGINT NOT NULL DEFAULT 0 CHECK (database_count >= 0)
);

CREATE TABLE blob_garbage (
  blob BIGINT PRIMARY KEY,
  not_before BIGINT NOT NULL
);

CREATE TABLE blobs (
  id BIGINT PRIMARY KEY DEFAULT nextval('blobs_id_seq'),
  name TEXT COLLATE "C" UNIQUE,                         -- of the file; null when inline
  refs BIGINT NOT NULL DEFAULT 1 CHECK (refs >= 0),
  size_bytes BIGINT NOT NULL,
  data BYTEA,
  checksum BIGINT,                         -- CRC-32 of data; files carry their own
  wrapped_key BYTEA,                         -- data key under the master key; null: not encrypted
  damaged_at BIGINT                        -- set by the scrubber
);

CREATE TABLE buckets (
  id BIGINT PRIMARY KEY DEFAULT nextval('buckets_id_seq'),
  account_id BIGINT NOT NULL,
  name TEXT COLLATE "C" NOT NULL,
  region TEXT COLLATE "C" NOT NULL,
  versioning BIGINT NOT NULL,
  encryption BIGINT NOT NULL,
  created_at BIGINT NOT NULL,
  object_count BIGINT NOT NULL DEFAULT 0,  -- live objects
  size_bytes BIGINT NOT NULL DEFAULT 0,    -- of live objects
  version_count BIGINT NOT NULL DEFAULT 0, -- versions with bytes, live ones included
  total_bytes BIGINT NOT NULL DEFAULT 0,   -- of all versions
  UNIQUE (account_id, name)
);

CREATE TABLE database_samples (
  database BIGINT NOT NULL,
  step_seconds BIGINT NOT NULL,
  at BIGINT NOT NULL,
  size_bytes BIGINT,
  connections DOUBLE PRECISION,                       -- DOUBLE PRECISION: a coarse row has the mean
  statements BIGINT,
  rows_returned BIGINT,
  rows_written BIGINT,
  PRIMARY KEY (database, step_seconds, at)
);

CREATE TABLE databases (
  id BIGINT PRIMARY KEY DEFAULT nextval('databases_id_seq'),   -- never used again: engines derive users of the host from it
  database_id TEXT COLLATE "C" NOT NULL UNIQUE,
  account_id BIGINT NOT NULL,
  name TEXT COLLATE "C" NOT NULL,
  engine TEXT COLLATE "C" NOT NULL CHECK (engine IN ('sqlite','postgresql','mysql','mongodb')),
  version TEXT COLLATE "C",                           -- of the engine that made it
  region TEXT COLLATE "C" NOT NULL,
  state TEXT COLLATE "C" NOT NULL CHECK (state IN ('creating','ready','read_only','suspended','error','deleting')),
  reason_code TEXT COLLATE "C",
  reason_message TEXT COLLATE "C",
  generation BIGINT NOT NULL DEFAULT 0,  -- of every change of what is wanted; a commit names the one it saw
  applied BIGINT NOT NULL DEFAULT -1,    -- generation that the engine was brought in line with
  engine_database TEXT COLLATE "C" NOT NULL UNIQUE,   -- its name inside the engine
  username TEXT COLLATE "C" NOT NULL UNIQUE,
  sealed_password BYTEA NOT NULL,
  sealed_next_password BYTEA,              -- while a rotation is under way
  password_hash BYTEA NOT NULL UNIQUE,     -- SHA-256 of the newest one, for engines that log in through Cloudlet
  size_limit_bytes BIGINT NOT NULL,
  size_bytes BIGINT NOT NULL DEFAULT 0,  -- as last measured
  is_protected BIGINT NOT NULL DEFAULT 0,
  created_at BIGINT NOT NULL,
  state_changed_at BIGINT NOT NULL,
  deletes_at BIGINT,                     -- in deleting: until then it can be had back; null: it never was ready
  is_dropped BIGINT NOT NULL DEFAULT 0,  -- in deleting: the engine has it no more
  kept_dump_bytes BIGINT,                 -- in deleting: size of the last dump
  keep_left_ms BIGINT
);

CREATE TABLE holds (
  resource_id TEXT COLLATE "C" PRIMARY KEY,
  account_id BIGINT NOT NULL,
  amount_micro BIGINT NOT NULL CHECK (amount_micro >= 0),
  placed_at BIGINT NOT NULL
);

CREATE TABLE idempotency (
  scope TEXT COLLATE "C" NOT NULL,                  -- who and which route
  key TEXT COLLATE "C" NOT NULL,
  status BIGINT NOT NULL,
  sealed_body BYTEA NOT NULL,
  created_at BIGINT NOT NULL, account_id BIGINT NOT NULL DEFAULT 0,
  PRIMARY KEY (scope, key)
);

CREATE TABLE identity (
  id BIGINT PRIMARY KEY CHECK (id = 1),
  cloud_id TEXT COLLATE "C" NOT NULL,
  starts BIGINT NOT NULL                 -- times that it was started on these files; 0 once it was restored
);

CREATE TABLE images (
  image_id TEXT COLLATE "C" PRIMARY KEY,
  name TEXT COLLATE "C" NOT NULL,
  state TEXT COLLATE "C" NOT NULL CHECK (state IN ('importing','ready','failed')),
  reason_code TEXT COLLATE "C",                     -- why it failed
  reason_message TEXT COLLATE "C",
  size_bytes BIGINT NOT NULL,          -- 0 until it is ready
  virtual_bytes BIGINT NOT NULL,       -- of the disk that a guest sees; 0 until it is ready
  source TEXT COLLATE "C" NOT NULL,                 -- for people; holds no secret
  source_format TEXT COLLATE "C" CHECK (source_format IN ('raw','qcow2')), -- what the bytes were recognised as
  sha256 TEXT COLLATE "C",                          -- of the source, hexadecimal; null until all of it came
  created_at BIGINT NOT NULL
);

CREATE TABLE job_runs (
  job TEXT COLLATE "C" PRIMARY KEY,
  started_at BIGINT NOT NULL,
  finished_at BIGINT,
  state TEXT COLLATE "C" NOT NULL,                      -- JSON: progress and result
  cursor TEXT COLLATE "C"
);

CREATE TABLE ledger_transfers (
  seq BIGINT PRIMARY KEY,
  id TEXT COLLATE "C" NOT NULL UNIQUE,
  debit TEXT COLLATE "C" NOT NULL,
  credit TEXT COLLATE "C" NOT NULL,
  amount_micro BIGINT NOT NULL CHECK (amount_micro > 0),
  code TEXT COLLATE "C" NOT NULL,
  reference TEXT COLLATE "C" NOT NULL,
  created_at BIGINT NOT NULL,
  prev_hash TEXT COLLATE "C" NOT NULL,
  hash TEXT COLLATE "C" NOT NULL UNIQUE
);

CREATE TABLE objects (
  id BIGINT PRIMARY KEY DEFAULT nextval('objects_id_seq'),
  object_id TEXT COLLATE "C" NOT NULL UNIQUE,
  bucket_id BIGINT NOT NULL,
  name TEXT COLLATE "C" NOT NULL,        -- UTF-8 byte order
  current BIGINT, size_bytes BIGINT, changed_at BIGINT,
  UNIQUE (bucket_id, name)
);

CREATE TABLE operations (
  operation_id TEXT COLLATE "C" PRIMARY KEY,
  account_id BIGINT NOT NULL,
  credential_id TEXT COLLATE "C" NOT NULL,          -- who asked
  name TEXT COLLATE "C" NOT NULL,                   -- of the route
  created_at BIGINT NOT NULL,
  ended_at BIGINT,
  status BIGINT,                       -- the answer, once it has ended
  sealed_body BYTEA
);

CREATE TABLE plans (
  name TEXT COLLATE "C" PRIMARY KEY,
  monthly_micro BIGINT NOT NULL DEFAULT 0, -- granted at the beginning of each month
  quotas TEXT COLLATE "C" NOT NULL DEFAULT '{}',      -- JSON; a quota that is missing is unlimited
  created_at BIGINT NOT NULL,
  follows_host BIGINT NOT NULL DEFAULT 0
);

CREATE TABLE prices (
  meter TEXT COLLATE "C" NOT NULL,
  variant TEXT COLLATE "C" NOT NULL,
  plan TEXT COLLATE "C" NOT NULL,                     -- '' for all
  effective_from BIGINT NOT NULL,        -- wall time, a whole hour
  price_nano BIGINT NOT NULL CHECK (price_nano >= 0),
  PRIMARY KEY (meter, variant, plan, effective_from)
);

CREATE TABLE recovery_holds (
  point_id TEXT COLLATE "C" PRIMARY KEY,
  renewed_at BIGINT NOT NULL             -- ms since 1970
);

CREATE TABLE recovery_points (
  id BIGINT PRIMARY KEY DEFAULT nextval('recovery_points_id_seq'),
  point_id TEXT COLLATE "C" NOT NULL UNIQUE,
  state TEXT COLLATE "C" NOT NULL CHECK (state IN
    ('creating','complete','verified','drilled','failed','cancelled','damaged','deleting')),
  reason TEXT COLLATE "C",                            -- why it failed or is damaged
  target TEXT COLLATE "C" NOT NULL,
  percent DOUBLE PRECISION NOT NULL DEFAULT 0,
  created_at BIGINT NOT NULL,            -- ms since 1970; of the cut
  completed_at BIGINT,
  verified_at BIGINT,
  size_bytes BIGINT NOT NULL DEFAULT 0,  -- of all that is in it
  stored_bytes BIGINT NOT NULL DEFAULT 0, -- that were new to the target
  contents TEXT COLLATE "C" NOT NULL DEFAULT '{}',    -- JSON: counts
  gaps TEXT COLLATE "C" NOT NULL DEFAULT '[]',        -- JSON
  manifest_sha256 TEXT COLLATE "C",                   -- of the stored bytes
  deletes_at BIGINT,                      -- in deleting: until then it can be had back
  damage TEXT COLLATE "C" NOT NULL DEFAULT '[]',
  damaged_files BIGINT NOT NULL DEFAULT 0,
  state_before TEXT COLLATE "C",
  grace_left_ms BIGINT
);

CREATE TABLE secrets (
  name TEXT COLLATE "C" PRIMARY KEY,
  sealed BYTEA NOT NULL
);

CREATE TABLE sessions (
  token_hash TEXT COLLATE "C" PRIMARY KEY,
  account_id BIGINT NOT NULL,
  created_at BIGINT NOT NULL,
  last_seen_at BIGINT NOT NULL,
  expires_at BIGINT NOT NULL,
  session_id TEXT COLLATE "C" NOT NULL DEFAULT '',
  user_agent TEXT COLLATE "C" NOT NULL DEFAULT '',
  address TEXT COLLATE "C" NOT NULL DEFAULT ''
);

CREATE TABLE settings (
  name TEXT COLLATE "C" PRIMARY KEY,
  value TEXT COLLATE "C" NOT NULL
);

CREATE TABLE setup_links (
  token_hash TEXT COLLATE "C" PRIMARY KEY,
  expires_at BIGINT NOT NULL
);

CREATE TABLE steady_clock (
  id BIGINT PRIMARY KEY CHECK (id = 1),
  boot_id TEXT COLLATE "C" NOT NULL,
  uptime_ms DOUBLE PRECISION NOT NULL,
  wall_ms BIGINT NOT NULL,
  steady_ms BIGINT NOT NULL
);

CREATE TABLE usage_lines (
  meter TEXT COLLATE "C" NOT NULL,
  resource_id TEXT COLLATE "C" NOT NULL,
  account_id BIGINT NOT NULL,
  name TEXT COLLATE "C" NOT NULL,
  variant TEXT COLLATE "C" NOT NULL,                  -- what the price depends on: the instance type; '' else
  level BIGINT NOT NULL,
  level_since BIGINT NOT NULL,           -- steady, ticks of the meter
  pending BIGINT NOT NULL DEFAULT 0,     -- below 0 after an end that was earlier than thought
  settled_to BIGINT NOT NULL,            -- steady, ticks of the meter
  carry BIGINT NOT NULL DEFAULT 0,       -- what the last charge left of a micro-credit
  is_closed BIGINT NOT NULL DEFAULT 0,
  PRIMARY KEY (meter, resource_id)
);

CREATE TABLE usage_windows (
  account_id BIGINT NOT NULL,
  window_start BIGINT NOT NULL,          -- wall time, a whole hour
  meter TEXT COLLATE "C" NOT NULL,
  resource_id TEXT COLLATE "C" NOT NULL,
  name TEXT COLLATE "C" NOT NULL,
  variant TEXT COLLATE "C" NOT NULL,
  price_nano BIGINT NOT NULL,            -- of a unit
  quantity BIGINT NOT NULL,
  cost_micro BIGINT NOT NULL,
  -- With the price: a plan that changes within an hour makes two of it.
  PRIMARY KEY (account_id, window_start, meter, resource_id, price_nano)
);

CREATE TABLE versions (
  id BIGINT PRIMARY KEY DEFAULT nextval('versions_id_seq'),
  version_id TEXT COLLATE "C" NOT NULL UNIQUE,
  object BIGINT NOT NULL,
  blob BIGINT,                             -- of blobs, counted by its refs; null: a delete marker
  size_bytes BIGINT NOT NULL,
  etag TEXT COLLATE "C" NOT NULL,
  mime_type TEXT COLLATE "C" NOT NULL,
  storage_class TEXT COLLATE "C" NOT NULL,
  metadata TEXT COLLATE "C",                            -- JSON object as sent
  created_at BIGINT NOT NULL,
  last_accessed BIGINT
);

CREATE TABLE vm_samples (
  vm BIGINT NOT NULL,
  step_seconds BIGINT NOT NULL,
  at BIGINT NOT NULL,
  cpu_percent DOUBLE PRECISION,
  memory_used_bytes BIGINT,
  memory_total_bytes BIGINT,
  resident_bytes BIGINT,
  disk_read_bytes BIGINT,
  disk_write_bytes BIGINT,
  network_rx_bytes BIGINT,
  network_tx_bytes BIGINT,
  PRIMARY KEY (vm, step_seconds, at)
);

CREATE TABLE vm_usage (
  id BIGINT PRIMARY KEY DEFAULT nextval('vm_usage_id_seq'),
  vm_id TEXT COLLATE "C" NOT NULL,
  account_id BIGINT NOT NULL,
  event TEXT COLLATE "C" NOT NULL CHECK (event IN ('created','started','stopped','deleted')),
  instance_type TEXT COLLATE "C" NOT NULL,
  price_micro BIGINT NOT NULL,
  disk_gb BIGINT NOT NULL,
  at BIGINT NOT NULL
);

CREATE TABLE vms (
  id BIGINT PRIMARY KEY DEFAULT nextval('vms_id_seq'),
  vm_id TEXT COLLATE "C" NOT NULL UNIQUE,
  account_id BIGINT NOT NULL,
  name TEXT COLLATE "C" NOT NULL,
  instance_type TEXT COLLATE "C" NOT NULL,
  region TEXT COLLATE "C" NOT NULL,
  tags TEXT COLLATE "C" NOT NULL,                   -- comma-separated, as sent
  vcpus BIGINT NOT NULL,
  memory_mb BIGINT NOT NULL,
  disk_gb BIGINT NOT NULL,
  price_micro BIGINT NOT NULL,         -- per hour
  image_id TEXT COLLATE "C" NOT NULL,
  ssh_keys TEXT COLLATE "C" NOT NULL,               -- JSON array
  user_data TEXT COLLATE "C",
  ports TEXT COLLATE "C" NOT NULL,                  -- JSON array of guest ports that the address answers on
  outbound BIGINT NOT NULL,
  uuid TEXT COLLATE "C" NOT NULL UNIQUE,
  mac TEXT COLLATE "C" NOT NULL UNIQUE,
  address TEXT COLLATE "C" UNIQUE,                  -- null once it is being deleted: free for the next
  state TEXT COLLATE "C" NOT NULL CHECK (state IN ('created','starting','running','stopping','stopped','error','deleting')),
  desired_state TEXT COLLATE "C" NOT NULL CHECK (desired_state IN ('running','stopped','deleted')),
  generation BIGINT NOT NULL DEFAULT 0, -- of every change of state; a commit names the one it saw
  reason_code TEXT COLLATE "C",
  reason_message TEXT COLLATE "C",
  handle TEXT COLLATE "C",                          -- the engine's, of the present run
  accel TEXT COLLATE "C",
  accel_reason TEXT COLLATE "C",
  state_changed_at BIGINT NOT NULL,
  started_at BIGINT,                   -- of the present run
  ready_at BIGINT,                     -- first sign of life in the present run
  created_at BIGINT NOT NULL
);

CREATE TABLE webhook_attempts (
  id BIGINT PRIMARY KEY DEFAULT nextval('webhook_attempts_id_seq'),
  delivery BIGINT NOT NULL,
  at BIGINT NOT NULL,
  status BIGINT,                       -- null: there was no answer
  duration_ms BIGINT NOT NULL,
  response TEXT COLLATE "C",                        -- the beginning of it
  error TEXT COLLATE "C"
);

CREATE TABLE webhook_deliveries (
  id BIGINT PRIMARY KEY DEFAULT nextval('webhook_deliveries_id_seq'),
  delivery_id TEXT COLLATE "C" NOT NULL UNIQUE,
  webhook BIGINT NOT NULL,
  event BIGINT NOT NULL,
  state TEXT COLLATE "C" NOT NULL CHECK (state IN ('pending','delivered','failed')),
  reason TEXT COLLATE "C",                          -- why it failed, beyond what its last attempt says
  tries BIGINT NOT NULL DEFAULT 0,     -- since it was made, or replayed
  next_at BIGINT CHECK ((state = 'pending') = (next_at IS NOT NULL)),
  created_at BIGINT NOT NULL,
  UNIQUE (webhook, event)
);

CREATE TABLE webhook_events (
  id BIGINT PRIMARY KEY DEFAULT nextval('webhook_events_id_seq'),
  event_id TEXT COLLATE "C" NOT NULL UNIQUE,        -- sent as webhook-id
  account_id BIGINT NOT NULL,
  type TEXT COLLATE "C" NOT NULL,
  body TEXT COLLATE "C" NOT NULL,                   -- the very text that is signed and sent
  is_pending BIGINT NOT NULL DEFAULT 1, -- has no deliveries yet
  at BIGINT NOT NULL
);

CREATE TABLE webhooks (
  id BIGINT PRIMARY KEY DEFAULT nextval('webhooks_id_seq'),
  webhook_id TEXT COLLATE "C" NOT NULL UNIQUE,
  account_id BIGINT NOT NULL,
  url TEXT COLLATE "C" NOT NULL,
  description TEXT COLLATE "C" NOT NULL,
  events TEXT COLLATE "C" NOT NULL,                 -- JSON array of event types, or ["*"]
  is_enabled BIGINT NOT NULL DEFAULT 1,
  disabled_code TEXT COLLATE "C",                   -- why it is not enabled
  disabled_message TEXT COLLATE "C",
  sealed_secret BYTEA NOT NULL,
  sealed_old_secret BYTEA,               -- signs too, until old_secret_until
  old_secret_until BIGINT,
  failing_since BIGINT,                -- since the last attempt that succeeded
  created_at BIGINT NOT NULL
);

ALTER TABLE api_keys ADD FOREIGN KEY (account_id) REFERENCES accounts (id);
ALTER TABLE billing_accounts ADD FOREIGN KEY (account_id) REFERENCES accounts (id);
ALTER TABLE blob_garbage ADD FOREIGN KEY (blob) REFERENCES blobs (id);
ALTER TABLE buckets ADD FOREIGN KEY (account_id) REFERENCES accounts (id);
ALTER TABLE database_samples ADD FOREIGN KEY (database) REFERENCES databases (id) ON DELETE CASCADE;
ALTER TABLE databases ADD FOREIGN KEY (account_id) REFERENCES accounts (id);
ALTER TABLE holds ADD FOREIGN KEY (account_id) REFERENCES accounts (id);
ALTER TABLE objects ADD FOREIGN KEY (bucket_id) REFERENCES buckets (id);
ALTER TABLE operations ADD FOREIGN KEY (account_id) REFERENCES accounts (id);
ALTER TABLE sessions ADD FOREIGN KEY (account_id) REFERENCES accounts (id);
ALTER TABLE usage_lines ADD FOREIGN KEY (account_id) REFERENCES accounts (id);
ALTER TABLE versions ADD FOREIGN KEY (object) REFERENCES objects (id);
ALTER TABLE vm_samples ADD FOREIGN KEY (vm) REFERENCES vms (id) ON DELETE CASCADE;
ALTER TABLE vms ADD FOREIGN KEY (account_id) REFERENCES accounts (id);
ALTER TABLE webhook_attempts ADD FOREIGN KEY (delivery) REFERENCES webhook_deliveries (id) ON DELETE CASCADE;
ALTER TABLE webhook_deliveries ADD FOREIGN KEY (webhook) REFERENCES webhooks (id) ON DELETE CASCADE;
ALTER TABLE webhook_deliveries ADD FOREIGN KEY (event) REFERENCES webhook_events (id) ON DELETE CASCADE;
ALTER TABLE webhook_events ADD FOREIGN KEY (account_id) REFERENCES accounts (id);
ALTER TABLE webhooks ADD FOREIGN KEY (account_id) REFERENCES accounts (id);

CREATE INDEX api_keys_account ON api_keys(account_id);
CREATE INDEX billing_accounts_watched ON billing_accounts(account_id) WHERE state <> 'ok' OR resume_due = 1;
CREATE INDEX blob_garbage_due ON blob_garbage(not_before);
CREATE INDEX database_samples_age ON database_samples(step_seconds, at);
CREATE INDEX databases_account ON databases(account_id, id);
CREATE UNIQUE INDEX databases_name ON databases(account_id, name) WHERE state <> 'deleting';
CREATE INDEX databases_unsettled ON databases(id)
  WHERE applied <> generation OR state IN ('creating', 'deleting');
CREATE INDEX holds_account ON holds(account_id);
CREATE INDEX idempotency_account ON idempotency(account_id, created_at);
CREATE INDEX idempotency_age ON idempotency(created_at);
CREATE INDEX ledger_credit ON ledger_transfers(credit, seq, amount_micro);
CREATE INDEX ledger_debit ON ledger_transfers(debit, seq, amount_micro);
CREATE INDEX ledger_time ON ledger_transfers(created_at);
CREATE INDEX objects_changed ON objects(bucket_id, changed_at) WHERE current IS NOT NULL;
CREATE INDEX objects_deleted ON objects(bucket_id, name) WHERE current IS NULL AND changed_at IS NOT NULL;
CREATE INDEX objects_live ON objects(bucket_id, name) WHERE current IS NOT NULL;
CREATE INDEX objects_size ON objects(bucket_id, size_bytes) WHERE current IS NOT NULL;
CREATE INDEX operations_account ON operations(account_id, created_at);
CREATE INDEX operations_age ON operations(created_at);
CREATE INDEX sessions_account ON sessions(account_id);
CREATE UNIQUE INDEX sessions_id ON sessions(session_id);
CREATE INDEX usage_lines_account ON usage_lines(account_id);
CREATE INDEX versions_blob ON versions(blob) WHERE blob IS NOT NULL;
CREATE INDEX versions_object ON versions(object, id);
CREATE INDEX vm_samples_age ON vm_samples(step_seconds, at);
CREATE INDEX vm_usage_account ON vm_usage(account_id, at);
CREATE INDEX vm_usage_vm ON vm_usage(vm_id, id);
CREATE INDEX vms_account ON vms(account_id, id);
CREATE INDEX vms_active ON vms(state) WHERE state NOT IN ('created', 'stopped', 'error');
CREATE INDEX vms_image ON vms(image_id) WHERE image_id <> 'tiny';
CREATE INDEX webhook_attempts_delivery ON webhook_attempts(delivery, id);
CREATE INDEX webhook_deliveries_due ON webhook_deliveries(webhook, next_at, id) WHERE state = 'pending';
CREATE INDEX webhook_deliveries_event ON webhook_deliveries(event);
CREATE INDEX webhook_deliveries_log ON webhook_deliveries(webhook, id);
CREATE INDEX webhook_events_age ON webhook_events(at);
CREATE INDEX webhook_events_pending ON webhook_events(id) WHERE is_pending = 1;
CREATE INDEX webhooks_account ON webhooks(account_id, id);

-- Locked by transactions with transfers: each transfer follows the one before.
CREATE TABLE ledger_lock (id BIGINT PRIMARY KEY CHECK (id = 1));
INSERT INTO ledger_lock (id) VALUES (1);

INSERT INTO plans (name, monthly_micro, quotas, created_at, follows_host)
VALUES ('free', 0, '{"vms":50,"vcpus":200,"buckets":1000,"databases":50}', 0, 1);

CREATE FUNCTION accounts_billed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO billing_accounts (account_id) VALUES (NEW.id);
  RETURN NULL;
END $$;
CREATE TRIGGER accounts_billed AFTER INSERT ON accounts FOR EACH ROW EXECUTE FUNCTION accounts_billed();

CREATE FUNCTION ledger_fixed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION 'the ledger is insert-only' USING ERRCODE = 'check_violation';
END $$;
CREATE TRIGGER ledger_fixed BEFORE UPDATE OR DELETE ON ledger_transfers
FOR EACH ROW EXECUTE FUNCTION ledger_fixed();

-- Functions that SQLite has and our statements use.
CREATE FUNCTION instr(haystack text, needle text) RETURNS integer LANGUAGE sql IMMUTABLE STRICT
AS $$ SELECT strpos(haystack, needle) $$;
CREATE FUNCTION sha256_hex(value text) RETURNS text LANGUAGE sql IMMUTABLE STRICT
AS $$ SELECT encode(sha256(convert_to(value, 'UTF8')), 'hex') $$;
-- Of an array or object, and of a `$.name` in an object.
CREATE FUNCTION json_each(json text) RETURNS TABLE (key text, value text) LANGUAGE sql IMMUTABLE STRICT
AS $$
  SELECT (n - 1)::text, element #>> '{}'
  FROM jsonb_array_elements(CASE jsonb_typeof(json::jsonb) WHEN 'array' THEN json::jsonb ELSE '[]' END)
    WITH ORDINALITY AS elements(element, n)
  UNION ALL
  SELECT name, member #>> '{}'
  FROM jsonb_each(CASE jsonb_typeof(json::jsonb) WHEN 'object' THEN json::jsonb ELSE '{}' END)
    AS members(name, member)
$$;
CREATE FUNCTION json_extract(json text, path text) RETURNS text LANGUAGE sql IMMUTABLE STRICT
AS $$ SELECT json::jsonb #>> ARRAY[substr(path, 3)] $$;

/** Every setting: environment variable, default, bounds and help. config.ts reads them. */
import { adminKey, folders, networks, notEmpty, origins, pool, serverUrl, url } from './setting-rules.ts';

export interface Setting<T> {
  readonly env: string;
  readonly help: string;
  readonly fallback: T;
  readonly parse: (text: string) => T;
}

/** A setting that cannot be. */
export class ConfigError extends Error {}

function text(
  env: string,
  fallback: string,
  help: string,
  check?: (value: string) => string | undefined,
): Setting<string> {
  const parse = (value: string) => {
    const problem = check?.(value);
    if (problem) throw new ConfigError(problem);
    return value;
  };
  return { env, fallback, help, parse };
}

function integer(env: string, fallback: number, min: number, max: number, help: string): Setting<number> {
  const parse = (value: string) => {
    const number = Number(value);
    if (!/^\d+$/.test(value) || number < min || number > max) {
      throw new ConfigError(`must be a whole number from ${min} to ${max}, got "${value}"`);
    }
    return number;
  };
  return { env, fallback, help, parse };
}

function oneOf<T extends string>(env: string, fallback: T, choices: readonly T[], help: string): Setting<T> {
  const parse = (value: string) => {
    const choice = choices.find((candidate) => candidate === value);
    if (choice === undefined) throw new ConfigError(`must be one of ${choices.join(', ')}, got "${value}"`);
    return choice;
  };
  return { env, fallback, help: `${help} (${choices.join(', ')})`, parse };
}

export const SETTINGS = {
  host: text('CLOUDLET_HOST', '127.0.0.1', 'Address to listen on', notEmpty),
  port: integer(
    'CLOUDLET_PORT',
    8080,
    0,
    65535,
    'Port of the API and, later, the console; 0 picks a free one',
  ),
  dataPort: integer(
    'CLOUDLET_DATA_PORT',
    9000,
    0,
    65535,
    'Port of the data origin: CDN links; 0 picks a free one',
  ),
  dataDir: text('CLOUDLET_DATA_DIR', './data', 'Where everything is kept', notEmpty),
  publicUrl: text(
    'CLOUDLET_PUBLIC_URL',
    '',
    'Address users reach the API at, when a proxy stands before it',
    url,
  ),
  dataUrl: text(
    'CLOUDLET_DATA_URL',
    '',
    'Address users reach the data origin at, when a proxy stands before it',
    url,
  ),
  corsOrigins: text(
    'CLOUDLET_CORS_ORIGINS',
    '',
    'Sites (comma-separated, `https://app.example.com`) whose scripts may call the API with a key; `*`: all',
    origins,
  ),
  adminKey: text('CLOUDLET_ADMIN_KEY', '', "Presets the administrator's API key, for automation", adminKey),
  trustedProxies: text(
    'CLOUDLET_TRUSTED_PROXIES',
    '',
    'Addresses (comma-separated) whose X-Forwarded-For is believed',
  ),
  logLevel: oneOf(
    'CLOUDLET_LOG_LEVEL',
    'info',
    ['debug', 'info', 'warn', 'error', 'silent'],
    'Minimum log level',
  ),
  logFormat: oneOf(
    'CLOUDLET_LOG_FORMAT',
    'auto',
    ['auto', 'json', 'text'],
    'Log lines as JSON or as text; auto: text on a terminal, else JSON',
  ),
  requestsPerWindow: integer(
    'CLOUDLET_RATE_REQUESTS',
    2000,
    1,
    1e9,
    'Requests per key (or address) in 10 seconds',
  ),
  accountRateFactor: integer(
    'CLOUDLET_RATE_ACCOUNT_FACTOR',
    5,
    1,
    1e6,
    'Requests per account, with all its keys and sessions, as a multiple of CLOUDLET_RATE_REQUESTS',
  ),
  keptAnswers: integer(
    'CLOUDLET_KEPT_ANSWERS',
    100_000,
    1,
    1e9,
    'Answers to an Idempotency-Key that an account may have kept, and operations; beyond, the oldest go before their 24 hours are over',
  ),
  registrationsPerWindow: integer(
    'CLOUDLET_RATE_REGISTRATIONS',
    300,
    1,
    1e9,
    'Registrations per address in 10 minutes',
  ),
  loginFailures: integer(
    'CLOUDLET_LOGIN_FAILURES',
    10,
    1,
    1e6,
    'Failed logins of one account from one network before it is slowed',
  ),
  passwordBlocklist: text(
    'CLOUDLET_PASSWORD_BLOCKLIST',
    '',
    'File with one password a line, none of which may be chosen',
  ),
  maxConnections: integer(
    'CLOUDLET_MAX_CONNECTIONS',
    4000,
    10,
    1e6,
    'Open connections, of both ports together; beyond, idle ones are closed, else new ones get 503',
  ),
  maxConnectionsPerAddress: integer(
    'CLOUDLET_MAX_CONNECTIONS_PER_ADDRESS',
    1000,
    1,
    1e6,
    'Open connections of one address (IPv6: of a /64); those of CLOUDLET_TRUSTED_PROXIES have no such bound',
  ),
  fileReserve: integer(
    'CLOUDLET_FILE_RESERVE',
    1024,
    0,
    1e6,
    'Files the process may open that are kept from virtual machines, at most a quarter of its limit; below, none is created or started',
  ),
  maxObjectBytes: integer('CLOUDLET_MAX_OBJECT_BYTES', 5 * 2 ** 40, 1, 2 ** 50, 'Largest object, bytes'),
  slowBodySeconds: integer(
    'CLOUDLET_SLOW_BODY_SECONDS',
    30,
    1,
    3600,
    'A body slower than 1 KiB/s for this long is cut',
  ),
  maxAccessKeys: integer(
    'CLOUDLET_MAX_ACCESS_KEYS',
    200,
    1,
    100_000,
    'Access keys of one account at a time, beside its own key',
  ),
  signupCredits: integer('CLOUDLET_SIGNUP_CREDITS', 10, 0, 1e9, 'Credits granted at registration'),
  creditGraceSeconds: integer(
    'CLOUDLET_CREDIT_GRACE_SECONDS',
    3600,
    1,
    1e7,
    'How long machines run on when an account has no credits left, before they are stopped',
  ),
  blobThreads: integer(
    'CLOUDLET_BLOB_THREADS',
    2,
    1,
    64,
    'Threads that hash, encrypt and verify object bytes, at most; each is started when there is work for it',
  ),
  scrubDays: integer(
    'CLOUDLET_SCRUB_DAYS',
    30,
    0,
    3650,
    'Days between full verifications of all stored bytes; 0 turns it off',
  ),
  scrubBytesPerSecond: integer(
    'CLOUDLET_SCRUB_BYTES_PER_SECOND',
    50 * 2 ** 20,
    1024,
    2 ** 40,
    'Bound of the background scrub',
  ),
  sweepGraceSeconds: integer(
    'CLOUDLET_SWEEP_GRACE_SECONDS',
    600,
    1,
    1e7,
    'Age at which bytes that no object names are removed',
  ),
  vmPool: text(
    'CLOUDLET_VM_POOL',
    '127.80.0.0/16',
    'Addresses of virtual machines; all of 127.0.0.0/8 answers on Linux, other networks must be set up on this host first',
    pool,
  ),
  vmGraceSeconds: integer(
    'CLOUDLET_VM_GRACE_SECONDS',
    10,
    0,
    300,
    'How long a virtual machine is asked to shut down before it is ended',
  ),
  vmUidBase: integer(
    'CLOUDLET_VM_UID_BASE',
    600_000_000,
    1000,
    2_000_000_000,
    'First of 1,048,578 user ids for virtual machines, one each, when run as root; clouds on one host need different ones',
  ),
  vmAccel: oneOf(
    'CLOUDLET_VM_ACCEL',
    'auto',
    ['auto', 'tcg'],
    'auto: KVM where a timed test boot proves it works; tcg: always emulate',
  ),
  vmNetwork: oneOf(
    'CLOUDLET_VM_NETWORK',
    'loopback',
    ['loopback', 'bridge'],
    'bridge: machines have their addresses of CLOUDLET_VM_POOL themselves, on a bridge of this host; needs root, iproute2, nftables and Perl',
  ),
  vmOutbound: oneOf(
    'CLOUDLET_VM_OUTBOUND',
    'off',
    ['off', 'on'],
    'Whether new virtual machines may open connections to the outside, never to this host; needs root and nftables',
  ),
  vmOutboundPrivate: oneOf(
    'CLOUDLET_VM_OUTBOUND_PRIVATE',
    'off',
    ['off', 'on'],
    'With outbound on: whether private networks are part of the outside',
  ),
  imageSources: text(
    'CLOUDLET_IMAGE_SOURCES',
    '',
    'Folders (comma-separated) of this host from which administrators may add images by path',
    folders,
  ),
  imageMaxGb: integer(
    'CLOUDLET_IMAGE_MAX_GB',
    20,
    1,
    1024,
    'Largest image, as a file and as the disk that a guest sees, GiB',
  ),
  databaseSizeMb: integer(
    'CLOUDLET_DATABASE_SIZE_MB',
    10_240,
    1,
    1024 * 1024,
    'Largest database that an account may ask for, MiB',
  ),
  databaseConnections: integer(
    'CLOUDLET_DATABASE_CONNECTIONS',
    20,
    1,
    1000,
    'Connections, or statements at a time, of one database',
  ),
  databaseStatementSeconds: integer(
    'CLOUDLET_DATABASE_STATEMENT_SECONDS',
    30,
    1,
    3600,
    'How long a statement of a database may run before it is stopped',
  ),
  databaseCalls: integer(
    'CLOUDLET_DATABASE_CALLS',
    500,
    1,
    100_000,
    'Calls of libSQL drivers to one SQLite database that may be under way; further ones get 503',
  ),
  databaseCallMb: integer(
    'CLOUDLET_DATABASE_CALL_MB',
    10,
    1,
    64,
    'Largest call of a libSQL driver, MiB: statements and what is put into them',
  ),
  databaseProcesses: integer(
    'CLOUDLET_DATABASE_PROCESSES',
    24,
    1,
    10_000,
    'SQLite databases that are open at the same time, each in a process of about 30 MB, and as many of MongoDB; another one closes the one not used for longest',
  ),
  databaseIdleSeconds: integer(
    'CLOUDLET_DATABASE_IDLE_SECONDS',
    300,
    1,
    1e7,
    'After so long without use a database of SQLite or MongoDB is closed, to be opened again at its next use',
  ),
  databaseUidBase: integer(
    'CLOUDLET_DATABASE_UID_BASE',
    610_000_000,
    1000,
    2_000_000_000,
    'First of 1,048,576 user ids for databases, one each, when run as root; clouds on one host need different ones',
  ),
  databaseKeepHours: integer(
    'CLOUDLET_DATABASE_KEEP_HOURS',
    72,
    0,
    24 * 365,
    'How long the last dump of a deleted database is kept; 0: there is none',
  ),
  postgresqlUrl: text(
    'CLOUDLET_POSTGRESQL_URL',
    '',
    'Your own PostgreSQL, 15 or newer, to make databases in, `postgresql://user:password@host:5432/postgres`; empty: Cloudlet runs one',
    serverUrl(/^postgres(?:ql)?:$/, 'postgresql://user:password@host:5432/postgres'),
  ),
  recoveryTarget: text(
    'CLOUDLET_RECOVERY_TARGET',
    '',
    'Directory for recovery points: another disk, or NFS; without one they are in the data directory itself',
    (value) => (value === '' || value.startsWith('/') ? undefined : 'must be an absolute path'),
  ),
  recoveryUndeleteHours: integer(
    'CLOUDLET_RECOVERY_UNDELETE_HOURS',
    72,
    0,
    24 * 365,
    'How long a deleted recovery point can be had back; it is counted while Cloudlet runs',
  ),
  recoveryLeaseSeconds: integer(
    'CLOUDLET_RECOVERY_LEASE_SECONDS',
    60,
    1,
    3600,
    'After so much silence another Cloudlet may write to a place for recovery points',
  ),
  recoveryJournalSeconds: integer(
    'CLOUDLET_RECOVERY_JOURNAL_SECONDS',
    60,
    1,
    86_400,
    'How often it is written beside the points which keys and passwords there are, for a restore to revoke the rest',
  ),
  recoveryDumpMinutes: integer(
    'CLOUDLET_RECOVERY_DUMP_MINUTES',
    60,
    1,
    100_000,
    'How long the dump of one database may take for a recovery point, which then goes on without it and says so',
  ),
  fetchAllow: text(
    'CLOUDLET_FETCH_ALLOW',
    '',
    'Networks (comma-separated) that URLs of users may lead to although they are not public, or are of this host',
    networks,
  ),
} as const;

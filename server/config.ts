/** Every setting: name, environment variable, default and help. The only reader of process.env. */
import { delimiter, isAbsolute, resolve } from 'node:path';
import { didYouMean } from './did-you-mean.ts';
import { isServiceLink } from './service-links.ts';

interface Setting<T> {
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

const networks = (value: string) =>
  value === '' || value.split(',').every((entry) => /^[0-9a-fA-F.:]+\/\d{1,3}$/.test(entry))
    ? undefined
    : 'must be networks like 10.0.0.0/8, separated by commas';
const folders = (value: string) =>
  value === '' || value.split(',').every((entry) => entry.startsWith('/'))
    ? undefined
    : 'must be absolute paths, separated by commas';
/** An empty address would mean all addresses, an empty path the working directory: surely a mistake. */
const notEmpty = (value: string) => (value === '' ? 'must not be empty' : undefined);
const url = (value: string) =>
  value === '' || /^https?:\/\/[^/]+$/.test(value)
    ? undefined
    : 'must be http(s)://host[:port] without a path';
const isOrigin = (entry: string) => /^https?:/.test(entry) && URL.parse(entry)?.origin === entry;
/** As browsers send them: in lower case, and without the port that the scheme has anyway. */
const origins = (value: string) =>
  value === '' || value.split(',').every((entry) => entry === '*' || isOrigin(entry))
    ? undefined
    : 'must be origins like https://app.example.com, without a path, separated by commas';
const pool = (value: string) =>
  /^\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3}\/(1[6-9]|2\d|30)$/.test(value)
    ? undefined
    : 'must be an IPv4 network like 127.80.0.0/16, of /16 to /30';
const adminKey = (value: string) =>
  value === '' || /^[\x21-\x7e]{24,512}$/.test(value)
    ? undefined
    : 'must be 24 to 512 visible ASCII characters';

const SETTINGS = {
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
  fetchAllow: text(
    'CLOUDLET_FETCH_ALLOW',
    '',
    'Networks (comma-separated) that URLs of users may lead to although they are not public, or are of this host',
    networks,
  ),
} as const;

export type Config = {
  readonly [K in keyof typeof SETTINGS]: (typeof SETTINGS)[K]['fallback'] extends string
    ? ReturnType<(typeof SETTINGS)[K]['parse']>
    : number;
};

type Texts = Readonly<Record<string, string | undefined>>;

/** Options of the command line that go before the environment. */
const OPTIONS: Texts = { CLOUDLET_DATA_DIR: 'data-dir', CLOUDLET_PORT: 'port' };

/**
 * Reads the settings from `options` (by name, without dashes) and `environment`. `dataDir` becomes absolute.
 * Variables that Kubernetes makes for a Service are left alone; see ignoredSettings().
 * Throws an Error naming the variable or option and the rule when one is invalid, or an unknown CLOUDLET_
 * variable is set.
 */
export function loadConfig(given: Texts = process.env, options: Texts = {}): Config {
  const links = new Set(serviceLinks(given));
  const environment = Object.fromEntries(Object.entries(given).filter(([name]) => !links.has(name)));
  refuseUnknown(environment);
  const values = Object.entries(SETTINGS).map(([key, setting]) => {
    const option = OPTIONS[setting.env] ?? '';
    const isOption = options[option] !== undefined;
    const name = isOption ? `--${option}` : setting.env;
    return [key, read(setting, name, isOption ? options[option] : environment[setting.env])];
  });
  const config = Object.fromEntries(values) as Config;
  if (config.port !== 0 && config.port === config.dataPort)
    throw new ConfigError(`CLOUDLET_PORT and CLOUDLET_DATA_PORT are both ${config.port}: they must differ`);
  return Object.freeze({ ...config, dataDir: resolve(config.dataDir) });
}

function serviceLinks(environment: Texts): string[] {
  const isOurs = (name: string) => name.startsWith('CLOUDLET_');
  return Object.keys(environment).filter((name) => isOurs(name) && isServiceLink(name, environment[name]));
}

/** A line on variables that look like settings, and are not; null when there are none. */
export function ignoredSettings(environment: Texts = process.env): string | null {
  const links = serviceLinks(environment);
  if (links.length === 0) return null;
  const [first, ...others] = links.sort();
  const more = others.length === 0 ? '' : ` and ${others.length} more`;
  const unset = Object.values(SETTINGS).filter(({ env }) => links.includes(env));
  const defaults = unset.map(({ env, fallback }) => `; ${env} has its default ${fallback}`).join('');
  const fix = 'set enableServiceLinks: false in the Pod to be rid of them';
  return `variables that Kubernetes sets for a Service are ignored: ${first}${more}${defaults}; ${fix}`;
}

function read({ parse, fallback }: Setting<unknown>, name: string, given?: string): unknown {
  if (given === undefined) return fallback;
  try {
    return parse(given);
  } catch (error) {
    throw new ConfigError(`${name}: ${(error as Error).message}`);
  }
}

function refuseUnknown(environment: Texts): void {
  const known = new Set(Object.values(SETTINGS).map((setting) => setting.env));
  const unknown = Object.keys(environment).filter((name) => name.startsWith('CLOUDLET_') && !known.has(name));
  if (unknown.length === 0) return;
  const named = unknown.map((name) => withGuess(name, known));
  throw new ConfigError(`unknown setting ${named.join(', ')}; README has the list`);
}

function withGuess(name: string, known: Iterable<string>): string {
  const meant = didYouMean(name, known);
  return meant === undefined ? name : `${name} (did you mean ${meant}?)`;
}

/** Threads of libuv's pool, which reads the same variable; `bin/cloudlet` sets it. */
export function poolThreads(environment: Texts = process.env): number {
  return Number.parseInt(environment['UV_THREADPOOL_SIZE'] ?? '4', 10) || 1;
}

/** The folders of PATH, in its order, without those that depend on where we are. */
export function pathFolders(environment: Texts = process.env): string[] {
  return (environment['PATH'] ?? '').split(delimiter).filter(isAbsolute);
}

/** The settings as a Markdown table, for README. */
export function renderSettings(): string {
  const rows = Object.values(SETTINGS).map(
    ({ env, fallback, help }) => `| \`${env}\` | ${fallback === '' ? '' : `\`${fallback}\``} | ${help} |`,
  );
  return ['| setting | default | what it does |', '|---|---|---|', ...rows].join('\n');
}

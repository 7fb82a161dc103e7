/** The effective settings (settings.ts declares them). The only reader of process.env. */
import { delimiter, isAbsolute, resolve } from 'node:path';
import { didYouMean } from './did-you-mean.ts';
import { isLocal, registrationDomains } from './registrations.ts';
import { ConfigError, rangeOf, type Setting } from './setting-kinds.ts';
import { SETTINGS } from './settings.ts';

export type Config = {
  readonly [K in keyof typeof SETTINGS]: (typeof SETTINGS)[K]['fallback'] extends string
    ? ReturnType<(typeof SETTINGS)[K]['parse']>
    : number;
};

type Texts = Readonly<Record<string, string | undefined>>;

/** Command-line options that override the environment. */
const OPTIONS: Texts = { CLOUDLET_DATA_DIR: 'data-dir', CLOUDLET_PORT: 'port' };

/** Variables of the client (cli/), which may also be set in the shell that starts a cloud. */
const OF_THE_CLIENT: ReadonlySet<string> = new Set([
  'CLOUDLET_URL',
  'CLOUDLET_API_KEY',
  'CLOUDLET_PROFILE',
  'CLOUDLET_ACCESS_KEY_ID',
  'CLOUDLET_SECRET_ACCESS_KEY',
  'CLOUDLET_S3_URL',
]);

/** All our environment variables, for a program that the user starts through us. */
export function inheritedEnvironment(): Texts {
  return process.env;
}

/**
 * Reads the settings from `options` (by name, without dashes) and `environment`. `dataDir` becomes absolute.
 * Variables that Kubernetes sets for a Service are ignored; see ignoredSettings(). Throws an Error naming the
 * variable or option and the rule if one is invalid, or if an unknown CLOUDLET_ variable is set.
 */
export function loadConfig(given: Texts = process.env, options: Texts = {}): Config {
  const links = new Set(serviceLinks(given));
  const environment = Object.fromEntries(Object.entries(given).filter(([name]) => !links.has(name)));
  assertKnown(environment);
  const values = Object.entries(SETTINGS).map(([key, setting]) => {
    const option = OPTIONS[setting.env] ?? '';
    const isOption = options[option] !== undefined;
    const name = isOption ? `--${option}` : setting.env;
    return [key, read(setting, name, isOption ? options[option] : environment[setting.env])];
  });
  const config = Object.fromEntries(values) as Config;
  if (config.port !== 0 && config.port === config.dataPort)
    throw new ConfigError(`CLOUDLET_PORT and CLOUDLET_DATA_PORT are both ${config.port}; they must differ`);
  const published = rangeOf(config.publishedPorts);
  for (const port of [config.postgresqlPort, config.mysqlPort, config.mongodbPort]) {
    if (published !== null && port >= published.first && port <= published.last)
      throw new ConfigError(`CLOUDLET_PUBLISHED_PORTS includes ${port}, the first port of database servers`);
  }
  assertOwnNames(config);
  assertNode(config);
  if ((config.tlsCert === '') !== (config.tlsKey === ''))
    throw new ConfigError('CLOUDLET_TLS_CERT and CLOUDLET_TLS_KEY must be set together');
  if (config.publicDatabaseHost !== '' && config.databaseHost === '')
    throw new ConfigError(
      'CLOUDLET_PUBLIC_DATABASE_HOST needs CLOUDLET_DATABASE_HOST: without it, databases listen on 127.0.0.1 only',
    );
  assertMail(config);
  return Object.freeze({ ...config, dataDir: resolve(config.dataDir) });
}

/** Names below the apps domain belong to machines: the cloud would be unreachable under them. */
function assertOwnNames({ appsDomain, publicUrl, dataUrl, s3Domain }: Config): void {
  const hosts = [publicUrl, dataUrl].filter((url) => url !== '').map((url) => new URL(url).hostname);
  const taken = [...hosts, ...s3Domain.split(',')].find((name) => name.endsWith(`.${appsDomain}`));
  if (appsDomain !== '' && taken !== undefined)
    throw new ConfigError(
      `CLOUDLET_APPS_DOMAIN must not be a parent domain of ${taken}, a name of this cloud`,
    );
}

/** Nodes share rows and bytes, so neither may be in one node's directory. */
function assertNode(config: Config): void {
  const { nodeUrl, metadataUrl, blobsUrl, compute, masterKeyFile, workers, port, dataPort } = config;
  if (nodeUrl === '') {
    const lone = [
      ['CLOUDLET_COMPUTE=off', compute === 'off'],
      ['CLOUDLET_MASTER_KEY_FILE', masterKeyFile !== ''],
      ['CLOUDLET_WORKERS', workers > 0],
    ] as const;
    const [name] = lone.find(([, isSet]) => isSet) ?? [];
    if (name !== undefined)
      throw new ConfigError(`${name} is for nodes of a cluster: set CLOUDLET_NODE_URL too`);
    return;
  }
  if (metadataUrl === '' || blobsUrl === '')
    throw new ConfigError(
      'CLOUDLET_NODE_URL needs CLOUDLET_METADATA_URL and CLOUDLET_BLOBS_URL: see docs/growth.md',
    );
  if (workers === 0) return;
  if (port === 0 || dataPort === 0)
    throw new ConfigError('CLOUDLET_WORKERS needs a CLOUDLET_PORT and a CLOUDLET_DATA_PORT other than 0');
  const own = new URL(nodeUrl).port;
  if (own === '' || own === String(port) || own === String(dataPort))
    throw new ConfigError(
      `CLOUDLET_WORKERS needs a CLOUDLET_NODE_URL with its own port, such as ${port + 1}: workers share ${port}`,
    );
}

/** Links in mail use the host name from the settings: a request could name another host. */
function assertMail(config: Config): void {
  const { smtpUrl, mailFrom, publicUrl } = config;
  if (smtpUrl === '') {
    if (registrationDomains(config).length > 0)
      throw new ConfigError(
        'CLOUDLET_REGISTRATION=domain:… needs CLOUDLET_SMTP_URL: addresses are confirmed by mail',
      );
    return;
  }
  if (mailFrom === '')
    throw new ConfigError('CLOUDLET_SMTP_URL needs CLOUDLET_MAIL_FROM, the sender of the mail');
  if (publicUrl === '' && !isLocal(config))
    throw new ConfigError('CLOUDLET_SMTP_URL needs CLOUDLET_PUBLIC_URL, which links in mail begin with');
}

function serviceLinks(environment: Texts): string[] {
  const isOurs = (name: string) => name.startsWith('CLOUDLET_');
  return Object.keys(environment).filter((name) => isOurs(name) && isServiceLink(name, environment[name]));
}

/** A warning about ignored variables that look like settings; null: none. */
export function ignoredSettings(environment: Texts = process.env): string | null {
  const links = serviceLinks(environment);
  if (links.length === 0) return null;
  const [first, ...others] = links.sort();
  const more = others.length === 0 ? '' : ` and ${others.length} more`;
  const unset = Object.values(SETTINGS).filter(({ env }) => links.includes(env));
  const defaults = unset.map(({ env, fallback }) => `; ${env} defaults to ${fallback}`).join('');
  const fix = 'set enableServiceLinks: false in the Pod to remove them';
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

function assertKnown(environment: Texts): void {
  const known = new Set(Object.values(SETTINGS).map((setting) => setting.env));
  const isOurs = (name: string) => name.startsWith('CLOUDLET_') && !OF_THE_CLIENT.has(name);
  const unknown = Object.keys(environment).filter((name) => isOurs(name) && !known.has(name));
  if (unknown.length === 0) return;
  const named = unknown.map((name) => withGuess(name, known));
  throw new ConfigError(`unknown setting ${named.join(', ')}; see docs/settings.md`);
}

function withGuess(name: string, known: Iterable<string>): string {
  const meant = didYouMean(name, known);
  return meant === undefined ? name : `${name} (did you mean ${meant}?)`;
}

/** Size of libuv's thread pool, from its own variable; `bin/cloudlet` sets it. */
export function poolThreads(environment: Texts = process.env): number {
  return Number.parseInt(environment.UV_THREADPOOL_SIZE ?? '4', 10) || 1;
}

/** The folders of PATH, in order, except relative ones. */
export function pathFolders(environment: Texts = process.env): string[] {
  return (environment.PATH ?? '').split(delimiter).filter(isAbsolute);
}

/** The settings as a Markdown table, for docs/settings.md. */
export function renderSettings(): string {
  const rows = Object.values(SETTINGS).map(
    ({ env, fallback, help }) => `| \`${env}\` | ${fallback === '' ? '' : `\`${fallback}\``} | ${help} |`,
  );
  return ['| setting | default | description |', '|---|---|---|', ...rows].join('\n');
}

const PROTOCOL = '(?:TCP|UDP|SCTP)';
/** Suffixes of the variables that Kubernetes sets for a Service; none of our settings has one. */
const NAMES = new RegExp(`_(?:SERVICE_HOST|SERVICE_PORT(?:_[A-Z0-9_]+)?|PORT_\\d+_${PROTOCOL}(?:_[A-Z]+)?)$`);
/** `<SERVICE>_PORT`, which may be the name of a setting, is recognized by its value. */
const ADDRESS = /^(?:tcp|udp|sctp):\/\//;

/**
 * Whether Kubernetes set the variable: a Service named `cloudlet` makes `CLOUDLET_PORT=tcp://10.96.0.7:8080`
 * and others with the same prefix.
 */
function isServiceLink(name: string, value: string | undefined): boolean {
  return NAMES.test(name) || (name.endsWith('_PORT') && ADDRESS.test(value ?? ''));
}

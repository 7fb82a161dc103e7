/** The settings in force (settings.ts says which there are). The only reader of process.env. */
import { delimiter, isAbsolute, resolve } from 'node:path';
import { didYouMean } from './did-you-mean.ts';
import { ConfigError, type Setting } from './setting-kinds.ts';
import { SETTINGS } from './settings.ts';

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
  assertKnown(environment);
  const values = Object.entries(SETTINGS).map(([key, setting]) => {
    const option = OPTIONS[setting.env] ?? '';
    const isOption = options[option] !== undefined;
    const name = isOption ? `--${option}` : setting.env;
    return [key, read(setting, name, isOption ? options[option] : environment[setting.env])];
  });
  const config = Object.fromEntries(values) as Config;
  if (config.port !== 0 && config.port === config.dataPort)
    throw new ConfigError(`CLOUDLET_PORT and CLOUDLET_DATA_PORT are both ${config.port}: they must differ`);
  if ((config.tlsCert === '') !== (config.tlsKey === ''))
    throw new ConfigError('CLOUDLET_TLS_CERT and CLOUDLET_TLS_KEY belong together: set both, or none');
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

function assertKnown(environment: Texts): void {
  const known = new Set(Object.values(SETTINGS).map((setting) => setting.env));
  const unknown = Object.keys(environment).filter((name) => name.startsWith('CLOUDLET_') && !known.has(name));
  if (unknown.length === 0) return;
  const named = unknown.map((name) => withGuess(name, known));
  throw new ConfigError(`unknown setting ${named.join(', ')}; docs/settings.md has the list`);
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

/** The settings as a Markdown table, for docs/settings.md. */
export function renderSettings(): string {
  const rows = Object.values(SETTINGS).map(
    ({ env, fallback, help }) => `| \`${env}\` | ${fallback === '' ? '' : `\`${fallback}\``} | ${help} |`,
  );
  return ['| setting | default | what it does |', '|---|---|---|', ...rows].join('\n');
}

const PROTOCOL = '(?:TCP|UDP|SCTP)';
/** What their names end with; no setting of ours does. */
const NAMES = new RegExp(`_(?:SERVICE_HOST|SERVICE_PORT(?:_[A-Z0-9_]+)?|PORT_\\d+_${PROTOCOL}(?:_[A-Z]+)?)$`);
/** `<SERVICE>_PORT`, which may be the name of a setting: told by what it holds. */
const ADDRESS = /^(?:tcp|udp|sctp):\/\//;

/**
 * Whether a variable is one of theirs: a Service named `cloudlet` makes `CLOUDLET_PORT=tcp://10.96.0.7:8080`
 * and others with the same beginning.
 */
function isServiceLink(name: string, value: string | undefined): boolean {
  return NAMES.test(name) || (name.endsWith('_PORT') && ADDRESS.test(value ?? ''));
}

/** `cloudlet dev`: a cloud for one run of a program or its tests, removed afterwards. */
import { spawn } from 'node:child_process';
import { rmSync } from 'node:fs';
import { constants } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import { prepareMissing } from '../cloud/preparation.ts';
import { type Config, inheritedEnvironment } from '../config/config.ts';
import { ABOUT_ENGINES } from '../drivers/engines/all-engines.ts';
import { removeLeftRules } from '../drivers/qemu/guest-network.ts';
import { systemClock } from '../platform/clock.ts';
import { randomSecret } from '../platform/ids.ts';
import { quoted } from './banner.ts';
import { type Command, UsageError, type Words } from './command.ts';
import { devConfig, earlierKey, keepKey, openDevDirectory, sweepDevDirectories } from './dev-directory.ts';
import { restore } from './recovery/recovery-restore.ts';
import { outliveTerminal, startCloud, stopSignal } from './start.ts';

const ENGINE_NAMES = ABOUT_ENGINES.map(({ name }) => name).join(', ');
const DEFAULT_ENGINES: readonly string[] = ABOUT_ENGINES.filter(
  ({ development }) => development.isDefault,
).map(({ name }) => name);
const VARIABLES = ABOUT_ENGINES.flatMap(({ title, development: { names } }) =>
  names.map((name) => `${name} (${title})`),
).join(', ');

const HELP = `Usage: cloudlet dev [--with ENGINES] [--from DIR_OR_URL [--point ID|latest] [--key-file FILE]] [--keep]
                    [-- COMMAND [ARGUMENT ...]]

Runs its own cloud on free ports of this machine, with an administrator, an S3 access key and a database of
each engine, and prints how to reach them as export lines on standard output. All other output goes to standard error.
It ends with Ctrl+C, and its data, machines and databases go with it. Several can run at once.

With a command, runs the command with these variables, stops when it ends, and exits with its exit code:

  cloudlet dev -- npm test

  --with ENGINES     databases to create, comma-separated: ${ENGINE_NAMES}; none: no database.
                     Default: ${DEFAULT_ENGINES.join(',')}, if this host has their programs
  --from DIR_OR_URL  starts from a recovery point of another cloud, like recovery restore
  --point ID         the recovery point; default: latest
  --key-file FILE    file with the recovery key; default: prompts for it
  --keep             keeps the data directory at the end, and prints its path
  --data-dir PATH    a data directory to create, or one that cloudlet dev created earlier; it is kept

Variables: CLOUDLET_URL, CLOUDLET_API_KEY (always cloudlet-development-key, but not with --from), AWS_ENDPOINT_URL_S3,
AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_REGION,
${VARIABLES}.
Settings (CLOUDLET_…) are ignored, because they could point to the data of another cloud.
`;

/** The key of every empty development cloud: it listens on loopback only, and has no data of others. */
const KEY = 'cloudlet-development-key';
const DATABASE = 'dev';
const ACCESS_KEY = 'cloudlet dev';
const LOOK_MS = 50;
/** A database that takes longer is mentioned. */
const SOON_MS = 2000;
const COMMAND_NOT_FOUND = 127;
const BY_SIGNAL = 128;

export const DEV: Command = {
  help: HELP,
  options: ['with', 'from', 'point', 'key-file'],
  flags: ['keep'],
  run,
};

type Variables = Readonly<Record<string, string>>;

interface Connection {
  readonly uri: string;
  readonly password: string;
}

interface Database {
  readonly database_id: string;
  readonly name: string;
  readonly engine: string;
  readonly state: string;
  readonly state_reason: { readonly code: string; readonly message: string } | null;
}

/** The response to its creation contains the password. */
interface NewDatabase extends Database {
  readonly connection: Connection;
}

/** Why a database of a recovery point is in `error` until its rows have been loaded. */
const LOADING = 'restoring';

/** Resolves with the exit code of the command, or 0. */
async function run(given: Config, { positionals: command, values }: Words): Promise<number> {
  const wanted = readEngines(values.with);
  // Standard output is for the export lines, which a shell may read.
  console.log = console.error;
  outliveTerminal();
  for (const path of sweepDevDirectories()) {
    console.error(
      `Machines of a killed cloudlet dev are still running. To stop them: cloudlet dev --data-dir ${path}`,
    );
  }
  const directory = openDevDirectory(values['data-dir'], values.keep !== undefined);
  const earlier = earlierKey(directory.path);
  try {
    if (values.from !== undefined) {
      const code = await restore(given, { positionals: [], values: { ...values, to: directory.path } });
      if (code !== 0) return code;
    }
    // A copy of another cloud's data gets a random key.
    const key = earlier ?? (values.from === undefined ? KEY : randomSecret(24).toString('hex'));
    return await serve(await devConfig(directory.path, key), { key, wanted, command });
  } finally {
    if (directory.isTemporary) rmSync(directory.path, { recursive: true, force: true });
    else console.error(`The data stays in ${directory.path}`);
  }
}

function readEngines(list: string | undefined): readonly string[] | undefined {
  if (list === undefined || list === 'none') return list === undefined ? undefined : [];
  const names = list.split(',').map((name) => name.trim());
  const unknown = names.find((name) => !ABOUT_ENGINES.some((about) => about.name === name));
  if (unknown === undefined) return names;
  throw new UsageError(`dev: --with: "${unknown}" is not an engine: choose from ${ENGINE_NAMES}, or none`);
}

interface Wishes {
  readonly key: string;
  /** The requested engines; undefined: the available default ones. */
  readonly wanted: readonly string[] | undefined;
  readonly command: readonly string[];
}

async function serve(config: Config, { key, wanted, command }: Wishes): Promise<number> {
  const began = systemClock.monotonic();
  const stopped = stopSignal();
  // A first server takes a second or more: clients that connect in the meantime wait for it.
  const running = await startCloud(config, (_name, work) => work(), { tellMs: 0 });
  keepKey(config.dataDir, key);
  const endPreparing = await prepareMissing('stderr');
  const { apiUrl } = running.cloud.addresses;
  const call = caller(apiUrl, key);
  const ended = new AbortController();
  try {
    const access = { apiUrl, key, wanted, ended: ended.signal };
    const variables = await Promise.race([variablesOf(call, access), stopped]);
    if (typeof variables === 'string') return 0;
    const seconds = ((systemClock.monotonic() - began) / 1000).toFixed(2);
    console.error(`Cloudlet for development is ready in ${seconds} s: ${apiUrl}/`);
    if (command.length > 0) return await runCommand(command, variables, stopped);
    const lines = Object.entries(variables).map(([name, value]) => `export ${name}=${quoted(value)}\n`);
    process.stdout.write(lines.join(''));
    console.error('Press Ctrl+C to stop.');
    await stopped;
    return 0;
  } finally {
    ended.abort();
    endPreparing();
    try {
      await endMachines(call);
    } finally {
      await running.stop();
      await removeLeftRules();
    }
  }
}

type Call = <T>(method: string, path: string, body?: unknown) => Promise<T>;

/** Calls the API as the administrator. A refusal becomes an Error with the problem's detail. */
function caller(apiUrl: string, key: string): Call {
  return async <T>(method: string, path: string, body?: unknown): Promise<T> => {
    const response = await fetch(`${apiUrl}${path}`, {
      method,
      headers: { 'X-API-Key': key, ...(body === undefined ? {} : { 'Content-Type': 'application/json' }) },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const text = await response.text();
    if (response.ok) return (text === '' ? undefined : JSON.parse(text)) as T;
    const { detail = text, hint } = JSON.parse(text) as { detail?: string; hint?: string };
    throw new Error(hint === undefined ? detail : `${detail} (${hint})`);
  };
}

interface Access extends Omit<Wishes, 'command'> {
  readonly apiUrl: string;
  /** Aborts when the databases are no longer needed. */
  readonly ended: AbortSignal;
}

async function variablesOf(call: Call, { apiUrl, key, wanted, ended }: Access): Promise<Variables> {
  const [s3, ...databases] = await Promise.all([
    s3Variables(call),
    ...(await enginesToUse(call, wanted)).map((engine) => databaseVariables(call, engine, ended)),
  ]);
  return Object.assign({ CLOUDLET_URL: apiUrl, CLOUDLET_API_KEY: key }, s3, ...databases);
}

/** A new access key replaces the previous run's, whose secret is lost. */
async function s3Variables(call: Call): Promise<Variables> {
  const earlier = await call<{ id: string; name: string }[]>('GET', '/api/account/access-keys');
  for (const { id, name } of earlier)
    if (name === ACCESS_KEY) await call('DELETE', `/api/account/access-keys/${id}`);
  const made = await call<Record<'access_key_id' | 'secret_access_key' | 's3_endpoint', string>>(
    'POST',
    '/api/account/access-keys',
    { name: ACCESS_KEY, scopes: ['*'] },
  );
  return {
    AWS_ENDPOINT_URL_S3: made.s3_endpoint,
    AWS_ACCESS_KEY_ID: made.access_key_id,
    AWS_SECRET_ACCESS_KEY: made.secret_access_key,
    AWS_REGION: 'us-east-1',
  };
}

async function enginesToUse(call: Call, wanted: readonly string[] | undefined): Promise<readonly string[]> {
  if (wanted !== undefined) return wanted;
  const engines = await call<{ engine: string; available: boolean }[]>('GET', '/api/database-engines');
  const there = new Set(engines.filter(({ available }) => available).map(({ engine }) => engine));
  const missing = DEFAULT_ENGINES.filter((name) => !there.has(name));
  if (missing.length > 0) console.error(`Not available on this host, skipped: ${missing.join(', ')}`);
  return DEFAULT_ENGINES.filter((name) => there.has(name));
}

/**
 * Variables for the account's first database of the engine, or a new one. Its server may still be
 * starting: its address is known, and connections wait.
 */
async function databaseVariables(call: Call, engine: string, ended: AbortSignal): Promise<Variables> {
  const own = await call<Database[]>('GET', '/api/databases');
  const found = own.find((database) => database.engine === engine);
  if (found !== undefined) await untilReady(call, found.database_id, ended);
  const connection = found === undefined ? await created(call, engine, ended) : await shown(call, found);
  return ABOUT_ENGINES.find(({ name }) => name === engine)?.development.variables(connection) ?? {};
}

async function created(call: Call, engine: string, ended: AbortSignal): Promise<Connection> {
  const wish = { name: `${DATABASE}-${engine}`, engine };
  const { database_id: id, state, connection } = await call<NewDatabase>('POST', '/api/databases', wish);
  const tell = ({ message }: Error) => void (ended.aborted || console.error(message));
  if (state !== 'ready') untilReady(call, id, ended).catch(tell);
  return connection;
}

async function shown(call: Call, { database_id: id }: Database): Promise<Connection> {
  return (await call<{ connection: Connection }>('GET', `/api/databases/${id}/credentials`)).connection;
}

async function untilReady(call: Call, id: string, ended: AbortSignal): Promise<void> {
  const began = systemClock.monotonic();
  let isTold = false;
  while (!ended.aborted) {
    const { state, state_reason: reason, engine } = await call<Database>('GET', `/api/databases/${id}`);
    if (state === 'ready') return;
    if (state !== 'creating' && reason?.code !== LOADING)
      throw new Error(`The ${engine} database is ${state}: ${reason?.message ?? ''}`);
    if (!isTold && systemClock.monotonic() - began > SOON_MS) {
      isTold = true;
      console.error(`Waiting for ${engine}: ${reason?.message ?? 'the database is being created'}`);
    }
    await sleep(LOOK_MS);
  }
}

/** The terminal sends Ctrl+C to both processes; other signals are forwarded. */
async function runCommand(
  [program = '', ...words]: readonly string[],
  variables: Variables,
  stopped: Promise<NodeJS.Signals>,
): Promise<number> {
  const child = spawn(program, words, { stdio: 'inherit', env: { ...inheritedEnvironment(), ...variables } });
  void stopped.then((signal) => {
    if (signal !== 'SIGINT') child.kill(signal);
  });
  return new Promise((resolve) => {
    child.on('error', ({ message }) => {
      console.error(`cloudlet: ${program} could not be started: ${message}`);
      resolve(COMMAND_NOT_FOUND);
    });
    child.on('exit', (code, signal) => resolve(code ?? BY_SIGNAL + constants.signals[signal ?? 'SIGTERM']));
  });
}

/** Machines would outlive the cloud's process. */
async function endMachines(call: Call): Promise<void> {
  const machines = await call<{ vm_id: string; state: string }[]>('GET', '/api/admin/vms');
  const running = machines.filter(({ state }) => state !== 'stopped' && state !== 'deleted');
  await Promise.all(
    running.map(({ vm_id: id }) => call('POST', `/api/admin/vms/${id}/stop?force=true`).catch(() => {})),
  );
}

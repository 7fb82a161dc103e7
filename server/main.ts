/** `cloudlet <command>`: finds the command and reports failures in one line. */
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { type Command, UsageError, type Words } from './commands/command.ts';
import { ignoredSettings, loadConfig } from './config/config.ts';
import { didYouMean } from './config/did-you-mean.ts';
import { ConfigError } from './config/setting-kinds.ts';
import { ROOT } from './platform/program-files.ts';
import { withSourceFrames } from './platform/stacks/source-frames.ts';
import { VERSION } from './platform/version.ts';

const HELP = `Usage: cloudlet <command>

  start                 run the cloud (same as npm start)
  dev                   run a cloud for development that leaves nothing behind
  admin setup-link      print a link to create the first administrator
  admin create          create an administrator and print the API key
  admin reset-link      print a link to set a new password for an account
  admin create-account  create an account, and print a link to set its password
  admin key             print the API key of an account
  admin credits         grant credits to an account, or deduct them
  scrub                 verify all stored data now
  ledger verify         verify the whole ledger
  keys rotate           rotate the master key and re-encrypt all secrets
  recovery              create recovery points, and restore a lost cloud from one
  nodes                 list, drain, resume and forget the nodes of a cluster
  migrate               move the metadata to PostgreSQL and objects to S3, or back
  databases upgrade     upgrade the data of a database engine to its newest major version
  doctor                check disk, ports, clock, QEMU, KVM and database engines

Users have commands, too: login, ls, cp, sync, vm, db and more. See docs/client.md, and cloudlet help login.

Use --help with a command for details, and --version to print the version. Settings are environment variables;
see docs/settings.md.
`;
const HELP_ON_DATA_DIR = `
  --data-dir PATH   data directory; default: CLOUDLET_DATA_DIR, or ./data
`;

/** Each is loaded when it is called: a request to a running server must not load a whole cloud. */
const COMMANDS: Readonly<Record<string, () => Promise<Command>>> = {
  start: async () => (await import('./commands/start.ts')).START,
  dev: async () => (await import('./commands/dev.ts')).DEV,
  admin: async () => (await import('./commands/admin.ts')).ADMIN,
  scrub: async () => (await import('./commands/scrub.ts')).SCRUB,
  ledger: async () => (await import('./commands/ledger.ts')).LEDGER,
  keys: async () => (await import('./commands/keys.ts')).KEYS,
  recovery: async () => (await import('./commands/recovery/recovery.ts')).RECOVERY,
  nodes: async () => (await import('./commands/nodes.ts')).NODES,
  migrate: async () => (await import('./commands/migrate.ts')).MIGRATE,
  databases: async () => (await import('./commands/databases.ts')).DATABASES,
  doctor: async () => (await import('./commands/doctor/doctor.ts')).DOCTOR,
};

const SWITCHES = { help: { type: 'boolean', short: 'h' }, version: { type: 'boolean' } } as const;

const CLIENT = join(ROOT, 'build/cli/cloudlet.mjs');

/** Options that may come before the name of the command. */
const ANYWHERE = ['data-dir', 'port'];

async function main(args: string[]): Promise<number> {
  // The name of the command may come after --data-dir and --port.
  const { tokens, values } = parseArgs({
    args,
    options: { ...SWITCHES, ...withValue(ANYWHERE) },
    strict: false,
    tokens: true,
  });
  const [name, subject] = tokens.filter((token) => token.kind === 'positional');
  if (values.version === true) {
    console.log(`cloudlet ${VERSION}`);
    return 0;
  }
  const mustHelp = name?.value === 'help' || values.help === true;
  const asked = name?.value === 'help' ? subject : name;
  if (name === undefined || asked === undefined || asked.value === 'help') {
    console.log(HELP);
    return mustHelp ? 0 : 2;
  }
  const [first] = tokens;
  if (first?.kind !== 'option' && isLikelyOfClient(asked.value)) return runClient(args);
  const command = await find(asked.value, first?.kind === 'option' ? first : undefined);
  if (mustHelp) {
    console.log(command.help + HELP_ON_DATA_DIR);
    return 0;
  }
  const words = read(name.value, command, args.toSpliced(name.index, 1));
  const ignored = ignoredSettings();
  if (ignored !== null) console.error(`cloudlet: ${ignored}`);
  return command.run(loadConfig(undefined, words.values), words);
}

/** Users' commands are the client's, which suggests the closest name. */
function isLikelyOfClient(name: string): boolean {
  const known = Object.keys(COMMANDS);
  return !known.includes(name) && didYouMean(name, known) === undefined && existsSync(CLIENT);
}

function runClient(args: readonly string[]): number {
  return spawnSync(process.execPath, [CLIENT, ...args], { stdio: 'inherit' }).status ?? 1;
}

function withValue(names: readonly string[]) {
  return Object.fromEntries(names.map((name) => [name, { type: 'string' } as const]));
}

/** `first`: the option that comes before its name, if any. */
async function find(name: string, first?: { name: string; rawName: string }): Promise<Command> {
  const load = Object.hasOwn(COMMANDS, name) ? COMMANDS[name] : undefined;
  if (load !== undefined) return load();
  // An unknown option's value was taken for a command name.
  if (first !== undefined && !ANYWHERE.includes(first.name)) {
    const guess = guessOf(first.name, ANYWHERE, '--');
    throw new UsageError(`unknown option ${first.rawName}${guess}; see cloudlet --help`);
  }
  throw new UsageError(
    `unknown command "${name}"${guessOf(name, Object.keys(COMMANDS))}; see cloudlet --help`,
  );
}

function read(name: string, { options = [], flags = [] }: Command, args: string[]): Words {
  const valued = ['data-dir', ...options];
  try {
    const isFlag = Object.fromEntries(flags.map((flag) => [flag, { type: 'boolean' } as const]));
    const { positionals, values } = parseArgs({
      args: joinNegative(args, valued),
      allowPositionals: true,
      options: { ...withValue(valued), ...isFlag },
    });
    const texts = Object.entries(values).map(([option, value]) => [option, value === true ? 'yes' : value]);
    return { positionals, values: Object.fromEntries(texts) };
  } catch (error) {
    // The rest of Node's message explains how to pass arguments that start with a dash.
    const [reason = ''] = (error as Error).message.split('. ');
    const [, unknown = ''] = /^Unknown option '--([^']+)'/.exec(reason) ?? [];
    const guess = guessOf(unknown, [...valued, ...flags, 'help'], '--');
    throw new UsageError(`${name}: ${reason}${guess}; see cloudlet ${name} --help`);
  }
}

/** `--amount -9.99` as `--amount=-9.99`: Node takes arguments with a leading dash for options. */
function joinNegative(args: readonly string[], valued: readonly string[]): string[] {
  const joined: string[] = [];
  for (const word of args) {
    const last = joined.at(-1) ?? '';
    const isValue = /^-\.?\d/.test(word) && valued.some((option) => last === `--${option}`);
    if (isValue) joined.splice(-1, 1, `${last}=${word}`);
    else joined.push(word);
  }
  return joined;
}

/** ` (did you mean …?)`, or nothing. */
function guessOf(typed: string, known: Iterable<string>, prefix = ''): string {
  const meant = didYouMean(typed, known);
  return meant === undefined ? '' : ` (did you mean ${prefix}${meant}?)`;
}

// An error that ends the process names the sources.
process.on('uncaughtExceptionMonitor', (error) => {
  if (error.stack !== undefined) error.stack = withSourceFrames(error.stack);
});
try {
  process.exitCode = await main(process.argv.slice(2));
} catch (error) {
  console.error(`cloudlet: ${error instanceof Error ? error.message : String(error)}`);
  // Resources opened before the failure must not keep the process alive.
  process.exit(error instanceof UsageError || error instanceof ConfigError ? 2 : 1);
}

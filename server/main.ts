/** `cloudlet <command>`: finds the command and reports failures in one line. */
import { parseArgs } from 'node:util';
import { type Command, UsageError, type Words } from './commands/command.ts';
import { ignoredSettings, loadConfig } from './config/config.ts';
import { didYouMean } from './config/did-you-mean.ts';
import { ConfigError } from './config/setting-kinds.ts';
import { VERSION } from './platform/version.ts';

const HELP = `Usage: cloudlet <command>

  start                 run the cloud (the same as npm start)
  admin setup-link      print a link that makes the first administrator
  admin create          create an administrator and show the key
  admin key             show an administrator's key
  admin credits         grant or deduct credits of an account
  scrub                 verify every stored byte now
  ledger verify         verify the whole ledger and name what was changed
  keys rotate           make a new master key and seal all secrets under it
  recovery              make recovery points, and restore a lost cloud from one
  databases upgrade     bring PostgreSQL's data to the newest major version that is here
  doctor                check disk, ports, clock, QEMU, KVM and database engines

Each command explains itself with --help. --version prints the version. Settings come from the environment;
see README.md.
`;
const HELP_ON_DATA_DIR = `
  --data-dir PATH   the data directory that is meant; without it CLOUDLET_DATA_DIR, or else ./data
`;

/** Each is loaded when it is called: a question to a running server must not load a whole cloud. */
const COMMANDS: Readonly<Record<string, () => Promise<Command>>> = {
  start: async () => (await import('./commands/start.ts')).START,
  admin: async () => (await import('./commands/admin.ts')).ADMIN,
  scrub: async () => (await import('./commands/scrub.ts')).SCRUB,
  ledger: async () => (await import('./commands/ledger.ts')).LEDGER,
  keys: async () => (await import('./commands/keys.ts')).KEYS,
  recovery: async () => (await import('./commands/recovery.ts')).RECOVERY,
  databases: async () => (await import('./commands/databases.ts')).DATABASES,
  doctor: async () => (await import('./commands/doctor.ts')).DOCTOR,
};

const SWITCHES = { help: { type: 'boolean', short: 'h' }, version: { type: 'boolean' } } as const;

async function main(args: string[]): Promise<number> {
  // The name of the command may come after --data-dir and --port.
  const { tokens, values } = parseArgs({
    args,
    options: { ...SWITCHES, ...withValue(['data-dir', 'port']) },
    strict: false,
    tokens: true,
  });
  const name = tokens.find((token) => token.kind === 'positional');
  if (values['version'] === true) {
    console.log(`cloudlet ${VERSION}`);
    return 0;
  }
  if (name === undefined || name.value === 'help') {
    console.log(HELP);
    return name === undefined && values['help'] !== true ? 2 : 0;
  }
  const command = await find(name.value);
  if (values['help'] === true) {
    console.log(command.help + HELP_ON_DATA_DIR);
    return 0;
  }
  const words = read(name.value, command, args.toSpliced(name.index, 1));
  const ignored = ignoredSettings();
  if (ignored !== null) console.error(`cloudlet: ${ignored}`);
  return command.run(loadConfig(undefined, words.values), words);
}

function withValue(names: readonly string[]) {
  return Object.fromEntries(names.map((name) => [name, { type: 'string' } as const]));
}

async function find(name: string): Promise<Command> {
  const load = Object.hasOwn(COMMANDS, name) ? COMMANDS[name] : undefined;
  if (load !== undefined) return load();
  const meant = didYouMean(name, Object.keys(COMMANDS));
  const guess = meant === undefined ? '' : ` (did you mean ${meant}?)`;
  throw new UsageError(`unknown command "${name}"${guess}; see cloudlet --help`);
}

function read(name: string, { options = [], flags = [] }: Command, args: string[]): Words {
  try {
    const isFlag = Object.fromEntries(flags.map((flag) => [flag, { type: 'boolean' } as const]));
    const { positionals, values } = parseArgs({
      args,
      allowPositionals: true,
      options: { ...withValue(['data-dir', ...options]), ...isFlag },
    });
    const texts = Object.entries(values).map(([option, value]) => [option, value === true ? 'yes' : value]);
    return { positionals, values: Object.fromEntries(texts) };
  } catch (error) {
    // The rest of Node's sentence explains how to pass on what begins with a dash.
    const [reason] = (error as Error).message.split('. ');
    throw new UsageError(`${name}: ${reason}; see cloudlet ${name} --help`);
  }
}

try {
  process.exitCode = await main(process.argv.slice(2));
} catch (error) {
  console.error(`cloudlet: ${error instanceof Error ? error.message : String(error)}`);
  // Whatever was opened before the failure must not keep the process alive.
  process.exit(error instanceof UsageError || error instanceof ConfigError ? 2 : 1);
}

/** `cloudlet <command>`: finds the command and reports failures in one line. */
import { UsageError } from './commands/usage.ts';
import { loadConfig } from './config.ts';

const HELP = `Usage: cloudlet <command>

  start                 run the cloud (the same as npm start)
  admin create          create an administrator and show the key
  admin key             show an administrator's key
  admin credits         grant or deduct credits of an account
  scrub                 verify every stored byte now
  ledger verify         walk the whole ledger and name what was changed
  keys rotate           make a new master key and seal all secrets under it
  doctor                check disk, ports, clock, QEMU, KVM and database engines

Each command explains itself with --help. Settings come from the environment; see README.md.
`;

type Command = (args: string[]) => Promise<number>;

/** Each is loaded when it is called: a question to a running server must not load a whole cloud. */
const COMMANDS: Readonly<Record<string, Command>> = {
  start: async (args) => (await import('./commands/start.ts')).runStart(loadConfig(), args),
  admin: async (args) => (await import('./commands/admin.ts')).runAdmin(loadConfig(), args),
  scrub: async (args) => (await import('./commands/scrub.ts')).runScrub(loadConfig(), args),
  ledger: async (args) => (await import('./commands/ledger.ts')).runLedger(loadConfig(), args),
  keys: async (args) => (await import('./commands/keys.ts')).runKeys(loadConfig(), args),
  doctor: async (args) => {
    const { runDoctor } = await import('./commands/doctor.ts');
    if (args.length === 0)
      return runDoctor({ config: loadConfig(), print: (line: string) => console.log(line) });
    console.log(
      'Usage: cloudlet doctor\n\nChecks what Cloudlet needs on this machine and says the fix for each problem.',
    );
    return args.includes('--help') ? 0 : 2;
  },
};

async function main([name, ...args]: string[]): Promise<number> {
  if (name === undefined || name === '--help' || name === 'help') {
    console.log(HELP);
    return name === undefined ? 2 : 0;
  }
  const command = Object.hasOwn(COMMANDS, name) ? COMMANDS[name] : undefined;
  if (!command) {
    console.error(`cloudlet: unknown command "${name}"; see cloudlet --help`);
    return 2;
  }
  try {
    return await command(args);
  } catch (error) {
    console.error(`cloudlet: ${error instanceof Error ? error.message : String(error)}`);
    // Whatever was opened before the failure must not keep the process alive.
    process.exit(error instanceof UsageError ? 2 : 1);
  }
}

process.exitCode = await main(process.argv.slice(2));

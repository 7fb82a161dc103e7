/** The client `cloudlet`: finds the command, runs it, and tells failures in one line. */
import type { Command } from './command.ts';
import { COMMANDS, TOPICS } from './commands.ts';
import { EXIT, type ExitCode, tell } from './failures.ts';
import { helpFor, VERSION } from './general-commands.ts';
import { Output, printable } from './output.ts';
import { Session } from './session.ts';
import { findCommand, readWords } from './words.ts';

async function main(args: readonly string[]): Promise<ExitCode> {
  const [first] = args;
  if (first === undefined) {
    console.error(helpFor(TOPICS, []));
    return EXIT.usage;
  }
  if (first === '--version') {
    console.log(`cloudlet ${VERSION}`);
    return EXIT.ok;
  }
  if (first === '--help' || first === '-h') {
    console.log(helpFor(TOPICS, []));
    return EXIT.ok;
  }
  const found = findCommand(COMMANDS, args);
  if (found === undefined) {
    const words = args.filter((word) => !word.startsWith('-')).slice(0, 1);
    // A first word alone, as in `cloudlet vm`, lists what there is of it.
    console.error(helpFor(TOPICS, words));
    return EXIT.usage;
  }
  return runCommand(found.command, found.rest);
}

async function runCommand(command: Command, args: readonly string[]): Promise<ExitCode> {
  const { words, options } = readWords(command, args);
  if (options.has('help')) {
    console.log(helpFor(TOPICS, command.name.split(' ')));
    return EXIT.ok;
  }
  const output = new Output({ isJson: options.has('json'), isQuiet: options.has('quiet') });
  const limitSeconds = options.count('timeout', 0);
  if (limitSeconds > 0) endAfter(limitSeconds);
  let session: Session | undefined;
  const open = () => {
    session ??= Session.open(options.text('profile'));
    return session;
  };
  try {
    return (await command.run({ words, options, output, session: open })) ?? EXIT.ok;
  } finally {
    await session?.close();
  }
}

/** Transfers go on where they were when the same command comes again, so nothing needs to be ended first. */
function endAfter(seconds: number): void {
  const end = () => {
    console.error(`cloudlet: not done after ${seconds} s`);
    process.exit(EXIT.timeout);
  };
  setTimeout(end, seconds * 1000).unref();
}

function fail(error: unknown): ExitCode {
  const { exitCode, lines } = tell(error);
  if (exitCode !== EXIT.interrupted) console.error(`cloudlet: ${lines.map(printable).join('\n')}`);
  return exitCode;
}

// `cloudlet ls | head` ends the reader first, which is no failure.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  process.exit(error.code === 'EPIPE' ? EXIT.ok : EXIT.failure);
});
process.once('SIGINT', () => process.exit(EXIT.interrupted));

main(process.argv.slice(2)).then(
  (exitCode) => {
    process.exitCode = exitCode;
  },
  (error: unknown) => {
    // Connections that are kept open must not keep the process alive; what was printed gets out first.
    process.exitCode = fail(error);
    setTimeout(() => process.exit(), 200).unref();
  },
);

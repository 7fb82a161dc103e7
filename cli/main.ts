/** The client `cloudlet`: finds the command, runs it, and reports failures in one line. */
import type { Command } from './command.ts';
import { helpFor, VERSION } from './commands/general-commands.ts';
import { COMMANDS, TOPICS } from './commands.ts';
import { EXIT, type ExitCode, tell } from './failures.ts';
import { Output, printable } from './output.ts';
import { Session } from './sign-in/session.ts';
import { exitCodeOfSignal, takeSignals } from './signals.ts';
import { findCommand, readWords, splitCommon } from './words.ts';

const LEAVE_MS = 3000;

async function main(given: readonly string[]): Promise<ExitCode> {
  if (given[0] === undefined) {
    console.error(helpFor(TOPICS, []));
    return EXIT.usage;
  }
  if (given[0] === '--version') {
    console.log(`cloudlet ${VERSION}`);
    return EXIT.ok;
  }
  const { common, args } = splitCommon(given);
  const found = findCommand(COMMANDS, args);
  if (found !== undefined) return runCommand(found.command, [...common, ...found.rest]);
  if (args.length === 0 && common.some((word) => word === '--help' || word === '-h')) {
    console.log(helpFor(TOPICS, []));
    return EXIT.ok;
  }
  // A first word without a second, as in `cloudlet vm`, lists its commands.
  const words = args.filter((word) => !word.startsWith('-')).slice(0, 2);
  console.error(helpFor(TOPICS, words));
  return EXIT.usage;
}

let session: Session | undefined;

async function runCommand(command: Command, args: readonly string[]): Promise<ExitCode> {
  const { words, options } = readWords(command, args);
  if (options.has('help')) {
    console.log(helpFor(TOPICS, command.name.split(' ')));
    return EXIT.ok;
  }
  const output = new Output({ isJson: options.has('json'), isQuiet: options.has('quiet') });
  const limitSeconds = options.count('timeout', 0);
  if (limitSeconds > 0) endAfter(limitSeconds);
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

/** Repeating the command continues its transfers, so nothing needs to finish first. */
function endAfter(seconds: number): void {
  const end = () => {
    console.error(`cloudlet: timed out after ${seconds} s`);
    void leave(EXIT.timeout);
  };
  setTimeout(end, seconds * 1000).unref();
}

/** Ends the command at once. A key created only for it is revoked, unless that takes too long. */
async function leave(exitCode: ExitCode): Promise<void> {
  setTimeout(() => process.exit(exitCode), LEAVE_MS);
  await session?.close();
  process.exit(exitCode);
}

function fail(error: unknown): ExitCode {
  const { exitCode, lines } = tell(error);
  if (exitCode !== EXIT.interrupted) console.error(`cloudlet: ${lines.map(printable).join('\n')}`);
  return exitCode;
}

// `cloudlet ls | head` closes the reader first, which is no failure.
process.stdout.once('error', (error: NodeJS.ErrnoException) => {
  void leave(error.code === 'EPIPE' ? EXIT.ok : EXIT.failure);
});
process.stdout.on('error', () => {});
// Standard error is closed: the command continues without notes.
process.stderr.on('error', () => {});
takeSignals((signal) => {
  takeSignals((again) => process.exit(exitCodeOfSignal(again)));
  void leave(exitCodeOfSignal(signal));
});

main(process.argv.slice(2)).then(
  (exitCode) => {
    process.exitCode = exitCode;
  },
  (error: unknown) => {
    // Kept-alive connections must not keep the process alive, but output must be flushed.
    process.exitCode = fail(error);
    setTimeout(() => process.exit(), 200).unref();
  },
);

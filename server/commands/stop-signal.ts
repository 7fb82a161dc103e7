/** When a server is to stop. */
import { isatty } from 'node:tty';

const STANDARD_STREAMS = [0, 1, 2];

/**
 * Resolves when the process is told to stop: by SIGTERM, by Ctrl+C, or because its terminal closes.
 * Signals that follow change nothing: of one Ctrl+C the terminal tells us, and so does npm.
 */
export function stopSignal(): Promise<void> {
  // Node undoes what nohup asked for. What runs without a terminal cannot mean one that closes.
  const hasTerminal = STANDARD_STREAMS.some((stream) => isatty(stream));
  return new Promise((resolve) => {
    process.on('SIGTERM', () => resolve());
    process.on('SIGINT', () => resolve());
    process.on('SIGHUP', () => {
      if (hasTerminal) resolve();
    });
  });
}

/** Writing to a terminal that has closed fails, which must not end the process. */
export function outliveTerminal(): void {
  for (const stream of [process.stdout, process.stderr]) stream.on('error', () => {});
}

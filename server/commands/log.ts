/** The server's log, on standard error. */
import { type Logger, pino } from 'pino';
import type { Config } from '../config/config.ts';
import { readableLine } from './log-line.ts';

const SECRETS = ['key', 'password', 'token', 'headers'];

/** For people on a terminal, JSON elsewhere, unless CLOUDLET_LOG_FORMAT says which. */
export function openLog({ logLevel: level, logFormat: format }: Config): Logger {
  const isTerminal = process.stderr.isTTY === true;
  const output = isTerminal ? process.stderr : fileOutput();
  const isText = format === 'text' || (format === 'auto' && isTerminal);
  const write = (line: string) => output.write(isText ? readableLine(line, process.stderr) : line);
  return pino({ level, redact: SECRETS }, { write });
}

/** Never waits for whoever reads a pipe. What a full disk has no room for is written when there is some. */
function fileOutput() {
  const output = pino.destination({ fd: 2, sync: false, maxLength: MOST_WAITING_BYTES });
  output.on('error', () => {
    // At the end of the process pino would try again for ever.
    output.flushSync = () => {};
  });
  return output;
}

/** Beyond this much, new lines are dropped. */
const MOST_WAITING_BYTES = 16 * 2 ** 20;

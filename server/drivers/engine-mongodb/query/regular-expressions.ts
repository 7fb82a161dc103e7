/** Regular expressions of clients: of PCRE, what JavaScript has too, and none that never ends. */
import { type Context, createContext, Script } from 'node:vm';
import { BSONRegExp } from 'bson';
import { CommandError } from '../command-error.ts';

/** For one text. */
const MATCH_MS = 1000;
const SHORT_TEXT = 20;
/** Here those that cannot explode may take too long too: their time is a power of it. */
const LONG_TEXT = 10_000;

/** Reads `$regex` and its `$options`. */
export function readRegex(value: unknown, options: unknown): BSONRegExp {
  if (value instanceof BSONRegExp)
    return options === undefined ? value : new BSONRegExp(value.pattern, String(options));
  if (typeof value !== 'string') throw new CommandError('BadValue', '$regex has to be a string');
  return new BSONRegExp(value, options === undefined ? '' : String(options));
}

/** Whether a text matches. Throws CommandError, the test too when it takes too long. */
export function compileRegex({ pattern, options }: BSONRegExp): (text: string) => boolean {
  if (/[^imsu]/.test(options)) throw new CommandError(51108, `invalid flag in regex options: ${options}`);
  const [, inline = '', rest = pattern] = /^\(\?([ims]+)\)(.*)$/s.exec(pattern) ?? [];
  const shortest = mayExplode(rest) ? SHORT_TEXT : LONG_TEXT;
  try {
    const regex = new RegExp(rest, [...new Set(options + inline)].join(''));
    const test = (text: string) => regex.test(text);
    return (text) => (text.length < shortest ? test(text) : withinTime(() => test(text)));
  } catch (error) {
    throw new CommandError(51091, `Regular expression is invalid: ${(error as Error).message}`);
  }
}

/** Whether its time may be exponential in the text: a repeated group that can match in many ways. */
export function mayExplode(pattern: string): boolean {
  return /\(.*[*+?|}].*\)(?:[*+]|\{\d*,)/s.test(pattern);
}

let watched: Context | null = null;
const SCRIPT = new Script('work()');

/** V8's own watchdog interrupts regular expressions, and nothing else does; it costs a tenth of a ms. */
export function withinTime<T>(work: () => T): T {
  watched ??= createContext();
  watched.work = work;
  try {
    return SCRIPT.runInContext(watched, { timeout: MATCH_MS });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ERR_SCRIPT_EXECUTION_TIMEOUT') throw error;
    const what =
      'a regular expression takes too long on one text; repeat no group that can match in many ways';
    throw new CommandError('MaxTimeMSExpired', `operation exceeded time limit: ${what}`);
  } finally {
    watched.work = null;
  }
}

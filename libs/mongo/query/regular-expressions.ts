/** Regular expressions of clients: PCRE features that JavaScript shares, with a time limit. */
import { type Context, createContext, Script } from 'node:vm';
import { BSONRegExp } from 'bson';
import { CommandError } from '../command-error.ts';
import { OutOfTime, spend, timeLeftMs } from '../command-time.ts';
import { costOf } from './regex-cost.ts';
import { asJavaScript } from './regex-syntax.ts';

/** Time limit for one text. */
const MATCH_MS = 1000;
/** Expressions with fewer steps, some ten ms, run without a timeout. */
const FREE_STEPS = 1e6;
/** Cost of the watchdog. */
const WATCHED_STEPS = 1000;

/** Reads `$regex` and its `$options`. */
export function readRegex(value: unknown, options: unknown): BSONRegExp {
  if (value instanceof BSONRegExp)
    return options === undefined ? value : new BSONRegExp(value.pattern, String(options));
  if (typeof value !== 'string') throw new CommandError('BadValue', '$regex has to be a string');
  return new BSONRegExp(value, options === undefined ? '' : String(options));
}

/** Compiles a test. Throws CommandError; the test too, if it takes too long. */
export function compileRegex({ pattern, options }: BSONRegExp): (text: string) => boolean {
  if (/[^imsu]/.test(options)) throw new CommandError(51108, `invalid flag in regex options: ${options}`);
  const [, inline = '', rest = pattern] = /^\(\?([ims]+)\)(.*)$/s.exec(pattern) ?? [];
  try {
    const flags = [...new Set(options + inline)].join('');
    const source = asJavaScript(rest, flags);
    const regex = new RegExp(source, flags);
    const { degree, factor } = costOf(source, flags);
    const longestFree = (FREE_STEPS / factor) ** (1 / degree) - 1;
    const test = (text: string) => regex.test(text);
    return (text) => {
      const isFree = text.length <= longestFree;
      const found = isFree ? test(text) : withinTime(() => test(text));
      // Ten steps of an expression take as long as one step of a command.
      spend(isFree ? (factor * (text.length + 1) ** degree) / 10 : WATCHED_STEPS);
      return found;
    };
  } catch (error) {
    throw new CommandError(51091, `Regular expression is invalid: ${(error as Error).message}`);
  }
}

/** Whether its time may grow faster than the text. */
export function mayTakeLong(pattern: string, options: unknown): boolean {
  const { degree, factor } = costOf(pattern, typeof options === 'string' ? options : 'm');
  return degree > 1 || factor > FREE_STEPS;
}

let watched: Context | null = null;
const SCRIPT = new Script('work()');

/** Only V8's own watchdog can interrupt regular expressions; it costs a tenth of a ms. */
export function withinTime<T>(work: () => T): T {
  watched ??= createContext();
  watched.work = work;
  try {
    const timeout = Math.max(1, Math.ceil(Math.min(MATCH_MS, timeLeftMs())));
    return SCRIPT.runInContext(watched, { timeout });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ERR_SCRIPT_EXECUTION_TIMEOUT') throw error;
    const what =
      'a regular expression takes too long on one text; repeat no group that can match in many ways';
    throw new OutOfTime(what);
  } finally {
    watched.work = null;
  }
}

/** Parses a command line by the table of commands. */
import { parseArgs } from 'node:util';
import { COMMON_OPTIONS, type Command, type Option, type Values } from './command.ts';
import { UsageError } from './failures.ts';
import { meant } from './nearest.ts';

export interface Read {
  readonly words: readonly string[];
  readonly options: Values;
}

/** The command named by the first one or two words, and the remaining words. */
export function findCommand(
  commands: readonly Command[],
  args: readonly string[],
): { command: Command; rest: readonly string[] } | undefined {
  for (const length of [2, 1]) {
    const name = args.slice(0, length).join(' ');
    const command = commands.find((each) => each.name === name);
    if (command !== undefined) return { command, rest: args.slice(length) };
  }
  return undefined;
}

/** Common options may precede the command. Throws UsageError for others. */
export function splitCommon(given: readonly string[]): {
  readonly common: readonly string[];
  readonly args: readonly string[];
} {
  let at = 0;
  for (; given[at]?.startsWith('-'); at++) {
    const word = given[at] ?? '';
    const [, long, hasValue] = /^--([^=]+)(=)?/s.exec(word) ?? [];
    const option = Object.entries(COMMON_OPTIONS).find(([name, { short }]) => {
      return name === long || word === `-${short}`;
    })?.[1];
    if (option === undefined) {
      const names = Object.keys(COMMON_OPTIONS).map((name) => `--${name}`);
      throw new UsageError(`unknown option ${word}${meant(word, names)}`, 'See: cloudlet help');
    }
    if (option.value !== undefined && hasValue === undefined) at += 1;
  }
  return { common: given.slice(0, at), args: given.slice(at) };
}

/** Throws UsageError for unknown options and too few or too many words. */
export function readWords(command: Command, args: readonly string[]): Read {
  const known = { ...command.options, ...COMMON_OPTIONS };
  let read: { values: Record<string, unknown>; positionals: string[] };
  try {
    read = parseArgs({ args: [...args], allowPositionals: true, options: optionsForNode(known) });
  } catch (error) {
    // The rest of Node's message explains how to pass arguments that begin with a dash.
    const [reason = ''] = (error as Error).message.split(/\.\s/);
    const [, unknown] = /^Unknown option '(-[^']+)'/.exec(reason) ?? [];
    const options = Object.keys(known).map((name) => `--${name}`);
    const [, taken] = /^Option '(?:-\w, )?(--[\w-]+)' does not take an argument/.exec(reason) ?? [];
    if (taken !== undefined) throw valueless(command, taken);
    const guess = habit(unknown, known) ?? meant(unknown ?? '', options);
    const what = unknown === undefined ? reason : `unknown option ${unknown}${guess}`;
    throw new UsageError(`${command.name}: ${what}`, `See: cloudlet help ${command.name}`);
  }
  const { values, positionals } = read;
  if (values.help !== true) assertCount(command, positionals);
  return { words: positionals, options: valuesOf(values) };
}

/** `--json=1`, as in other programs. */
function valueless(command: Command, option: string): UsageError {
  return new UsageError(
    `${command.name}: ${option} takes no value`,
    `Write ${option} alone, or leave it out`,
  );
}

/** Short options of other programs that do not exist here, or have another letter. */
function habit(unknown: string | undefined, known: Readonly<Record<string, Option>>): string | undefined {
  if (unknown === '-R' && known.recursive !== undefined) return '; did you mean -r?';
  // A command with --yes asks.
  if (unknown === '-f')
    return known.yes === undefined ? '; this command does not ask for confirmation' : '; did you mean --yes?';
  if (unknown === '-a') return '; it is not needed, because every name is listed';
  return undefined;
}

function optionsForNode(known: Readonly<Record<string, Option>>) {
  return Object.fromEntries(
    Object.entries(known).map(([name, { value, short, many }]) => [
      name,
      {
        type: value === undefined ? 'boolean' : 'string',
        ...(short !== undefined && { short }),
        ...(many === true && { multiple: true }),
      } as const,
    ]),
  );
}

/** Number of words that `SOURCE… TARGET` or `[NAME]` accepts. */
function countOf({ words }: Pick<Command, 'words'>): { least: number; most: number } {
  const parts = words.split(' ').filter((part) => part !== '');
  return {
    least: parts.filter((part) => !part.startsWith('[')).length,
    most: parts.some((part) => part.includes('…')) ? Number.POSITIVE_INFINITY : parts.length,
  };
}

function assertCount(command: Command, positionals: readonly string[]): void {
  const { least, most } = countOf(command);
  if (positionals.length >= least && positionals.length <= most) return;
  const what =
    positionals.length < least ? 'too few arguments' : `unexpected argument "${positionals[most]}"`;
  throw new UsageError(`${command.name}: ${what}`, `Usage: ${usageOf(command)}`);
}

/** `cloudlet cp SOURCE… TARGET [options]` */
export function usageOf({ name, words }: Pick<Command, 'name' | 'words'>): string {
  return ['cloudlet', name, words].filter((part) => part !== '').join(' ');
}

function valuesOf(values: Readonly<Record<string, unknown>>): Values {
  const text = (name: string) => (typeof values[name] === 'string' ? values[name] : undefined);
  return {
    has: (name) => values[name] !== undefined,
    text,
    list: (name) => (Array.isArray(values[name]) ? (values[name] as string[]) : []),
    count: (name, fallback, least = 1) => {
      const given = text(name);
      if (given === undefined) return fallback;
      const count = Number(given);
      if (/^\d+$/.test(given) && Number.isSafeInteger(count) && count >= least) return count;
      throw new UsageError(`--${name} must be an integer of at least ${least}, not "${given}"`);
    },
  };
}

/** The number that a word means; `what` names it in the error. Throws UsageError. */
export function numberOf(what: string, text: string): number {
  if (text.trim() === '' || !Number.isFinite(Number(text)))
    throw new UsageError(`${what}: ${text} is not a number`);
  return Number(text);
}

/** The definition of a command. Help, completion, and the table in docs/client.md are generated from it. */
import type { ExitCode } from './failures.ts';
import type { Output } from './output.ts';
import type { Session } from './sign-in/session.ts';

export interface Option {
  /** Name of the option's value; undefined: a switch. */
  readonly value?: string;
  readonly short?: string;
  readonly summary: string;
  /** Whether the option may be given more than once. */
  readonly many?: boolean;
}

export interface Command {
  /** `ls`, or `vm ls`. */
  readonly name: string;
  /** Positional arguments: `SOURCE… TARGET`, `[NAME]`. */
  readonly words: string;
  readonly summary: string;
  /** Additional help, in whole lines. */
  readonly details?: string;
  readonly options?: Readonly<Record<string, Option>>;
  /** Resolves with the exit code, or with nothing for 0. */
  run(call: Invocation): Promise<ExitCode> | Promise<void>;
}

/** One invocation of a command. */
export interface Invocation {
  readonly words: readonly string[];
  readonly options: Values;
  readonly output: Output;
  /** Credentials and URL of the cloud. Throws ClientError if not signed in. */
  readonly session: () => Session;
}

/** The given options. */
export interface Values {
  has(name: string): boolean;
  text(name: string): string | undefined;
  list(name: string): readonly string[];
  /** Throws UsageError unless the value is an integer of at least `least`. */
  count(name: string, fallback: number, least?: number): number;
}

/** Options that every command takes. */
export const COMMON_OPTIONS: Readonly<Record<string, Option>> = {
  json: { summary: 'print JSON: one object, or one per line for lists' },
  quiet: { short: 'q', summary: 'hide progress and notes' },
  profile: { value: 'NAME', summary: 'use this profile' },
  timeout: { value: 'SECONDS', summary: 'stop after this time (exit code 124)' },
  help: { short: 'h', summary: 'show this help' },
};

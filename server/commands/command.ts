/** The interface of a command of bin/cloudlet. */
import type { Config } from '../config/config.ts';

/** The command line was not understood: exit code 2. */
export class UsageError extends Error {}

export interface Words {
  /** Arguments after the name of the command, without options. */
  readonly positionals: readonly string[];
  /** Values of the options by name; `yes` for a flag. */
  readonly values: Readonly<Record<string, string | undefined>>;
}

export interface Command {
  /** Printed for --help. */
  readonly help: string;
  /** Options with a value, besides --data-dir. */
  readonly options?: readonly string[];
  /** Options without a value. */
  readonly flags?: readonly string[];
  /** Resolves with the exit code. */
  run(config: Config, words: Words): Promise<number>;
}

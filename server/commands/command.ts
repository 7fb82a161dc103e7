/** What a command of bin/cloudlet is. */
import type { Config } from '../config/config.ts';

/** The command line was not understood: exit code 2. */
export class UsageError extends Error {}

export interface Words {
  /** What follows the name of the command, options aside. */
  readonly positionals: readonly string[];
  /** The options' values, by name; of a flag that is given, `yes`. */
  readonly values: Readonly<Record<string, string | undefined>>;
}

export interface Command {
  /** Printed for --help. */
  readonly help: string;
  /** What it takes besides --data-dir; these have a value. */
  readonly options?: readonly string[];
  /** These have none. */
  readonly flags?: readonly string[];
  /** Resolves with the exit code. */
  run(config: Config, words: Words): Promise<number>;
}

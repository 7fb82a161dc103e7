/** What a setting is, and the kinds there are: a text, a whole number, one of several words. */

export interface Setting<T> {
  readonly env: string;
  readonly help: string;
  readonly fallback: T;
  readonly parse: (text: string) => T;
}

/** A setting that cannot be. */
export class ConfigError extends Error {}

export function text(
  env: string,
  fallback: string,
  help: string,
  check?: (value: string) => string | undefined,
): Setting<string> {
  const parse = (value: string) => {
    const problem = check?.(value);
    if (problem) throw new ConfigError(problem);
    return value;
  };
  return { env, fallback, help, parse };
}

export function integer(
  env: string,
  fallback: number,
  min: number,
  max: number,
  help: string,
): Setting<number> {
  const parse = (value: string) => {
    const number = Number(value);
    if (!/^\d+$/.test(value) || number < min || number > max) {
      throw new ConfigError(`must be a whole number from ${min} to ${max}, got "${value}"`);
    }
    return number;
  };
  return { env, fallback, help, parse };
}

export function oneOf<T extends string>(
  env: string,
  fallback: T,
  choices: readonly T[],
  help: string,
): Setting<T> {
  const parse = (value: string) => {
    const choice = choices.find((candidate) => candidate === value);
    if (choice === undefined) throw new ConfigError(`must be one of ${choices.join(', ')}, got "${value}"`);
    return choice;
  };
  return { env, fallback, help: `${help} (${choices.join(', ')})`, parse };
}

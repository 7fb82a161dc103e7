/** Programs on a terminal, for tests. */
import { spawnSync } from 'node:child_process';

/** Why there is no terminal here, or false. For the `skip` of tests. */
export const cannotOpenTerminal =
  spawnSync('script', ['--version']).status === 0 ? false : 'script (Debian: bsdutils) is not installed';

/** Runs a shell command on a separate terminal, and passes its output on. */
export function inTerminal(line: string): string[] {
  return ['script', '--quiet', '--flush', '--command', line, '/dev/null'];
}

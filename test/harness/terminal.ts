/** Programs that run in a terminal, for tests. */
import { spawnSync } from 'node:child_process';

/** Why there is no terminal here, or false. For the `skip` of tests. */
export const cannotOpenTerminal =
  spawnSync('script', ['--version']).status === 0 ? false : 'script (Debian: bsdutils) is not installed';

/** Runs a line of shell in its own terminal, and passes on what is said there. */
export function inTerminal(line: string): string[] {
  return ['script', '--quiet', '--flush', '--command', line, '/dev/null'];
}

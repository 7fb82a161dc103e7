/** Programs that are run without any network: not even this host's own addresses are there. */
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { hostPath, hostProgram } from '../../host-programs.ts';

const run = promisify(execFile);
const ASK_MS = 5000;

let asked: Promise<readonly string[]> | undefined;

/**
 * What is put before the words of a command: it runs as it would, in a network of its own that leads nowhere.
 * Nothing where the host does not let us, as some containers do not; asked once. Never rejects.
 */
export function withoutNetwork(): Promise<readonly string[]> {
  asked ??= ask();
  return asked;
}

async function ask(): Promise<readonly string[]> {
  // Only root may do it outright; others within a namespace of users, where the host has those for all.
  const ways = process.getuid?.() === 0 ? [[]] : [['--user', '--map-current-user']];
  for (const more of ways) {
    const words = [...more, '--net', '--'];
    try {
      const program = hostProgram('unshare');
      await run(program, [...words, 'true'], { timeout: ASK_MS, env: { LANG: 'C', PATH: hostPath() } });
      return [program, ...words];
    } catch {
      // The next way, or none.
    }
  }
  return [];
}

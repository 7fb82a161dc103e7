/** Programs that are run without any network: not even this host's own addresses are there. */
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { hostPath, hostProgram } from '../../host-programs.ts';

const run = promisify(execFile);
const ASK_MS = 5000;

const asked = new Map<boolean, Promise<readonly string[]>>();

/**
 * What is put before the words of a command: it runs as it would, in a network of its own that leads nowhere.
 * Nothing where the host does not let us, as some containers do not; asked once.
 * `needsUsers`: the command changes its user. Never rejects.
 */
export function withoutNetwork(needsUsers: boolean): Promise<readonly string[]> {
  const answer = asked.get(needsUsers) ?? ask(needsUsers);
  asked.set(needsUsers, answer);
  return answer;
}

async function ask(needsUsers: boolean): Promise<readonly string[]> {
  // Only root may do it outright; others within a namespace of users, where the host has those for all. That
  // has but one user, who can become no other.
  const ways = needsUsers ? [[]] : [[], ['--user', '--map-current-user']];
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

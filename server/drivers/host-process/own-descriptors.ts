/** Programs that get no descriptor but those they are meant to get. */
import { hostProgram } from '../../platform/host-programs.ts';

/** Lines for Bash, as other shells know no descriptor above 9: it keeps so many, from 0 on. */
export function closeOthers(kept: number): string {
  return `for fd in /proc/$$/fd/*; do
fd=\${fd##*/}
((fd < ${kept})) || eval "exec $fd>&-"
done`;
}

/**
 * The words that run `words` with nothing open above descriptor 3, and no environment. What Cloudlet opens
 * itself is not inherited, but what it was given by whoever started it may be. A shell closes that; it then
 * becomes the program, with the same process id. Throws `engine_unavailable` where there is no Bash.
 */
export function withoutOthers(words: readonly string[]): [program: string, args: string[]] {
  return [hostProgram('bash'), ['--norc', '-c', `${closeOthers(4)}\nexec -c "$@"`, 'bash', ...words]];
}

/** Programs that get no descriptor but those they are meant to get. */
import { hostProgram } from '../../host-programs.ts';

const CLOSE_OTHERS = `for fd in /proc/$$/fd/*; do
fd=\${fd##*/}
((fd < 4)) || eval "exec $fd>&-"
done
exec -c "$@"`;

/**
 * The words that run `words` with nothing open above descriptor 3, and no environment. What Cloudlet opens
 * itself is not inherited, but what it was given by whoever started it may be. A shell closes that, Bash, as
 * other shells know no descriptor above 9; it then becomes the program, with the same process id. Throws
 * `engine_unavailable` where there is no Bash.
 */
export function withoutOthers(words: readonly string[]): [program: string, args: string[]] {
  return [hostProgram('bash'), ['-c', CLOSE_OTHERS, 'bash', ...words]];
}

/**
 * How a foreign process ended. A shell waits for each one and writes it down, so that it is known when and
 * how it ended also while Cloudlet was dead. The note is in a folder of ours, out of the process's reach.
 */
import { closeSync, fstatSync, openSync, readFileSync } from 'node:fs';
import { constants } from 'node:os';
import { hostProgram } from '../../platform/host-programs.ts';

/** The note, in our folder of the process. */
export const ENDED = 'ended';

export interface Supervised {
  /** Ours, whole path: the note will be in it. */
  readonly folder: string;
  /** In it: the working directory of the process. */
  readonly workFolder: string;
  /** Takes what the process says, path; it is there. */
  readonly log: string;
  /** Program and arguments. */
  readonly words: readonly string[];
}

/**
 * For a shell that reads its script from descriptor 0: runs the words, tells the process id through
 * descriptor 3, and waits. What it runs gets none of the shell's own variables, and not the descriptor; what
 * the shell would say of a signal belongs to no log. The note is one short line, written at once: who finds
 * no end of line came too early. The braces: nothing of a script that breaks off is run.
 */
export function supervise({ folder, workFolder, log, words }: Supervised): string {
  const command = words.map(quoted).join(' ');
  return `{
cd ${quoted(folder)} && exec </dev/null >${quoted(log)} 2>&1 || exit
(cd ${quoted(workFolder)} && unset PWD OLDPWD && LANG=C && export LANG && exec ${command}) 3>&- &
echo $! >&3
exec 3>&- 2>/dev/null
wait $!
echo "$! $?" >${ENDED}
exit
}
`;
}

/** A word that means nothing else to a shell. */
export function quoted(word: string): string {
  return `'${word.replaceAll("'", "'\\''")}'`;
}

export interface Ending {
  readonly pid: number;
  /** As a shell counts: 128 and more for signals. */
  readonly status: number;
  /** ms since 1970. */
  readonly at: number;
}

const NOTE = /^(\d+) (\d+)\n$/;
const SIGNALLED = 128;

/** The note at `path`; null when there is none, or it is not whole. */
export function readEnding(path: string): Ending | null {
  let fd: number;
  try {
    fd = openSync(path, 'r');
  } catch {
    return null;
  }
  try {
    const [, pid, status] = NOTE.exec(readFileSync(fd, 'latin1')) ?? [];
    if (pid === undefined) return null;
    return { pid: Number(pid), status: Number(status), at: Math.floor(fstatSync(fd).mtimeMs) };
  } finally {
    closeSync(fd);
  }
}

/** For humans. */
export function endingText({ status }: Pick<Ending, 'status'>): string {
  const { code, signal } = exitOf(status);
  return signal === null ? `the process exited with status ${code}` : `the process was killed by ${signal}`;
}

/** A status as a shell counts, told apart. */
export function exitOf(status: number): { readonly code: number | null; readonly signal: string | null } {
  return status > SIGNALLED
    ? { code: null, signal: signalName(status - SIGNALLED) }
    : { code: status, signal: null };
}

/** `SIGKILL` and the like; `signal 99` when the host has no name for it. */
export function signalName(number: number): string {
  const found = Object.entries(constants.signals).find(([, value]) => value === number);
  return found?.[0] ?? `signal ${number}`;
}

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

/**
 * How a guest's process ended. A shell waits for each one and writes it down, so that it is known when and
 * how a guest ended also while Cloudlet was dead. The note is in our folder, out of the guest's reach.
 */
import { closeSync, fstatSync, openSync, readFileSync } from 'node:fs';
import { constants } from 'node:os';
import type { GuestEnd } from '../../compute/hypervisor.ts';

/** The note, in our folder of the guest. */
export const ENDED = 'ended';

export interface Supervised {
  /** Ours, whole path: the note will be in it. */
  readonly folder: string;
  /** In it: the working directory of the process. */
  readonly guestFolder: string;
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
export function supervise({ folder, guestFolder, log, words }: Supervised): string {
  const command = words.map(quoted).join(' ');
  return `{
cd ${quoted(folder)} && exec </dev/null >${quoted(log)} 2>&1 || exit
(cd ${quoted(guestFolder)} && unset PWD OLDPWD && LANG=C && export LANG && exec ${command}) 3>&- &
echo $! >&3
exec 3>&- 2>/dev/null
wait $!
echo "$! $?" >${ENDED}
exit
}
`;
}

/** A word that means nothing else to a shell. */
function quoted(word: string): string {
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
/** What the program says when it was asked to end by a signal; it then exits as after a shutdown. */
const TOLD_BY_SIGNAL = /terminating on signal (\d+)/;

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
  if (status <= SIGNALLED) return `the process exited with status ${status}`;
  return `the process was killed by ${signalName(status - SIGNALLED)}`;
}

/**
 * What can be told of a run that nobody watched. Clean exits pass for shutdowns, as the program makes no
 * difference; `words`: the last it said.
 */
export function unwatchedEnd(
  ending: Ending,
  words: string | null,
): Pick<GuestEnd, 'cause' | 'message' | 'at'> {
  const { status, at } = ending;
  const signal = TOLD_BY_SIGNAL.exec(words ?? '')?.[1];
  if (status === 0 && signal === undefined) {
    return { cause: 'guest_shutdown', message: 'the guest powered itself off while nobody watched', at };
  }
  const text = status === 0 ? `the process was ended by ${signalName(Number(signal))}` : endingText(ending);
  const message = words === null || status === 0 ? text : `${text}: ${words}`;
  return { cause: 'crashed', message, at };
}

function signalName(number: number): string {
  const found = Object.entries(constants.signals).find(([, value]) => value === number);
  return found?.[0] ?? `signal ${number}`;
}

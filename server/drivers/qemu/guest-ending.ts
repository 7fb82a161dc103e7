/** What the end of a guest's process tells of the guest. */
import type { GuestEnd } from '../../compute/hypervisor.ts';
import { type Ending, endingText, signalName } from '../host-process/ending-note.ts';

/** What the program says when it was asked to end by a signal; it then exits as after a shutdown. */
const TOLD_BY_SIGNAL = /terminating on signal (\d+)/;

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
    return {
      cause: 'guest_shutdown',
      message: 'the guest powered itself off while Cloudlet was not running',
      at,
    };
  }
  const text = status === 0 ? `the process was ended by ${signalName(Number(signal))}` : endingText(ending);
  const message = words === null || status === 0 ? text : `${text}: ${words}`;
  return { cause: 'crashed', message, at };
}

/**
 * The time of the running command. A process runs one command at a time, so there is one. Code that
 * may take long with a single document reports its steps, and is interrupted between them.
 */
import { CommandError } from './command-error.ts';

/** About a tenth of a microsecond each; the clock is read every millisecond or so. */
const STEPS_BETWEEN_LOOKS = 10_000;
/** Cost of examining one document, or reading a range of an index. */
export const DOCUMENT_STEPS = 300;
/** Cost of writing a key of an index. */
export const KEY_STEPS = 50;

/** The command's time limit. Ends the whole command, whatever remains. */
export class OutOfTime extends CommandError {
  constructor(what?: string) {
    super('MaxTimeMSExpired', `operation exceeded time limit${what === undefined ? '' : `: ${what}`}`);
  }
}

let left = STEPS_BETWEEN_LOOKS;
let remaining: (() => number) | null = null;

/** Runs `work`; spend() throws once `remainingMs` has elapsed. Null: no limit. */
export function withinCommandTime<T>(remainingMs: (() => number) | null, work: () => T): T {
  [left, remaining] = [STEPS_BETWEEN_LOOKS, remainingMs];
  try {
    return work();
  } finally {
    remaining = null;
  }
}

/** Throws OutOfTime if the current command's time is over. */
export function spend(steps = 1): void {
  left -= steps;
  if (left > 0) return;
  left = STEPS_BETWEEN_LOOKS;
  if (remaining !== null && remaining() <= 0) throw new OutOfTime();
}

/** Time left for the running command, ms; infinite without a limit. */
export function timeLeftMs(): number {
  return remaining?.() ?? Number.POSITIVE_INFINITY;
}

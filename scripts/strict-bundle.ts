/** Handling of rolldown's reports in the set-up: everything except durations is an error. */
import type { InputOptions } from 'rolldown';

export const STRICT: Pick<InputOptions, 'logLevel' | 'onLog' | 'checks'> = {
  logLevel: 'warn',
  onLog: (_level, log) => {
    throw new Error(log.message);
  },
  // On a loaded host a plugin takes most of the time of a build, which is not an error.
  checks: { bundlerTimings: false },
};

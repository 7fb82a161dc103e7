/** How bundlers of the set-up take what rolldown reports: everything is an error but how long it took. */
import type { InputOptions } from 'rolldown';

export const STRICT: Pick<InputOptions, 'logLevel' | 'onLog' | 'checks'> = {
  logLevel: 'warn',
  onLog: (_level, log) => {
    throw new Error(log.message);
  },
  // A plugin takes most of the time of a build on a loaded host, and nothing is wrong.
  checks: { bundlerTimings: false },
};

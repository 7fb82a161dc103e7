/** Continuous protection of databases, according to the settings. */
import type { Config } from '../../config/config.ts';
import { isContinuous } from '../../config/database-limits.ts';
import type { Alarms } from '../../platform/alarms.ts';
import type { Continuous } from './continuous-archive.ts';

type Settings = Pick<Config, 'recoveryTarget' | 'continuousSeconds' | 'continuousDays'>;

const DAY_MS = 86_400_000;

/** undefined: off. Recovery is built after databases, and used once both run. */
export function continuousOf(
  config: Settings,
  alarms: Alarms,
  recovery: () => Continuous['store'],
): Continuous | undefined {
  if (!isContinuous(config)) return undefined;
  return {
    store: {
      open: (...of) => recovery().open(...of),
      putBase: (...of) => recovery().putBase(...of),
      trim: (...of) => recovery().trim(...of),
      useless: () => recovery().useless(),
    },
    alarms,
    everyMs: config.continuousSeconds * 1000,
    keepMs: config.continuousDays * DAY_MS,
  };
}

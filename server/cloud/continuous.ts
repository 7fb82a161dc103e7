/** Makes the continuous protection of databases. */
import type { Config } from '../config/config.ts';
import type { Continuous } from '../databases/points/continuous-archive.ts';
import type { Alarms } from '../platform/alarms.ts';
import type { LogArchive } from '../recovery/logs/log-archive.ts';

type Settings = Pick<Config, 'recoveryTarget' | 'continuousSeconds'>;

const DAY_MS = 86_400_000;

/** Whether logs of database servers are archived. */
export function isContinuous({ recoveryTarget, continuousSeconds }: Settings): boolean {
  return recoveryTarget !== '' && continuousSeconds > 0;
}

/** undefined: it is off. Recovery is made after databases, and reached once both run. */
export function continuousOf(
  config: Settings & Pick<Config, 'continuousDays'>,
  alarms: Alarms,
  recovery: () => LogArchive,
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

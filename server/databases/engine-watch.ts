/** Raises an alarm while databases cannot be used because their engine is not there. */
import type { Alarms } from '../platform/alarms.ts';
import type { Engines } from './engines.ts';
import type { DatabaseCount } from './store.ts';

export interface EngineWatchDeps {
  readonly engines: Pick<Engines, 'readiness'>;
  readonly alarms: Pick<Alarms, 'raise' | 'clear'>;
  readonly counts: () => PromiseLike<readonly DatabaseCount[]> | readonly DatabaseCount[];
}

const ALARM = 'database_engine_unavailable';

/** To be called from time to time. */
export async function watchEngines({ engines, alarms, counts }: EngineWatchDeps): Promise<void> {
  const readiness = await engines.readiness();
  const rows = (await counts()).filter(({ state }) => state !== 'deleting');
  const problems = readiness
    .filter(({ available }) => !available)
    .map(({ engine, reason, fix }) => {
      const count = rows.reduce((sum, row) => sum + (row.engine === engine ? row.count : 0), 0);
      const mend = fix === null ? '' : ` Fix: ${fix}.`;
      return { count, text: `${count} databases of ${engine} cannot be used: ${reason}.${mend}` };
    })
    .filter(({ count }) => count > 0)
    .map(({ text }) => text);
  if (problems.length === 0) alarms.clear(ALARM);
  else alarms.raise(ALARM, problems.join(' '));
}

/** Tells the webhooks of administrators when an alarm of recovery appears, and when it is over. */
import { BACKGROUND, type Changes } from '../metadata/change.ts';
import type { Alarm } from '../platform/alarms.ts';
import type { PointEvents } from './point-view.ts';
import type { RecoveryStore } from './store.ts';

export interface AlarmNewsDeps {
  readonly store: Pick<RecoveryStore, 'toldAlarms' | 'setToldAlarms'>;
  readonly changes: Changes;
  readonly news: Pick<PointEvents, 'ofAlarm'>;
}

const IS_OURS = /^recovery_/;

export class AlarmNews {
  readonly #deps: AlarmNewsDeps;
  #last: Promise<unknown> = Promise.resolve();

  constructor(deps: AlarmNewsDeps) {
    this.#deps = deps;
  }

  /** `alarms`: all of now. Those that were told of are stored, so that a restart tells nothing twice. */
  tell(alarms: readonly Alarm[]): Promise<void> {
    const telling = this.#last.then(() => this.#tell(alarms.filter(({ code }) => IS_OURS.test(code))));
    this.#last = telling.catch(() => {});
    return telling;
  }

  async #tell(alarms: readonly Alarm[]): Promise<void> {
    const { store, changes, news } = this.#deps;
    const told = await store.toldAlarms();
    const raised = alarms.filter(({ code }) => !told.includes(code));
    const codes = alarms.map(({ code }) => code);
    const cleared = told.filter((code) => !codes.includes(code));
    if (raised.length + cleared.length === 0) return;
    await changes.run(BACKGROUND, async (change) => {
      change.add(store.setToldAlarms(codes));
      for (const { code, detail, fix } of raised) {
        change.addAll(await news.ofAlarm('recovery.alarm_raised', { code, detail, fix }));
      }
      for (const code of cleared) change.addAll(await news.ofAlarm('recovery.alarm_cleared', { code }));
    });
  }
}

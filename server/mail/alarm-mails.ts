/**
 * Mails alarms to the administrators who want them: once, and again if an alarm persists a day
 * later.
 */
import type { Changes } from '../metadata/change.ts';
import type { Alarm } from '../platform/alarms.ts';
import type { Clock } from '../platform/clock.ts';
import { MAIL_ALARM } from './mail-queue.ts';
import type { MailStore } from './mails-store.ts';
import type { Outbox } from './outbox.ts';

const DAY_MS = 24 * 3600_000;

export interface AlarmMailsDeps {
  readonly changes: Changes;
  readonly mailStore: MailStore;
  readonly outbox: Outbox;
  readonly clock: Clock;
  /** The alarms of all nodes. */
  readonly alarms: () => readonly (Alarm & { readonly node: string | null })[];
  /** Base URL of the console, without a slash at the end. */
  readonly mailUrl: () => string;
}

/** Called periodically. */
export async function tellAlarms(deps: AlarmMailsDeps): Promise<void> {
  const { changes, mailStore, outbox, clock, alarms, mailUrl } = deps;
  if (!outbox.isOn) return;
  // A failing mail server cannot be reported by mail.
  const active = alarms().filter(({ code }) => code !== MAIL_ALARM);
  if (active.length === 0) return;
  const administrators = await mailStore.wanting('alarms');
  for (const { code, detail, fix, since, node } of active) {
    const topic = code.slice(0, 200);
    if (await mailStore.wasTold('alarms', topic, clock.now() - DAY_MS)) continue;
    const place = node === null ? '' : `Node: ${node}\n`;
    const text = `${detail}\n\n${place}Since: ${since}\nWhat to do: ${fix}\n\n${mailUrl()}/\n`;
    const told = {
      about: 'alarms',
      topic,
      subject: `Cloudlet alarm: ${code}`,
      text,
      lifeMs: DAY_MS,
    } as const;
    await changes.store(administrators.flatMap((accountId) => outbox.tell({ ...told, accountId })));
  }
  outbox.wake();
}

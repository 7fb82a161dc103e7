/** `cloudlet recovery schedule` and `retention`: points created and removed automatically. */
import type { Config } from '../../config/config.ts';
import { plural } from '../../platform/plural.ts';
import {
  type KeepRules,
  RHYTHMS,
  RULES,
  type Rule,
  type Schedule,
} from '../../recovery/schedule/schedule.ts';
import type { RecoverySchedule, RetentionPreview } from '../../recovery/schema.ts';
import { UsageError, type Words } from '../command.ts';
import { asOperator, type CallAsOperator } from '../operator-call.ts';

const SCHEDULE = '/api/disaster-recovery/schedule';
const RETENTION = '/api/disaster-recovery/retention';

/** `schedule [show]`, `schedule set hourly|daily|weekly`, `schedule off`. */
export async function schedule(config: Config, words: Words): Promise<number> {
  const [, verb = 'show', ...rest] = words.positionals;
  const changed = verb === 'show' ? undefined : changeOf(verb, rest, words.values);
  const now = await asOperator(config, (call) =>
    changed === undefined
      ? call<RecoverySchedule>({ method: 'GET', path: SCHEDULE })
      : call<RecoverySchedule>({ method: 'PATCH', path: SCHEDULE, body: changed }),
  );
  tell(now);
  return now.failures === 0 ? 0 : 1;
}

/** Shows what the configured rules, or those of `--keep`, keep and remove. */
export async function retention(config: Config, { values }: Words): Promise<number> {
  const query = values.keep === undefined ? '' : `?${new URLSearchParams(textOf(readKeep(values.keep)))}`;
  const { keep, stays, goes } = await asOperator(config, (call: CallAsOperator) =>
    call<RetentionPreview>({ method: 'GET', path: RETENTION + query }),
  );
  for (const { point_id: id, created_at: at, state, reasons } of stays) {
    console.log(`stays  ${id}  ${at}  ${state}  ${reasons.join(', ')}`);
  }
  for (const { point_id: id, created_at: at, state } of goes) {
    console.log(`goes   ${id}  ${at}  ${state}`);
  }
  const points = plural(goes.length, 'recovery point');
  console.log(
    `With ${sayKeep(keep)}, ${stays.length} would be kept and ${points} deleted after the next one`,
  );
  return 0;
}

function changeOf(verb: string, rest: readonly string[], values: Words['values']): object {
  if (verb === 'off' && rest.length === 0) return { every: 'off' };
  const [every, ...more] = rest;
  const isRhythm = RHYTHMS.some((one) => one === every && one !== 'off');
  if (verb !== 'set' || !isRhythm || more.length > 0) {
    throw new UsageError('expected schedule show, off, or set hourly, daily or weekly');
  }
  const { at, weekday, keep } = values;
  return {
    every,
    ...(at === undefined ? {} : { at }),
    ...(weekday === undefined ? {} : { weekday }),
    ...(keep === undefined ? {} : { keep: readKeep(keep) }),
  };
}

/** `daily=7,weekly=4`; rules that are not named keep nothing. */
function readKeep(text: string): KeepRules {
  const keep: Record<Rule, number> = { last: 0, hourly: 0, daily: 0, weekly: 0, monthly: 0 };
  for (const part of text.split(',')) {
    const [, rule = '', count = ''] = /^(\w+)=(\d{1,4})$/.exec(part.trim()) ?? [];
    if (!RULES.some((one) => one === rule)) {
      throw new UsageError(
        `--keep must list rules such as daily=7,weekly=4 (${RULES.join(', ')}), not ${part}`,
      );
    }
    keep[rule as Rule] = Number(count);
  }
  return keep;
}

const textOf = (keep: KeepRules) => Object.entries(keep).map(([rule, count]) => [rule, String(count)]);

function sayKeep(keep: KeepRules): string {
  return RULES.filter((rule) => keep[rule] > 0)
    .map((rule) => `${keep[rule]} ${rule}`)
    .join(', ');
}

function sayRhythm({ every, at, weekday }: Pick<Schedule, 'every' | 'at' | 'weekday'>): string {
  if (every === 'hourly') return `hourly, ${Number(at.slice(3))} minutes past the hour`;
  return every === 'weekly' ? `weekly, on ${weekday} at ${at} UTC` : `daily, at ${at} UTC`;
}

function tell(now: RecoverySchedule): void {
  if (now.every === 'off') {
    console.log(
      'No recovery points are created automatically. To turn them on: cloudlet recovery schedule set daily',
    );
    return;
  }
  console.log(`${sayRhythm(now as Schedule)}${now.is_default ? ' (the default)' : ''}, in ${now.target}`);
  console.log(`keeps ${sayKeep(now.keep)}`);
  if (now.last_at !== null) console.log(`last: ${now.last_point_id}, taken at ${now.last_at} UTC`);
  if (now.failures > 0) {
    console.log(`failed ${now.failures === 1 ? 'once' : `${now.failures} times`}: ${now.failed_reason}`);
  }
  if (now.making_point_id !== null) console.log(`now: ${now.making_point_id}`);
  else if (now.next_at !== null) console.log(`next: ${now.next_at} UTC`);
  if (now.is_default_target) {
    console.log(
      'The recovery repository is in the data directory: a recovery point may use half of the free space',
    );
  }
}

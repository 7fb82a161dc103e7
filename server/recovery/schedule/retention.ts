/**
 * Decides which recovery points to keep. A rule such as `daily: 7` takes the days (UTC) with points, newest
 * first, and keeps each day's newest complete point. Days with no complete point keep the newest partial one,
 * or else a damaged one, but do not count towards the seven.
 */
import { type CallEntry, inFirstCommit } from '../../metadata/change.ts';
import type { Clock } from '../../platform/clock.ts';
import type { Removals } from '../points/removals.ts';
import type { Lease } from '../repository/lease.ts';
import { type PointRow, type RecoveryStore, SOUND } from '../store.ts';
import { DAY_MS, HOUR_MS, type KeepRules, RULES, type Rule } from './schedule.ts';

/** The facts that the rules need. */
export type Candidate = Pick<PointRow, 'point_id' | 'state' | 'gaps' | 'created_at' | 'scheduled_at'>;

/**
 * Why a point stays: a rule, or
 * - `newest_complete`, `newest_drilled`: whatever the rules say
 * - `by_hand`: the schedule did not make it
 * - `future`: its time is yet to come, because the clock was set back
 * - `unfinished`: it is being created, or deleted already
 * - `failed_lately`: it failed, or was cancelled, within a week
 */
export const REASONS = [
  ...RULES,
  'newest_complete',
  'newest_drilled',
  'by_hand',
  'future',
  'unfinished',
  'failed_lately',
] as const;
export type Reason = (typeof REASONS)[number];

const FAILED_MS = 7 * DAY_MS;

/** The kept points with all their reasons, by id. The others should be removed. `now`: ms. */
export function keepers(points: readonly Candidate[], rules: KeepRules, now: number): Map<string, Reason[]> {
  const kept = new Map<string, Reason[]>();
  const keep = (point: Candidate | undefined, reason: Reason) => {
    if (point === undefined) return;
    kept.set(point.point_id, [...(kept.get(point.point_id) ?? []), reason]);
  };
  const newestFirst = points.toSorted(
    (a, b) => b.created_at - a.created_at || (a.point_id < b.point_id ? 1 : -1),
  );
  const usable = newestFirst.filter((point) => worth(point) > 0 && point.created_at <= now);
  for (const rule of RULES) for (const point of keptBy(rule, usable, rules[rule])) keep(point, rule);
  keep(
    usable.find((point) => worth(point) === COMPLETE),
    'newest_complete',
  );
  keep(
    usable.find(({ state }) => state === 'drilled'),
    'newest_drilled',
  );
  for (const point of points) {
    if (point.scheduled_at === null) keep(point, 'by_hand');
    if (point.created_at > now) keep(point, 'future');
    if (point.state === 'creating' || point.state === 'deleting') keep(point, 'unfinished');
    const hasFailed = point.state === 'failed' || point.state === 'cancelled';
    if (hasFailed && now - point.created_at < FAILED_MS) keep(point, 'failed_lately');
  }
  return kept;
}

const COMPLETE = 3;

/** Complete, partial, damaged, or useless: 3 to 0. */
function worth({ state, gaps }: Candidate): number {
  if (SOUND.includes(state)) return gaps === '[]' ? COMPLETE : 2;
  return state === 'damaged' ? 1 : 0;
}

function keptBy(rule: Rule, newestFirst: readonly Candidate[], count: number): Candidate[] {
  const slots = new Map<string | number, Candidate>();
  for (const point of newestFirst) {
    const slot = SLOTS[rule](point);
    const best = slots.get(slot);
    if (best === undefined || worth(point) > worth(best)) slots.set(slot, point);
  }
  const best = [...slots.values()];
  const complete = best.filter((point) => worth(point) === COMPLETE).slice(0, count);
  return [...new Set([...complete, ...best.slice(0, count)])];
}

const SLOTS: Readonly<Record<Rule, (point: Candidate) => string | number>> = {
  last: ({ point_id: id }) => id,
  hourly: ({ created_at: at }) => Math.floor(at / HOUR_MS),
  daily: ({ created_at: at }) => Math.floor(at / DAY_MS),
  // Weeks begin on Monday; 1970 began on a Thursday.
  weekly: ({ created_at: at }) => Math.floor((at / DAY_MS + 3) / 7),
  monthly: ({ created_at: at }) => new Date(at).toISOString().slice(0, 7),
};

export interface RetentionDeps {
  readonly store: Pick<RecoveryStore, 'listAt'>;
  readonly removals: Pick<Removals, 'remove'>;
  readonly lease: Pick<Lease, 'during'>;
  readonly clock: Clock;
  /** Path of the target. */
  readonly location: string;
}

export interface RetentionPlan {
  /** Oldest first. */
  readonly stays: readonly { readonly row: PointRow; readonly reasons: readonly Reason[] }[];
  readonly goes: readonly PointRow[];
}

export class Retention {
  readonly #deps: RetentionDeps;

  constructor(deps: RetentionDeps) {
    this.#deps = deps;
  }

  /** Applies the rules without deleting anything. */
  async plan(rules: KeepRules): Promise<RetentionPlan> {
    const { store, location, clock } = this.#deps;
    const rows = await store.listAt(location);
    const kept = keepers(rows, rules, clock.now());
    const stays = rows.flatMap((row) => {
      const reasons = kept.get(row.point_id);
      return reasons === undefined ? [] : [{ row, reasons }];
    });
    return { stays, goes: rows.filter(({ point_id: id }) => !kept.has(id)) };
  }

  /**
   * Deletes the points that no rule keeps; each can be undeleted. The first deletion stores `entry`.
   * Throws `target_in_use`, `target_unavailable`.
   */
  async apply(rules: KeepRules, entry?: CallEntry): Promise<RetentionPlan> {
    const { removals, lease } = this.#deps;
    const plan = await this.plan(rules);
    if (plan.goes.length === 0) return plan;
    await lease.during(async () => {
      const inFirst = inFirstCommit(entry);
      for (const { point_id: id } of plan.goes) {
        // The entry is about the rules, so it names no single point.
        await inFirst((call) => removals.remove({ record: () => call.record(undefined) }, id));
      }
    });
    return plan;
  }
}

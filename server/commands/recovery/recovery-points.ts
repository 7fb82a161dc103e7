/** `cloudlet recovery` commands for the points of a cloud, over its control socket. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Config } from '../../config/config.ts';
import { plural } from '../../platform/plural.ts';
import type { DamagedFile } from '../../recovery/drill/verification.ts';
import { LASTING, type ShownState } from '../../recovery/store.ts';
import { formatSize } from '../../storage/listing/entries.ts';
import { UsageError, type Words } from '../command.ts';
import { askServer, asOperator, type CallAsOperator } from '../operator-call.ts';
import { Progress } from '../terminal.ts';

const ROOT = '/api/disaster-recovery';
const POINTS = `${ROOT}/points`;
export const POLL_MS = 500;

export interface Drill {
  readonly result: 'passed' | 'failed' | 'skipped';
  readonly started_at: string;
  readonly seconds: number;
  readonly reason: string | null;
  readonly checks: readonly { readonly name: string; readonly state: string; readonly detail: string }[];
}

export interface Point {
  readonly point_id: string;
  readonly state: ShownState;
  readonly state_reason: string | null;
  readonly percent: number;
  readonly verifying_percent: number | null;
  readonly deletes_at: string | null;
  readonly reclaim: 'by_operator' | null;
  readonly damaged_files: number;
  readonly damage: readonly DamagedFile[];
  readonly created_at: string;
  readonly completed_at: string | null;
  readonly verified_at: string | null;
  readonly drilled_at: string | null;
  readonly drilling: string | null;
  readonly drill: Drill | null;
  readonly contents: Readonly<Record<string, number>>;
  readonly size_bytes: number;
  readonly stored_bytes: number;
  readonly target: string;
  readonly gaps: readonly { readonly component: string; readonly reason: string }[];
}

export async function create(config: Config): Promise<number> {
  return askServer(config, async (call) => {
    let point = await call<Point>({ method: 'POST', path: POINTS });
    const bar = new Progress();
    while (point.state === 'creating') {
      bar.show(point.percent);
      await sleep(POLL_MS);
      point = await call<Point>({ method: 'GET', path: `${POINTS}/${point.point_id}` });
    }
    bar.end();
    const { point_id: id, size_bytes: size, stored_bytes: stored } = point;
    if (point.state !== 'complete' && point.state !== 'partial') {
      console.log(`${id} is ${point.state}: ${point.state_reason ?? 'the reason is unknown'}`);
      return 1;
    }
    console.log(
      `${id} is ${point.state}: ${formatSize(size)}, ${formatSize(stored)} new, in ${point.target}`,
    );
    tellGaps(point);
    await warn(call);
    return point.state === 'complete' ? 0 : 1;
  });
}

export async function list(config: Config): Promise<number> {
  const points = await asOperator(config, (call) => call<Point[]>({ method: 'GET', path: POINTS }));
  for (const { point_id, created_at, state, size_bytes, gaps } of points) {
    const lacks = gaps.length === 0 ? '' : `  lacks ${gaps.map(({ component }) => component).join(', ')}`;
    console.log(`${point_id}  ${created_at}  ${state}  ${formatSize(size_bytes)}${lacks}`);
  }
  if (points.length === 0)
    console.log('There are no recovery points yet. Create one with cloudlet recovery create');
  return 0;
}

/** Prints all details of one point, or of each. */
export async function get(config: Config, words: Words): Promise<number> {
  const points = await asOperator(config, async (call) => {
    const paths = await pathsOf(words, call);
    return Promise.all(paths.map((path) => call<Point>({ method: 'GET', path })));
  });
  for (const point of points) tellAll(point);
  return 0;
}

function tellAll(point: Point): void {
  const { point_id: id, state, state_reason: reason } = point;
  const counts = Object.entries(point.contents).map(([what, count]) => `${count} ${what}`);
  console.log(`${id} is ${state}${reason === null ? '' : `: ${reason}`}`);
  tell('taken at', point.created_at, ' UTC');
  tell('completed at', point.completed_at, ' UTC');
  tell('verified at', point.verified_at, ' UTC');
  tell('drilled at', point.drilled_at, ' UTC');
  tell('removed at', point.deletes_at, ' UTC');
  tell('size', `${formatSize(point.size_bytes)}, ${formatSize(point.stored_bytes)} new`);
  tell('contents', counts.join(', '));
  for (const { component, reason: why } of point.gaps) tell('not included', `${component} (${why})`);
  tell(
    'damaged',
    point.damaged_files === 0
      ? null
      : `${plural(point.damaged_files, 'file')}; list them with cloudlet recovery verify ${id}`,
  );
  tell('location', point.target);
}

function tell(what: string, value: string | null, unit = ''): void {
  if (value !== null && value !== '') console.log(`  ${what.padEnd(18)}${value}${unit}`);
}

export async function cancel(config: Config, words: Words): Promise<number> {
  const path = `${pathOfId(words)}/cancel`;
  const { point_id: id, state } = await askServer(config, (call) => call<Point>({ method: 'POST', path }));
  console.log(`${id} is ${state}`);
  return 0;
}

export async function remove(config: Config, words: Words): Promise<number> {
  const path = pathOfId(words);
  const point = await askServer(config, (call) => call<Point>({ method: 'DELETE', path }));
  console.log(`${point.point_id} is deleted; it can be undeleted until ${point.deletes_at} UTC`);
  if (point.reclaim !== null) {
    console.log('Cloudlet cannot free its space there; see cloudlet recovery removable');
  }
  return 0;
}

interface Removable {
  readonly files: readonly string[];
  readonly more: boolean;
}

/** Prints the files that the operator of the target must remove. */
export async function removable(config: Config): Promise<number> {
  const path = `${ROOT}/removable`;
  const { files, more } = await askServer(config, (call) => call<Removable>({ method: 'GET', path }));
  for (const file of files) console.log(file);
  if (more) console.error('There are more: remove these, then list again');
  return 0;
}

export async function undelete(config: Config, words: Words): Promise<number> {
  const path = `${pathOfId(words)}/undelete`;
  const { point_id: id, state } = await askServer(config, (call) => call<Point>({ method: 'POST', path }));
  console.log(`${id} was undeleted; it is ${state}`);
  return 0;
}

interface Checked {
  readonly points: number;
  readonly damaged_points: readonly string[];
  readonly removed_points: readonly string[];
  readonly removed_pieces: number;
  readonly freed_bytes: number;
  readonly unfinished_files: number;
  readonly blocked_by: readonly string[];
}

/** Reconciles the list with the target. */
export async function fsck(config: Config): Promise<number> {
  const path = `${ROOT}/check`;
  const checked = await askServer(config, (call) => call<Checked>({ method: 'POST', path }));
  const { removed_pieces: pieces, freed_bytes: freed, unfinished_files: unfinished } = checked;
  for (const id of checked.removed_points) console.log(`Removed ${id}`);
  if (unfinished > 0) console.log(`Removed ${plural(unfinished, 'incomplete file')} left behind by a crash`);
  console.log(`Removed ${plural(pieces, 'unreferenced piece')}: ${formatSize(freed)}`);
  for (const id of checked.damaged_points) {
    console.log(`${id} is damaged; list the damaged files with cloudlet recovery verify ${id}`);
  }
  for (const id of checked.blocked_by) {
    console.log(
      `The piece list of ${id} is damaged; no pieces are removed until that recovery point is deleted`,
    );
  }
  console.log(`${plural(checked.points, 'recovery point')}, ${checked.damaged_points.length} damaged`);
  return checked.damaged_points.length === 0 ? 0 : 1;
}

export function tellGaps({ gaps }: Pick<Point, 'gaps'>): void {
  for (const { component, reason } of gaps) console.log(`not included: ${component} (${reason})`);
}

/**
 * Path of the named point, of the one that `latest` selects, or of all that were ever complete
 * (`all`). Damaged points are included; points that failed or are being deleted are not.
 */
export async function pathsOf(words: Words, call: CallAsOperator): Promise<string[]> {
  const [, which = ''] = words.positionals;
  if (which === 'latest') {
    const { point_id: id } = await call<Point>({ method: 'GET', path: `${POINTS}/latest` });
    return [`${POINTS}/${id}`];
  }
  if (which !== 'all') return [pathOfId(words)];
  const points = await call<Point[]>({ method: 'GET', path: POINTS });
  const whole = points.filter(({ state }) => state === 'partial' || LASTING.includes(state));
  if (whole.length === 0) throw new Error('There is no complete recovery point');
  return whole.map(({ point_id: id }) => `${POINTS}/${id}`);
}

function pathOfId({ positionals: [verb, id] }: Words): string {
  if (id === undefined)
    throw new UsageError(`${verb} needs the ID of a recovery point; see cloudlet recovery list`);
  return `${POINTS}/${encodeURIComponent(id)}`;
}

/** `cloudlet recovery status`: whether this cloud could be restored if it were lost now. */
interface Recovery {
  readonly problem: string | null;
  readonly fix: string | null;
  readonly points: number;
  readonly newest_at: string | null;
  readonly latest: { readonly point_id: string; readonly created_at: string; readonly gaps: number } | null;
  readonly schedule: { readonly every: string; readonly next_at: string | null };
  readonly verified_at: string | null;
  readonly drilled_at: string | null;
  readonly key_taken: boolean | null;
  readonly free_bytes: number | null;
  readonly warnings: readonly { readonly code: string; readonly detail: string; readonly fix: string }[];
}

/** Exit code 1 if points cannot be created, or the last one failed. */
export async function status(config: Config): Promise<number> {
  return askServer(config, async (call) => {
    const found = await recoveryOf(call);
    const { points, newest_at: newest, latest, schedule, verified_at: verified, free_bytes: free } = found;
    console.log(
      `${plural(points, 'recovery point')} can be restored${newest === null ? '' : `; the newest was taken at ${newest} UTC`}`,
    );
    if (latest !== null && latest.gaps > 0) {
      const lacks = plural(latest.gaps, 'component');
      console.log(
        `No recovery point is complete: a restore would use ${latest.point_id}, which lacks ${lacks}`,
      );
    } else if (latest !== null && latest.created_at !== newest) {
      console.log(
        `The newest is partial: a restore would use ${latest.point_id} of ${latest.created_at} UTC instead`,
      );
    }
    if (schedule.next_at !== null) console.log(`The next one is due at ${schedule.next_at} UTC`);
    console.log(
      verified === null ? 'No recovery point has been verified' : `Last verified at ${verified} UTC`,
    );
    if (found.drilled_at !== null) console.log(`A restore drill last passed at ${found.drilled_at} UTC`);
    if (found.key_taken === true) console.log('An administrator has confirmed having the recovery key');
    if (free !== null) console.log(`${formatSize(free)} of free space in the recovery repository`);
    tellWarnings(found);
    if (found.problem !== null) console.log(`${found.problem}. Fix: ${found.fix}`);
    return found.problem === null ? 0 : 1;
  });
}

/** Prints the obstacles to a restore, with their fixes. */
async function warn(call: CallAsOperator): Promise<void> {
  tellWarnings(await recoveryOf(call));
}

function tellWarnings({ warnings }: Recovery): void {
  for (const { detail, fix } of warnings) console.log(`${detail}. Fix: ${fix}`);
}

async function recoveryOf(call: CallAsOperator): Promise<Recovery> {
  const { components } = await call<{ components: { recovery: Recovery } }>({
    method: 'GET',
    path: '/api/system/status',
  });
  return components.recovery;
}

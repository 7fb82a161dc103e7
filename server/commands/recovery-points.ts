/** What `cloudlet recovery` does with the points of a cloud, over its control socket. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Config } from '../config/config.ts';
import { formatSize } from '../storage/format-size.ts';
import { UsageError, type Words } from './command.ts';
import { askServer, asOperator } from './operator-call.ts';
import { Progress } from './progress.ts';
import { warn } from './recovery-status.ts';

const ROOT = '/api/disaster-recovery';
const POINTS = `${ROOT}/points`;
const POLL_MS = 500;

interface Point {
  readonly point_id: string;
  readonly state: string;
  readonly state_reason: string | null;
  readonly percent: number;
  readonly verifying_percent: number | null;
  readonly deletes_at: string | null;
  readonly damaged_files: number;
  readonly damage: readonly { readonly file: string; readonly problem: string; readonly needed_by: string }[];
  readonly created_at: string;
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
    if (point.state !== 'complete') {
      console.log(`${id} is ${point.state}: ${point.state_reason ?? 'no reason is known'}`);
      return 1;
    }
    console.log(
      `${id} is complete: ${formatSize(size)}, ${formatSize(stored)} of it new, in ${point.target}`,
    );
    for (const { component, reason } of point.gaps) console.log(`not in it: ${component} (${reason})`);
    await warn(call);
    return 0;
  });
}

export async function list(config: Config): Promise<number> {
  const points = await asOperator(config, (call) => call<Point[]>({ method: 'GET', path: POINTS }));
  for (const { point_id, created_at, state, size_bytes } of points) {
    console.log(`${point_id}  ${created_at}  ${state}  ${formatSize(size_bytes)}`);
  }
  if (points.length === 0)
    console.log('There is no recovery point yet: make one with cloudlet recovery create');
  return 0;
}

/** Reads every byte of a point and waits for the end. */
export async function verify(config: Config, words: Words): Promise<number> {
  const path = pathOf(words);
  return askServer(config, async (call) => {
    let point = await call<Point>({ method: 'POST', path: `${path}/verify` });
    const bar = new Progress();
    while (point.verifying_percent !== null) {
      bar.show(point.verifying_percent);
      await sleep(POLL_MS);
      point = await call<Point>({ method: 'GET', path });
    }
    bar.end();
    return tellVerdict(point);
  });
}

function tellVerdict({
  point_id: id,
  state,
  state_reason: reason,
  damage,
  damaged_files: count,
}: Point): number {
  for (const { file, problem, needed_by: needed } of damage) console.log(`${problem}: ${file} (${needed})`);
  if (count > damage.length) console.log(`and ${count - damage.length} more`);
  console.log(`${id} is ${state}${reason === null ? '' : `: ${reason}`}`);
  return reason === null && (state === 'verified' || state === 'drilled') ? 0 : 1;
}

export async function cancel(config: Config, words: Words): Promise<number> {
  const path = `${pathOf(words)}/cancel`;
  const { point_id: id, state } = await askServer(config, (call) => call<Point>({ method: 'POST', path }));
  console.log(`${id} is ${state}`);
  return 0;
}

export async function remove(config: Config, words: Words): Promise<number> {
  const path = pathOf(words);
  const point = await askServer(config, (call) => call<Point>({ method: 'DELETE', path }));
  console.log(`${point.point_id} is deleted; until ${point.deletes_at} UTC it can be had back`);
  return 0;
}

export async function undelete(config: Config, words: Words): Promise<number> {
  const path = `${pathOf(words)}/undelete`;
  const { point_id: id, state } = await askServer(config, (call) => call<Point>({ method: 'POST', path }));
  console.log(`${id} is back: ${state}`);
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

/** Puts the target in order. */
export async function fsck(config: Config): Promise<number> {
  const path = `${ROOT}/check`;
  const checked = await askServer(config, (call) => call<Checked>({ method: 'POST', path }));
  const { removed_pieces: pieces, freed_bytes: freed, unfinished_files: unfinished } = checked;
  for (const id of checked.removed_points) console.log(`${id} is removed`);
  if (unfinished > 0) console.log(`${unfinished} unfinished files of a kill are removed`);
  console.log(`${pieces} pieces that no point needs are removed: ${formatSize(freed)}`);
  for (const id of checked.damaged_points) {
    console.log(`${id} is damaged: cloudlet recovery verify ${id} names what is`);
  }
  for (const id of checked.blocked_by) {
    console.log(`The list of what ${id} needs is damaged: nothing is removed before that point is deleted`);
  }
  console.log(`${checked.points} points, ${checked.damaged_points.length} of them damaged`);
  return checked.damaged_points.length === 0 ? 0 : 1;
}

function pathOf({ positionals: [verb, id] }: Words): string {
  if (id === undefined)
    throw new UsageError(`${verb} needs the id of a point; cloudlet recovery list has them`);
  return `${POINTS}/${encodeURIComponent(id)}`;
}

/** `cloudlet recovery verify`: reads every byte of one or all points, with or without a running cloud. */
import { setTimeout as sleep } from 'node:timers/promises';
import { targetAt } from '../../cloud/recovery-target.ts';
import type { Config } from '../../config/config.ts';
import { plural } from '../../platform/plural.ts';
import { type DamagedFile, PieceSet, verifyPoint } from '../../recovery/drill/verification.ts';
import { verifyLogs } from '../../recovery/logs/log-verification.ts';
import { findPoint } from '../../recovery/points/restore.ts';
import { Repository } from '../../recovery/repository/repository.ts';
import { unlockRepository } from '../../recovery/repository/repository-head.ts';
import type { Target } from '../../recovery/repository/target.ts';
import type { Words } from '../command.ts';
import { askServer, type CallAsOperator } from '../operator-call.ts';
import { givenRecoveryKey, Progress } from '../terminal.ts';
import { POLL_MS, type Point, pathsOf, tellGaps } from './recovery-points.ts';
import { tellFound } from './recovery-restore.ts';

/** Waits for the end. Exit code 1 when something is missing or damaged. */
export async function verify(config: Config, words: Words): Promise<number> {
  const { from } = words.values;
  return from === undefined ? verifyHere(config, words) : verifyThere(targetAt(from, config), words);
}

async function verifyHere(config: Config, words: Words): Promise<number> {
  return askServer(config, async (call) => {
    let code = 0;
    const { verified_at: before } = await logsHere(call);
    for (const path of await pathsOf(words, call)) {
      let point = await call<Point>({ method: 'POST', path: `${path}/verify` });
      const bar = new Progress();
      while (point.verifying_percent !== null) {
        bar.show(point.verifying_percent);
        await sleep(POLL_MS);
        point = await call<Point>({ method: 'GET', path });
      }
      bar.end();
      const { point_id: id, state, state_reason: reason } = point;
      tellDamage(point.damage, point.damaged_files);
      tellGaps(point);
      console.log(`${id} is ${state}${reason === null ? '' : `: ${reason}`}`);
      if (reason !== null || !['verified', 'drilled', 'partial'].includes(state)) code = 1;
    }
    const logs = await logsHere(call);
    // Logs are read with the newest recovery point.
    if (logs.verified_at !== before && !tellLogs(logs)) code = 1;
    return code;
  });
}

interface ArchivedLogs {
  readonly verified_at: string | null;
  readonly servers: number;
  readonly base_copies: number;
  readonly log_parts: number;
  readonly damaged_files: number;
  readonly damage: readonly DamagedFile[];
}

function logsHere(call: CallAsOperator): Promise<ArchivedLogs> {
  return call<ArchivedLogs>({ method: 'GET', path: '/api/disaster-recovery/archived-logs' });
}

/** True: nothing is damaged. */
function tellLogs(found: Omit<ArchivedLogs, 'verified_at'>): boolean {
  const { servers, base_copies: bases, log_parts: parts, damaged_files: count, damage } = found;
  if (servers === 0) return true;
  tellDamage(damage, count);
  const copies = bases === 1 ? '1 base copy' : `${bases} base copies`;
  const read = `${copies} and ${plural(parts, 'part')} of the logs of ${plural(servers, 'database server')}`;
  const isIntact = count === 0;
  console.log(
    isIntact ? `${read} are intact` : `${plural(count, 'file')} of archived logs missing or damaged`,
  );
  return isIntact;
}

/** Read-only: writes nothing there and informs no cloud. */
async function verifyThere(
  target: Target,
  { positionals: [, id = 'latest'], values }: Words,
): Promise<number> {
  const keys = await unlockRepository(target, await givenRecoveryKey(values['key-file']));
  const repository = new Repository(target, keys);
  const there = await pointsThere(repository);
  const chosen = id === 'all' ? there : [await pointThere(repository, id)];
  if (chosen.length === 0) throw new Error('The recovery repository has no recovery points');
  const sound = new PieceSet();
  const bar = new Progress();
  let code = 0;
  for (const pointId of chosen) {
    const { damage, damagedFiles } = await verifyPoint({
      repository,
      pointId,
      signal: new AbortController().signal,
      sound,
      onProgress: ({ bytes, totalBytes }) => bar.show((bytes / Math.max(1, totalBytes)) * 100),
    });
    bar.end();
    tellDamage(damage, damagedFiles);
    const damaged = `${damagedFiles} ${damagedFiles === 1 ? 'file is' : 'files are'} missing or damaged`;
    console.log(`${pointId}: ${damagedFiles === 0 ? 'all data is intact' : damaged}`);
    if (damagedFiles > 0) code = 1;
  }
  const { signal } = new AbortController();
  const logs = await verifyLogs({ repository, heads: [], signal, sound });
  const { servers, bases: base_copies, parts: log_parts, damagedFiles: damaged_files, damage } = logs;
  if (!tellLogs({ servers, base_copies, log_parts, damaged_files, damage })) code = 1;
  const others = there.filter((one) => !chosen.includes(one)).length;
  const read = others === 1 ? 'recovery point was' : 'recovery points were';
  if (others > 0) console.log(`${others} other ${read} not read; to verify more, pass an ID or all`);
  return code;
}

async function pointThere(repository: Repository, wanted: string): Promise<string> {
  const found = await findPoint(repository, wanted);
  tellFound(found);
  return found.manifest.point_id;
}

/** Points that are not deleted, oldest first. */
async function pointsThere(repository: Repository): Promise<string[]> {
  const deleted = await repository.deleted();
  return (await repository.points()).filter((id) => !deleted.includes(id));
}

function tellDamage(damage: readonly DamagedFile[], count: number): void {
  for (const { file, problem, needed_by: needed } of damage) console.log(`${problem}: ${file} (${needed})`);
  if (count > damage.length) console.log(`and ${count - damage.length} more`);
}

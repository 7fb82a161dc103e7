/**
 * The words of alarms that a caller sees. Everybody may read the status, and an alarm may repeat what the
 * server of an account said, or name its databases. Administrators see all of it, an account what is about
 * itself, and others only words that are about the host.
 */
import type { Alarm, Alarms } from '../platform/alarms.ts';

export interface Viewer {
  /** 0: nobody. */
  readonly accountId: number;
  readonly seesAll: boolean;
}

/** Alarms whose words count things and name nothing that is an account's. A new one is not told at first. */
const OF_THE_HOST: ReadonlySet<string> = new Set([
  'blob_fsync_failed',
  'blob_thread_died',
  'blobs_full',
  'blobs_unreachable',
  'damaged_objects',
  'databases_not_moved',
  'few_files_left',
  'machines_wait_for_room',
  'metadata_log_stuck',
  'metadata_out_of_space',
  'metadata_taken_over',
  'metadata_unreachable',
  'metadata_write_failed',
  'mongodb_port_changed',
  'mongodb_unavailable',
  'out_of_space',
  'recovery_drill_overdue',
  'recovery_logs_damaged',
  'recovery_point_overdue',
  'recovery_points_damaged',
]);

/** A code that ends with the name of a database. */
const NAMED = /^(mongodb_login_damaged)_.*$/;

export function toldTo({ accountId, seesAll }: Viewer, alarms: Pick<Alarms, 'list' | 'ofAccount'>): Alarm[] {
  return alarms.list().map((alarm) => {
    if (seesAll || OF_THE_HOST.has(alarm.code)) return alarm;
    const own = accountId === 0 ? undefined : alarms.ofAccount(alarm.code, accountId);
    const { since } = alarm;
    const code = alarm.code.replace(NAMED, '$1');
    return { code, since, ...(own ?? HIDDEN) };
  });
}

const HIDDEN = {
  detail: 'A fault whose details only administrators see',
  fix: 'The operator sees how to fix the problem',
};

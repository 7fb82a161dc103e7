/**
 * The texts of alarms that a caller may see. Everybody may read the status, and an alarm may repeat
 * a message of an account's server, or name its databases. Administrators see all of it, an account
 * the alarms about itself, and others only texts about the host.
 */
import type { Alarms, ToldAlarm } from '../platform/alarms.ts';
import type { Membership } from '../platform/membership.ts';

/** An alarm of this process, or of a node of the cluster. */
export interface CloudAlarm extends ToldAlarm {
  /** Name of the node; null for a cloud of one process. */
  readonly node: string | null;
}

/** Current alarms of this process, and those of other live nodes as of their last heartbeats. */
export function alarmsOfAll(alarms: Pick<Alarms, 'told'>, membership: Membership): CloudAlarm[] {
  const nodes = membership.nodes();
  const own = nodes.find(({ runId }) => runId === membership.runId)?.name ?? null;
  const others = nodes.filter(({ runId, state }) => {
    return runId !== membership.runId && (state === 'up' || state === 'draining');
  });
  return [
    ...alarms.told().map((alarm) => ({ ...alarm, node: own })),
    ...others.flatMap(({ name, alarms: told }) => told.map((alarm) => ({ ...alarm, node: name }))),
  ];
}

export interface Viewer {
  /** 0: nobody. */
  readonly accountId: number;
  readonly seesAll: boolean;
}

/** Alarms whose text has only counts and nothing of an account. New ones are private by default. */
const OF_THE_HOST: ReadonlySet<string> = new Set([
  'blob_fsync_failed',
  'blob_thread_died',
  'blobs_full',
  'blobs_unreachable',
  'damaged_objects',
  'databases_not_moved',
  'few_files_left',
  'machines_may_not_grow',
  'machines_wait_for_room',
  'metadata_log_stuck',
  'metadata_out_of_space',
  'metadata_read_only',
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

/** A code that ends with a database name. */
const NAMED = /^(mongodb_login_damaged)_.*$/;

/** The alarms as the caller may see them. Node names, often host names, are for administrators. */
export function toldTo({ accountId, seesAll }: Viewer, alarms: readonly CloudAlarm[]) {
  return alarms.map(({ accounts = {}, ...alarm }) => {
    if (seesAll) return alarm;
    const seen = { ...alarm, node: null };
    if (OF_THE_HOST.has(alarm.code)) return seen;
    const own = accountId === 0 ? undefined : accounts[accountId];
    return { ...seen, code: alarm.code.replace(NAMED, '$1'), ...(own ?? HIDDEN) };
  });
}

const HIDDEN = {
  detail: 'A fault whose details only administrators see',
  fix: 'The operator sees how to fix the problem',
};

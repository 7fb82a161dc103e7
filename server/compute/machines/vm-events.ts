/** What is told of a machine whose state changed. */
import type { Statement } from '../../metadata/metadata.ts';
import type { VmRow } from './vm-store.ts';

export interface VmAnnouncement {
  readonly accountId: number;
  readonly type: 'vm.started' | 'vm.stopped' | 'vm.failed' | 'vm.deleted';
  readonly data: Readonly<Record<string, unknown>>;
  /** ms since 1970. */
  readonly at: number;
}

export type Announce = (announcement: VmAnnouncement) => readonly Statement[];

/** undefined: the change is not worth telling, or a step on the way to one that is. */
export function announcement(before: VmRow, after: VmRow, at: number): VmAnnouncement | undefined {
  const type = typeOf(before, after);
  if (type === undefined) return undefined;
  const { account_id, vm_id, name, instance_type, region, reason_code } = after;
  const state = after.state === 'deleting' ? 'deleted' : after.state;
  const reason = reason_code === null ? null : { code: reason_code, message: after.reason_message };
  const data = { vm_id, name, instance_type, region, state, ip_address: before.address, reason };
  return { accountId: account_id, type, data, at };
}

function typeOf(before: VmRow, after: VmRow): VmAnnouncement['type'] | undefined {
  if (after.state === 'running') return after.started_at === before.started_at ? undefined : 'vm.started';
  if (after.state === before.state) return undefined;
  if (after.state === 'deleting') return 'vm.deleted';
  if (after.state === 'error') return 'vm.failed';
  // Back to where it was before a start that was not possible.
  if (before.state === 'starting' && after.state !== 'stopping') return 'vm.failed';
  // The host went down under it.
  if (before.state === 'running' && after.state === 'starting') return 'vm.stopped';
  // One that was never started is merely put away.
  return after.state === 'stopped' && before.state !== 'created' ? 'vm.stopped' : undefined;
}

/** What is told of a database whose state changed. */
import type { Statement } from '../metadata/metadata.ts';
import type { DatabaseRow } from './store.ts';

export interface DatabaseAnnouncement {
  readonly accountId: number;
  readonly type: `database.${'created' | 'deleted' | 'read_only' | 'suspended' | 'resumed' | 'failed'}`;
  readonly data: Readonly<Record<string, unknown>>;
  /** ms since 1970. */
  readonly at: number;
}

export type Announce = (announcement: DatabaseAnnouncement) => readonly Statement[];

/** undefined: the change is not worth telling. */
export function announcement(
  before: DatabaseRow,
  after: DatabaseRow,
  at: number,
): DatabaseAnnouncement | undefined {
  const type = typeOf(before, after);
  if (type === undefined) return undefined;
  const { account_id, database_id, name, engine, region, size_limit_bytes, reason_code } = after;
  const state = after.state === 'deleting' ? 'deleted' : after.state;
  const reason = reason_code === null ? null : { code: reason_code, message: after.reason_message };
  const size_limit_mb = Math.floor(size_limit_bytes / 2 ** 20);
  const data = { database_id, name, engine, region, state, size_limit_mb, reason };
  return { accountId: account_id, type, data, at };
}

function typeOf(before: DatabaseRow, after: DatabaseRow): DatabaseAnnouncement['type'] | undefined {
  if (before.state === after.state) return undefined;
  if (after.state === 'deleting') return before.state === 'creating' ? undefined : 'database.deleted';
  if (after.state === 'read_only') return 'database.read_only';
  if (after.state === 'suspended') return 'database.suspended';
  if (after.state === 'error') return 'database.failed';
  // Deleted and had back, it begins again.
  return before.state === 'creating' || before.state === 'deleting' ? 'database.created' : 'database.resumed';
}

/** SQL of what must be so in a restored cloud before its first start. */
import { RESTORED } from '../billing/metering/steady-clock.ts';
import type { Statement } from '../metadata/metadata.ts';
import { RECOVERY_KEY, WRITER } from './store.ts';

/** More than are made in the time that a point may be old. */
const SKIPPED_ACCOUNTS = 10_000;

/** ms since 1970. */
interface RestoreTimes {
  readonly now: number;
  readonly cut: number;
}

/**
 * What must be so before a restored cloud starts for the first time. Sessions are over; nobody is told of
 * what happened before; machines do not run, and the time in between is not charged; numbers of accounts
 * that were made after the point are not given again. Databases are loaded from their dumps, which `dumps`
 * has the bytes of, by id (databases/refill.ts). `cut`: the moment of the point, ms.
 */
export function afterRestore({ now, cut }: RestoreTimes, dumps: ReadonlyMap<string, number>): Statement[] {
  const restored = 'It ran when the recovery point was made';
  return [
    'DELETE FROM sessions',
    'DELETE FROM recovery_holds',
    'DELETE FROM recovery_points',
    // Its folders have no marks yet.
    'UPDATE identity SET starts = 0',
    // The cloud that was lost may live: this one writes under a name of its own (lease.ts). Whoever restored
    // it had the recovery key.
    `DELETE FROM secrets WHERE name IN ('${WRITER}', '${RECOVERY_KEY}')`,
    `UPDATE webhook_deliveries SET state = 'failed', next_at = NULL, reason = 'The cloud was restored'
     WHERE state = 'pending'`,
    'UPDATE webhook_events SET is_pending = 0 WHERE is_pending = 1',
    `UPDATE sqlite_sequence SET seq = seq + ${SKIPPED_ACCOUNTS} WHERE name = 'accounts'`,
  ]
    .map((sql): Statement => ({ sql, params: [] }))
    .concat(
      {
        // It was written down each minute; in its first minute a cloud goes with the wall clock.
        sql: `INSERT INTO steady_clock (id, boot_id, uptime_ms, wall_ms, steady_ms) VALUES (1, ?, 0, ?, ?)
              ON CONFLICT (id) DO UPDATE SET boot_id = excluded.boot_id, wall_ms = excluded.wall_ms,
                steady_ms = steady_ms + max(0, min(excluded.wall_ms - wall_ms, 60000))`,
        params: [RESTORED, cut, cut],
      },
      {
        sql: `UPDATE vms SET state = 'stopping', desired_state = 'stopped', reason_code = 'restored',
                reason_message = ?, generation = generation + 1
              WHERE state IN ('starting', 'running', 'stopping')`,
        params: [restored],
      },
      ...databasesAfterRestore(now, dumps),
    );
}

/** Engines have none of them yet. */
function databasesAfterRestore(now: number, dumps: ReadonlyMap<string, number>): Statement[] {
  const error = `UPDATE databases SET state = 'error', reason_code = ?, reason_message = ?, state_changed_at = ?`;
  return [
    {
      sql: `UPDATE databases SET is_dropped = 1, kept_dump_bytes =
              (SELECT value FROM json_each(?) WHERE key = database_id)
            WHERE state <> 'creating'`,
      params: [JSON.stringify(Object.fromEntries(dumps))],
    },
    {
      sql: `${error} WHERE state IN ('ready', 'read_only', 'error') AND kept_dump_bytes IS NOT NULL`,
      params: ['restoring', 'It is being loaded from the recovery point', now],
    },
    {
      sql: `${error}, applied = generation
            WHERE state IN ('ready', 'read_only', 'suspended', 'error') AND kept_dump_bytes IS NULL`,
      params: [
        'not_in_point',
        'It could not be read when the recovery point was made: delete it, or restore an older point',
        now,
      ],
    },
    {
      sql: `UPDATE databases SET generation = generation + 1
            WHERE state IN ('error', 'suspended') AND kept_dump_bytes IS NOT NULL`,
      params: [],
    },
  ];
}

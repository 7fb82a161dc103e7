/** SQL that prepares a restored cloud for its first start. */
import { RESTORED } from '../../billing/metering/steady-clock.ts';
import { skipNextAccountIds } from '../../metadata/account-ids.ts';
import { FORGET_BLOB_LOCATION } from '../../metadata/blob-location-store.ts';
import type { Statement } from '../../metadata/metadata.ts';
import { RECOVERY_KEY, WRITER } from '../store.ts';

/** Exceeds the number of ids assigned within the age of a point. */
const SKIPPED_ACCOUNTS = 10_000;

/** ms since 1970. */
interface RestoreTimes {
  readonly now: number;
  readonly cut: number;
}

/**
 * Prepares a restored cloud for its first start. Sessions, set-up links and reset links end;
 * pending webhook events and mails are dropped; machines are stopped, and the time in between is
 * not charged; ids of accounts created after the point are not reused. Databases are loaded from
 * their dumps, whose sizes are in `dumps`, by id (databases/refill.ts). `cut`: the time of the
 * point, ms.
 */
export function afterRestore({ now, cut }: RestoreTimes, dumps: ReadonlyMap<string, number>): Statement[] {
  const restored = 'The virtual machine was running when the recovery point was created';
  return [
    'DELETE FROM sessions',
    'DELETE FROM setup_links',
    // Otherwise a link that was used since the point could be used again.
    `UPDATE invitations SET revoked_at = ${now} WHERE revoked_at IS NULL`,
    'DELETE FROM recovery_holds',
    'DELETE FROM recovery_points',
    FORGET_BLOB_LOCATION,
    // The restored folders have no marks yet.
    'UPDATE identity SET starts = 0',
    // The lost cloud may still run: this one writes under its own name (lease.ts). The person who
    // restores has the recovery key.
    `DELETE FROM secrets WHERE name IN ('${WRITER}', '${RECOVERY_KEY}')`,
    `UPDATE webhook_deliveries SET state = 'failed', next_at = NULL, reason = 'The cloud was restored'
     WHERE state = 'pending'`,
    'UPDATE webhook_events SET is_pending = 0 WHERE is_pending = 1',
    `UPDATE mails SET state = 'failed', next_at = NULL, sealed = NULL, reason = 'The cloud was restored'
     WHERE state IN ('asked', 'pending')`,
  ]
    .map((sql): Statement => ({ sql, params: [] }))
    .concat(
      skipNextAccountIds(SKIPPED_ACCOUNTS),
      {
        // Restarts at the point's time: in its first minute a cloud follows the wall clock.
        sql: `INSERT INTO steady_clock (id, boot_id, uptime_ms, wall_ms, steady_ms) VALUES (1, ?, 0, ?, ?)
              ON CONFLICT (id) DO UPDATE SET boot_id = excluded.boot_id, wall_ms = excluded.wall_ms,
                steady_ms = steady_clock.steady_ms + CASE
                  WHEN excluded.wall_ms < steady_clock.wall_ms THEN 0
                  WHEN excluded.wall_ms > steady_clock.wall_ms + 60000 THEN 60000
                  ELSE excluded.wall_ms - steady_clock.wall_ms END`,
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

/** Engines have no databases yet. */
function databasesAfterRestore(now: number, dumps: ReadonlyMap<string, number>): Statement[] {
  const error = `UPDATE databases SET state = 'error', reason_code = ?, reason_message = ?, state_changed_at = ?`;
  return [
    {
      sql: `UPDATE databases SET is_dropped = 1, kept_dump_bytes =
              (SELECT CAST(value AS BIGINT) FROM json_each(?) WHERE key = database_id)
            WHERE state <> 'creating'`,
      params: [JSON.stringify(Object.fromEntries(dumps))],
    },
    {
      sql: `${error} WHERE state IN ('ready', 'read_only', 'error') AND kept_dump_bytes IS NOT NULL`,
      params: ['restoring', 'The database is being loaded from the recovery point', now],
    },
    {
      sql: `${error}, applied = generation
            WHERE state IN ('ready', 'read_only', 'suspended', 'error') AND kept_dump_bytes IS NULL`,
      params: [
        'not_in_point',
        'The database could not be read when the recovery point was created: delete it, or restore an older point',
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

/** The settings of recovery points, drills and continuous protection. */
import { absolutePath, integer, pathOrS3Url, text } from './setting-kinds.ts';

export const RECOVERY_SETTINGS = {
  recoveryTarget: text(
    'CLOUDLET_RECOVERY_TARGET',
    '',
    'Where recovery points are stored: a directory on another disk or NFS, or a bucket of an S3 service, `s3://KEY:SECRET@HOST[:PORT]/BUCKET[/PREFIX]`, with `?region=`, `tls=off` and `style=host` where needed; empty: in the data directory',
    pathOrS3Url,
  ),
  recoveryCredentialsFile: text(
    'CLOUDLET_RECOVERY_CREDENTIALS_FILE',
    '',
    'File with `KEY:SECRET` for an S3 URL in CLOUDLET_RECOVERY_TARGET or `--from`, which then needs no credentials',
    absolutePath,
  ),
  recoveryLockDays: integer(
    'CLOUDLET_RECOVERY_LOCK_DAYS',
    0,
    0,
    3650,
    'Days for which object lock keeps a new recovery point in an S3 bucket from being removed; 0: the default retention of the bucket, if it has one',
  ),
  recoveryUndeleteHours: integer(
    'CLOUDLET_RECOVERY_UNDELETE_HOURS',
    72,
    0,
    24 * 365,
    'How long a deleted recovery point can be undeleted; counted while Cloudlet runs',
  ),
  recoveryLeaseSeconds: integer(
    'CLOUDLET_RECOVERY_LEASE_SECONDS',
    60,
    1,
    3600,
    'Lease on the recovery repository: after this long without a renewal another Cloudlet may write to it',
  ),
  recoveryJournalSeconds: integer(
    'CLOUDLET_RECOVERY_JOURNAL_SECONDS',
    60,
    1,
    86_400,
    'How often the list of valid keys and passwords is stored beside the points, so that a restore revokes all others',
  ),
  recoveryBytesPerSecond: integer(
    'CLOUDLET_RECOVERY_BYTES_PER_SECOND',
    0,
    0,
    2 ** 40,
    'Read rate limit while a recovery point is made; 0: none',
  ),
  recoveryDumpMinutes: integer(
    'CLOUDLET_RECOVERY_DUMP_MINUTES',
    60,
    1,
    100_000,
    'Timeout of a database dump for a recovery point; the point is then created without the dump, and marked as partial',
  ),
  recoverySilenceSeconds: integer(
    'CLOUDLET_RECOVERY_SILENCE_SECONDS',
    60,
    1,
    100_000,
    'How long a database dump for a recovery point may stall, for example on a table lock',
  ),
  continuousSeconds: integer(
    'CLOUDLET_CONTINUOUS_SECONDS',
    30,
    0,
    3600,
    'How often the logs of PostgreSQL servers are archived in CLOUDLET_RECOVERY_TARGET, so that databases can be restored as of any moment; 0: never',
  ),
  continuousDays: integer('CLOUDLET_CONTINUOUS_DAYS', 7, 1, 365, 'How long archived logs are kept'),
  drillDirectory: text(
    'CLOUDLET_DRILL_DIR',
    '',
    'Directory for restore drills, which need as much space as metadata, databases and one disk; empty: in the data directory',
    absolutePath,
  ),
  drillDays: integer(
    'CLOUDLET_DRILL_DAYS',
    7,
    0,
    3650,
    'Days between restore drills of the newest recovery point; 0: only on request',
  ),
  drillMinutes: integer('CLOUDLET_DRILL_MINUTES', 120, 1, 100_000, 'Time limit of a restore drill'),
} as const;

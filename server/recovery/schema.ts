/** Public schemas of recovery points. */
import { namedObject, type Static, Type, textOrNull } from '../platform/json/json-schema.ts';
import { REASONS } from './schedule/retention.ts';
import { RHYTHMS, type RULES, WEEKDAYS } from './schedule/schedule.ts';
import { POINT_STATES } from './store.ts';

const Gap = namedObject('RecoveryGap', { component: Type.String(), reason: Type.String() });

const Drill = namedObject('RecoveryDrill', {
  result: Type.String({
    enum: ['passed', 'failed', 'skipped'],
    description: '`skipped`: the check is not possible on this host; `reason` says why',
  }),
  started_at: Type.String(),
  seconds: Type.Number({ description: 'Duration of the drill' }),
  reason: textOrNull('Reason for the failure or skip'),
  checks: Type.Array(
    namedObject('RecoveryDrillCheck', {
      name: Type.String({ description: 'Name of the check' }),
      state: Type.String({ enum: ['passed', 'failed', 'skipped'] }),
      detail: Type.String({ description: 'Findings, differences, or the reason for the skip' }),
    }),
  ),
});

export const Point = namedObject('RecoveryPoint', {
  point_id: Type.String(),
  state: Type.String({
    enum: [...POINT_STATES, 'partial'],
    description:
      '`partial`: some data is missing and listed in `gaps`; the rest is complete, verified or drilled',
  }),
  state_reason: textOrNull('Why the point failed, is damaged, or could not be verified'),
  percent: Type.Number({ description: 'Progress of the creation' }),
  verifying_percent: Type.Union([Type.Number(), Type.Null()], {
    description: 'Progress of the verification; null if the point is not being verified',
  }),
  created_at: Type.String({ description: 'Time of the snapshot' }),
  scheduled_at: textOrNull(
    'Scheduled time; null: created by hand or undeleted, so no keep rule removes the point',
  ),
  completed_at: textOrNull('null if not complete'),
  verified_at: textOrNull('When the point was last verified successfully'),
  drilled_at: textOrNull('When a restore drill last passed'),
  drilling: textOrNull('Stage of the running restore drill; null if none is running'),
  drill: Type.Union([Drill, Type.Null()], { description: 'The last restore drill; null: none yet' }),
  size_bytes: Type.Integer({ description: 'Total size' }),
  stored_bytes: Type.Integer({ description: 'Bytes that this point added to the target' }),
  contents: Type.Record(Type.String(), Type.Integer(), { description: 'Number of resources of each kind' }),
  gaps: Type.Array(Gap, {
    description: 'Data missing from the point',
  }),
  manifest_sha256: textOrNull('SHA-256 of the manifest as stored'),
  damaged_files: Type.Integer({ description: 'Damaged files in the target, found by the last verification' }),
  damage: Type.Array(
    namedObject('DamagedComponent', {
      file: Type.String({ description: 'Path in the target' }),
      problem: Type.String({ enum: ['missing', 'altered', 'unreadable'] }),
      needed_by: Type.String({ description: 'First file of the cloud that needs the damaged file' }),
    }),
    { description: 'The first 1,000 damaged components' },
  ),
  target: Type.String({ description: 'Path of the recovery target' }),
  deletes_at: textOrNull('When a deleted point is removed permanently'),
  reclaim: Type.Union([Type.String({ enum: ['by_operator'] }), Type.Null()], {
    description:
      '`by_operator`: Cloudlet cannot free the space of this deleted point, because its credentials may not remove ' +
      'objects or the bucket keeps versions; null otherwise',
  }),
});
export type Point = Static<typeof Point>;

const damage = Point.properties.damage;
export const ArchivedLogs = namedObject('ArchivedLogs', {
  verified_at: textOrNull('Last verification, with the newest recovery point; null: never'),
  servers: Type.Integer({ description: 'Number of database servers with an archived log' }),
  base_copies: Type.Integer(),
  log_parts: Type.Integer(),
  size_bytes: Type.Integer({ description: 'Bytes of base copies and logs, uncompressed' }),
  unread_files: Type.Integer({ description: 'Files not read within the time limit of a drill' }),
  damaged_files: Type.Integer(),
  damage,
});
export type ArchivedLogs = Static<typeof ArchivedLogs>;

export const PointPath = Type.Object({ point_id: Type.String({ $id: 'PointId' }) });

export const NewPointQuery = Type.Object({
  wait: Type.Optional(
    Type.Integer({
      minimum: 0,
      maximum: 600,
      description: 'Seconds to wait for the end before responding',
    }),
  ),
});

export const VerifyQuery = Type.Object({
  wait: Type.Optional(
    Type.Integer({
      minimum: 0,
      maximum: 600,
      description: 'Seconds to wait for the end before responding',
    }),
  ),
});

/** The same as VerifyQuery. */
export const DrillQuery = VerifyQuery;

export const DrillBody = namedObject('RecoveryDrillRequest', {
  recovery_key: Type.Optional(
    Type.String({
      maxLength: 200,
      description: 'Recovery key; the drill tests whether it opens the repository',
    }),
  ),
});

export const RecoveryKey = namedObject('RecoveryKey', {
  recovery_key: Type.Optional(Type.String({ description: 'Store the recovery key outside this cloud' })),
  taken: Type.Boolean({ description: 'Whether an administrator has confirmed the key' }),
});
export type RecoveryKey = Static<typeof RecoveryKey>;

export const KeyProof = namedObject('RecoveryKeyProof', { recovery_key: Type.String({ maxLength: 200 }) });

export const Checked = namedObject('RecoveryCheck', {
  points: Type.Integer({ description: 'Points in the list' }),
  damaged_points: Type.Array(Type.String(), { description: 'Ids of the damaged points' }),
  removed_points: Type.Array(Type.String(), {
    description: 'Deleted points removed after their grace period',
  }),
  removed_pieces: Type.Integer({ description: 'Removed pieces that no point references' }),
  freed_bytes: Type.Integer(),
  unfinished_files: Type.Integer({
    description: 'Removed partial files of a killed process',
  }),
  blocked_by: Type.Array(Type.String(), {
    description: 'Points with a damaged index; nothing is removed until they are deleted',
  }),
});
export type Checked = Static<typeof Checked>;

const SAYS: Readonly<Record<(typeof RULES)[number], string>> = {
  last: 'Number of newest points that are kept',
  hourly: 'Number of hours; the newest point of each hour is kept',
  daily: 'Number of days; the newest point of each day is kept',
  weekly: 'Number of weeks, from Monday; the newest point of each week is kept',
  monthly: 'Number of months; the newest point of each month is kept',
};
const rule = (name: (typeof RULES)[number]) =>
  Type.Integer({ minimum: 0, maximum: 1000, description: SAYS[name] });
const rules = {
  last: rule('last'),
  hourly: rule('hourly'),
  daily: rule('daily'),
  weekly: rule('weekly'),
  monthly: rule('monthly'),
};
export const OptionalRules = {
  last: Type.Optional(rules.last),
  hourly: Type.Optional(rules.hourly),
  daily: Type.Optional(rules.daily),
  weekly: Type.Optional(rules.weekly),
  monthly: Type.Optional(rules.monthly),
};
const KeepRules = namedObject('RecoveryKeepRules', rules);

const every = Type.Enum([...RHYTHMS]);
const at = Type.String({
  pattern: '^(?:[01][0-9]|2[0-3]):[0-5][0-9]$',
  'x-rule': 'must be a time of day as HH:MM, UTC, such as 03:00',
  description: '`HH:MM`, UTC; for an hourly schedule, only the minutes count',
  examples: ['03:00'],
});
const weekday = Type.Enum([...WEEKDAYS]);

export const RecoverySchedule = namedObject('RecoverySchedule', {
  every,
  at,
  weekday,
  keep: KeepRules,
  is_default: Type.Boolean({
    description: 'Whether the schedule is the default, which no administrator has changed',
  }),
  next_at: textOrNull('When the next point, or the next attempt, is due; null if the schedule is off'),
  making_point_id: textOrNull('Point being created by the schedule'),
  last_point_id: textOrNull('Last point created by the schedule'),
  last_at: textOrNull('Time of the last point created by the schedule'),
  failures: Type.Integer({ description: 'Failed attempts since then' }),
  failed_at: textOrNull('Time of the latest failed attempt'),
  failed_reason: textOrNull('Reason for the latest failure'),
  target: Type.String({ description: 'Path of the recovery target' }),
  is_default_target: Type.Boolean({
    description: 'Whether the target is in the data directory: a point may then use half of the free space',
  }),
});
export type RecoverySchedule = Static<typeof RecoverySchedule>;

export const ScheduleChange = namedObject('RecoveryScheduleChange', {
  every: Type.Optional(every),
  at: Type.Optional(at),
  weekday: Type.Optional(weekday),
  keep: Type.Optional(namedObject('RecoveryKeepRulesChange', OptionalRules)),
});

const keptPoint = {
  point_id: Type.String(),
  state: Point.properties.state,
  created_at: Type.String(),
};
export const RetentionPreview = namedObject('RecoveryRetention', {
  keep: KeepRules,
  stays: Type.Array(
    namedObject('KeptRecoveryPoint', {
      ...keptPoint,
      reasons: Type.Array(Type.Enum([...REASONS]), {
        description:
          'Each rule that keeps the point, or: `newest_complete`, `newest_drilled`, `by_hand` (not created by the ' +
          'schedule), `future` (the clock was set back), `unfinished`, `failed_lately` (within a week)',
      }),
    }),
  ),
  goes: Type.Array(namedObject('RemovedRecoveryPoint', keptPoint), {
    description:
      'Deleted after the next scheduled point; each can be undeleted until the `deletes_at` of its recovery point',
  }),
});
export type RetentionPreview = Static<typeof RetentionPreview>;

export const Removable = namedObject('RecoveryRemovable', {
  files: Type.Array(Type.String(), {
    description: 'Paths in the target, in the order in which to remove them; at most 100,000',
  }),
  more: Type.Boolean({ description: 'Whether there are more files: remove these, then call again' }),
});
export type Removable = Static<typeof Removable>;

export const AccountRestorePath = Type.Object({
  point_id: Type.String(),
  account: Type.String({ maxLength: 64, description: 'User name or number of the account in the point' }),
});

export const NewAccountRestore = namedObject('NewAccountRestore', {
  username: Type.String({ maxLength: 64, description: 'Username of the new account; must not be taken' }),
  email: Type.String({ maxLength: 254, description: 'Email address of the new account; must not be taken' }),
  preview: Type.Optional(Type.Boolean({ description: 'Only list what would be restored', default: false })),
});
export type NewAccountRestore = Static<typeof NewAccountRestore>;

const RestoredItem = namedObject('RestoredItem', {
  kind: Type.Union([Type.Literal('bucket'), Type.Literal('database'), Type.Literal('machine')]),
  name: Type.String(),
  source_id: Type.String({ description: 'Id in the recovery point; for a bucket, its name' }),
  size: Type.Union([Type.Integer(), Type.Null()], { description: 'Approximate bytes; null: unknown' }),
  made_id: textOrNull('Id of the restored resource; null: not yet restored'),
  lacks: Type.Array(Type.String(), { description: 'Parts that are missing or changed' }),
  refusal: textOrNull('Why the resource could not be restored: fix the cause, then repeat the call'),
});
export type RestoredItem = Static<typeof RestoredItem>;

export const RestoredAccount = namedObject('RestoredAccount', {
  point_id: Type.String(),
  from: namedObject('RestoredFrom', { account_id: Type.Integer(), username: Type.String() }),
  account: namedObject('RestoredAs', {
    account_id: Type.Union([Type.Integer(), Type.Null()], {
      description: 'Id of the new account; null: not created yet',
    }),
    username: Type.String(),
    email: Type.String(),
    api_key: textOrNull('First API key; only in the response of the call that creates the account'),
  }),
  preview: Type.Boolean(),
  state: Type.String({
    enum: ['preview', 'complete', 'partial'],
    description: '`partial`: a resource was refused or is incomplete, see `items`',
  }),
  items: Type.Array(RestoredItem),
});
export type RestoredAccount = Static<typeof RestoredAccount>;

/** Public schemas of the system's state. */

import { Preparing } from '../platform/host/preparing.ts';
import { namedObject, Type, textOrNull } from '../platform/json/json-schema.ts';

const Percent = Type.Number({ minimum: 0, maximum: 100 });
const Time = textOrNull();

const ScrubStatus = namedObject('ScrubStatus', {
  running: Type.Boolean(),
  started_at: Time,
  finished_at: Time,
  checked_blobs: Type.Integer(),
  checked_bytes: Type.Integer(),
  damaged_blobs: Type.Integer(),
  checked_rows: Type.Integer({ description: 'Object versions whose metadata the last completed scrub read' }),
  damaged_rows: Type.Integer({ description: 'Object versions whose metadata is damaged' }),
  checked_buckets: Type.Integer({ description: 'Buckets whose settings the last completed scrub read' }),
  checked_databases: Type.Integer({ description: 'Databases read by the last completed scrub' }),
});

const component = {
  status: Type.String({ description: '`ok`, or `degraded` with a problem' }),
  problem: textOrNull(),
  fix: textOrNull('How to fix the problem'),
};

const Component = namedObject('Component', component);

const OrNull = textOrNull();

const RecoveryFailure = namedObject('RecoveryFailure', { at: Type.String(), reason: OrNull });
const RecoveryLatest = namedObject('RecoveryLatest', {
  point_id: Type.String(),
  created_at: Type.String(),
  age_seconds: Type.Integer({
    description: 'Age of the point that a restore would use',
  }),
  gaps: Type.Integer({
    description: 'Number of components missing in that point; more than 0 only if no point is complete',
  }),
});
const RecoveryPlan = namedObject('RecoveryPlan', {
  every: Type.String({ description: '`off`, `hourly`, `daily`, `weekly`' }),
  next_at: Time,
  failures: Type.Integer({ description: 'Failed attempts since the last success' }),
});
const RecoveryWarning = namedObject('RecoveryWarning', {
  code: Type.String(),
  detail: Type.String(),
  fix: Type.String(),
});

export const SystemStatus = namedObject('SystemStatus', {
  status: Type.Union([Type.Literal('ok'), Type.Literal('degraded')], {
    description:
      '`degraded` while a component that is in use is not `ok`; see the components for the reason. ' +
      'Unavailable machines are a problem only if there are any',
  }),
  version: Type.String(),
  uptime_seconds: Type.Number(),
  metrics: namedObject(
    'HostMetrics',
    { cpu: Percent, memory: Percent, disk: Type.Union([Percent, Type.Null()]) },
    { description: 'Usage of the host in percent; `disk` is null while its file system does not respond' },
  ),
  components: namedObject('SystemComponents', {
    metadata: namedObject('MetadataComponent', {
      ...component,
      engine: Type.Union([Type.Literal('sqlite'), Type.Literal('postgresql')], {
        description: 'Where the metadata is stored: a file in the data directory, or PostgreSQL',
      }),
    }),
    storage: namedObject('StorageComponent', {
      ...component,
      engine: Type.Union([Type.Literal('files'), Type.Literal('s3')], {
        description: 'Where objects over 16 KiB are stored: files in the data directory, or an S3 bucket',
      }),
      scrub: ScrubStatus,
    }),
    billing: Component,
    compute: namedObject('ComputeComponent', {
      status: Type.String({ description: '`ok`, or `degraded` or `unavailable` with problem and fix' }),
      engine: Type.String(),
      version: Type.String(),
      accel: Type.String({ description: 'Accelerator that new machines use' }),
      accel_reason: Type.String({ description: 'Why no faster accelerator is used' }),
      preparing: Type.Union([Preparing, Type.Null()], {
        description: 'Whether the host is still building the built-in image; machines that start wait for it',
      }),
      problem: component.problem,
      fix: component.fix,
    }),
    databases: namedObject('DatabasesComponent', {
      ...component,
      engines: Type.Array(
        namedObject('EngineComponent', {
          engine: Type.String(),
          available: Type.Boolean(),
          version: OrNull,
          source: Type.String(),
          reason: OrNull,
          fix: OrNull,
          preparing: Type.Union([Preparing, Type.Null()], {
            description:
              'Whether the host is still installing the engine; new databases wait until it is installed',
          }),
        }),
        { description: 'A missing engine is a problem only if databases of it exist' },
      ),
    }),
    recovery: namedObject('RecoveryComponent', {
      ...component,
      points: Type.Integer({ description: 'Recovery points that can be restored' }),
      newest_at: Time,
      newest_age_seconds: Type.Union([Type.Integer(), Type.Null()]),
      latest: Type.Union([RecoveryLatest, Type.Null()], {
        description: 'Point that a restore of `latest` would use now; null if there is none',
      }),
      verified_at: Time,
      drilled_at: textOrNull('When a restore drill last passed'),
      schedule: RecoveryPlan,
      last_failure: Type.Union([RecoveryFailure, Type.Null()], {
        description: 'Error of the last recovery point, if it failed',
      }),
      key_taken: Type.Union([Type.Boolean(), Type.Null()], {
        description: 'Whether an administrator has confirmed the recovery key; null if there is no key yet',
      }),
      on_data_disk: Type.Union([Type.Boolean(), Type.Null()]),
      free_bytes: Type.Union([Type.Integer(), Type.Null()]),
      warnings: Type.Array(RecoveryWarning, {
        description: 'Reasons why this cloud could not be fully restored if it were lost now',
      }),
    }),
  }),
  alarms: Type.Array(
    namedObject('Alarm', {
      code: Type.String(),
      detail: Type.String(),
      fix: Type.String({ description: 'How to fix the problem' }),
      since: Type.String(),
      node: textOrNull(
        'Node of the cluster that raised the alarm, for administrators; null for a cloud of one process',
      ),
    }),
  ),
});

export const ScrubReport = namedObject('ScrubReport', {
  ...ScrubStatus.properties,
  damaged: Type.Array(
    namedObject('DamagedObject', {
      object_id: Type.String(),
      version_id: Type.String(),
      bucket: Type.String(),
      name: Type.String(),
      account_id: Type.Integer(),
    }),
    { description: 'At most 100' },
  ),
  damaged_buckets: Type.Array(
    namedObject('DamagedBucket', { bucket: Type.String(), account_id: Type.Integer() }),
    { description: 'Buckets whose settings are damaged; at most 100' },
  ),
  damaged_databases: Type.Array(
    namedObject('DamagedDatabase', { database_id: Type.String(), problem: Type.String() }),
    { description: 'At most 100' },
  ),
});

export const KeyRotation = namedObject('MasterKeyRotation', {
  key_id: Type.String(),
  resealed: Type.Integer(),
});

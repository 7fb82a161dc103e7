/** What the system tells of itself. */
import { Type } from '../json-schema.ts';

const Percent = Type.Number({ minimum: 0, maximum: 100 });
const Time = Type.Union([Type.String(), Type.Null()]);

const ScrubStatus = Type.Object({
  running: Type.Boolean(),
  started_at: Time,
  finished_at: Time,
  checked_blobs: Type.Integer(),
  checked_bytes: Type.Integer(),
  damaged_blobs: Type.Integer(),
});

const component = {
  status: Type.String({ description: '`ok`, or `degraded` with the problem' }),
  problem: Type.Union([Type.String(), Type.Null()]),
};

const OrNull = Type.Union([Type.String(), Type.Null()]);

export const SystemStatus = Type.Object({
  status: Type.Union([Type.Literal('ok'), Type.Literal('degraded')], {
    description: '`degraded` while any component is not `ok`; each says why',
  }),
  version: Type.String(),
  uptime_seconds: Type.Number(),
  metrics: Type.Object(
    { cpu: Percent, memory: Percent, disk: Type.Union([Percent, Type.Null()]) },
    { description: 'Percent, measured on the host; disk is null while its file system does not answer' },
  ),
  components: Type.Object({
    metadata: Type.Object(component),
    storage: Type.Object({ ...component, scrub: ScrubStatus }),
    billing: Type.Object(component),
    compute: Type.Object({
      status: Type.String({ description: '`ok`, `degraded`, or `unavailable` with problem and fix' }),
      engine: Type.String(),
      version: Type.String(),
      accel: Type.String({ description: 'What a machine that starts now runs on' }),
      accel_reason: Type.String({ description: 'Why nothing faster' }),
      problem: component.problem,
      fix: Type.Union([Type.String(), Type.Null()]),
    }),
    databases: Type.Object({
      ...component,
      engines: Type.Array(
        Type.Object({
          engine: Type.String(),
          available: Type.Boolean(),
          version: OrNull,
          source: Type.String(),
          reason: OrNull,
          fix: OrNull,
        }),
        { description: 'One that is missing is a problem only where databases of it exist' },
      ),
    }),
  }),
  alarms: Type.Array(Type.Object({ code: Type.String(), detail: Type.String(), since: Type.String() })),
});

export const ScrubReport = Type.Object({
  ...ScrubStatus.properties,
  damaged: Type.Array(
    Type.Object({
      object_id: Type.String(),
      version_id: Type.String(),
      bucket: Type.String(),
      name: Type.String(),
      account_id: Type.Integer(),
    }),
    { description: 'At most 100' },
  ),
});

export const KeyRotation = Type.Object({ key_id: Type.String(), resealed: Type.Integer() });

/** Public schemas of recovery points. */
import { namedObject, type Static, Type } from '../platform/json-schema.ts';
import { POINT_STATES } from './store.ts';

const textOrNull = (description: string) => Type.Union([Type.String(), Type.Null()], { description });

const Gap = namedObject('RecoveryGap', { component: Type.String(), reason: Type.String() });

export const Point = namedObject('RecoveryPoint', {
  point_id: Type.String(),
  state: Type.String({
    enum: [...POINT_STATES, 'partial'],
    description: '`partial`: complete, verified or drilled except for the missing data in `gaps`',
  }),
  state_reason: textOrNull('Why the point failed, is damaged, or could not be verified'),
  percent: Type.Number({ description: 'Progress of the creation' }),
  verifying_percent: Type.Union([Type.Number(), Type.Null()], {
    description: 'Progress of the verification; null if it is not being verified',
  }),
  created_at: Type.String({ description: 'Time of the snapshot' }),
  completed_at: textOrNull('null if not complete'),
  verified_at: textOrNull('When the point was last verified successfully'),
  size_bytes: Type.Integer({ description: 'Total size' }),
  stored_bytes: Type.Integer({ description: 'Bytes new in this point' }),
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
      needed_by: Type.String({ description: 'First file of the cloud that depends on it' }),
    }),
    { description: 'At most the first 1,000' },
  ),
  target: Type.String({ description: 'Path of the recovery target' }),
  deletes_at: textOrNull('When a deleted point is removed permanently'),
});
export type Point = Static<typeof Point>;

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

export const RecoveryKey = namedObject('RecoveryKey', {
  recovery_key: Type.Optional(Type.String({ description: 'Store it outside this cloud' })),
  taken: Type.Boolean({ description: 'Whether an administrator has confirmed having it' }),
});
export type RecoveryKey = Static<typeof RecoveryKey>;

export const KeyProof = namedObject('RecoveryKeyProof', { recovery_key: Type.String({ maxLength: 200 }) });

export const Checked = namedObject('RecoveryCheck', {
  points: Type.Integer({ description: 'Points in the list' }),
  damaged_points: Type.Array(Type.String(), { description: 'Their ids' }),
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

/** What recovery points look like from outside. */
import { namedObject, type Static, Type } from '../platform/json-schema.ts';
import { POINT_STATES } from './store.ts';

const textOrNull = (description: string) => Type.Union([Type.String(), Type.Null()], { description });

const Gap = namedObject('RecoveryGap', { component: Type.String(), reason: Type.String() });

export const Point = namedObject('RecoveryPoint', {
  point_id: Type.String(),
  state: Type.String({
    enum: [...POINT_STATES, 'partial'],
    description: '`partial`: it lacks what `gaps` names, and is otherwise complete, verified or drilled',
  }),
  state_reason: textOrNull('Why it failed, is damaged, or could not be verified'),
  percent: Type.Number({ description: 'Bytes to read' }),
  verifying_percent: Type.Union([Type.Number(), Type.Null()], {
    description: 'Of its bytes that were read; null: it is not being verified',
  }),
  created_at: Type.String({ description: 'The moment that it keeps' }),
  completed_at: textOrNull('null: not complete'),
  verified_at: textOrNull('When every byte of it was last read and found right'),
  size_bytes: Type.Integer({ description: 'Total size' }),
  stored_bytes: Type.Integer({ description: 'Bytes new in this point' }),
  contents: Type.Record(Type.String(), Type.Integer(), { description: 'How many of each are in it' }),
  gaps: Type.Array(Gap, {
    description: 'What should be in it and is not',
  }),
  manifest_sha256: textOrNull('Of its manifest, as it is stored'),
  damaged_files: Type.Integer({ description: 'Of the target, found by the last verification' }),
  damage: Type.Array(
    namedObject('DamagedComponent', {
      file: Type.String({ description: 'In the target' }),
      problem: Type.String({ enum: ['missing', 'altered', 'unreadable'] }),
      needed_by: Type.String({ description: 'The first file of the cloud that is lost with it' }),
    }),
    { description: 'The first 1,000 of them' },
  ),
  target: Type.String({ description: 'Where it is' }),
  deletes_at: textOrNull('When a deleted point is gone for good'),
});
export type Point = Static<typeof Point>;

export const PointPath = Type.Object({ point_id: Type.String({ $id: 'PointId' }) });

export const NewPointQuery = Type.Object({
  wait: Type.Optional(
    Type.Integer({
      minimum: 0,
      maximum: 600,
      description: 'Seconds to wait for its end before the response',
    }),
  ),
});

export const VerifyQuery = Type.Object({
  wait: Type.Optional(
    Type.Integer({
      minimum: 0,
      maximum: 600,
      description: 'Seconds to wait for the end before the response',
    }),
  ),
});

export const RecoveryKey = namedObject('RecoveryKey', {
  recovery_key: Type.Optional(Type.String({ description: 'Keep it where this cloud is not' })),
  taken: Type.Boolean({ description: 'Whether somebody has proved to have it' }),
});
export type RecoveryKey = Static<typeof RecoveryKey>;

export const KeyProof = namedObject('RecoveryKeyProof', { recovery_key: Type.String({ maxLength: 200 }) });

export const Checked = namedObject('RecoveryCheck', {
  points: Type.Integer({ description: 'In the list' }),
  damaged_points: Type.Array(Type.String(), { description: 'Their ids' }),
  removed_points: Type.Array(Type.String(), { description: 'Deleted ones whose time was over' }),
  removed_pieces: Type.Integer({ description: 'That no point needed' }),
  freed_bytes: Type.Integer(),
  unfinished_files: Type.Integer({
    description: 'Removed: a Cloudlet that was killed had begun to write them',
  }),
  blocked_by: Type.Array(Type.String(), {
    description: 'Points whose list of pieces is damaged: until they are deleted nothing is removed',
  }),
});
export type Checked = Static<typeof Checked>;

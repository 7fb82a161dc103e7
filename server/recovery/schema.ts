/** What recovery points look like from outside. */
import { type Static, Type } from '../json-schema.ts';
import { POINT_STATES } from './store.ts';

const textOrNull = (description: string) => Type.Union([Type.String(), Type.Null()], { description });

export const Point = Type.Object({
  point_id: Type.String(),
  state: Type.String({ enum: [...POINT_STATES] }),
  state_reason: textOrNull('Why it failed or is damaged'),
  percent: Type.Number({ description: 'Of what has to be read' }),
  created_at: Type.String({ description: 'The moment that it keeps' }),
  completed_at: textOrNull('null: not complete'),
  verified_at: textOrNull('When every byte of it was last read and found right'),
  size_bytes: Type.Integer({ description: 'Of all that is in it' }),
  stored_bytes: Type.Integer({ description: 'That no earlier point had' }),
  contents: Type.Record(Type.String(), Type.Integer(), { description: 'How many of each are in it' }),
  gaps: Type.Array(Type.Object({ component: Type.String(), reason: Type.String() }), {
    description: 'What should be in it and is not',
  }),
  manifest_sha256: textOrNull('Of its manifest, as it is stored'),
  target: Type.String({ description: 'Where it is' }),
  deletes_at: textOrNull('When a deleted point is gone for good'),
});
export type Point = Static<typeof Point>;

export const PointPath = Type.Object({ point_id: Type.String() });

export const NewPointQuery = Type.Object({
  wait: Type.Optional(
    Type.Integer({ minimum: 0, maximum: 600, description: 'Seconds to wait for its end before the answer' }),
  ),
});

export const PointsQuery = Type.Object({
  limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 1000, description: 'Turns on paging' })),
  cursor: Type.Optional(
    Type.String({ maxLength: 8192, description: 'From the Link header of the page before' }),
  ),
});

export const KeyAnswer = Type.Object({
  recovery_key: Type.Optional(Type.String({ description: 'Keep it where this cloud is not' })),
  taken: Type.Boolean({ description: 'Whether somebody has proved to have it' }),
});
export type KeyAnswer = Static<typeof KeyAnswer>;

export const KeyProof = Type.Object({ recovery_key: Type.String({ maxLength: 200 }) });

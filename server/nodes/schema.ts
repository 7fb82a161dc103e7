/** Public schemas of the nodes of a cluster. */
import { namedObject, Type } from '../platform/json/json-schema.ts';

const Load = namedObject('NodeLoad', {
  uptime_seconds: Type.Integer(),
  cpu: Type.Number({ description: 'Of its host, in percent' }),
  memory: Type.Number({ description: 'Of its host, in percent' }),
  resident_bytes: Type.Integer({ description: 'Memory of its process' }),
});

export const Node = namedObject('Node', {
  node_id: Type.String({ description: '`self` in a cloud of one process' }),
  name: Type.String(),
  url: Type.Union([Type.String(), Type.Null()], {
    description: 'Where the other nodes reach its API; null in a cloud of one process',
  }),
  version: Type.String(),
  role: Type.Union([Type.Literal('host'), Type.Literal('front')], {
    description: 'The `host` has the machines, images and databases',
  }),
  state: Type.Union(
    [Type.Literal('up'), Type.Literal('draining'), Type.Literal('left'), Type.Literal('lost')],
    {
      description:
        '`draining`: it answers, but takes no leases, and /readyz is 503. `left`: it was stopped. `lost`: it was ' +
        'silent for 10 s, and can store nothing more until it is started again',
    },
  ),
  since: Type.String({ description: 'Start of its newest process' }),
  beat_age_seconds: Type.Number({ description: 'Age of its last beat; there is one each second' }),
  leases: Type.Array(Type.String(), { description: 'Work of the whole cluster that it does' }),
  is_this: Type.Boolean({ description: 'It answered this call' }),
  load: Type.Union([Load, Type.Null()]),
});

export const NodePath = Type.Object({
  node_id: Type.String({ description: '`self`: the node that answers', maxLength: 64 }),
});

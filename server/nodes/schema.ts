/** Public schemas of the nodes of a cluster. */
import { namedObject, Type, textOrNull } from '../platform/json/json-schema.ts';

const Load = namedObject('NodeLoad', {
  uptime_seconds: Type.Integer(),
  cpu: Type.Number({ description: 'CPU usage of the host, in percent' }),
  memory: Type.Number({ description: 'Memory usage of the host, in percent' }),
  resident_bytes: Type.Integer({ description: 'Memory of the process' }),
});

export const Node = namedObject('Node', {
  node_id: Type.String({ description: '`self` in a cloud of one process' }),
  name: Type.String(),
  url: textOrNull('URL at which the other nodes reach the API of this node; null in a cloud of one process'),
  version: Type.String(),
  role: Type.Union([Type.Literal('host'), Type.Literal('front')], {
    description: 'The `host` has the machines, images and databases',
  }),
  state: Type.Union(
    [Type.Literal('up'), Type.Literal('draining'), Type.Literal('left'), Type.Literal('lost')],
    {
      description:
        '`draining`: answers requests, but takes no leases, and /readyz returns 503. `left`: stopped. `lost`: sent no ' +
        'heartbeat for 10 s, and cannot store anything until it is restarted',
    },
  ),
  since: Type.String({ description: 'Start time of the current process' }),
  beat_age_seconds: Type.Number({ description: 'Age of the last heartbeat, which is sent every second' }),
  leases: Type.Array(Type.String(), { description: 'Jobs of the cluster that this node runs' }),
  is_this: Type.Boolean({ description: 'Whether this node answered the call' }),
  load: Type.Union([Load, Type.Null()]),
});

export const NodePath = Type.Object({
  node_id: Type.String({ description: '`self`: the node that answers', maxLength: 64 }),
});

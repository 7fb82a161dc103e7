/** Public schemas of published ports. */
import { namedObject, type Static, Type } from '../../platform/json-schema.ts';

const LABEL = '^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$';

export const NewPublishedPort = namedObject('NewPublishedPort', {
  port: Type.Integer({ minimum: 1, maximum: 65_535, description: 'TCP port of the machine' }),
  public_port: Type.Optional(
    Type.Integer({ minimum: 1, maximum: 65_535, description: 'Port of this host; default: a free one' }),
  ),
  hostname: Type.Optional(
    Type.String({
      pattern: LABEL,
      'x-rule': 'must have 1 to 63 of a-z, 0-9 and "-", and begin and end with a letter or digit',
      description: 'For HTTP, in place of a port: the first label of its host name, `web-1`',
    }),
  ),
});
export type NewPublishedPort = Static<typeof NewPublishedPort>;

export const PublishedPort = namedObject('PublishedPort', {
  port_id: Type.String(),
  vm_id: Type.String(),
  port: Type.Integer({ description: 'TCP port of the machine' }),
  public_port: Type.Union([Type.Integer(), Type.Null()], {
    description: 'Port of this host; null: it has a host name, or its port was given away',
  }),
  former_port: Type.Union([Type.Integer(), Type.Null()], {
    description:
      'Port that it had before it was given to another machine, because its own had not run for 24 hours',
  }),
  hostname: Type.Union([Type.String(), Type.Null()]),
  address: Type.String({ description: '`host:port`, or the URL of the host name; `host:` without a port' }),
  open: Type.Boolean({ description: 'Whether it answers now' }),
  reason: Type.Union([Type.String(), Type.Null()], { description: 'Why it does not answer' }),
  created_at: Type.String(),
});
export type PublishedPort = Static<typeof PublishedPort>;

export const DeletedPublishedPort = namedObject('DeletedPublishedPort', {
  port_id: Type.String(),
  deleted: Type.Literal(true),
});

/** Public schemas of published ports. */
import { namedObject, type Static, Type, textOrNull } from '../../platform/json/json-schema.ts';

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
      description: 'For HTTP, instead of a port: the first label of the host name, such as `web-1`',
    }),
  ),
});
export type NewPublishedPort = Static<typeof NewPublishedPort>;

export const PublishedPort = namedObject('PublishedPort', {
  port_id: Type.String(),
  vm_id: Type.String(),
  port: Type.Integer({ description: 'TCP port of the machine' }),
  public_port: Type.Union([Type.Integer(), Type.Null()], {
    description: 'Port of this host; null: published under a host name, or the port was reassigned',
  }),
  former_port: Type.Union([Type.Integer(), Type.Null()], {
    description: 'Former port, reassigned to another machine because this one had not run for 24 hours',
  }),
  hostname: textOrNull(),
  address: Type.String({ description: '`host:port`, or the URL of the host name; `host:` without a port' }),
  open: Type.Boolean({ description: 'Whether connections are accepted now' }),
  reason: textOrNull('Why connections are not accepted'),
  created_at: Type.String(),
});
export type PublishedPort = Static<typeof PublishedPort>;

export const DeletedPublishedPort = namedObject('DeletedPublishedPort', {
  port_id: Type.String(),
  deleted: Type.Literal(true),
});

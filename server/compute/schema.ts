/** What machines look like from outside. */
import { Paging } from '../http/list-page.ts';
import { Reason } from '../http/response.ts';
import { namedObject, type Static, Type } from '../platform/json-schema.ts';
import { VM_STATES } from './machines/transitions.ts';

const textOrNull = (description: string) => Type.Union([Type.String(), Type.Null()], { description });

const VmPort = namedObject('VmPort', {
  port: Type.Integer(),
  guest_port: Type.Integer({ description: 'Where it leads to in the machine' }),
  open: Type.Boolean({ description: 'Whether it answers now' }),
  reason: textOrNull('Why it is closed'),
});

/** On the plan of who asks. */
const PRICES = {
  price_per_hour: Type.Number({ description: 'Credits, for time in which it runs' }),
  price_per_month: Type.Number({ description: 'Credits, for 730 hours of it' }),
  disk_price_per_hour: Type.Number({ description: 'Credits, for its disk, whether it runs or not' }),
  total_price_per_hour: Type.Number({ description: 'Credits, while it runs, its disk included' }),
  total_price_per_month: Type.Number({ description: 'Credits, for 730 hours of that' }),
};

export const Vm = namedObject('Vm', {
  vm_id: Type.String(),
  name: Type.String(),
  ip_address: textOrNull('The same for as long as the machine exists; null once it is being deleted'),
  instance_type: Type.String(),
  region: Type.String(),
  tags: Type.String({ description: 'Comma-separated' }),
  image: Type.String(),
  state: Type.String({ enum: [...VM_STATES] }),
  state_reason: Type.Union([Reason, Type.Null()], {
    description: 'Why it is in this state, when that was not simply asked for',
  }),
  vcpus: Type.Integer(),
  memory_mb: Type.Integer(),
  disk_gb: Type.Integer(),
  ...PRICES,
  ports: Type.Array(VmPort, { description: 'TCP ports of the address' }),
  ssh_command: textOrNull('How to reach its SSH server; null while that cannot be reached'),
  outbound: Type.Boolean({ description: 'Whether it may open connections to the outside' }),
  accel: textOrNull('What its processor runs on; null while it does not run'),
  accel_reason: textOrNull('Why nothing faster'),
  created_at: Type.String(),
  started_at: textOrNull('When its processor began to run'),
  ready_at: textOrNull('When the guest gave its first sign of life in this run'),
  uptime_seconds: Type.Integer({ description: 'Since started_at; 0 while it does not run' }),
});
export type Vm = Static<typeof Vm>;

export const NewVm = namedObject('NewVm', {
  name: Type.String({ description: '1 to 128 visible characters' }),
  instance_type: Type.String({ description: 'One of GET /api/instance-types' }),
  region: Type.Optional(
    Type.String({
      pattern: '^[a-z0-9-]{1,32}$',
      'x-rule': 'must have 1 to 32 of a-z, 0-9 and "-"',
      default: 'us-east-1',
    }),
  ),
  tags: Type.Optional(Type.String({ maxLength: 1024, default: '', description: 'Comma-separated' })),
  image: Type.Optional(Type.String({ default: 'tiny', description: 'One of GET /api/images' })),
  ssh_keys: Type.Optional(
    Type.Array(Type.String(), { maxItems: 20, description: 'OpenSSH public keys of the root user' }),
  ),
  user_data: Type.Optional(
    Type.String({ description: 'cloud-init user data, or a script that begins with #!; at most 64 KiB' }),
  ),
  ports: Type.Optional(
    Type.Array(Type.Integer({ minimum: 1, maximum: 65_535 }), {
      maxItems: 16,
      description: 'Further TCP ports of the guest, besides 22, 80, 443 and 8080',
    }),
  ),
});
export type NewVm = Static<typeof NewVm>;

export const DeletedVm = namedObject('DeletedVm', {
  vm_id: Type.String(),
  name: Type.String(),
  deleted: Type.Literal(true),
  state: Type.Literal('deleted'),
});
export type DeletedVm = Static<typeof DeletedVm>;

export const InstanceTypeEntry = namedObject('InstanceType', {
  instance_type: Type.String(),
  vcpus: Type.Integer(),
  memory_mb: Type.Integer(),
  disk_gb: Type.Integer(),
  ...PRICES,
  startable: Type.Boolean({ description: 'Whether this host has enough memory to ever start one' }),
  reason: textOrNull('Why not; one can be created all the same'),
});

export const AdminVm = namedObject('AdminVm', { ...Vm.properties, account_id: Type.Integer() });
export const AdminVmsQuery = Type.Object({
  account_id: Type.Optional(Type.Integer({ minimum: 1, description: 'Of this account only' })),
  ...Paging,
});
export const VmPath = Type.Object({ vm_id: Type.String({ $id: 'VmId' }) });

export const StopQuery = Type.Object({
  grace: Type.Optional(
    Type.Integer({ minimum: 0, maximum: 300, description: 'Seconds in which the guest may shut down' }),
  ),
  force: Type.Optional(Type.Boolean({ description: 'Power off at once' })),
});
export type StopQuery = Static<typeof StopQuery>;

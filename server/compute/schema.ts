/** Public schemas of machines and images. */
import { Paging } from '../http/list-page.ts';
import { Reason } from '../http/response.ts';
import { namedObject, type Static, Type, textOrNull } from '../platform/json/json-schema.ts';
import { VM_STATES } from './machines/transitions.ts';

const integerOrNull = (description: string) => Type.Union([Type.Integer(), Type.Null()], { description });

const VmPort = namedObject('VmPort', {
  port: Type.Integer(),
  guest_port: Type.Integer({ description: 'Port of the guest' }),
  open: Type.Boolean({ description: 'Whether the port is open now' }),
  reason: textOrNull('Why the port is closed'),
});

/** Prices in the caller's plan. */
const PRICES = {
  price_per_hour: Type.Number({ description: 'Credits per hour of running time' }),
  price_per_month: Type.Number({ description: 'Credits for 730 hours of running time' }),
  disk_price_per_hour: Type.Number({
    description: 'Credits per hour for the disk, charged whether or not the machine runs',
  }),
  total_price_per_hour: Type.Number({
    description: 'Credits per hour while the machine runs, disk included',
  }),
  total_price_per_month: Type.Number({ description: 'Credits for 730 hours, disk included' }),
};

export const Vm = namedObject('Vm', {
  vm_id: Type.String(),
  name: Type.String(),
  ip_address: textOrNull('Stays the same for the life of the virtual machine; null once it is being deleted'),
  internal_name: Type.String({
    description: 'Name in the private network of its account, shared by machines with the same name',
  }),
  private_ip: textOrNull('Address in the private network of its account; null once it is being deleted'),
  instance_type: Type.String(),
  region: Type.String(),
  tags: Type.String({ description: 'Comma-separated' }),
  image: Type.String(),
  state: Type.String({ enum: [...VM_STATES] }),
  state_reason: Type.Union([Reason, Type.Null()], {
    description: 'Reason for the state; null if the user requested the state',
  }),
  vcpus: Type.Integer(),
  memory_mb: Type.Integer(),
  disk_gb: Type.Integer(),
  ...PRICES,
  ports: Type.Array(VmPort, { description: 'TCP ports of the address' }),
  ssh_command: textOrNull('Command that connects to the SSH server; null while it is unreachable'),
  outbound: Type.Boolean({ description: 'Whether the machine may open outbound connections' }),
  accel: textOrNull('Accelerator of the current run, kvm or tcg; null while it does not run'),
  accel_reason: textOrNull('Why a faster accelerator is not used'),
  created_at: Type.String(),
  started_at: textOrNull('When the current run began'),
  ready_at: textOrNull('When the guest first answered in the current run'),
  uptime_seconds: Type.Integer({ description: 'Seconds since started_at; 0 while the machine does not run' }),
});
export type Vm = Static<typeof Vm>;

export const VmPoint = namedObject('VmPoint', {
  point_id: Type.String(),
  created_at: Type.String({
    description: 'Time of the recovery point; the disk is as of this time, or slightly later',
  }),
});
export type VmPoint = Static<typeof VmPoint>;

const VmSource = namedObject('VmSource', {
  vm_id: Type.String({ description: 'One of your machines, possibly a deleted one' }),
  point_id: Type.String({ description: 'A recovery point of `GET /api/vms/{vm_id}/points`' }),
});

export const NewVm = namedObject('NewVm', {
  name: Type.String({ description: '1 to 128 visible characters' }),
  instance_type: Type.String({ description: 'An instance type of GET /api/instance-types' }),
  region: Type.Optional(
    Type.String({
      pattern: '^[a-z0-9-]{1,32}$',
      'x-rule': 'must have 1 to 32 of a-z, 0-9 and "-"',
      default: 'us-east-1',
    }),
  ),
  tags: Type.Optional(Type.String({ maxLength: 1024, default: '', description: 'Comma-separated' })),
  image: Type.Optional(
    Type.String({ default: 'tiny', description: 'An image_id or short_name of GET /api/images' }),
  ),
  ssh_keys: Type.Optional(
    Type.Array(Type.String(), { maxItems: 20, description: 'OpenSSH public keys for the root user' }),
  ),
  ssh_key_names: Type.Optional(
    Type.Array(Type.String(), {
      maxItems: 20,
      description: 'Names of SSH keys of the account, besides `ssh_keys`; see GET /api/account/ssh-keys',
    }),
  ),
  user_data: Type.Optional(
    Type.String({ description: 'cloud-init user data, or a script that begins with #!; at most 64 KiB' }),
  ),
  databases: Type.Optional(
    Type.Array(Type.String(), {
      maxItems: 20,
      description:
        'Names of databases of the account. Each start writes their private URIs with passwords to ' +
        '/etc/cloudlet/databases.env, as SHOP_URL for shop. Requires the scope databases:write too',
    }),
  ),
  ports: Type.Optional(
    Type.Array(Type.Integer({ minimum: 1, maximum: 65_535 }), {
      maxItems: 16,
      description: 'Additional TCP ports of the guest to expose, besides 22, 80, 443 and 8080',
    }),
  ),
  from: Type.Optional(VmSource),
});
export type NewVm = Static<typeof NewVm>;

export const VmChange = namedObject('VmChange', {
  name: Type.Optional(Type.String({ description: '1 to 128 visible characters' })),
  tags: Type.Optional(Type.String({ maxLength: 1024, description: 'Comma-separated' })),
  instance_type: Type.Optional(
    Type.String({
      description:
        'Instance type of GET /api/instance-types; only while the machine is stopped. The disk stays',
    }),
  ),
  disk_gb: Type.Optional(
    Type.Integer({ minimum: 1, description: 'A larger disk, GB; only while the machine is stopped' }),
  ),
});
export type VmChange = Static<typeof VmChange>;

export const VmRebuild = namedObject('VmRebuild', {
  image: Type.Optional(
    Type.String({ description: 'An image_id or short_name of GET /api/images; default: the current image' }),
  ),
});
export type VmRebuild = Static<typeof VmRebuild>;

export const NewLentKey = namedObject('NewLentKey', {
  public_key: Type.String({ maxLength: 4096, description: 'An OpenSSH public key' }),
});

export const LentKey = namedObject('LentKey', {
  fingerprint: Type.String({ description: 'Fingerprint as shown by ssh-keygen -l' }),
  expires_at: textOrNull('Expiry time; null: the machine was created with this key'),
});
export type LentKey = Static<typeof LentKey>;

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
  startable: Type.Boolean({
    description: 'Whether this host has enough memory to start a machine of this type',
  }),
  reason: textOrNull('Why a machine of this type cannot be started; it can still be created'),
});

export const AdminVm = namedObject('AdminVm', { ...Vm.properties, account_id: Type.Integer() });
export const AdminVmsQuery = Type.Object({
  account_id: Type.Optional(Type.Integer({ minimum: 1, description: 'Only machines of this account' })),
  ...Paging,
});
export const VmPath = Type.Object({ vm_id: Type.String({ $id: 'VmId' }) });

export const StopQuery = Type.Object({
  grace: Type.Optional(
    Type.Integer({ minimum: 0, maximum: 300, description: 'Grace period for a guest shutdown, in seconds' }),
  ),
  force: Type.Optional(Type.Boolean({ description: 'Power off without a shutdown' })),
});
export type StopQuery = Static<typeof StopQuery>;

export const Image = namedObject('Image', {
  image_id: Type.String(),
  name: Type.String(),
  short_name: textOrNull('Short name such as debian-13, which means the newest image with it; null: none'),
  login_user: textOrNull(
    'Default user of the image; the SSH keys of a machine are also for root. null: unknown',
  ),
  cloud_init: Type.Union([Type.Boolean(), Type.Null()], {
    description:
      'Whether cloud-init applies SSH keys and user data; null: unknown. The built-in image applies them itself',
  }),
  is_builtin: Type.Boolean(),
  size: integerOrNull('Bytes; null when built in'),
  min_disk_gb: Type.Integer({ description: 'Smallest disk_gb of an instance type that can use the image' }),
  created_at: textOrNull('null when built in'),
});
export type Image = Static<typeof Image>;

const ImageProgress = namedObject('ImageProgress', {
  bytes: Type.Integer({ description: 'Received bytes of the source' }),
  total_bytes: Type.Integer(),
  percent: Type.Integer({ description: 'Rounded down; 100 while the image is converted' }),
});

export const AdminImage = namedObject('AdminImage', {
  image_id: Type.String(),
  name: Type.String(),
  short_name: textOrNull('Name in GET /api/admin/images/known; null: not from that list'),
  state: Type.String({ enum: ['importing', 'ready', 'failed'] }),
  state_reason: Type.Union([Reason, Type.Null()], {
    description: 'Why the import failed',
  }),
  size: integerOrNull('Stored bytes; null until the image is ready'),
  virtual_size: integerOrNull('Virtual disk size in bytes; null until the image is ready'),
  min_disk_gb: integerOrNull(
    'Smallest disk_gb of an instance type that can use the image; null until it is ready',
  ),
  progress: Type.Union([ImageProgress, Type.Null()], {
    description: 'Progress of a download by name; null: not started, or not in progress',
  }),
  source: Type.String({ description: 'Path or URL of the source; the URL without its query' }),
  source_format: textOrNull('raw or qcow2, detected from the file header; null until the image is ready'),
  sha256: textOrNull('SHA-256 of the source; null until it was read completely'),
  created_at: Type.String(),
});
export type AdminImage = Static<typeof AdminImage>;

export const KnownImageEntry = namedObject('KnownImage', {
  short_name: Type.String({ description: 'Name for the download, and for new machines' }),
  title: Type.String(),
  version: Type.String(),
  architecture: Type.String(),
  url: Type.String({ description: 'Address of the download' }),
  checked_by: Type.String({
    description: "Source of the checksum: the publisher's file, or Cloudlet's list of images",
  }),
  about_bytes: Type.Integer({ description: 'Approximate size, bytes' }),
  login_user: Type.String({ description: 'Default user of the image' }),
  cloud_init: Type.Boolean({ description: 'Whether cloud-init applies SSH keys and user data' }),
  image: Type.Union([AdminImage, Type.Null()], { description: 'Latest download of the image; null: none' }),
});
export type KnownImageEntry = Static<typeof KnownImageEntry>;
export const KnownImagePath = Type.Object({ short_name: Type.String({ $id: 'KnownImageName' }) });

const name = Type.String({ description: '1 to 128 visible characters' });
const sha256 = Type.Optional(
  Type.String({
    pattern: '^[0-9a-fA-F]{64}$',
    'x-rule': 'must be a SHA-256: 64 hexadecimal digits',
    description: 'Expected SHA-256 of the source; a mismatch is refused',
  }),
);

export const NewImage = namedObject('NewImage', {
  name,
  path: Type.Optional(
    Type.String({
      maxLength: 4096,
      description: 'Path of a file on this host, in a folder listed in CLOUDLET_IMAGE_SOURCES',
    }),
  ),
  url: Type.Optional(Type.String({ maxLength: 4096, description: 'An http:// or https:// URL' })),
  sha256,
});
export type NewImage = Static<typeof NewImage>;

export const ImageForm = namedObject('ImageForm', {
  file: Type.String({ format: 'binary', description: 'The image: qcow2 or raw' }),
  name: Type.Optional(Type.String({ description: 'Default: the file name' })),
  sha256,
});

export const DeletedImage = namedObject('DeletedImage', {
  image_id: Type.String(),
  deleted: Type.Literal(true),
});
export type DeletedImage = Static<typeof DeletedImage>;

export const ImagePath = Type.Object({ image_id: Type.String({ $id: 'ImageId' }) });

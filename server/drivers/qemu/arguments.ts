/** The command line of one guest, as a pure function. */
import { hostProgram } from '../../platform/host/host-programs.ts';

/** The values of the command line. No field can contain a user's text. */
export interface Launch {
  readonly vmId: string;
  readonly uuid: string;
  /** Versioned, `pc-q35-7.2`: the guest's hardware stays the same after updates of QEMU. */
  readonly machine: string;
  readonly accel: 'kvm' | 'tcg';
  readonly vcpus: number;
  readonly memoryMb: number;
  /**
   * `off`: the host allocates pages when they are touched, so a large guest starts on a smaller
   * host. A host without overcommit refuses that in QEMU.
   */
  readonly reserve: 'on' | 'off';
  readonly boot: 'kernel' | 'disk';
  readonly diskFormat: 'raw' | 'qcow2';
  readonly mac: string;
  readonly outbound: boolean;
  /** A tap device of this host; null: QEMU's user network. */
  readonly tap: string | null;
  /** The device on the account's private network; null: none. */
  readonly privateMac: string | null;
  /** No network card. */
  readonly isCut: boolean;
}

/** The files of a guest, by their names in its own directory, which is QEMU's working directory. */
export const FILES = {
  rawDisk: 'disk.raw',
  qcow2Disk: 'disk.qcow2',
  base: 'base',
  seed: 'seed.iso',
  kernel: 'vmlinuz',
  initrd: 'initrd',
  control: 'qmp.sock',
  events: 'events.sock',
  console: 'console.sock',
  network: 'network.sock',
  consoleLog: 'console.log',
} as const;

export const BALLOON_ID = 'balloon0';
export const DISK_ID = 'disk0';

/** The kernel's self-tests of ciphers take a twelfth of an emulated boot. */
const KERNEL_LINE = 'console=ttyS0 quiet panic=5 cryptomgr.notests';
/** Cache of translated code per guest. QEMU's default is 1 GiB, which few guests need. */
const TCG_CACHE_MB = 128;
/** Fewer and larger frames cost less. */
const PRIVATE_MTU = 9000;
const SANDBOX = 'on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny';

const FORMS: readonly (readonly [keyof Launch, RegExp])[] = [
  ['vmId', /^vm-[0-9a-z]{26}$/],
  ['uuid', /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/],
  ['machine', /^pc-q35-(?:rhel)?\d+(?:\.\d+){1,2}$/],
  ['accel', /^(?:kvm|tcg)$/],
  ['vcpus', /^[1-9]\d{0,2}$/],
  ['memoryMb', /^[1-9]\d{0,7}$/],
  ['reserve', /^(?:on|off)$/],
  ['boot', /^(?:kernel|disk)$/],
  ['diskFormat', /^(?:raw|qcow2)$/],
  ['mac', /^52(?::[0-9a-f]{2}){5}$/],
  ['outbound', /^(?:true|false)$/],
  ['tap', /^(?:null|clt\d{1,10})$/],
  ['privateMac', /^(?:null|56(?::[0-9a-f]{2}){5})$/],
  ['isCut', /^(?:true|false)$/],
];

/** The arguments for QEMU. Throws for a value with an unexpected form, because nothing is escaped. */
export function qemuArguments(launch: Launch): string[] {
  for (const [key, form] of FORMS) {
    if (!form.test(String(launch[key]))) throw new Error(`not a ${key} for a guest`);
  }
  return [
    ...['-name', `guest=${launch.vmId},debug-threads=on`, '-uuid', launch.uuid],
    ...['-nodefaults', '-no-user-config', '-S', '-display', 'none', '-vga', 'none'],
    ...['-sandbox', SANDBOX],
    ...machineArguments(launch),
    ...socketArguments(),
    ...diskArguments(launch),
    ...networkArguments(launch),
    ...['-object', 'rng-builtin,id=rng0', '-device', 'virtio-rng-pci,rng=rng0'],
    ...['-device', `virtio-balloon-pci,id=${BALLOON_ID},free-page-reporting=on`],
    ...['-device', 'pvpanic'],
    ...privateNetwork(launch),
    ...(launch.boot === 'kernel'
      ? ['-kernel', FILES.kernel, '-initrd', FILES.initrd, '-append', KERNEL_LINE]
      : []),
  ];
}

function machineArguments({ machine, accel, vcpus, memoryMb, reserve }: Launch): string[] {
  return [
    ...['-machine', `${machine},memory-backend=mem0`],
    ...['-accel', accel === 'kvm' ? 'kvm' : `tcg,thread=multi,tb-size=${TCG_CACHE_MB}`],
    ...['-cpu', accel === 'kvm' ? 'host' : 'max'],
    ...['-smp', `cpus=${vcpus}`, '-m', `size=${memoryMb}M`],
    ...['-object', `memory-backend-ram,id=mem0,size=${memoryMb}M,reserve=${reserve}`],
  ];
}

/** Each socket serves one client at a time, hence two for QMP. */
function socketArguments(): string[] {
  const socket = (id: string, path: string) => `socket,id=${id},path=${path},server=on,wait=off`;
  return [
    ...['-chardev', socket('control', FILES.control), '-mon', 'chardev=control,mode=control'],
    ...['-chardev', socket('events', FILES.events), '-mon', 'chardev=events,mode=control'],
    ...['-chardev', `${socket('console', FILES.console)},logfile=${FILES.consoleLog},logappend=on`],
    ...['-device', 'isa-serial,chardev=console'],
  ];
}

/** Formats are named, never probed: a guest cannot change its disk's format by writing a header. */
function diskArguments({ boot, diskFormat }: Launch): string[] {
  // A given kernel takes the first boot index.
  const first = boot === 'disk' ? ',bootindex=0' : '';
  const file = diskFormat === 'raw' ? FILES.rawDisk : FILES.qcow2Disk;
  return [
    ...['-blockdev', `driver=file,node-name=disk-file,filename=${file},discard=unmap`],
    ...['-blockdev', `driver=${diskFormat},node-name=disk,file=disk-file,discard=unmap`],
    ...['-device', `virtio-blk-pci,id=${DISK_ID},drive=disk${first}`],
    ...['-blockdev', `driver=file,node-name=seed-file,filename=${FILES.seed},read-only=on`],
    ...['-blockdev', 'driver=raw,node-name=seed,file=seed-file,read-only=on'],
    ...['-device', 'virtio-blk-pci,id=seed0,drive=seed'],
  ];
}

function networkArguments(launch: Launch): string[] {
  if (launch.isCut) return ['-nic', 'none'];
  return [
    ...['-netdev', networkBackend(launch)],
    // romfile=: nothing boots from the network, so no ROM files are needed.
    ...['-device', `virtio-net-pci,netdev=net0,mac=${launch.mac},romfile=`],
  ];
}

function networkBackend({ outbound, tap }: Launch): string {
  if (tap !== null) return `tap,id=net0,fd=${TAP_FD}`;
  return `user,id=net0,ipv6=off,restrict=${outbound ? 'off' : 'on'}`;
}

/** Last, so that other devices keep their slots. */
function privateNetwork({ privateMac, isCut }: Launch): string[] {
  if (privateMac === null || isCut) return [];
  const device = `virtio-net-pci,netdev=net1,mac=${privateMac},romfile=,host_mtu=${PRIVATE_MTU}`;
  return ['-netdev', `stream,id=net1,server=on,addr.type=unix,addr.path=${FILES.network}`, '-device', device];
}

/** The program's descriptor of the tap device. */
export const TAP_FD = 3;

/** TUNSETIFF with IFF_TAP, IFF_NO_PI and IFF_VNET_HDR, like QEMU; Perl closes descriptors above $^F. */
const HAND_OVER = `$^F = ${TAP_FD};
open my $tap, '+<', '/dev/net/tun' or die "the tap device cannot be opened: $!\\n";
fileno $tap == ${TAP_FD} or die "the tap device has another descriptor\\n";
ioctl $tap, 0x400454ca, pack 'Z16 S x22', shift, 0x5002 or die "the tap device cannot be taken: $!\\n";
exec { $ARGV[0] } @ARGV or die "$ARGV[0]: $!\\n";`;

/**
 * Arguments before the command of a program, to run it as root with descriptor TAP_FD closed. Throws
 * `engine_unavailable` if there is no Perl.
 */
export function withTap(device: string): string[] {
  return [hostProgram('perl'), '-e', HAND_OVER, device];
}

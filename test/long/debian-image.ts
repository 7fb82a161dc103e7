/** A bootable disk with a plain Debian 12 and cloud-init, created from Debian's packages. Needs root. */
import { execFileSync } from 'node:child_process';
import * as fs from 'node:fs';
import { join } from 'node:path';
import { notInstalled } from '../../scripts/installed.ts';

const PACKAGES = [
  ...['systemd-sysv', 'dbus', 'udev', 'linux-image-cloud-amd64', 'initramfs-tools', 'zstd', 'cloud-init'],
  ...['cloud-guest-utils', 'fdisk', 'e2fsprogs', 'iproute2', 'openssh-server', 'systemd-resolved', 'rsync'],
];
const DISK_TOOLS = ['syslinux', 'mformat', 'mcopy', 'sfdisk', 'qemu-img', 'ssh'];
const TOOLS = ['mmdebstrap', 'mke2fs', ...DISK_TOOLS];
/** The boot code for the active partition; comes with syslinux. */
const BOOT_SECTOR = '/usr/lib/syslinux/mbr/mbr.bin';
const SOURCES = ['/etc/apt/sources.list.d/debian.sources', '/etc/apt/sources.list'];

const MIB = 2 ** 20;
const BOOT_MIB = 64;
const ROOT_MIB = 1024;
const SECTORS_PER_MIB = 2048;

const MENU = `SERIAL 0 115200
DEFAULT linux
PROMPT 0
TIMEOUT 0
LABEL linux
  KERNEL /vmlinuz
  APPEND initrd=/initrd root=LABEL=cloudroot ro console=tty0 console=ttyS0,115200
`;
/** Without the locales package there is nothing to set. */
const CLOUD_CONFIG = `datasource_list: [NoCloud, None]
locale: false
system_info:
  network:
    renderers: ['networkd']
`;

/** Why it cannot be created here, or false. */
export function cannotBuildDebian(): string | false {
  if (process.getuid?.() !== 0) return 'needs root';
  return notInstalled(...TOOLS) || cannotMakeDisk();
}

/** Why no disk can be made bootable here, or false. */
export function cannotMakeDisk(): string | false {
  return (
    notInstalled(...DISK_TOOLS) ||
    (fs.existsSync(BOOT_SECTOR) ? false : `${BOOT_SECTOR} is missing: apt-get install syslinux-common`)
  );
}

/** Creates `disk.raw` in `folder` and returns its path. Takes minutes. */
export function buildDebian(folder: string): string {
  const run = runIn(folder);
  const write = (name: string, text: string) => fs.writeFileSync(join(folder, name), text);
  const source = SOURCES.find((path) => fs.existsSync(path)) ?? '-';
  run('mmdebstrap', [
    ...['--quiet', '--variant=minbase', '--format=directory', `--include=${PACKAGES.join(',')}`],
    '--customize-hook=chroot "$1" systemctl enable systemd-networkd systemd-resolved ssh',
    ...['bookworm', 'root', source],
  ]);
  write('root/etc/cloud/cloud.cfg.d/99_cloudlet.cfg', CLOUD_CONFIG);
  write('root/etc/fstab', 'LABEL=cloudroot / ext4 errors=remount-ro 0 1\n');
  write('root/etc/machine-id', '');
  for (const name of fs.readdirSync(join(folder, 'root/etc/ssh'))) {
    if (name.startsWith('ssh_host_')) fs.rmSync(join(folder, 'root/etc/ssh', name));
  }
  run('mke2fs', ['-q', '-t', 'ext4', '-L', 'cloudroot', '-d', 'root', 'root.img', `${ROOT_MIB}M`]);
  return bootableDisk(folder);
}

/** Creates `disk.raw` from the kernel and initrd in `root/boot`, and from `root.img`; returns its path. */
export function bootableDisk(folder: string): string {
  const run = runIn(folder);
  makeBootPartition(folder, run);
  return assemble(folder, run);
}

function runIn(folder: string): Run {
  return (program, args, input) =>
    execFileSync(program, args, {
      cwd: folder,
      stdio: ['pipe', 'ignore', 'pipe'],
      ...(input ? { input } : {}),
    });
}

type Run = (program: string, args: readonly string[], input?: string) => void;

/** A FAT partition with kernel and loader: it can be filled without mounting. */
function makeBootPartition(folder: string, run: Run): void {
  const boot = join(folder, 'root/boot');
  const find = (start: string) =>
    join(boot, fs.readdirSync(boot).find((name) => name.startsWith(start)) ?? start);
  fs.writeFileSync(join(folder, 'syslinux.cfg'), MENU);
  fs.writeFileSync(join(folder, 'boot.img'), '');
  fs.truncateSync(join(folder, 'boot.img'), BOOT_MIB * MIB);
  const sectors = String(BOOT_MIB * SECTORS_PER_MIB);
  run('mformat', [
    '-i',
    'boot.img',
    '-T',
    sectors,
    '-h',
    '16',
    '-s',
    '63',
    '-H',
    String(SECTORS_PER_MIB),
    '::',
  ]);
  run('mcopy', ['-i', 'boot.img', find('vmlinuz-'), '::/vmlinuz']);
  run('mcopy', ['-i', 'boot.img', find('initrd.img-'), '::/initrd']);
  run('mcopy', ['-i', 'boot.img', 'syslinux.cfg', '::/syslinux.cfg']);
  run('syslinux', ['--install', 'boot.img']);
}

function assemble(folder: string, run: Run): string {
  const disk = join(folder, 'disk.raw');
  fs.writeFileSync(disk, '');
  fs.truncateSync(disk, (2 + BOOT_MIB + ROOT_MIB) * MIB);
  const [boot, root] = [BOOT_MIB * SECTORS_PER_MIB, ROOT_MIB * SECTORS_PER_MIB];
  const table = `label: dos\n${SECTORS_PER_MIB},${boot},c,*\n${SECTORS_PER_MIB + boot},${root},83\n`;
  run('sfdisk', ['-q', disk], table);
  const copy = (from: string, seekMib: number) =>
    run('dd', [`if=${from}`, `of=${disk}`, 'bs=1M', `seek=${seekMib}`, 'conv=notrunc,sparse']);
  copy('boot.img', 1);
  copy('root.img', 1 + BOOT_MIB);
  run('dd', [`if=${BOOT_SECTOR}`, `of=${disk}`, 'bs=440', 'count=1', 'conv=notrunc']);
  return disk;
}

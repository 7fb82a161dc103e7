/** Hosts with other KVM devices, for tests about KVM: this one may have one, or none. */
import { spawnSync } from 'node:child_process';
import { chmodSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** The KVM device of a host: Debian has mode `660` and the group kvm. */
export interface KvmNode {
  readonly mode: string;
  readonly gid: number;
}

/** Why no device can be created here, or false. */
export const noDevices = cannotMakeDevices();

function cannotMakeDevices(): string | false {
  if (process.getuid?.() !== 0) return 'needs root, who makes devices';
  const folder = mkdtempSync(join(tmpdir(), 'cloudlet-device-'));
  const { status } = spawnSync('mknod', [join(folder, 'null'), 'c', '1', '3']);
  rmSync(folder, { recursive: true });
  return status === 0 ? false : 'this root may not make devices';
}

/** A separate /dev for the command, with little more than the node. */
const WITH_NODE = `set -e; dev=$1; mode=$2; gid=$3; shift 3
mount -t tmpfs none "$dev"
for name in null zero full random urandom; do : >"$dev/$name"; mount --bind "/dev/$name" "$dev/$name"; done
mknod "$dev/kvm" c 10 232; chown "0:$gid" "$dev/kvm"; chmod "$mode" "$dev/kvm"
mount --rbind "$dev" /dev
exec "$@"`;

/** Output of the module `script`, run with that KVM device. Throws with its error output. */
export function onHostWith({ mode, gid }: KvmNode, script: string): string {
  const dev = mkdtempSync(join(tmpdir(), 'cloudlet-dev-'));
  const node = [process.execPath, '--input-type=module', '-e', script];
  const words = ['--mount', '--propagation', 'private', 'sh', '-c', WITH_NODE, 'sh', dev, mode, String(gid)];
  try {
    const { status, stdout, stderr } = spawnSync('unshare', [...words, ...node], { encoding: 'utf8' });
    if (status !== 0) throw new Error(stderr);
    return stdout;
  } finally {
    rmSync(dev, { recursive: true, force: true });
  }
}

/**
 * A folder with a QEMU under which a guest with KVM executes its first instruction forever. It serves other
 * requests.
 */
export function spinningQemu(): { readonly folder: string; remove(): void } {
  const folder = mkdtempSync(join(tmpdir(), 'cloudlet-spinning-'));
  chmodSync(folder, 0o755);
  const firmware = Buffer.alloc(0x10000);
  // The reset vector: jmp to itself.
  firmware.set([0xeb, 0xfe], 0xfff0);
  writeFileSync(join(folder, 'firmware'), firmware, { mode: 0o644 });
  const script = `#!/bin/sh
bios=
for word; do
  shift
  case $word in
    kvm) bios='-bios ${folder}/firmware'; word=tcg ;;
    host) word=max ;;
  esac
  set -- "$@" "$word"
done
exec /usr/bin/qemu-system-x86_64 "$@" $bios
`;
  writeFileSync(join(folder, 'qemu-system-x86_64'), script, { mode: 0o755 });
  symlinkSync('/usr/bin/qemu-img', join(folder, 'qemu-img'));
  return { folder, remove: () => rmSync(folder, { recursive: true, force: true }) };
}

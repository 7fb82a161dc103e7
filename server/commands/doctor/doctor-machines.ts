/** The part of `cloudlet doctor` about virtual machines: how they run here, and what limits them. */
import { open } from 'node:fs/promises';
import { join } from 'node:path';
import type { Config } from '../../config/config.ts';
import { findParent } from '../../drivers/host-process/cgroups.ts';
import { moreMemory, neededForGuest } from '../../drivers/qemu/admission.ts';
import { TINY_FOLDER, tinyIn, whyNoTinyImage } from '../../drivers/qemu/images/tiny-image.ts';
import { type Accel, barredKvm, isBarred, KVM_DEVICE, noKvm } from '../../drivers/qemu/kvm.ts';
import { readProbe } from '../../drivers/qemu/probe.ts';
import { QemuPrograms } from '../../drivers/qemu/program.ts';
import type { Finding } from '../../platform/finding.ts';
import {
  ALLOW_OVERCOMMIT,
  committableBytes,
  type HostMemory,
  readHostMemory,
} from '../../platform/host/host-facts.ts';

const SLOWER = 'virtual machines are emulated and run several times slower';
const subject = 'KVM';

/**
 * Reports the accelerator that Cloudlet found by booting a guest. Here the device is only opened: a device
 * that opens can still hang every guest. `shared`: machines run as Cloudlet's user.
 */
export async function checkKvm(
  { dataDir, vmAccel }: Pick<Config, 'dataDir' | 'vmAccel'>,
  shared: boolean,
  device = KVM_DEVICE,
): Promise<Finding[]> {
  if (vmAccel === 'tcg') {
    return [{ level: 'ok', subject, detail: `disabled by CLOUDLET_VM_ACCEL: ${SLOWER}` }];
  }
  const program = await new QemuPrograms().system();
  const past = program === null ? null : readProbe(join(dataDir, 'vms'), program, device);
  const when = past === null ? '' : `tested ${new Date(past.at).toISOString()}`;
  if (past?.accel === 'kvm') {
    return [{ level: 'ok', subject, detail: `virtual machines use KVM (${when})` }];
  }
  if (past !== null) {
    return [warning(past, when)];
  }
  const problem = await whyNotOpen(device, shared);
  if (problem !== null) return [problem];
  const detail = `${device} can be opened, but no guest has been booted with it yet`;
  return [{ level: 'ok', subject, detail: `${detail}; Cloudlet tests KVM at its next start` }];
}

function warning({ reason, fix }: Accel, when = ''): Finding {
  const detail = `${reason}: ${SLOWER}${when === '' ? '' : ` (${when})`}`;
  return { level: 'warn', subject, detail, ...(fix === '' ? {} : { fix }) };
}

async function whyNotOpen(device: string, shared: boolean): Promise<Finding | null> {
  // Root may open what the users of guests may not.
  if (!shared && isBarred(device)) return warning(barredKvm(device, shared));
  try {
    await (await open(device, 'r+')).close();
    return null;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT') return warning(noKvm());
    if (code === 'EACCES') return warning(barredKvm(device, shared));
    const { fix } = noKvm();
    return warning({ accel: 'tcg', reason: `${device} cannot be opened (${code})`, fix });
  }
}

export function checkTinyImage(folder = TINY_FOLDER): Finding[] {
  const missing = whyNoTinyImage(tinyIn(folder));
  if (missing === null) return [{ level: 'ok', subject: 'guest image', detail: 'tiny is built' }];
  return [{ level: 'warn', subject: 'guest image', detail: missing.problem, fix: missing.fix }];
}

/** Whether enough memory is left for one more machine. A limit applies to the process of this command. */
export function checkMemory(memory: HostMemory = readHostMemory()): Finding[] {
  const { totalBytes, availableBytes, isLimited } = memory;
  const needed = neededForGuest(memory);
  const mib = (bytes: number) => `${Math.round(bytes / 2 ** 20)} MiB`;
  const whose = isLimited ? ' available to the cgroup of this command' : '';
  const detail = `${mib(availableBytes)} free of ${mib(totalBytes)}${whose}`;
  if (availableBytes >= needed) return [{ level: 'ok', subject: 'memory', detail }];
  const problem = `${detail}; ${mib(needed)} are needed to start a machine`;
  return [
    { level: 'warn', subject: 'memory', detail: problem, fix: `${moreMemory(memory)}, or stop machines` },
  ];
}

/** If the host does not overcommit memory, a machine takes its whole size when it starts. */
export function checkPromises(left = committableBytes()): Finding[] {
  if (left === null) return [];
  const size = `${Math.floor(left / 2 ** 20)} MiB are left`;
  const detail = `vm.overcommit_memory=2: a machine reserves all its memory when it starts, and ${size}`;
  return [{ level: 'warn', subject: 'overcommit', detail, fix: ALLOW_OVERCOMMIT }];
}

/** Reports the limits of this process's cgroup. A service has its own, and logs them at its first machine. */
export function checkGuestLimits(): Finding[] {
  const { problem } = findParent();
  const about = 'guest limits';
  if (problem === '')
    return [{ level: 'ok', subject: about, detail: 'memory, CPU and processes are limited' }];
  const detail = `machines get no cgroup limits when Cloudlet is started from this shell: ${problem}`;
  return [{ level: 'ok', subject: about, detail }];
}

/** The part of `cloudlet doctor` about virtual machines: how they run here, and what limits them. */
import { open } from 'node:fs/promises';
import { join } from 'node:path';
import type { Config } from '../config.ts';
import { findParent } from '../drivers/qemu/cgroups.ts';
import { KVM_DEVICE, readProbe } from '../drivers/qemu/probe.ts';
import { QemuPrograms } from '../drivers/qemu/program.ts';
import type { Finding } from './doctor.ts';

const SLOWER = 'virtual machines run emulated, several times slower';
const subject = 'KVM';

/**
 * What Cloudlet found out by booting something with it. Here the device is only opened: one that opens can
 * still hang every guest.
 */
export async function checkKvm(
  { dataDir, vmAccel }: Pick<Config, 'dataDir' | 'vmAccel'>,
  device = KVM_DEVICE,
): Promise<Finding[]> {
  if (vmAccel === 'tcg') {
    return [{ level: 'ok', subject, detail: `turned off by CLOUDLET_VM_ACCEL: ${SLOWER}` }];
  }
  const program = await new QemuPrograms().system();
  const past = program === null ? null : readProbe(join(dataDir, 'vms'), program);
  const when = past === null ? '' : `tested ${new Date(past.at).toISOString()}`;
  const problem = await whyNotOpen(device);
  if (problem !== null) return [problem];
  if (past?.accel === 'kvm') {
    return [{ level: 'ok', subject, detail: `virtual machines run with it (${when})` }];
  }
  if (past !== null) {
    const fix = 'let this host offer KVM that works, then boot it anew; without, nothing is to be done';
    return [{ level: 'warn', subject, detail: `${past.reason}: ${SLOWER} (${when})`, fix }];
  }
  const detail = `${device} opens; whether guests boot with it is not known yet`;
  return [{ level: 'ok', subject, detail: `${detail}: Cloudlet tests it when it starts` }];
}

async function whyNotOpen(device: string): Promise<Finding | null> {
  try {
    await (await open(device, 'r+')).close();
    return null;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT') {
      const fix = 'turn on (nested) virtualisation, then modprobe kvm_intel or kvm_amd';
      return { level: 'warn', subject, detail: `no ${device}: ${SLOWER}`, fix };
    }
    const detail = `${device} cannot be opened (${code}): ${SLOWER}`;
    return { level: 'warn', subject, detail, fix: 'adduser <user of Cloudlet> kvm, then log in again' };
  }
}

/** By where this very command runs. A service has a place of its own; it logs at its first machine. */
export function checkGuestLimits(): Finding[] {
  const { problem } = findParent();
  const about = 'guest limits';
  if (problem === '') return [{ level: 'ok', subject: about, detail: 'memory, processors, processes' }];
  const detail = `started from here, machines get no cgroup limits: ${problem}`;
  return [{ level: 'ok', subject: about, detail }];
}

/** KVM's device: permissions, and the result of a test boot. */
import { type Stats, statSync } from 'node:fs';

export interface Accel {
  readonly accel: 'kvm' | 'tcg';
  /** Why KVM is not used; empty if it is. */
  readonly reason: string;
  /** Hint for the operator; may be empty. */
  readonly fix: string;
}

/** `no device. Fix: load the module`, for people; empty for KVM. */
export function withFix({ reason, fix }: Pick<Accel, 'reason' | 'fix'>): string {
  return fix === '' ? reason : `${reason}. Fix: ${fix}`;
}

/** One test boot. */
export interface Boot {
  /** null: it timed out. */
  readonly status: number | null;
  readonly ms: number;
  /** First output line of QEMU, without a path. */
  readonly words: string;
}

export interface Boots {
  readonly tcg: Boot;
  readonly kvm: Boot;
}

/** The only device that QEMU can use. */
export const KVM_DEVICE = '/dev/kvm';
/** The booted program sends this when it is done; QEMU exits with twice the value plus one. */
export const EXIT_VALUE = 0x10;
const GOOD_STATUS = EXIT_VALUE * 2 + 1;
/** Read and write permission of group and others. */
const GROUP_MAY = 0o060;
const ALL_MAY = 0o006;
const KVM_LIMIT_MS = 2000;
const KVM_SLOWER_AT_MOST = 4;

const OFFER_IT = 'turn on (nested) virtualisation, then modprobe kvm_intel or kvm_amd';
const OTHER_HOST = 'use a host with working KVM; a virtual machine needs nested virtualisation on its host';

/**
 * User and group for a process of a guest. With KVM it gets the group that may open the device, but
 * never root's, which has far more rights.
 */
export function kvmUser(uid: number, device = KVM_DEVICE): { uid: number; gid: number } {
  const found = statDevice(device);
  const needsGroup = found !== undefined && !isFor(found, ALL_MAY) && !isBarred(device);
  return { uid, gid: needsGroup ? found.gid : uid };
}

function statDevice(device: string): Stats | undefined {
  return statSync(device, { throwIfNoEntry: false });
}

function isFor({ mode }: Stats, bits: number): boolean {
  return (mode & bits) === bits;
}

/** Changes if it may be another device, or its permissions changed. */
export function deviceState(device: string): string {
  const found = statDevice(device);
  if (found === undefined) return 'none';
  const { rdev, uid, gid, mode } = found;
  return [rdev, uid, gid, mode, ...(process.getgroups?.() ?? [])].join('.');
}

/** Without a device. */
export function noKvm(): Accel {
  return { accel: 'tcg', reason: 'this host offers no KVM', fix: OFFER_IT };
}

/** For a device that the processes of guests may not open. `shared`: they run as our own user. */
export function barredKvm(device: string, shared: boolean): Accel {
  const { uid = 0, gid = 0, mode = 0 } = statDevice(device) ?? {};
  const about = `it belongs to user ${uid} and group ${gid}, mode ${(mode & 0o777).toString(8)}`;
  const open = `chgrp kvm ${device} && chmod 660 ${device}`;
  const openFirst = isBarred(device) ? `, as root ${open}` : '';
  return {
    accel: 'tcg',
    reason: `${shared ? "Cloudlet's user" : 'virtual machines'} may not open ${device}: ${about}`,
    fix: shared
      ? `usermod -aG kvm <user of Cloudlet>${openFirst}, log in again and restart Cloudlet`
      : `${open} (groupadd -r kvm creates the group)`,
  };
}

/** Whether guests' processes may open it, by owner and mode, if they run as their own users. */
export function isBarred(device: string): boolean {
  const found = statDevice(device);
  return found !== undefined && !isFor(found, ALL_MAY) && !(found.gid !== 0 && isFor(found, GROUP_MAY));
}

/** Evaluates the two boots. `shared`: see barredKvm(). */
export function judgeKvm({ tcg, kvm }: Boots, device: string, shared: boolean): Accel {
  const seconds = (ms: number) => `${(ms / 1000).toFixed(2)} s`;
  const refused = (reason: string, fix = OTHER_HOST): Accel => ({ accel: 'tcg', reason, fix });
  const said = ({ words }: Boot) => (words === '' ? '' : `: ${words}`);
  if (tcg.status !== GOOD_STATUS)
    return refused(`KVM could not be tested: the emulated test boot fails, too${said(tcg)}`, '');
  const compared = `emulated it takes ${seconds(tcg.ms)}`;
  if (kvm.status === null)
    return refused(`KVM is available, but a test boot hangs ${seconds(kvm.ms)}; ${compared}`);
  if (kvm.status !== GOOD_STATUS) {
    if (/Permission denied|Operation not permitted/.test(kvm.words)) return barredKvm(device, shared);
    const isUnknown = /No such (?:device|file)/.test(kvm.words);
    return refused(`a test boot with KVM fails${said(kvm)}`, isUnknown ? OFFER_IT : OTHER_HOST);
  }
  if (kvm.ms < Math.min(KVM_LIMIT_MS, tcg.ms * KVM_SLOWER_AT_MOST))
    return { accel: 'kvm', reason: '', fix: '' };
  return refused(`KVM is available, but a test boot takes ${seconds(kvm.ms)}; ${compared}`);
}

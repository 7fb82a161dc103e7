/** Processes that run guests: each is known by the guest's uuid besides what tells it from all others. */
import { readdirSync } from 'node:fs';
import { hostBootId, identify, type ProcessIdentity, readProc } from '../host-process/process-identity.ts';
import { userOf } from '../host-process/user-processes.ts';

export interface GuestIdentity extends ProcessIdentity {
  /** The guest's. Of a process that is not known yet it is in the command line. */
  readonly uuid: string;
}

function guestUuid(pid: number): string | null {
  const words = (readProc(`${pid}/cmdline`) ?? '').split('\0');
  const at = words.indexOf('-uuid');
  return at < 0 || !/qemu|kvm/.test(words[0] ?? '') ? null : (words[at + 1] ?? null);
}

/** The identity of a process that runs a guest now, by its own word; null when it is gone or runs none. */
export function identifyGuest(pid: number): Omit<GuestIdentity, 'uid'> | null {
  const identity = identify(pid);
  const uuid = identity === null ? null : guestUuid(pid);
  return identity === null || uuid === null ? null : { ...identity, uuid };
}

/**
 * Processes that run guests, by the guest's uuid. `ownerOf` names the user that a guest's process must have,
 * undefined for guests that are not ours: anyone may write anything into a command line.
 */
export function findGuests(
  ownerOf: (uuid: string) => number | undefined,
): Map<string, Omit<GuestIdentity, 'uid'>> {
  const found = new Map<string, Omit<GuestIdentity, 'uid'>>();
  for (const name of readdirSync('/proc')) {
    if (!/^\d+$/.test(name)) continue;
    const identity = identifyGuest(Number(name));
    if (identity === null || ownerOf(identity.uuid) !== userOf(name)) continue;
    found.set(identity.uuid, identity);
  }
  return found;
}

export function handleOf({ pid, startTime, bootId, uuid }: Omit<GuestIdentity, 'uid'>): string {
  return `${pid}.${startTime}.${bootId}.${uuid}`;
}

/** What handleOf() made the handle of. */
export function identityOf(handle: string, uid: number | null): GuestIdentity {
  const [pid, startTime, bootId = '', uuid = ''] = handle.split('.');
  return { pid: Number(pid), startTime: Number(startTime), bootId, uuid, uid };
}

/** Whether the process of that handle was before the host's present boot, and so is gone for sure. */
export function isOfEarlierBoot(handle: string): boolean {
  return identityOf(handle, null).bootId !== hostBootId();
}

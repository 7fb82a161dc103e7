/**
 * While the host's disk fills, machines of accounts without granted credits keep to a share of it, as their
 * memory does. Disks are thinly provisioned: the quota counts what may be written, and this what is.
 */
import type { Clock } from '../../platform/clock.ts';
import { AppError } from '../../platform/errors.ts';
import type { Hypervisor } from '../hypervisor.ts';
import type { VmBilling } from '../machines/vm-billing.ts';
import type { VmStore } from '../machines/vm-store.ts';

/** The disk with the data directory. */
export interface SharedDisk {
  readonly totalBytes: number;
  /** Less what is admitted and not yet written. */
  readonly freeBytes: number;
}

export interface DiskSharesDeps {
  readonly store: Pick<VmStore, 'owners'>;
  readonly billing: Pick<VmBilling, 'isTrusted'>;
  readonly hypervisor: Pick<Hypervisor, 'snapshots'>;
  readonly clock: Clock;
  readonly disk: () => SharedDisk;
  /** See Lifecycle: the same share as of the memory. */
  readonly ungrantedMemoryPercent: number;
}

const GIB = 2 ** 30;
/** At least this many accounts are needed to fill the share. */
const ACCOUNTS_TO_FILL = 4;
/** Every account has room for a machine, also on a small disk. */
const LEAST_BYTES = GIB;
/** Files of all machines are looked at this often, ms, and only while the disk fills. */
const LOOK_MS = 5000;
const NOBODY: ReadonlySet<string> = new Set();

interface Owner {
  readonly vmIds: string[];
  bytes: number;
}

interface Shares {
  readonly allBytes: number;
  readonly eachBytes: number;
}

export class DiskShares {
  readonly #deps: DiskSharesDeps;
  #over = NOBODY;
  #lookedAt = Number.NEGATIVE_INFINITY;

  constructor(deps: DiskSharesDeps) {
    this.#deps = deps;
  }

  /** Machines that may not grow for now, because their owners hold more than their share. */
  async over(): Promise<ReadonlySet<string>> {
    const shares = this.#shares(0);
    if (shares === null) return NOBODY;
    const now = this.#deps.clock.monotonic();
    if (now - this.#lookedAt < LOOK_MS) return this.#over;
    this.#lookedAt = now;
    const owners = [...(await this.#untrusted()).values()];
    const allBytes = sumOf(owners);
    const most = Math.max(...owners.map(({ bytes }) => bytes), 0);
    const isOver = ({ bytes }: Owner) =>
      bytes > shares.eachBytes || (allBytes > shares.allBytes && 2 * bytes > most);
    this.#over = new Set(owners.filter(isOver).flatMap(({ vmIds }) => vmIds));
    return this.#over;
  }

  /** Throws `out_of_space` when the account would hold more than its share with `bytes` more. */
  async assertMayGrow(accountId: number, bytes: number): Promise<void> {
    const shares = this.#shares(bytes);
    if (shares === null || (await this.#deps.billing.isTrusted(accountId))) return;
    const owners = await this.#untrusted();
    const ownBytes = owners.get(accountId)?.bytes ?? 0;
    const isOver =
      ownBytes + bytes > shares.eachBytes || sumOf([...owners.values()]) + bytes > shares.allBytes;
    if (isOver) throw shareTaken(ownBytes, shares);
  }

  /** null: enough of the disk is free for everybody. */
  #shares(moreBytes: number): Shares | null {
    const { ungrantedMemoryPercent: percent, disk } = this.#deps;
    if (percent === 100) return null;
    const { totalBytes, freeBytes } = disk();
    if (freeBytes - moreBytes >= totalBytes * (1 - percent / 100)) return null;
    const allBytes = Math.floor((totalBytes * percent) / 100);
    return { allBytes, eachBytes: Math.max(Math.floor(allBytes / ACCOUNTS_TO_FILL), LEAST_BYTES) };
  }

  async #untrusted(): Promise<ReadonlyMap<number, Owner>> {
    const { store, billing, hypervisor } = this.#deps;
    const owners = new Map<number, Owner>();
    for (const { vm_id, account_id } of await store.owners()) {
      const owner = owners.get(account_id) ?? { vmIds: [], bytes: 0 };
      owners.set(account_id, owner);
      owner.vmIds.push(vm_id);
      owner.bytes += hypervisor.snapshots.takenBytes(vm_id);
    }
    for (const accountId of owners.keys()) if (await billing.isTrusted(accountId)) owners.delete(accountId);
    return owners;
  }
}

function sumOf(owners: readonly Owner[]): number {
  return owners.reduce((sum, { bytes }) => sum + bytes, 0);
}

function shareTaken(ownBytes: number, { eachBytes }: Shares): AppError {
  const [own, each] = [ownBytes, eachBytes].map((bytes) => (bytes / GIB).toFixed(1));
  return new AppError(
    'out_of_space',
    `The disk of this cloud fills: your machines and snapshots take ${own} of the ${each} GB that one account ` +
      'without granted credits may have then, and all such accounts share a part of it',
    { hint: 'Delete snapshots or machines, or ask an administrator to grant you credits' },
  );
}

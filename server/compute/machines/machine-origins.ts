/** Machines in recovery points: owners restore them as new machines with a copy of the disk. */
import type { Principal } from '../../calls/principal.ts';
import type { Reads } from '../../metadata/metadata.ts';
import { formatTime } from '../../platform/clock.ts';
import { AppError } from '../../platform/errors.ts';
import { isId } from '../../platform/ids.ts';
import { RestoreTurns } from '../../resources/restore-turns.ts';
import type { GuestOrigin, OriginFile } from '../hypervisor.ts';
import type { VmPoint } from '../schema.ts';
import { FOLDER, POINT_COMPONENT } from './point-machines.ts';
import { type VmRow, VmStore } from './vm-store.ts';

export interface MachinePoints {
  /** The intact points, newest first; times in ms. */
  points(): Promise<readonly { readonly pointId: string; readonly createdAt: number }[]>;
  /** Opens the metadata of an intact point while `work` runs. Throws `overloaded`, `out_of_space`, … */
  during<T>(pointId: string, work: (point: { readonly reads: Reads }) => Promise<T>): Promise<T>;
  /** undefined: not in the recovery point. Throws `data_corrupted`, `target_unavailable`. */
  find(
    pointId: string,
    file: { readonly component: string; readonly path: string },
  ): Promise<OriginFile | undefined>;
}

export interface MachineOriginsDeps {
  readonly store: VmStore;
  readonly points: MachinePoints;
  /** Throws `out_of_space` when that many more bytes cannot be stored. */
  readonly assertSpace: (bytes: number) => void;
}

/** The machine in a point, and its files. */
export interface FoundOrigin {
  readonly row: VmRow;
  readonly origin: GuestOrigin;
}

interface Wanted {
  readonly vm_id: string;
  readonly point_id: string;
}

const PAGE = 500;

export class MachineOrigins {
  readonly #deps: MachineOriginsDeps;
  readonly #turns = new RestoreTurns({ what: 'virtual machines' });

  constructor(deps: MachineOriginsDeps) {
    this.#deps = deps;
  }

  /**
   * The usable points since the account was created, newest first, for a machine of the account, or
   * one that it had. Throws `vm_not_found`.
   */
  async list({ accountId }: Principal, vmId: string): Promise<VmPoint[]> {
    if (!(await this.#deps.store.wasOf(accountId, vmId))) {
      throw new AppError('vm_not_found', 'You have never had a virtual machine with this id');
    }
    const points = await this.#pointsOf(accountId);
    return points.map(({ pointId, createdAt }) => ({ point_id: pointId, created_at: formatTime(createdAt) }));
  }

  async #pointsOf(accountId: number) {
    const since = await this.#deps.store.accountSince(accountId);
    const points = since === undefined ? [] : await this.#deps.points.points();
    return points.filter(({ createdAt }) => createdAt >= (since ?? 0));
  }

  /**
   * Runs `work` with the caller's machine as it is in the point. Throws `point_not_found` for a
   * point that does not have it, `overloaded` like RestoreTurns.inPortions().
   */
  async during<T>(
    principal: Principal,
    wanted: Wanted,
    work: (found: FoundOrigin) => Promise<T>,
  ): Promise<T> {
    return this.#turns.run(principal.accountId, async () => {
      const row = await this.#rowIn(principal, wanted);
      return work({ row, origin: this.#originOf(row, wanted.point_id) });
    });
  }

  /** The machines of any account in a point, oldest first. */
  async listIn(reads: Reads, accountId: number): Promise<VmRow[]> {
    const store = new VmStore(reads);
    const rows: VmRow[] = [];
    for (let after = 0; ; ) {
      const page = await store.listOf(accountId, after, PAGE);
      rows.push(...page.filter(({ desired_state }) => desired_state !== 'deleted'));
      after = page.at(-1)?.id ?? after;
      if (page.length < PAGE) return rows;
    }
  }

  /** Runs `work` with a machine of another account in the point: for administrators. Throws like during(). */
  async duringFor<T>(
    principal: Principal,
    { accountId, vm_id: vmId, point_id: pointId }: Wanted & { readonly accountId: number },
    work: (found: FoundOrigin) => Promise<T>,
  ): Promise<T> {
    return this.#turns.run(principal.accountId, async () => {
      const { points } = this.#deps;
      const row = await points.during(pointId, async ({ reads }) => new VmStore(reads).find(vmId));
      if (row?.account_id !== accountId) throw notIn({ vm_id: vmId, point_id: pointId });
      return work({ row, origin: this.#originOf(row, pointId) });
    });
  }

  #originOf({ vm_id: vmId }: VmRow, pointId: string): GuestOrigin {
    return { vmId, find: (path) => this.#find(pointId, path) };
  }

  async #rowIn(principal: Principal, wanted: Wanted): Promise<VmRow> {
    const { accountId } = principal;
    const { vm_id: vmId, point_id: pointId } = wanted;
    const isKnown = (await this.#pointsOf(accountId)).some((point) => point.pointId === pointId);
    if (!isKnown || !isId('vm', vmId)) throw notIn(wanted);
    const { points, store } = this.#deps;
    const since = await store.accountSince(accountId);
    const row = await points.during(pointId, async ({ reads }) => {
      const then = new VmStore(reads);
      // In a lost cloud, the same number may have belonged to another account.
      const isSame = (await then.accountSince(accountId)) === since;
      return isSame ? then.find(vmId) : undefined;
    });
    if (row?.account_id !== accountId) throw notIn(wanted);
    return row;
  }

  async #find(pointId: string, path: string): Promise<OriginFile | undefined> {
    const { points, assertSpace } = this.#deps;
    const found = await points.find(pointId, { component: POINT_COMPONENT, path: `${FOLDER}/${path}` });
    if (found === undefined) return undefined;
    const { spaceBytes } = found;
    const writeTo = async (to: string) => {
      assertSpace(spaceBytes);
      await found.writeTo(to);
    };
    return { spaceBytes, read: () => found.read(), writeTo };
  }
}

function notIn({ vm_id, point_id }: Wanted): AppError {
  return new AppError(
    'point_not_found',
    `No recovery point ${point_id} has a virtual machine ${vm_id} of yours`,
    {
      hint: `GET /api/vms/${vm_id}/points lists your recovery points`,
    },
  );
}

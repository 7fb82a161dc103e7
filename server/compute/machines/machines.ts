/** Creates, finds and lists machines for their owner. Starting and stopping is in power-control.ts. */

import type { AccountResources } from '../../calls/account-resources.ts';
import { type Call, type Principal, permits } from '../../calls/principal.ts';
import type { CallRecorder, Changes } from '../../metadata/change.ts';
import { Listed, listRows, type Page } from '../../metadata/list.ts';
import { CommitOutcomeUnknown } from '../../metadata/metadata.ts';
import type { Clock } from '../../platform/clock.ts';
import { AppError, invalidField } from '../../platform/errors.ts';
import { isId, newId, newMac, newUuid } from '../../platform/ids.ts';
import type { Hypervisor } from '../hypervisor.ts';
import { DEFAULT_IMAGE, type Images } from '../images/images.ts';
import { findInstanceType } from '../instance-types.ts';
import type { NetworkServices } from '../private-network.ts';
import type { NewVm, Vm } from '../schema.ts';
import type { SshKeys } from '../ssh-keys/ssh-keys.ts';
import type { AddressPool } from './addresses.ts';
import type { FoundOrigin, MachineOrigins } from './machine-origins.ts';
import { guestNetwork, guestSpec } from './runs.ts';
import type { VmBilling } from './vm-billing.ts';
import { ALWAYS_OPEN, type CheckedVm, checkNewVm } from './vm-fields.ts';
import type { VmRow, VmStore } from './vm-store.ts';
import type { VmViews } from './vm-view.ts';

const DEFAULT_REGION = 'us-east-1';

/** Throws `insufficient_capacity` if this process may not open this many more files. */
export interface OpenFiles {
  assertFree(more: number): void;
}

/** Files open while a machine is created: of programs, pipes and disks. */
const FILES_TO_CREATE = 16;
/** Disk, seed and records before the guest writes anything; they must not use the host's reserve. */
const BYTES_TO_CREATE = 2 ** 20;

export interface MachinesDeps {
  readonly changes: Changes;
  readonly store: VmStore;
  readonly clock: Clock;
  readonly hypervisor: Hypervisor;
  readonly images: Images;
  readonly addresses: AddressPool;
  readonly views: VmViews;
  readonly billing: Pick<VmBilling, 'assertCredit' | 'planOf' | 'created'>;
  readonly descriptors: OpenFiles;
  /** Throws `out_of_space` when that many more bytes cannot be stored. */
  readonly assertSpace: (bytes: number) => void;
  readonly services: Pick<NetworkServices, 'find'>;
  readonly origins: MachineOrigins;
  readonly sshKeys: Pick<SshKeys, 'linesOf'>;
  /** Whether new guests may open outbound connections. */
  readonly outbound: boolean;
}

/** The owner of a machine, or an administrator, who may act on any machine. */
export type Caller = Principal | 'administrator';

export type ListedVm = Listed<VmRow, Vm>;

/** The caller of an operation on a machine, and the recorder of its response. */
export interface MachineCall extends CallRecorder {
  readonly principal: Caller;
}

type NewRow = Omit<VmRow, 'id'>;

interface VmRequest {
  readonly input: NewVm;
  readonly checked: CheckedVm;
  readonly address: string;
  readonly plan: string;
  readonly diskGb: number;
  readonly imageId: string;
}

export class Machines {
  readonly #deps: MachinesDeps;
  /** Guests with a disk and perhaps no row yet; not orphans. */
  readonly #beingCreated = new Set<string>();

  constructor(deps: MachinesDeps) {
    this.#deps = deps;
  }

  /**
   * Throws `invalid_request`, `image_not_found`, `insufficient_credits`, `insufficient_capacity`,
   * `no_free_address`, and the engine's error for a disk that it cannot create (`out_of_space`).
   * `from`: throws the errors of MachineOrigins.during(). Leaves nothing behind on failure.
   */
  async create(call: Call, input: NewVm): Promise<Vm> {
    const { from } = input;
    if (from === undefined) return this.#create(call, input);
    return this.#deps.origins.during(call.principal, from, (found) => {
      const { row } = found;
      if (input.image !== undefined && input.image !== row.image_id) {
        throw invalidField('image', `must be ${row.image_id}, the image of the machine in the point`);
      }
      assertDiskFits(input.instance_type, row);
      const keys = JSON.parse(row.ssh_keys) as string[];
      return this.#create(call, { ssh_keys: keys, ...input, image: row.image_id }, found);
    });
  }

  /** Restores the machines of an account from a recovery point, stopped, for another account. */
  get resources(): AccountResources {
    const { origins } = this.#deps;
    return {
      list: async (reads, accountId) => {
        const rows = await origins.listIn(reads, accountId);
        return rows.map(({ vm_id: id, name }) => ({ kind: 'machine', id, name, sizeBytes: null }));
      },
      restore: async (call, { pointId: point_id, accountId, resource: { id: vm_id } }) => {
        const wanted = { accountId, vm_id, point_id };
        const made = await origins.duringFor(call.principal, wanted, (found) => {
          return this.#create(call, inputOf(found.row), found);
        });
        return { id: made.vm_id, lacks: [] };
      },
    };
  }

  async #create(call: Call, input: NewVm, from?: FoundOrigin): Promise<Vm> {
    const { principal } = call;
    const checked = await this.#withNamedKeys(principal, input);
    const image = await this.#deps.images.find(input.image ?? DEFAULT_IMAGE);
    const diskGb = from?.row.disk_gb ?? checked.type.diskGb;
    if (image.min_disk_gb > diskGb) {
      const need = `${input.instance_type} has a disk of ${diskGb} GB`;
      throw invalidField('image', `needs a disk of ${image.min_disk_gb} GB, and ${need}`);
    }
    if (checked.databases.length > 0) await this.#assertDatabases(principal, checked.databases);
    const plan = await this.#deps.billing.planOf(principal.accountId);
    const { name: instance_type } = checked.type;
    await this.#deps.billing.assertCredit({ account_id: principal.accountId, plan, instance_type });
    this.#deps.descriptors.assertFree(FILES_TO_CREATE);
    this.#deps.assertSpace(BYTES_TO_CREATE);
    const address = await this.#deps.addresses.take(checked.ports);
    const imageId = image.image_id;
    const row = this.#newRow(principal, { input, checked, address, plan, diskGb, imageId });
    this.#beingCreated.add(row.vm_id);
    try {
      return await this.#store(call, row, from);
    } finally {
      this.#beingCreated.delete(row.vm_id);
    }
  }

  /** Finds the caller's machine. Throws `vm_not_found`, also when it is another account's. */
  async findFor(caller: Caller, vmId: string): Promise<VmRow> {
    const row = isId('vm', vmId) ? await this.#deps.store.find(vmId) : undefined;
    const isTheirs = caller === 'administrator' || row?.account_id === caller.accountId;
    if (row !== undefined && isTheirs) return row;
    const whose = caller === 'administrator' ? 'There is' : 'You have';
    throw new AppError('vm_not_found', `${whose} no such virtual machine`);
  }

  async describe(principal: Principal, vmId: string): Promise<Vm> {
    return this.#deps.views.present(await this.findFor(principal, vmId));
  }

  /** Machines of one account, or of all, oldest first. */
  async *list(accountId: number | 'all', page: Page): AsyncGenerator<ListedVm> {
    const { store, views } = this.#deps;
    const rows = listRows(page, (after, limit) =>
      accountId === 'all' ? store.list(after, limit) : store.listOf(accountId, after, limit),
    );
    for await (const row of rows) yield new Listed(row, views.present(row));
  }

  isBeingCreated(vmId: string): boolean {
    return this.#beingCreated.has(vmId);
  }

  async #withNamedKeys(principal: Principal, input: NewVm): Promise<CheckedVm> {
    const checked = checkNewVm(input);
    const { ssh_key_names: names = [] } = input;
    if (names.length === 0) return checked;
    const wanted = { given: checked.sshKeys, names };
    return { ...checked, sshKeys: await this.#deps.sshKeys.linesOf(principal, wanted) };
  }

  /** The machine gets passwords, so its creator must be allowed to read them. */
  async #assertDatabases(principal: Principal, names: readonly string[]): Promise<void> {
    if (!permits(principal, 'databases:write'))
      throw new AppError(
        'scope_required',
        'This key lacks the scope databases:write, which databases requires',
      );
    for (const [index, name] of names.entries()) {
      const isKnown = (await this.#deps.services.find(principal.accountId, name)) !== null;
      if (!isKnown) throw invalidField(`databases.${index}`, 'must be the name of one of your databases');
    }
  }

  #newRow(principal: Principal, request: VmRequest): NewRow {
    const { input, checked, address, plan, diskGb, imageId } = request;
    const { type } = checked;
    const now = this.#deps.clock.now();
    return {
      vm_id: newId('vm', this.#deps.clock),
      account_id: principal.accountId,
      name: checked.name,
      instance_type: type.name,
      region: input.region ?? DEFAULT_REGION,
      tags: input.tags ?? '',
      vcpus: type.vcpus,
      memory_mb: type.memoryMb,
      disk_gb: diskGb,
      rebuilds: 0,
      price_micro: type.priceMicro,
      image_id: imageId,
      ssh_keys: JSON.stringify(checked.sshKeys),
      user_data: checked.userData,
      databases: checked.databases.length === 0 ? null : JSON.stringify(checked.databases),
      ports: JSON.stringify(checked.ports),
      outbound: Number(this.#deps.outbound),
      uuid: newUuid(),
      mac: newMac(),
      address,
      state: 'created',
      desired_state: 'stopped',
      generation: 0,
      reason_code: null,
      reason_message: null,
      handle: null,
      accel: null,
      accel_reason: null,
      state_changed_at: now,
      started_at: null,
      ready_at: null,
      created_at: now,
      plan,
      published: 0,
      snapshots: 0,
      snapshot_gb: 0,
    };
  }

  /**
   * Creates the disk, then the row: a crash in between leaves a disk to sweep, never a machine without one.
   */
  async #store(call: Call, wanted: NewRow, from?: FoundOrigin): Promise<Vm> {
    const { hypervisor, changes, store, images, addresses, views, billing } = this.#deps;
    let row = wanted;
    let isRetry = false;
    try {
      await hypervisor.prepare(guestSpec(row), from?.origin);
      return await changes.run(call, async (change) => {
        if (isRetry) row = await this.#withFreeAddress(row);
        isRetry = true;
        change.add(store.insert(row), 'retry');
        change.add(store.usage(row, 'created', row.created_at));
        images.claim(change, row.image_id);
        // A concurrent change used up a quota.
        change.addAll(await billing.created(row), 'retry');
        return views.present(row);
      });
    } catch (error) {
      // The row may have been stored; if not, the supervisor removes the disk later.
      if (error instanceof CommitOutcomeUnknown) throw error;
      if (row.address !== null) addresses.giveBack(row.address);
      await hypervisor.discard(row.vm_id).catch(() => {});
      throw error;
    }
  }

  /** An address already used by another row stays allocated in the pool. */
  async #withFreeAddress(row: NewRow): Promise<NewRow> {
    const { store, addresses } = this.#deps;
    let { address } = row;
    while (address !== null && (await store.isAddressTaken(address))) {
      address = await addresses.take(guestNetwork(row).ports);
    }
    return { ...row, address };
  }
}

/** A copy keeps its disk: its type is the one in the point, or has a disk of that size. */
function assertDiskFits(instanceType: string, { instance_type, disk_gb }: VmRow): void {
  if (instanceType === instance_type || findInstanceType(instanceType)?.diskGb === disk_gb) return;
  throw invalidField('instance_type', `must have a disk of ${disk_gb} GB, as in the point`);
}

/** Input for a machine like this one. */
function inputOf({ name, instance_type, region, tags, user_data, ...row }: VmRow): NewVm {
  const listOf = (text: string | null) => JSON.parse(text ?? '[]');
  const ports = (listOf(row.ports) as number[]).filter((port) => !ALWAYS_OPEN.includes(port));
  return {
    name,
    instance_type,
    region,
    tags,
    image: row.image_id,
    ports,
    ssh_keys: listOf(row.ssh_keys),
    databases: listOf(row.databases),
    ...(user_data !== null && { user_data }),
  };
}

/** Machines: made and found by their owner. What runs them is power.ts. */
import type { Principal } from '../accounts/principal.ts';
import type { Clock } from '../clock.ts';
import { AppError, invalidField, isAppError } from '../errors.ts';
import { isId, newId, newMac, newUuid } from '../ids.ts';
import { CommitRejected, type Metadata, type Statement } from '../metadata/metadata.ts';
import type { AddressPool } from './addresses.ts';
import { guestNetwork, guestSpec } from './guest-spec.ts';
import type { Hypervisor } from './hypervisor.ts';
import { DEFAULT_IMAGE, type Images, imageNotFound } from './images.ts';
import type { NewVm, Vm } from './schema.ts';
import type { VmRow, VmStore } from './store.ts';
import type { VmAnswers } from './vm-answer.ts';
import type { VmBilling } from './vm-billing.ts';
import { type CheckedVm, checkNewVm } from './vm-fields.ts';

const DEFAULT_REGION = 'us-east-1';
const LIST_STEP = 1000;
/** Addresses that turned out to be taken, before we give up. */
const ADDRESS_TRIES = 5;
/** Others that were faster, before we give up. */
const QUOTA_TRIES = 50;

/** Throws `insufficient_capacity` when this process may not open so many files more. */
export interface OpenFiles {
  demand(more: number): void;
}

/** Files that are open while a machine is made: of programs, pipes and disks. */
const FILES_TO_CREATE = 16;
/** Of disk, seed and records, before the guest writes anything: the host's reserve is not for them. */
const BYTES_TO_CREATE = 2 ** 20;

export interface MachinesDeps {
  readonly metadata: Metadata;
  readonly store: VmStore;
  readonly clock: Clock;
  readonly hypervisor: Hypervisor;
  readonly images: Images;
  readonly addresses: AddressPool;
  readonly answers: VmAnswers;
  readonly billing: Pick<VmBilling, 'require' | 'planOf' | 'created'>;
  readonly descriptors: OpenFiles;
  /** Throws `out_of_space` when so many bytes more must not be stored. */
  readonly assertRoom: (bytes: number) => void;
  /** Whether new guests may open connections to the outside. */
  readonly outbound: boolean;
}

/** The owner of a machine, or an administrator, for whom it may be anybody's. */
export type Caller = Principal | 'administrator';

type NewRow = Omit<VmRow, 'id'>;

interface Page {
  /** A row id. */
  readonly after: number;
  /** At most so many. */
  readonly limit: number;
}

interface Wish {
  readonly input: NewVm;
  readonly checked: CheckedVm;
  readonly address: string;
  readonly plan: string;
}

export class Machines {
  readonly #deps: MachinesDeps;
  /** Have a disk and perhaps no row yet: no orphans. */
  readonly #beingCreated = new Set<string>();

  constructor(deps: MachinesDeps) {
    this.#deps = deps;
  }

  /**
   * Throws `invalid_request`, `image_not_found`, `insufficient_credits`, `insufficient_capacity`,
   * `no_free_address`, and what the engine says of a disk it cannot make (`out_of_space`). Nothing is left
   * behind then.
   */
  async create(
    principal: Principal,
    input: NewVm,
    receipt: (answer: Vm) => readonly Statement[] = () => [],
  ): Promise<Vm> {
    const checked = checkNewVm(input);
    const image = await this.#deps.images.find(input.image ?? DEFAULT_IMAGE);
    if (image.min_disk_gb > checked.type.diskGb) {
      const need = `${input.instance_type} has a disk of ${checked.type.diskGb} GB`;
      throw invalidField('image', `needs a disk of ${image.min_disk_gb} GB, and ${need}`);
    }
    await this.#deps.billing.require(principal.accountId, checked.type.name);
    const plan = await this.#deps.billing.planOf(principal.accountId);
    this.#deps.descriptors.demand(FILES_TO_CREATE);
    this.#deps.assertRoom(BYTES_TO_CREATE);
    const address = await this.#deps.addresses.take(checked.ports);
    const row = this.#newRow(principal, { input, checked, address, plan });
    this.#beingCreated.add(row.vm_id);
    try {
      return await this.#store(row, receipt);
    } finally {
      this.#beingCreated.delete(row.vm_id);
    }
  }

  /** The caller's machine. Throws `vm_not_found`, also when it is someone else's. */
  async findFor(caller: Caller, vmId: string): Promise<VmRow> {
    const row = isId('vm', vmId) ? await this.#deps.store.find(vmId) : undefined;
    const isTheirs = caller === 'administrator' || row?.account_id === caller.accountId;
    if (row !== undefined && isTheirs) return row;
    const whose = caller === 'administrator' ? 'There is' : 'You have';
    throw new AppError('vm_not_found', `${whose} no such virtual machine`);
  }

  async describe(principal: Principal, vmId: string): Promise<Vm> {
    return this.#deps.answers.present(await this.findFor(principal, vmId));
  }

  /** Of an account, or of all, oldest first. */
  async *list(accountId: number | 'all', { after, limit }: Page): AsyncGenerator<ListedVm> {
    const { store } = this.#deps;
    let last = after;
    let left = limit;
    while (left > 0) {
      const step = Math.min(left, LIST_STEP);
      const rows = await (accountId === 'all' ? store.list(last, step) : store.listOf(accountId, last, step));
      for (const row of rows) yield new ListedVm(row, this.#deps.answers);
      left -= rows.length;
      const end = rows.at(-1);
      if (rows.length < LIST_STEP || !end) return;
      last = end.id;
    }
  }

  isBeingCreated(vmId: string): boolean {
    return this.#beingCreated.has(vmId);
  }

  #newRow(principal: Principal, wish: Wish): NewRow {
    const { input, checked, address, plan } = wish;
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
      disk_gb: type.diskGb,
      price_micro: type.priceMicro,
      image_id: input.image ?? DEFAULT_IMAGE,
      ssh_keys: JSON.stringify(checked.sshKeys),
      user_data: checked.userData,
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
    };
  }

  /** Disk first, then the row: a crash between them leaves a disk to sweep, never a machine without one. */
  async #store(wanted: NewRow, receipt: (answer: Vm) => readonly Statement[]): Promise<Vm> {
    const { hypervisor, addresses, answers } = this.#deps;
    let row = wanted;
    try {
      await hypervisor.prepare(guestSpec(row));
      row = await this.#commit(row, receipt, (other) => {
        row = other;
      });
    } catch (error) {
      // It may have been stored all the same; if not, the supervisor removes the disk later.
      if (isAppError(error, 'read_only')) throw error;
      if (row.address !== null) addresses.giveBack(row.address);
      await hypervisor.discard(row.vm_id).catch(() => {});
      throw error;
    }
    return answers.present(row);
  }

  /** Tells `onMoved` when the machine gets another address, because the first was someone's after all. */
  async #commit(
    wanted: NewRow,
    receipt: (answer: Vm) => readonly Statement[],
    onMoved: (row: NewRow) => void,
  ): Promise<NewRow> {
    const { metadata, store, images, addresses, answers, billing } = this.#deps;
    const claim = images.claim(wanted.image_id);
    let row = wanted;
    for (let tries = 1; ; tries++) {
      const own = [store.insert(row), store.usage(row, 'created', row.created_at), ...claim];
      const billed = await billing.created(row);
      try {
        await metadata.commit([...own, ...billed, ...receipt(answers.present(row))]);
        return row;
      } catch (error) {
        const isRejected = error instanceof CommitRejected;
        // It was deleted since we looked.
        if (isRejected && claim.length > 0 && error.index === 2) throw imageNotFound();
        const isQuota = isRejected && error.index >= own.length && error.index < own.length + billed.length;
        if (isQuota && tries < QUOTA_TRIES) continue;
        const isClash = isRejected && error.index === 0 && error.reason === 'unique';
        const taken = isClash && row.address !== null && (await store.isAddressTaken(row.address));
        if (!taken || tries === ADDRESS_TRIES) throw error;
        // The pool goes on to count it as taken, which it is.
        row = { ...row, address: await addresses.take(guestNetwork(row).ports) };
        onMoved(row);
      }
    }
  }
}

/** A machine with its place in the list and its owner. */
export class ListedVm {
  readonly id: number;
  readonly accountId: number;
  readonly #row: VmRow;
  readonly #answers: VmAnswers;

  constructor(row: VmRow, answers: VmAnswers) {
    this.id = row.id;
    this.accountId = row.account_id;
    this.#row = row;
    this.#answers = answers;
  }

  toJSON(): Vm {
    return this.#answers.present(this.#row);
  }
}

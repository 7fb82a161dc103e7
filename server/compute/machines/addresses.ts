/** The address pool of machines: allocates and releases single addresses of one network. */
import { AppError } from '../../platform/errors.ts';
import type { Ingress } from '../ingress.ts';

/** Addresses claimed together, or the whole network if it is smaller. */
const BLOCK = 256;
/** Refused addresses or blocks before an allocation gives up. */
const MAX_REFUSED = 256;

export interface AddressPoolDeps {
  /** An IPv4 network like `127.80.0.0/16`. */
  readonly network: string;
  /** Addresses of existing machines, oldest first. */
  readonly taken: readonly string[];
  readonly host: Pick<Ingress, 'claim' | 'isFree'>;
}

export class AddressPool {
  readonly #first: number;
  readonly #size: number;
  readonly #host: AddressPoolDeps['host'];
  readonly #taken = new Set<number>();
  #next = 1;

  /** The search continues after the newest address, so that a released address is not reused soon. */
  constructor({ network, taken, host }: AddressPoolDeps) {
    const [base = '', prefix = ''] = network.split('/');
    this.#host = host;
    this.#size = 2 ** (32 - Number(prefix));
    this.#first = Math.floor(toNumber(base) / this.#size) * this.#size;
    for (const address of taken) this.markTaken(address);
  }

  /**
   * Allocates an address that no machine has and on which no other program of this host listens at
   * these ports. Throws `no_free_address`.
   */
  async take(guestPorts: readonly number[]): Promise<string> {
    let refused = 0;
    for (let tried = 0; tried < this.#size && refused < MAX_REFUSED; tried++) {
      const index = this.#next;
      this.#next = (index + 1) % this.#size;
      if (!this.#isHost(index) || this.#taken.has(index)) continue;
      const address = toText(this.#first + index);
      const block = index - (index % BLOCK);
      // Marked before the host is checked: other allocations run concurrently.
      this.#taken.add(index);
      const isOurs = await this.#host.claim(toText(this.#first + block));
      if (isOurs && (await this.#host.isFree(address, guestPorts))) return address;
      this.#taken.delete(index);
      refused++;
      if (isOurs) continue;
      this.#next = (block + BLOCK) % this.#size;
      tried += block + BLOCK - index - 1;
    }
    throw new AppError('no_free_address', 'No free address is left for a virtual machine', {
      hint:
        refused === 0
          ? 'Delete virtual machines you do not need, or ask an operator to enlarge CLOUDLET_VM_POOL'
          : 'Other programs or clouds on this host use the rest of the pool: ask an operator to change CLOUDLET_VM_POOL',
    });
  }

  /** Claims the blocks of existing machines' addresses. Resolves with the addresses held by another cloud. */
  async claimTaken(): Promise<string[]> {
    const blocks = new Set([...this.#taken].map((index) => index - (index % BLOCK)));
    const bases = [...blocks].map((block) => toText(this.#first + block));
    const outcomes = await Promise.all(bases.map((base) => this.#host.claim(base)));
    return bases.filter((_, index) => !outcomes[index]);
  }

  /** Marks an address that turned out to be in use. */
  markTaken(address: string): void {
    const index = toNumber(address) - this.#first;
    // The operator has changed the pool since the address was assigned.
    if (index < 0 || index >= this.#size) return;
    this.#taken.add(index);
    this.#next = (index + 1) % this.#size;
  }

  giveBack(address: string): void {
    this.#taken.delete(toNumber(address) - this.#first);
  }

  /** Excludes the network address (first) and the broadcast address (last). */
  #isHost(index: number): boolean {
    if (index === 0 || index === this.#size - 1) return false;
    const last = index % 256;
    return this.#size < 256 || (last !== 0 && last !== 255);
  }
}

function toNumber(address: string): number {
  return address.split('.').reduce((sum, part) => sum * 256 + Number(part), 0);
}

function toText(number: number): string {
  return [24, 16, 8, 0].map((bits) => Math.floor(number / 2 ** bits) % 256).join('.');
}

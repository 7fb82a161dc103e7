/** Addresses of machines: given out of one network, one each, and taken back. */
import { AppError } from '../errors.ts';

export class AddressPool {
  readonly #first: number;
  readonly #size: number;
  readonly #taken = new Set<number>();
  #next = 1;

  /**
   * `network` is an IPv4 network like `127.80.0.0/16`; `taken` is what machines have already, oldest first.
   * The search goes on after the newest, so that an address rests before it is someone else's.
   */
  constructor(network: string, taken: readonly string[]) {
    const [base = '', prefix = ''] = network.split('/');
    this.#size = 2 ** (32 - Number(prefix));
    this.#first = Math.floor(toNumber(base) / this.#size) * this.#size;
    for (const address of taken) this.markTaken(address);
  }

  /** An address that no machine has. Throws `no_free_address`. */
  take(): string {
    // Without the network's own address, which is the first, and its broadcast address, the last.
    for (let tried = 0; tried < this.#size; tried++) {
      const place = this.#next;
      this.#next = (this.#next + 1) % this.#size;
      const last = place % 256;
      const isHost =
        place > 0 && place < this.#size - 1 && (this.#size < 256 || (last !== 0 && last !== 255));
      if (!isHost || this.#taken.has(place)) continue;
      this.#taken.add(place);
      return toText(this.#first + place);
    }
    throw new AppError('no_free_address', 'Every address of this cloud belongs to a machine', {
      hint: 'Delete machines that are not needed, or widen CLOUDLET_VM_POOL',
    });
  }

  /** An address that turned out to be someone's. */
  markTaken(address: string): void {
    const place = toNumber(address) - this.#first;
    // Of a pool that the operator has changed since.
    if (place < 0 || place >= this.#size) return;
    this.#taken.add(place);
    this.#next = (place + 1) % this.#size;
  }

  giveBack(address: string): void {
    this.#taken.delete(toNumber(address) - this.#first);
  }
}

function toNumber(address: string): number {
  return address.split('.').reduce((sum, part) => sum * 256 + Number(part), 0);
}

function toText(number: number): string {
  return [24, 16, 8, 0].map((bits) => Math.floor(number / 2 ** bits) % 256).join('.');
}

/**
 * A number of slots shared by many owners, each of whom may hold some indefinitely. When all are
 * taken, an owner with few gets the oldest slot of the owner with most, so that nobody can block
 * all others.
 */
interface Slot<Owner> {
  readonly owner: Owner;
  readonly giveWay: () => void;
}

export class SharedSlots<Owner> {
  readonly #max: number;
  /** The oldest first. */
  readonly #taken = new Set<Slot<Owner>>();

  constructor(max: number) {
    this.#max = max;
  }

  get size(): number {
    return this.#taken.size;
  }

  /**
   * The result releases the slot; a second call does nothing. Null: all are taken, and no owner has
   * clearly more than this one. `giveWay` is called when the slot is passed to another owner.
   */
  take(owner: Owner, giveWay: () => void): (() => void) | null {
    if (this.#taken.size >= this.#max && !this.#makeRoom(owner)) return null;
    const slot = { owner, giveWay };
    this.#taken.add(slot);
    return () => void this.#taken.delete(slot);
  }

  #makeRoom(owner: Owner): boolean {
    const counts = new Map<Owner, number>();
    for (const slot of this.#taken) counts.set(slot.owner, (counts.get(slot.owner) ?? 0) + 1);
    const most = Math.max(...counts.values());
    if (most <= (counts.get(owner) ?? 0) + 1) return false;
    for (const slot of this.#taken) {
      if (counts.get(slot.owner) !== most) continue;
      this.#taken.delete(slot);
      slot.giveWay();
      return true;
    }
    return false;
  }
}

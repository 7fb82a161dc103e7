/**
 * A number of slots that many owners share, each of whom may hold some for as long as it likes. With all
 * taken, an owner with few gets the oldest slot of the one with most: nobody can keep all others out.
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
   * The result gives the slot back; a second call does nothing. Null: all are taken, and nobody has clearly
   * more than this owner. `giveWay` is called when the slot is another's from now on.
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

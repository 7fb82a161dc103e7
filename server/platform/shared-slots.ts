/**
 * A number of places that many owners share, each of whom may hold some for as long as it likes. With all
 * taken, an owner with few gets the oldest place of the one with most: nobody can keep all others out.
 */
interface Place<Owner> {
  readonly owner: Owner;
  readonly giveWay: () => void;
}

export class SharedPlaces<Owner> {
  readonly #max: number;
  /** The oldest first. */
  readonly #taken = new Set<Place<Owner>>();

  constructor(max: number) {
    this.#max = max;
  }

  get size(): number {
    return this.#taken.size;
  }

  /**
   * The result gives the place back; a second call does nothing. Null: all are taken, and nobody has clearly
   * more than this owner. `giveWay` is called when the place is another's from now on.
   */
  take(owner: Owner, giveWay: () => void): (() => void) | null {
    if (this.#taken.size >= this.#max && !this.#makeRoom(owner)) return null;
    const place = { owner, giveWay };
    this.#taken.add(place);
    return () => void this.#taken.delete(place);
  }

  #makeRoom(owner: Owner): boolean {
    const counts = new Map<Owner, number>();
    for (const place of this.#taken) counts.set(place.owner, (counts.get(place.owner) ?? 0) + 1);
    const most = Math.max(...counts.values());
    if (most <= (counts.get(owner) ?? 0) + 1) return false;
    for (const place of this.#taken) {
      if (counts.get(place.owner) !== most) continue;
      this.#taken.delete(place);
      place.giveWay();
      return true;
    }
    return false;
  }
}

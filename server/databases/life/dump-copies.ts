/** Copies of databases on this host's disk that are being downloaded: each stays until it is read. */
import type { DiskShares } from '../../resources/disk-shares.ts';
import type { Dump } from '../engine.ts';

export class DumpCopies {
  readonly #shares: Pick<DiskShares, 'assertMayGrow'> | undefined;
  readonly #held = new Map<number, number>();

  /** undefined: accounts have no shares of the disk. */
  constructor(shares: Pick<DiskShares, 'assertMayGrow'> | undefined) {
    this.#shares = shares;
  }

  /** Bytes by account. */
  heldBytes(): ReadonlyMap<number, number> {
    return new Map(this.#held);
  }

  /**
   * Counts the copy while `work` sends it, and ends it afterwards. Throws `out_of_space` for a further copy
   * beyond the account's share of the disk. The first is always possible: people need it to make room.
   */
  async during(
    accountId: number,
    { sizeBytes, stream }: Pick<Dump, 'sizeBytes' | 'stream'>,
    work: () => Promise<void>,
  ): Promise<void> {
    const bytes = sizeBytes ?? 0;
    let isHeld = false;
    try {
      if (bytes > 0 && this.#held.has(accountId)) await this.#shares?.assertMayGrow(accountId, bytes);
      this.#add(accountId, bytes);
      isHeld = true;
      await work();
    } finally {
      stream.destroy();
      if (isHeld) this.#add(accountId, -bytes);
    }
  }

  #add(accountId: number, bytes: number): void {
    const now = (this.#held.get(accountId) ?? 0) + bytes;
    if (now === 0) this.#held.delete(accountId);
    else this.#held.set(accountId, now);
  }
}

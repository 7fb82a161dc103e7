/**
 * Removes unreferenced bytes: blobs whose last version was deleted, once their grace period is over, and
 * orphans, files without a row, which an upload leaves if the process dies before its commit.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Changes } from '../../metadata/change.ts';
import type { SweepGuard } from '../../platform/background/sweep-guard.ts';
import type { Clock } from '../../platform/clock.ts';
import type { PartUploadSql } from '../uploads/part-upload-sql.ts';
import type { BlobSql } from './blob-sql.ts';
import type { BlobStore } from './blobs.ts';

export interface SweeperDeps {
  readonly changes: Changes;
  readonly store: BlobSql;
  readonly partUploads: Pick<PartUploadSql, 'abandon'>;
  readonly blobs: BlobStore;
  readonly clock: Clock;
  readonly sweepGuard: SweepGuard;
  /** A younger file may belong to an upload about to be committed. */
  readonly graceMs: number;
  /** False after a disk error: only a restart shows which rows are stored. */
  readonly isWritable: () => boolean;
  /** True while a recovery point is copied: the blobs that it references must not be removed. */
  readonly isHeld: () => Promise<boolean>;
}

const PAGE = 200;
/** Files of the walk for orphans between pauses for other work. */
const WALK_STEP = 200;

export class Sweeper {
  readonly #deps: SweeperDeps;
  #stopped = false;

  constructor(deps: SweeperDeps) {
    this.#deps = deps;
  }

  /** Stops a running sweep soon. */
  stop(): void {
    this.#stopped = true;
  }

  /**
   * Removes blobs whose grace period is over; returns their number. The row goes first: a crash then leaves
   * an orphan, never a row without bytes.
   */
  async sweepGarbage(): Promise<number> {
    const { changes, store, partUploads, blobs, clock, isHeld } = this.#deps;
    let removed = 0;
    for (;;) {
      if (await isHeld()) return removed;
      const due = await store.dueGarbage(clock.now(), PAGE);
      if (due.length === 0 || this.#stopped) return removed;
      const before = removed;
      for (const { blob, name, upload } of due) {
        const parts = upload === null ? [] : [partUploads.abandon(upload)];
        if (!(await changes.store([...store.deleteGarbage(blob), ...parts], 'skip'))) continue;
        if (name !== null) await blobs.remove(name);
        removed++;
      }
      // Nothing was removed: without this check the loop would read the same rows forever.
      if (removed === before) return removed;
    }
  }

  /** Removes files without a row that are older than the grace period; returns their number. */
  async sweepOrphans(): Promise<number> {
    const { blobs, sweepGuard, clock } = this.#deps;
    const { orphans, found } = await this.#findOrphans();
    const sweep = { folder: 'blobs', what: 'object files', found, unnamed: orphans.length };
    if (!(await sweepGuard.allows(sweep))) return 0;
    let removed = 0;
    for (const name of orphans) {
      if (!(await this.#maySweep())) break;
      await blobs.remove(name);
      removed++;
    }
    if (await this.#maySweep()) await blobs.removeUnfinished(clock.now() - this.#orphanAgeMs());
    return removed;
  }

  #orphanAgeMs(): number {
    const { blobs, graceMs } = this.#deps;
    return Math.max(graceMs, blobs.minOrphanAgeMs);
  }

  async #findOrphans(): Promise<{ readonly orphans: string[]; readonly found: number }> {
    const { store, blobs, clock } = this.#deps;
    const youngest = clock.now() - this.#orphanAgeMs();
    const orphans: string[] = [];
    let found = 0;
    if (!(await this.#maySweep())) return { orphans, found };
    for await (const { name, modifiedAt } of blobs.list()) {
      if (this.#stopped) return { orphans: [], found };
      if (++found % WALK_STEP === 0) await sleep(10);
      if (modifiedAt > youngest || blobs.isBeingWritten(name)) continue;
      if (await store.isKnown(name)) continue;
      orphans.push(name);
    }
    return { orphans, found };
  }

  async #maySweep(): Promise<boolean> {
    const { isWritable, isHeld } = this.#deps;
    return !this.#stopped && isWritable() && !(await isHeld());
  }
}

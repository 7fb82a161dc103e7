/**
 * Guards sweeps, which remove files without a row: the files must be ours, and suspiciously many are kept.
 */
import type { Alarms } from './alarms.ts';

/** The files that a sweep is about to remove. */
export interface Sweep {
  /** Folder of the data directory. */
  readonly folder: string;
  /** The kind of files, in plural: `machines`. */
  readonly what: string;
  /** Number of files. */
  readonly found: number;
  /** Number of files without a row. */
  readonly unnamed: number;
}

export interface SweepGuardDeps {
  readonly alarms: Alarms;
  /** False unless the metadata and the files of that folder belong together. Checked each time. */
  readonly isOurs: (folder: string) => Promise<boolean>;
}

/** A crash leaves a few; more than this many, and more than this share of all, is no crash. */
const MOST = 100;
const SHARE = 0.2;

export class SweepGuard {
  readonly #deps: SweepGuardDeps;

  constructor(deps: SweepGuardDeps) {
    this.#deps = deps;
  }

  /** True if the sweep may run. Otherwise nothing may be removed, and an alarm of that folder says why. */
  async allows({ folder, what, found, unnamed }: Sweep): Promise<boolean> {
    const { alarms, isOurs } = this.#deps;
    const code = `sweep_stopped_${folder}`;
    const about = `${unnamed} of ${found} ${what} have no row in metadata.db`;
    if (unnamed > 0 && !(await isOurs(folder))) {
      const fix = `Put back the folder ${folder} of this cloud, or the matching metadata.db, and restart`;
      alarms.raise(code, `${about}, which does not belong to the folder ${folder}`, fix);
      return false;
    }
    if (unnamed > MOST && unnamed > found * SHARE) {
      const fix =
        'If metadata.db was lost or replaced by an older copy, restore a recovery point; ' +
        `if they are not needed, remove them from the folder ${folder} by hand while Cloudlet is stopped`;
      alarms.raise(code, `${about}: too many to be left over from a crash, so none is removed`, fix);
      return false;
    }
    alarms.clear(code);
    return true;
  }
}

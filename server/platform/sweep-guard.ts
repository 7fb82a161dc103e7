/** Stands before whatever removes what no row names: it must be ours, and not suspiciously much. */
import type { Alarms } from './alarms.ts';

/** What a sweep is about to remove. */
export interface Sweep {
  /** Folder of the data directory. */
  readonly folder: string;
  /** What is there, in plural: `machines`. */
  readonly what: string;
  /** Things that are there. */
  readonly found: number;
  /** Things among them that no row names. */
  readonly unnamed: number;
}

export interface SweepGuardDeps {
  readonly alarms: Alarms;
  /** False unless the metadata are those that the files in that folder belong to. Asked anew each time. */
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

  /** True when it may go on. Otherwise nothing may be removed, and an alarm of that folder says why. */
  async allows({ folder, what, found, unnamed }: Sweep): Promise<boolean> {
    const { alarms, isOurs } = this.#deps;
    const code = `sweep_stopped_${folder}`;
    const about = `${unnamed} of ${found} ${what} are named by no row of metadata.db`;
    if (unnamed > 0 && !(await isOurs(folder))) {
      const fix = `Put back the folder ${folder} of this cloud, or the metadata.db that belongs to it, and restart`;
      alarms.raise(code, `${about}, which is not the one that the folder ${folder} belongs to`, fix);
      return false;
    }
    if (unnamed > MOST && unnamed > found * SHARE) {
      const fix =
        'If metadata.db was lost or put back from an older copy, restore a recovery point; ' +
        `if they are of no use, remove them from the folder ${folder} by hand while Cloudlet is stopped`;
      alarms.raise(code, `${about}: too many to be left-overs of a crash, so none is removed`, fix);
      return false;
    }
    alarms.clear(code);
    return true;
  }
}

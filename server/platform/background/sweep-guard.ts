/**
 * Guards sweeps, which remove files without a row: the files must belong to this cloud, and a
 * suspiciously large number is kept.
 */
import type { Alarms } from '../alarms.ts';

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
  /** True if the metadata and the files of the folder belong together. Checked each time. */
  readonly isOurs: (folder: string) => Promise<boolean>;
  /** Location of the rows, for messages; default: `metadata.db`. */
  readonly rowsPlace?: string;
  /** Location of a folder's files, for messages; undefined: that folder of the data directory. */
  readonly placeOf?: (folder: string) => string | undefined;
}

/** A crash leaves a few files; more than this number and share cannot come from a crash. */
const MOST = 100;
const SHARE = 0.2;

/** Alarm of a sweep that must not run. */
export const stopCode = (folder: string) => `sweep_stopped_${folder}`;

export class SweepGuard {
  readonly #deps: SweepGuardDeps;

  constructor(deps: SweepGuardDeps) {
    this.#deps = deps;
  }

  /** True if the sweep may run. Otherwise nothing may be removed, and an alarm of that folder says why. */
  async allows({ folder, what, found, unnamed }: Sweep): Promise<boolean> {
    const { alarms, isOurs, rowsPlace = 'metadata.db', placeOf } = this.#deps;
    const place = placeOf?.(folder) ?? `the folder ${folder}`;
    const code = stopCode(folder);
    const about = `${unnamed} of ${found} ${what} have no row in ${rowsPlace}`;
    if (unnamed > 0 && !(await isOurs(folder))) {
      const fix = `Put back ${place} of this cloud, or the matching ${rowsPlace}, and restart`;
      alarms.raise(code, `${about}, which does not belong to ${place}`, fix);
      return false;
    }
    if (unnamed > MOST && unnamed > found * SHARE) {
      const fix =
        `If ${rowsPlace} was lost or replaced by an older copy, restore a recovery point; ` +
        `if they are not needed, remove them from ${place} by hand while Cloudlet is stopped`;
      alarms.raise(code, `${about}: too many to be left over from a crash, so none are removed`, fix);
      return false;
    }
    alarms.clear(code);
    return true;
  }
}

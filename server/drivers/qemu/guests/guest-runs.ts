/** The current run of each guest, from records and actual processes. */
import type { GuestEnd, GuestFact, LastEnd } from '../../../compute/hypervisor.ts';
import type { Clock } from '../../../platform/clock.ts';
import { lastLine } from '../../host-process/foreign-files.ts';
import {
  endProcessesOf,
  isAlive,
  keptProcess,
  killProcessesOf,
  residentBytes,
} from '../../host-process/process-identity.ts';
import { doesNotEnd } from '../stopping.ts';
import { type GuestFolders, LOG, type RunRecord } from './guest-folders.ts';
import type { Forwards } from './guest-networks.ts';
import {
  type GuestIdentity,
  GuestRun,
  handleOf,
  identityOf,
  isOfEarlierBoot,
  unwatchedEnd,
} from './guest-run.ts';

export interface RunsDeps {
  readonly folders: GuestFolders;
  readonly clock: Clock;
  /** A run has ended, for any reason. */
  readonly onGone: (run: GuestRun) => void;
  /** A run has ended that nobody was stopping. */
  readonly onEnd: (end: GuestEnd) => void;
}

export const STATUS_MS = 2000;
/** A guest touches its first memory within this time. */
const YOUNG_MS = 15_000;
const KILL_MS = 3000;

export class GuestRuns {
  readonly #deps: RunsDeps;
  readonly #runs = new Map<string, GuestRun>();
  /** Monotonic ms. */
  readonly #attachedAt = new WeakMap<GuestRun, number>();

  constructor(deps: RunsDeps) {
    this.#deps = deps;
  }

  /** Records the run, and its start time, unless that is known. */
  remember(
    run: GuestRun,
    about: Pick<RunRecord, 'accel' | 'accelReason' | 'size'> & { readonly forwards?: Forwards },
  ): void {
    const before = this.#deps.folders.run(run.vmId);
    const isNew = before?.handle !== run.handle;
    const size = about.size ?? (isNew ? undefined : before.size);
    const record = {
      handle: run.handle,
      pid: run.identity.pid,
      accel: about.accel,
      accelReason: about.accelReason,
      runningSince: isNew ? null : (before.runningSince ?? this.#deps.clock.now()),
      forwards: about.forwards ?? (isNew ? {} : before.forwards),
      ...(size === undefined ? {} : { size }),
    };
    const isSame = !isNew && before.accel === about.accel && before.accelReason === about.accelReason;
    if (isSame) this.#deps.folders.completeRun(run.vmId, record);
    else this.#deps.folders.writeRun(run.vmId, record);
  }

  /** The current run of a guest, also one unrecorded because we died; or null. */
  find(vmId: string): GuestRun | null {
    const known = this.#runs.get(vmId);
    if (known?.isAlive) return known;
    const record = this.#deps.folders.find(vmId);
    if (record === undefined) return null;
    const { uid, uuid } = record;
    const written = this.#deps.folders.run(vmId);
    const candidate = written === null ? null : identityOf(written.handle, uid);
    if (candidate?.uuid === uuid && isAlive(candidate)) return this.attach(vmId, candidate);
    const kept = keptProcess(this.#deps.folders.path(vmId), uid);
    return kept === null ? null : this.attach(vmId, { ...kept, uuid });
  }

  /**
   * Call before anything is created for a process of a guest: from now on it may have one. Pending
   * clean-up of an earlier one would affect it.
   */
  expect(vmId: string): void {
    this.#runs.get(vmId)?.close();
    this.#runs.delete(vmId);
  }

  /** The run of that process: the known one, or a new one that is not watched yet. */
  attach(vmId: string, identity: GuestIdentity): GuestRun {
    const known = this.#runs.get(vmId);
    if (known?.handle === handleOf(identity)) return known;
    known?.close();
    const run = new GuestRun({
      vmId,
      identity,
      folder: this.#deps.folders.guestPath(vmId),
      lastWords: () => this.#lastWords(vmId),
      ending: () => this.#deps.folders.ending(vmId, identity.pid),
      onGone: (gone, end) => {
        this.forget(gone);
        if (gone.isStopping) return;
        const at = end.at ?? this.#deps.clock.now();
        this.#deps.onEnd({ vmId, handle: gone.handle, ...end, at });
      },
    });
    this.#runs.set(vmId, run);
    this.#attachedAt.set(run, this.#deps.clock.monotonic());
    return run;
  }

  /** Running runs, as far as known, that are not being stopped. */
  live(): GuestRun[] {
    return [...this.#runs.values()].filter((run) => run.isAlive && !run.isStopping);
  }

  /** Full sizes of all live and stopping guests, MiB, and of `others`, which may be running already. */
  memoryMb(others: ReadonlyMap<string, number>): number {
    const sizes = new Map(others);
    for (const { vmId, isAlive: lives } of this.#runs.values()) {
      if (lives) sizes.set(vmId, this.#deps.folders.run(vmId)?.size?.memoryMb ?? sizes.get(vmId) ?? 0);
    }
    return [...sizes.values()].reduce((sum, size) => sum + size, 0);
  }

  /** Memory that young guests, `share` bytes each, have not touched yet. */
  untouchedBytes(share: number): number {
    const youngest = this.#deps.clock.monotonic() - YOUNG_MS;
    let bytes = 0;
    for (const run of this.#runs.values()) {
      const isYoung = (this.#attachedAt.get(run) ?? 0) > youngest;
      if (isYoung) bytes += Math.max(0, share - (residentBytes(run.identity.pid) ?? share));
    }
    return bytes;
  }

  /** Forgets a run that has ended. */
  forget(run: GuestRun): void {
    run.close();
    if (this.#runs.get(run.vmId) !== run) return;
    this.#runs.delete(run.vmId);
    this.#deps.onGone(run);
  }

  /**
   * Kills leftover processes of a guest's own user: a guest that took over its process may have
   * created others. Does not wait, so that processes created later are not affected. Throws
   * nothing: processes that cannot be found now are ended before the guest's next run.
   */
  sweep(vmId: string): void {
    const uid = this.#deps.folders.find(vmId)?.uid ?? null;
    if (uid === null) return;
    try {
      killProcessesOf(uid);
    } catch {
      // This process has no free file descriptor at the moment.
    }
  }

  /**
   * Resolves when nothing runs any more as the user of a guest that has its own. Call under the
   * guest's lock, with no run of it left. Throws `internal_error` if a process hangs in the kernel.
   */
  async clear(vmId: string): Promise<void> {
    const uid = this.#deps.folders.find(vmId)?.uid ?? null;
    if (uid !== null && !(await endProcessesOf(uid, KILL_MS))) throw doesNotEnd();
  }

  /** Detaches from all; the guests keep running. */
  close(): void {
    for (const run of this.#runs.values()) run.close();
    this.#runs.clear();
  }

  /** The state of a guest; `run`: the result of find(). */
  async fact(vmId: string, run: GuestRun | null): Promise<GuestFact> {
    const stopped = { vmId, running: false, handle: null, runningSince: null };
    if (run === null) return { ...stopped, end: this.#lastEnd(vmId) };
    const record = this.#deps.folders.run(vmId);
    const runningSince = record?.handle === run.handle ? record.runningSince : null;
    // A guest whose start was interrupted has a process but never ran. One that does not respond counts
    // as running.
    if (runningSince === null) {
      const status = await run.status(STATUS_MS).catch(() => 'running');
      if (status === 'prelaunch' || !run.isAlive) return { ...stopped, end: this.#lastEnd(vmId) };
    }
    return { vmId, running: true, handle: run.handle, runningSince, end: null };
  }

  /** The ending of a stopped guest's last run. */
  #lastEnd(vmId: string): LastEnd | null {
    if (this.#deps.folders.find(vmId) === undefined) return null;
    const record = this.#deps.folders.run(vmId);
    if (record === null) return null;
    const { handle, pid } = record;
    const ending = this.#deps.folders.ending(vmId, pid);
    if (isOfEarlierBoot(handle)) {
      const message = 'the host restarted';
      return { handle, cause: 'host_restarted', message, at: ending?.at ?? null };
    }
    return ending === null ? null : { handle, ...unwatchedEnd(ending, this.#lastWords(vmId)) };
  }

  #lastWords(vmId: string): string | null {
    return lastLine(this.#deps.folders.path(vmId, LOG));
  }

  /** The state of every guest. */
  async facts(): Promise<readonly GuestFact[]> {
    const records = this.#deps.folders.records();
    return Promise.all(records.map(({ vmId }) => this.fact(vmId, this.find(vmId))));
  }
}

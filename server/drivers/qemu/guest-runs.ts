/** The present run of each guest, by what is written down and by what really runs. */
import type { Clock } from '../../clock.ts';
import type { GuestEnd, GuestFact } from '../../compute/hypervisor.ts';
import type { GuestFolders } from './guest-folders.ts';
import { GuestRun } from './guest-run.ts';
import { lastLine, runStatus } from './launch.ts';
import { findGuests, handleOf, identify, type ProcessIdentity } from './processes.ts';

export interface RunsDeps {
  readonly folders: GuestFolders;
  readonly clock: Clock;
  /** A run is over, whoever ended it. */
  readonly onGone: (run: GuestRun) => void;
  /** A run that was not told to stop is over. */
  readonly onEnd: (end: GuestEnd) => void;
}

export const STATUS_MS = 2000;

export class GuestRuns {
  readonly #deps: RunsDeps;
  readonly #runs = new Map<string, GuestRun>();

  constructor(deps: RunsDeps) {
    this.#deps = deps;
  }

  /** Writes down the run, and since when it runs, unless that is known. */
  remember(run: GuestRun, about: { accel: 'kvm' | 'tcg'; accelReason: string }): void {
    const before = this.#deps.folders.run(run.vmId);
    const isNew = before?.handle !== run.handle;
    this.#deps.folders.writeRun(run.vmId, {
      handle: run.handle,
      pid: run.identity.pid,
      accel: about.accel,
      accelReason: about.accelReason,
      runningSince: isNew ? null : (before.runningSince ?? this.#deps.clock.now()),
    });
  }

  /** The present run of a guest, also one that nobody wrote down because we died just then; or null. */
  find(vmId: string, scanned?: ReadonlyMap<string, ProcessIdentity>): GuestRun | null {
    const known = this.#runs.get(vmId);
    if (known?.isAlive) return known;
    const record = this.#deps.folders.find(vmId);
    if (record === undefined) return null;
    const written = this.#deps.folders.run(vmId);
    const candidate = written === null ? null : identify(written.pid);
    if (candidate !== null && handleOf(candidate) === written?.handle) return this.attach(vmId, candidate);
    const owner = record.uid ?? process.getuid?.() ?? -1;
    const found = scanned ?? findGuests((uuid) => (uuid === record.uuid ? owner : undefined));
    const identity = found.get(record.uuid);
    return identity === undefined ? null : this.attach(vmId, identity);
  }

  /** The run of that process: the one known already, or a new one that nothing watches yet. */
  attach(vmId: string, identity: ProcessIdentity): GuestRun {
    const known = this.#runs.get(vmId);
    if (known?.handle === handleOf(identity)) return known;
    known?.close();
    const run = new GuestRun({
      vmId,
      identity,
      folder: this.#deps.folders.guestPath(vmId),
      lastWords: () => lastLine(this.#deps.folders.path(vmId, 'qemu.log')),
      onGone: (gone, end) => {
        this.forget(gone);
        if (gone.isStopping) return;
        this.#deps.onEnd({ vmId, handle: gone.handle, ...end, at: this.#deps.clock.now() });
      },
    });
    this.#runs.set(vmId, run);
    return run;
  }

  /** Lets go of a run that is over. */
  forget(run: GuestRun): void {
    run.close();
    if (this.#runs.get(run.vmId) !== run) return;
    this.#runs.delete(run.vmId);
    this.#deps.onGone(run);
  }

  /** Lets go of all; the guests run on. */
  close(): void {
    for (const run of this.#runs.values()) run.close();
    this.#runs.clear();
  }

  /** What is true of a guest now; `run` as found. */
  async fact(vmId: string, run: GuestRun | null): Promise<GuestFact> {
    const stopped = { vmId, running: false, handle: null, runningSince: null };
    if (run === null) return stopped;
    const record = this.#deps.folders.run(vmId);
    const runningSince = record?.handle === run.handle ? record.runningSince : null;
    // One whose start was cut short has a process but never ran. One that does not answer is taken to run.
    if (runningSince === null) {
      const status = await runStatus(run, STATUS_MS).catch(() => 'running');
      if (status === 'prelaunch' || !run.isAlive) return stopped;
    }
    return { vmId, running: true, handle: run.handle, runningSince };
  }

  /** Of all guests, with one look at the host's processes. */
  async facts(): Promise<readonly GuestFact[]> {
    const records = this.#deps.folders.records();
    const own = process.getuid?.() ?? -1;
    const owners = new Map(records.map(({ uuid, uid }) => [uuid, uid ?? own]));
    const scanned = findGuests((uuid) => owners.get(uuid));
    return Promise.all(records.map(({ vmId }) => this.fact(vmId, this.find(vmId, scanned))));
  }
}

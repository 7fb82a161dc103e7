/**
 * An engine in memory that meets the contract of compute/hypervisor.ts and is controlled by a test. Its
 * guests are in an Engine, as real ones are in processes: they outlast the ScriptedHypervisor. For tests of
 * the domain only.
 */
import type {
  GuestEnd,
  GuestFact,
  GuestSample,
  GuestSnapshots,
  GuestSpec,
  Hypervisor,
  ImageStage,
  ImportedImage,
  ImportOptions,
  LastEnd,
  Readiness,
  StartedGuest,
  StopMethod,
  StopOptions,
} from '../compute/hypervisor.ts';
import type { Clock } from '../platform/clock.ts';
import { AppError } from '../platform/errors.ts';

interface Guest {
  /** The spec of its creation, and the current size of its disk. */
  spec: GuestSpec;
  /** Represents the content of its disk. */
  disk: string;
  run: { readonly handle: string; readonly since: number } | null;
  lastEnd: LastEnd | null;
}

/** The host: the state that survives when Cloudlet is killed. */
export class Engine {
  readonly guests = new Map<string, Guest>();
  /** Bytes used by disks and copies, by machine. */
  readonly taken = new Map<string, number>();
  readonly snapshots = new Map<string, { readonly vmId: string; readonly disk: string }>();
  /** Bytes of staged images, and ids of the imported ones. */
  readonly stagedImages = new Map<string, number>();
  readonly images = new Set<string>();
  /** Every guest that ever started, in order. */
  readonly starts: string[] = [];
  runs = 0;

  /** All guests, or one, lose their power, as when the host fails. */
  losePower(only?: string): void {
    for (const [vmId, guest] of this.guests) {
      if (guest.run === null || (only ?? vmId) !== vmId) continue;
      const { handle } = guest.run;
      guest.run = null;
      guest.lastEnd = { handle, cause: 'host_restarted', message: 'as scripted', at: null };
    }
  }

  /** The end of a guest is no longer known. */
  forgetEnds(): void {
    for (const guest of this.guests.values()) guest.lastEnd = null;
  }

  running(): string[] {
    return [...this.guests].flatMap(([vmId, { run }]) => (run === null ? [] : [vmId]));
  }
}

type Scripted =
  | 'takeSnapshot'
  | 'prepare'
  | 'start'
  | 'stop'
  | 'discard'
  | 'inspect'
  | 'list'
  | 'importImage';

export class ScriptedHypervisor implements Hypervisor {
  readonly name = 'scripted';
  readonly capabilities;
  readonly engine: Engine;
  readonly #clock: Clock;
  readonly #before = new Map<Scripted, () => Promise<void>>();
  readonly adopted: string[] = [];
  method: StopMethod = 'guest';
  readonly graces: number[] = [];
  /** The signal of the last stop. */
  signal: AbortSignal | undefined;
  #listener: (end: GuestEnd) => void = () => {};

  constructor(deps: { readonly engine: Engine; readonly clock: Clock; readonly survivesRestart?: boolean }) {
    this.engine = deps.engine;
    this.#clock = deps.clock;
    const survivesRestart = deps.survivesRestart ?? true;
    this.capabilities = { guestStatistics: false, console: false, survivesRestart, filesToStart: 48 };
  }

  /** Each call of `method` waits for `work` first, and fails with it. Without `work`: normal again. */
  script(method: Scripted, work?: () => Promise<void>): void {
    if (work === undefined) this.#before.delete(method);
    else this.#before.set(method, work);
  }

  readiness(): Promise<Readiness> {
    const accel = { accel: 'scripted', accelReason: '' };
    return Promise.resolve({ isUsable: true, problem: '', fix: '', version: '1', ...accel });
  }

  /** A host that is too small for the largest type. */
  memoryForGuestsMb(): number {
    return 36 * 1024;
  }

  async prepare(spec: GuestSpec): Promise<void> {
    await this.#before.get('prepare')?.();
    const known = this.engine.guests.get(spec.vmId);
    if (known === undefined) this.engine.guests.set(spec.vmId, { spec, disk: '', run: null, lastEnd: null });
    else if ((spec.rebuilds ?? 0) > (known.spec.rebuilds ?? 0)) Object.assign(known, { spec, disk: '' });
    else known.spec = { ...known.spec, diskGb: Math.max(known.spec.diskGb, spec.diskGb) };
  }

  async start(spec: GuestSpec): Promise<StartedGuest> {
    await this.#before.get('start')?.();
    if (spec.hasRun === true && !this.engine.guests.has(spec.vmId))
      throw new AppError('disk_missing', 'as scripted');
    await this.prepare(spec);
    const guest = this.#guest(spec.vmId);
    if (guest.run === null) {
      guest.run = { handle: `run-${++this.engine.runs}`, since: this.#clock.now() };
      guest.lastEnd = null;
      this.engine.starts.push(spec.vmId);
    }
    return { handle: guest.run.handle, accel: 'scripted', accelReason: 'a test' };
  }

  async stop(vmId: string, { graceMs, signal }: StopOptions): Promise<StopMethod> {
    this.signal = signal;
    await this.#before.get('stop')?.();
    this.graces.push(graceMs);
    const guest = this.engine.guests.get(vmId);
    if (guest === undefined || guest.run === null) return 'was_stopped';
    this.#endRun(guest, 'guest_shutdown');
    return this.method;
  }

  async inspect(vmId: string): Promise<GuestFact> {
    await this.#before.get('inspect')?.();
    return this.#fact(vmId);
  }

  async list(): Promise<readonly GuestFact[]> {
    await this.#before.get('list')?.();
    return [...this.engine.guests.keys()].map((vmId) => this.#fact(vmId));
  }

  async discard(vmId: string): Promise<void> {
    await this.#before.get('discard')?.();
    if (this.engine.guests.get(vmId)?.run) throw new Error('a running guest must not be discarded');
    this.engine.guests.delete(vmId);
    for (const id of await this.snapshots.list(vmId)) this.engine.snapshots.delete(id);
  }

  readonly snapshots: GuestSnapshots = {
    take: async (vmId, snapshotId) => {
      await this.#before.get('takeSnapshot')?.();
      const guest = this.#guest(vmId);
      if (guest.run !== null) throw new Error('a running guest must not be copied');
      this.engine.snapshots.set(snapshotId, { vmId, disk: guest.disk });
      return { sizeBytes: 2 ** 30 + 1 };
    },
    restore: async (vmId, snapshotId) => {
      const guest = this.#guest(vmId);
      const snapshot = this.engine.snapshots.get(snapshotId);
      if (snapshot?.vmId !== vmId || guest.run !== null) throw new AppError('disk_missing', 'as scripted');
      guest.disk = snapshot.disk;
    },
    takenBytes: (vmId) => this.engine.taken.get(vmId) ?? 0,
    discard: async (_, snapshotId) => void this.engine.snapshots.delete(snapshotId),
    list: async (vmId) =>
      [...this.engine.snapshots].filter(([, one]) => one.vmId === vmId).map(([snapshotId]) => snapshotId),
  };

  sample(): Promise<GuestSample | null> {
    return Promise.resolve(null);
  }

  waiting(): null {
    return null;
  }

  openConsole(): Promise<null> {
    return Promise.resolve(null);
  }

  consoleLog(): Promise<Uint8Array> {
    return Promise.resolve(new Uint8Array());
  }

  endpoint(): null {
    return null;
  }

  privateSocket(): null {
    return null;
  }

  reach(): Promise<null> {
    return Promise.resolve(null);
  }

  async stageImage(imageId: string, { resume } = { resume: false }): Promise<ImageStage> {
    const kept = resume ? (this.engine.stagedImages.get(imageId) ?? 0) : 0;
    this.engine.stagedImages.set(imageId, kept);
    return {
      // Only the number of its bytes is stored.
      kept: async function* () {
        yield new Uint8Array(kept);
      },
      write: async (bytes) => {
        const before = this.engine.stagedImages.get(imageId) ?? 0;
        this.engine.stagedImages.set(imageId, before + bytes.length);
      },
      close: async () => {},
    };
  }

  /** Every image is as large as its bytes. */
  async importImage(imageId: string, { signal }: ImportOptions): Promise<ImportedImage> {
    const sizeBytes = this.engine.stagedImages.get(imageId) ?? 0;
    try {
      await this.#before.get('importImage')?.();
      signal.throwIfAborted();
    } finally {
      this.engine.stagedImages.delete(imageId);
    }
    this.engine.images.add(imageId);
    return { format: 'raw', virtualBytes: sizeBytes, sizeBytes };
  }

  async discardImage(imageId: string): Promise<void> {
    this.engine.stagedImages.delete(imageId);
    this.engine.images.delete(imageId);
  }

  async listImages(): Promise<readonly string[]> {
    return [...new Set([...this.engine.images, ...this.engine.stagedImages.keys()])];
  }

  onEnd(listener: (end: GuestEnd) => void): void {
    this.#listener = listener;
  }

  async adopt(facts: readonly GuestFact[]): Promise<void> {
    this.adopted.push(...facts.map(({ vmId }) => vmId));
  }

  close(): Promise<void> {
    return Promise.resolve();
  }

  /** The guest ends by itself. `report` false: without a report. */
  end(vmId: string, cause: GuestEnd['cause'], report = true): GuestEnd {
    const guest = this.#guest(vmId);
    const end = { vmId, ...this.#endRun(guest, cause) };
    if (report) this.report(end);
    return end;
  }

  report(end: GuestEnd): void {
    this.#listener(end);
  }

  #endRun(guest: Guest, cause: GuestEnd['cause']): Omit<GuestEnd, 'vmId'> {
    const handle = guest.run?.handle ?? '';
    const end = { handle, cause, message: 'as scripted', at: this.#clock.now() };
    guest.run = null;
    guest.lastEnd = end;
    return end;
  }

  #guest(vmId: string): Guest {
    const guest = this.engine.guests.get(vmId);
    if (guest === undefined) throw new AppError('internal_error', `no guest ${vmId}`);
    return guest;
  }

  #fact(vmId: string): GuestFact {
    const { run = null, lastEnd = null } = this.engine.guests.get(vmId) ?? {};
    const [handle, runningSince] = [run?.handle ?? null, run?.since ?? null];
    return { vmId, running: run !== null, handle, runningSince, end: run === null ? lastEnd : null };
  }
}

/** Guests as QEMU processes on this host. */
import { join } from 'node:path';
import type * as hv from '../../compute/hypervisor.ts';
import { KeyedMutex } from '../../platform/concurrency.ts';
import { AppError } from '../../platform/errors.ts';
import { HostProcesses } from '../host-process/host-processes.ts';
import { Admission } from './admission.ts';
import { consoleBytes, readLog, SocketConsole, trimLog } from './guests/guest-console.ts';
import { GuestFolders, type GuestRecord, UIDS } from './guests/guest-folders.ts';
import {
  CGROUPS,
  failedStart,
  GuestLauncher,
  type LaunchMeans,
  prepareGuest,
} from './guests/guest-launcher.ts';
import { GuestNetworks } from './guests/guest-networks.ts';
import type { GuestRun } from './guests/guest-run.ts';
import { GuestRuns, STATUS_MS } from './guests/guest-runs.ts';
import { DiskCopies } from './images/disk-copies.ts';
import { DiskFullWaits, type HostDisk } from './images/disk-full-waits.ts';
import { DiskSnapshots } from './images/disk-snapshots.ts';
import { ImageLibrary } from './images/image-library.ts';
import { whenTinyBuilt, whyNoTinyImage } from './images/tiny-image.ts';
import { type Accel, KVM_DEVICE, withFix } from './kvm.ts';
import { AccelProbe } from './probe.ts';
import { type QemuProgram, QemuPrograms } from './program.ts';
import type { QemuDeps } from './qemu-deps.ts';
import { sampleRun, showsLife } from './sampling.ts';
import { stopRun } from './stopping.ts';

/** A working guest takes about a second. */
const FIRST_SIGN = { withinCpuMs: 8000, withinMs: 60_000 };
const NO_SIGN = 'KVM passed its test, but this guest did not start with it';
const TURNED_OFF = 'KVM is turned off in the settings';
/** Listeners, consoles, pipes of programs. */
const FILES_TO_START = 48;
const ENDLESS: HostDisk = { isLow: () => false, isOut: () => false, machineRoom: () => 'ample' };

export class QemuHypervisor implements hv.Hypervisor {
  readonly name = 'qemu';
  readonly capabilities = {
    guestStatistics: true,
    console: true,
    survivesRestart: true,
    filesToStart: FILES_TO_START,
  };
  readonly #deps: QemuDeps;
  readonly #folders: GuestFolders;
  readonly #programs: QemuPrograms;
  readonly #probe: AccelProbe;
  readonly #locks = new KeyedMutex();
  readonly #runs: GuestRuns;
  readonly #admission: Admission;
  readonly #images: ImageLibrary;
  readonly #consoles = new Map<string, SocketConsole>();
  readonly #launcher: GuestLauncher;
  readonly #networks: GuestNetworks;
  readonly #processes: HostProcesses;
  readonly #waits: DiskFullWaits;
  readonly #closing = new AbortController();
  #onEnd: (end: hv.GuestEnd) => void = () => {};

  /** Lists the existing guests; changes none. */
  constructor(deps: QemuDeps) {
    this.#deps = deps;
    const uidBase = deps.noUsers === null ? deps.uidBase : null;
    const { clock, drillGroup: group = CGROUPS } = deps;
    const isPrivate = group !== CGROUPS;
    this.#processes = new HostProcesses({ clock, group, isPrivate, hasUsers: uidBase !== null });
    this.#folders = new GuestFolders(deps.vmsDirectory, uidBase, isPrivate ? 1 : undefined);
    this.#runs = new GuestRuns({
      folders: this.#folders,
      clock: deps.clock,
      onGone: ({ vmId }) => {
        this.#dropConsole(vmId);
        this.#runs.sweep(vmId);
        void this.#processes.cgroups.remove(vmId);
        void this.#networks.disconnect(vmId);
      },
      onEnd: (end) => this.#onEnd(end),
    });
    this.#admission = new Admission(this.#runs, deps.memoryOvercommit);
    this.#waits = new DiskFullWaits({
      disk: deps.disk ?? ENDLESS,
      folders: this.#folders,
      runs: () => this.#runs.live(),
      warn: (vmId, text) => this.#warn(vmId, text),
    });
    this.#networks = new GuestNetworks({ ...deps, folders: this.#folders, isCut: isPrivate });
    this.#launcher = new GuestLauncher({
      folders: this.#folders,
      runs: this.#runs,
      processes: this.#processes,
      tiny: deps.tiny,
      networks: this.#networks,
      warn: (vmId, text) => this.#warn(vmId, text),
    });
    this.#programs = new QemuPrograms(deps.programDirectories);
    this.#images = new ImageLibrary({
      directory: deps.imagesDirectory,
      clock: deps.clock,
      uid: uidBase === null ? null : uidBase + UIDS.images,
      program: () => this.#programs.image(),
    });
    this.#probe = new AccelProbe({
      directory: deps.vmsDirectory,
      clock: deps.clock,
      uid: uidBase === null ? null : uidBase + UIDS.probe,
      device: KVM_DEVICE,
    });
  }

  async readiness(): Promise<hv.Readiness> {
    const program = await this.#programs.detect();
    if ('problem' in program) return { isUsable: false, ...program, version: '', accel: '', accelReason: '' };
    const { accel, reason, fix } = this.#accel(program);
    const { message = '', hint = '' } = this.#networks.refusal ?? {};
    const noTiny = whyNoTinyImage(this.#deps.tiny);
    const isComing = noTiny === null || noTiny.preparing !== undefined;
    const problem = isComing || message !== '' ? { problem: message, fix: hint } : noTiny;
    const isUsable = isComing || this.#images.list().length > 0;
    const how = { isUsable, version: program.version, accel, accelReason: withFix({ reason, fix }) };
    return { ...problem, ...how, preparing: noTiny?.preparing };
  }

  /** One at a time for each guest. Rejects with `host_unreachable` if guests are on another node. */
  async #inTurn<T>(vmId: string, work: () => Promise<T>): Promise<T> {
    this.#assertHere();
    return this.#locks.run(vmId, work);
  }

  #assertHere(): void {
    if (this.#deps.isElsewhere !== true) return;
    throw new AppError('host_unreachable', 'Virtual machines are on another node of this cloud');
  }

  #warn(vmId: string, text: string): void {
    this.#deps.warn?.(vmId, text);
  }

  /** Resolves when it is known whether guests start with KVM. */
  async probed(): Promise<void> {
    await this.readiness();
    await this.#probe.whenIdle();
  }

  #accel(program: QemuProgram): Accel {
    if (this.#deps.accel === 'tcg') return { accel: 'tcg', reason: TURNED_OFF, fix: '' };
    if (this.#deps.accel === 'kvm') return { accel: 'kvm', reason: '', fix: '' };
    return this.#probe.current(program);
  }

  memoryForGuestsMb(): number {
    return this.#admission.limitMb();
  }

  prepare(spec: hv.GuestSpec, origin?: hv.GuestOrigin): Promise<void> {
    return this.#inTurn(spec.vmId, async () => {
      if (!origin && spec.image.boot === 'disk' && (await this.#programs.image()) === null) return;
      await this.#prepared(spec, origin);
    });
  }

  #prepared(spec: hv.GuestSpec, origin?: hv.GuestOrigin): Promise<GuestRecord> {
    // The guest will be started soon.
    if (this.#folders.find(spec.vmId) === undefined) this.#processes.shells.refill();
    const deps = { ...this.#deps, folders: this.#folders, programs: this.#programs };
    return prepareGuest(deps, spec, origin);
  }

  /** For recovery points and exports. */
  get copies(): DiskCopies {
    return new DiskCopies({
      folders: this.#folders,
      runs: this.#runs,
      clock: this.#deps.clock,
      qemuImg: () => this.#programs.image(),
      imagePath: (imageId) => join(this.#deps.imagesDirectory, `${imageId}.qcow2`),
      assertSpace: this.#deps.assertSpace ?? (() => {}),
    });
  }

  start(spec: hv.GuestSpec): Promise<hv.StartedGuest> {
    return this.#inTurn(spec.vmId, async () => {
      const program = await this.#programs.detect();
      if ('problem' in program)
        throw new AppError('engine_unavailable', program.problem, { hint: program.fix });
      const existing = this.#runs.find(spec.vmId);
      if (existing !== null && !(await this.#endUnguarded(existing, spec)))
        return this.#complete(existing, spec);
      if (spec.image.imageId === 'tiny') await whenTinyBuilt(this.#deps.tiny, this.#closing.signal);
      const record = await this.#prepared(spec);
      if (record.uid !== null) this.#networks.assertUsers();
      const means = { program, ...this.#accel(program) };
      return this.#admission.start(spec, () => this.#launch(spec, record, means));
    });
  }

  /** Ends a process that never ran and needs the host's rules, which may be gone. */
  async #endUnguarded(run: GuestRun, { network }: hv.GuestSpec): Promise<boolean> {
    const isGuarded = network.outbound || this.#deps.bridge !== null;
    if (!isGuarded || (await this.#runs.fact(run.vmId, run)).running) return false;
    await stopRun(run, 0);
    this.#runs.forget(run);
    return true;
  }

  /** A guest that has a process already: it is running, or its start was interrupted. */
  async #complete(run: GuestRun, spec: hv.GuestSpec): Promise<hv.StartedGuest> {
    const before = this.#folders.run(run.vmId);
    const about = before ?? { accel: 'tcg', accelReason: '' };
    const isRunning = before?.handle === run.handle && before.runningSince !== null;
    if (!isRunning || (await run.status(STATUS_MS).catch(() => 'running')) !== 'running') {
      this.#runs.remember(run, about);
      const forwards = await this.#launcher.bringUp(run, spec);
      this.#runs.remember(run, { ...about, forwards });
    }
    await run.watchPersistently();
    return this.#describe(run);
  }

  async #launch(spec: hv.GuestSpec, record: GuestRecord, means: LaunchMeans): Promise<hv.StartedGuest> {
    const logBytes = consoleBytes(this.#folders.guestPath(spec.vmId));
    const run = await this.#launcher.launch(spec, record, means);
    if (means.accel === 'kvm') void this.#fallBack(run, spec, { program: means.program, logBytes });
    return this.#describe(run);
  }

  /** Restarts a guest that hangs under KVM, emulated; once. The next check updates its row. */
  async #fallBack(
    run: GuestRun,
    spec: hv.GuestSpec,
    { program, logBytes }: { program: QemuProgram; logBytes: number },
  ): Promise<void> {
    const { vmId } = run;
    const { signal } = this.#closing;
    const folder = this.#folders.guestPath(vmId);
    const limits = this.#deps.firstSign ?? FIRST_SIGN;
    if (await showsLife(run, { folder, logBytes, ...limits, signal })) return;
    await this.#locks.run(vmId, async () => {
      const record = this.#folders.find(vmId);
      if (signal.aborted || record === undefined || !run.isAlive || run.isStopping) return;
      this.#warn(vmId, NO_SIGN);
      try {
        await stopRun(run, 0);
        this.#runs.forget(run);
        await this.#launch(spec, record, { program, accel: 'tcg', reason: NO_SIGN, fix: '' });
      } catch (error) {
        const about = {
          vmId,
          handle: run.handle,
          message: `${NO_SIGN}: ${failedStart(null, error).message}`,
        };
        this.#onEnd({ ...about, cause: 'crashed', at: this.#deps.clock.now() });
      }
    });
  }

  #describe(run: GuestRun): hv.StartedGuest {
    const record = this.#folders.run(run.vmId);
    return { handle: run.handle, accel: record?.accel ?? 'tcg', accelReason: record?.accelReason ?? '' };
  }

  #dropConsole(vmId: string): void {
    this.#consoles.get(vmId)?.supersede();
    this.#consoles.delete(vmId);
  }

  stop(vmId: string, { graceMs, signal }: hv.StopOptions): Promise<hv.StopMethod> {
    return this.#inTurn(vmId, async () => {
      const run = this.#runs.find(vmId);
      const method = run === null ? 'was_stopped' : await stopRun(run, graceMs, signal);
      if (run !== null) this.#runs.forget(run);
      await this.#runs.clear(vmId);
      return method;
    });
  }

  async inspect(vmId: string): Promise<hv.GuestFact> {
    return this.#runs.fact(vmId, this.#runs.find(vmId));
  }

  list(): Promise<readonly hv.GuestFact[]> {
    return this.#runs.facts();
  }

  discard(vmId: string): Promise<void> {
    return this.#inTurn(vmId, async () => {
      const run = this.#runs.find(vmId);
      if (run !== null) {
        const { running } = await this.#runs.fact(vmId, run);
        if (running) throw new AppError('internal_error', 'a machine that runs cannot be removed');
        await stopRun(run, 0);
        this.#runs.forget(run);
        run.close();
      }
      await this.#runs.clear(vmId);
      await this.#networks.disconnect(vmId);
      await this.#folders.remove(vmId);
    });
  }

  get snapshots(): DiskSnapshots {
    return new DiskSnapshots({
      folders: this.#folders,
      runs: this.#runs,
      inTurn: (vmId, work) => this.#inTurn(vmId, work),
      qemuImg: () => this.#programs.image(),
      assertSpace: this.#deps.assertGrowth ?? (() => {}),
    });
  }

  async sample(vmId: string): Promise<hv.GuestSample | null> {
    const run = this.#runs.find(vmId);
    if (run === null) return null;
    trimLog(this.#folders.guestPath(vmId));
    await this.#waits.check(run);
    return sampleRun(run, this.#deps.clock.now());
  }

  waiting(vmId: string): 'disk_full' | null {
    return this.#waits.isWaiting(vmId) ? 'disk_full' : null;
  }

  /** Guests that fill this host's disk. */
  get waits(): DiskFullWaits {
    return this.#waits;
  }

  async openConsole(vmId: string): Promise<hv.GuestConsole | null> {
    if (this.#runs.find(vmId) === null) return null;
    this.#dropConsole(vmId);
    const opened = await SocketConsole.open(this.#folders.guestPath(vmId));
    if (opened !== null) this.#consoles.set(vmId, opened);
    return opened;
  }

  async consoleLog(vmId: string, maxBytes: number): Promise<Uint8Array> {
    return readLog(this.#folders.guestPath(vmId), maxBytes);
  }

  endpoint(spec: Pick<hv.GuestSpec, 'vmId' | 'network'>, port: number): hv.GuestEndpoint | null {
    return this.#networks.endpoint(spec, port);
  }

  async reach(spec: Pick<hv.GuestSpec, 'vmId' | 'network'>, port: number): Promise<hv.ReachedPort | null> {
    const run = this.#runs.find(spec.vmId);
    return run === null ? null : this.#networks.reach(run, spec.network, port);
  }

  privateSocket(vmId: string): hv.HeldSocket | null {
    return this.#runs.find(vmId)?.privateSocket() ?? null;
  }

  async stageImage(imageId: string, options?: { readonly resume: boolean }): Promise<hv.ImageStage> {
    this.#assertHere();
    return this.#images.stage(imageId, options);
  }

  importImage(imageId: string, options: hv.ImportOptions): Promise<hv.ImportedImage> {
    return this.#images.import(imageId, options);
  }

  discardImage(imageId: string): Promise<void> {
    return this.#images.discard(imageId);
  }

  async listImages(): Promise<readonly string[]> {
    return this.#images.list();
  }

  onEnd(listener: (end: hv.GuestEnd) => void): void {
    this.#onEnd = listener;
  }

  async adopt(facts: readonly hv.GuestFact[]): Promise<void> {
    const runs = facts.flatMap(({ vmId, running }) => (running ? (this.#runs.find(vmId) ?? []) : []));
    for (const run of runs) {
      const size = this.#folders.run(run.vmId)?.size;
      // systemd may have removed its limits since.
      if (size !== undefined) this.#launcher.limit(run, size);
    }
    await Promise.all(runs.map((run) => run.watchPersistently()));
  }

  async close(): Promise<void> {
    this.#closing.abort();
    this.#processes.shells.close();
    this.#runs.close();
    for (const opened of this.#consoles.values()) opened.close();
    this.#consoles.clear();
    await this.#probe.close();
  }
}

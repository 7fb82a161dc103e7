/** Guests as QEMU processes on this host. */
import { statSync } from 'node:fs';
import { join } from 'node:path';
import type { Clock } from '../../clock.ts';
import type * as hv from '../../compute/hypervisor.ts';
import { AppError } from '../../errors.ts';
import { KeyLocks } from '../../key-locks.ts';
import { FILES, qemuArguments } from './arguments.ts';
import { asDiskError, createOverlay, createRawDisk, lendFile, writeSeed } from './disk.ts';
import { SocketConsole, trimLog } from './guest-console.ts';
import { GuestFolders, type GuestRecord, guestEndpoint, SLOTS } from './guest-folders.ts';
import type { GuestRun } from './guest-run.ts';
import { GuestRuns, STATUS_MS } from './guest-runs.ts';
import { connectIn } from './guest-socket.ts';
import { bringUp, lastLine, launch, runStatus, tail } from './launch.ts';
import { type Accel, AccelProbe } from './probe.ts';
import { availableMemory } from './processes.ts';
import { INSTALL_HINT, type QemuProgram, QemuPrograms } from './program.ts';
import { sampleRun } from './sampling.ts';
import { stopRun } from './stopping.ts';

export interface QemuDeps {
  /** Everything of every guest is in here. */
  readonly vmsDirectory: string;
  /** Images as `<imageId>.<format>`. */
  readonly imagesDirectory: string;
  /** Paths of what the built-in image starts from. */
  readonly tiny: { readonly kernel: string; readonly initrd: string };
  readonly clock: Clock;
  /** As root every guest has a user of its own: this number plus one of a million. */
  readonly uidBase: number;
  /** `tcg`: KVM is not even tried. */
  readonly accel: 'auto' | 'tcg';
  /** Where to look for QEMU instead of the usual places. */
  readonly programDirectories?: readonly string[];
}

const MIB = 1024 * 1024;
/** What a guest takes while it boots; the rest of its memory comes when it is used. */
const FIRST_TOUCH_BYTES = 256 * MIB;
const HOST_KEEPS_BYTES = 512 * MIB;
const KVM_DEVICE = '/dev/kvm';
const NOT_INSTALLED = 'QEMU is not installed on this host';

export class QemuHypervisor implements hv.Hypervisor {
  readonly name = 'qemu';
  readonly capabilities = { guestStatistics: true, console: true, survivesRestart: true };
  readonly #deps: QemuDeps;
  readonly #folders: GuestFolders;
  readonly #programs: QemuPrograms;
  readonly #probe: AccelProbe;
  readonly #locks = new KeyLocks();
  readonly #runs: GuestRuns;
  readonly #consoles = new Map<string, SocketConsole>();
  #starting = 0;
  #onEnd: (end: hv.GuestEnd) => void = () => {};

  /** Reads which guests there are; touches none of them. */
  constructor(deps: QemuDeps) {
    this.#deps = deps;
    const isRoot = process.getuid?.() === 0;
    this.#folders = new GuestFolders(deps.vmsDirectory, isRoot ? deps.uidBase : null);
    this.#runs = new GuestRuns({
      folders: this.#folders,
      clock: deps.clock,
      onGone: (run) => this.#dropConsole(run.vmId),
      onEnd: (end) => this.#onEnd(end),
    });
    this.#programs = new QemuPrograms(deps.programDirectories);
    this.#probe = new AccelProbe({
      directory: deps.vmsDirectory,
      clock: deps.clock,
      user: isRoot ? userFor(deps.uidBase + SLOTS, 'kvm') : null,
      device: KVM_DEVICE,
    });
  }

  async readiness(): Promise<hv.Readiness> {
    const program = await this.#programs.system();
    if (program === null) {
      const problem = { isUsable: false, problem: NOT_INSTALLED, fix: INSTALL_HINT };
      return { ...problem, version: '', accel: '', accelReason: '' };
    }
    const { accel, reason } = this.#accel(program);
    const fine = { isUsable: true, problem: '', fix: '' };
    return { ...fine, version: program.version, accel, accelReason: reason };
  }

  /** Resolves when it is known whether guests start with KVM. */
  async probed(): Promise<void> {
    await this.readiness();
    await this.#probe.settled();
  }

  #accel(program: QemuProgram): Accel {
    if (this.#deps.accel === 'tcg') return { accel: 'tcg', reason: 'KVM is turned off in the settings' };
    return this.#probe.current(program);
  }

  prepare(spec: hv.GuestSpec): Promise<void> {
    return this.#locks.run(spec.vmId, async () => {
      if (spec.image.boot === 'disk' && (await this.#programs.image()) === null) return;
      await this.#prepared(spec);
    });
  }

  async #prepared(spec: hv.GuestSpec): Promise<GuestRecord> {
    const known = this.#folders.find(spec.vmId);
    if (known !== undefined) return known;
    const { vmId, uuid, image } = spec;
    const diskFormat = image.boot === 'kernel' ? 'raw' : 'qcow2';
    try {
      return await this.#folders.create(
        { vmId, uuid, boot: image.boot, diskFormat },
        async (folder, { uid }) => {
          writeSeed(folder, spec, uid);
          if (image.boot === 'kernel') return createRawDisk(folder, spec.diskGb, uid);
          const qemuImg = await this.#programs.image();
          if (qemuImg === null) throw notInstalled();
          const base = join(this.#deps.imagesDirectory, `${image.imageId}.${image.format}`);
          await createOverlay(folder, {
            base,
            format: image.format,
            diskGb: spec.diskGb,
            owner: uid,
            qemuImg,
          });
        },
      );
    } catch (error) {
      throw asDiskError(error);
    }
  }

  start(spec: hv.GuestSpec): Promise<hv.StartedGuest> {
    return this.#locks.run(spec.vmId, async () => {
      const program = await this.#programs.system();
      if (program === null) throw notInstalled();
      if (spec.network.outbound) throw notGuarded();
      const existing = this.#runs.find(spec.vmId);
      if (existing !== null) return this.#complete(existing);
      const record = await this.#prepared(spec);
      this.#admit();
      this.#starting++;
      try {
        return await this.#launch(spec, record, program);
      } finally {
        this.#starting--;
      }
    });
  }

  /** A guest that has a process already: it runs, or was left behind before its processor did. */
  async #complete(run: GuestRun): Promise<hv.StartedGuest> {
    const before = this.#folders.run(run.vmId);
    const about = before ?? { accel: 'tcg', accelReason: '' };
    const isRunning = before?.handle === run.handle && before.runningSince !== null;
    if (!isRunning || (await runStatus(run, STATUS_MS).catch(() => 'running')) !== 'running') {
      this.#runs.remember(run, about);
      await this.#bringUp(run);
    }
    this.#runs.remember(run, about);
    await run.watchPersistently();
    return this.#describe(run);
  }

  /** Throws `insufficient_capacity` when the guest would take memory that the host has to keep. */
  #admit(): void {
    const free = availableMemory() - this.#starting * FIRST_TOUCH_BYTES;
    if (free - FIRST_TOUCH_BYTES >= HOST_KEEPS_BYTES) return;
    throw new AppError('insufficient_capacity', 'this host has no memory left for another machine', {
      hint: 'stop a machine, or try again later',
      retryAfterSeconds: 30,
    });
  }

  async #launch(spec: hv.GuestSpec, record: GuestRecord, program: QemuProgram): Promise<hv.StartedGuest> {
    const { vmId } = spec;
    const folder = this.#folders.guestPath(vmId);
    const log = this.#folders.path(vmId, 'qemu.log');
    const { accel, reason } = this.#accel(program);
    this.#lendFiles(spec, record, folder);
    trimLog(join(folder, FILES.consoleLog));
    const forwards = spec.network.ports.map((guestPort) => {
      const { host, port } = guestEndpoint(record.slot, guestPort);
      return { address: host, hostPort: port, guestPort };
    });
    const { boot, diskFormat, uuid } = record;
    const { vcpus, memoryMb, network } = spec;
    const { mac, outbound } = network;
    const { machine } = program;
    const args = qemuArguments({
      ...{ vmId, uuid, machine, accel, vcpus, memoryMb, boot, diskFormat, mac, outbound, forwards },
    });
    const user = record.uid === null ? null : userFor(record.uid, accel);
    const started = await launch({ program: program.path, args, folder, log, user }).catch((error) => {
      throw failedStart(lastLine(log), error);
    });
    const run = this.#runs.attach(vmId, started.identity);
    started.onExit((text) => run.noteExit(text));
    this.#runs.remember(run, { accel, accelReason: reason });
    await this.#bringUp(run);
    this.#runs.remember(run, { accel, accelReason: reason });
    return this.#describe(run);
  }

  /** A failed start leaves no process, and is no GuestEnd. */
  async #bringUp(run: GuestRun): Promise<void> {
    const wasStopping = run.isStopping;
    run.isStopping = true;
    try {
      await bringUp(run);
      run.isStopping = wasStopping;
    } catch (error) {
      if (run.isAlive) await stopRun(run, 0);
      this.#runs.forget(run);
      throw failedStart(lastLine(this.#folders.path(run.vmId, 'qemu.log')), error);
    }
  }

  #lendFiles({ image }: hv.GuestSpec, { boot, uid }: GuestRecord, folder: string): void {
    if (boot !== 'kernel') return;
    if (image.imageId !== 'tiny')
      throw new AppError('internal_error', 'only the built-in image has a kernel');
    try {
      lendFile(this.#deps.tiny.kernel, join(folder, FILES.kernel), uid);
      lendFile(this.#deps.tiny.initrd, join(folder, FILES.initrd), uid);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw asDiskError(error);
      throw new AppError('engine_unavailable', 'the built-in image has not been built', {
        hint: 'run the set-up again: it builds the image',
        cause: error,
      });
    }
  }

  #describe(run: GuestRun): hv.StartedGuest {
    const record = this.#folders.run(run.vmId);
    return { handle: run.handle, accel: record?.accel ?? 'tcg', accelReason: record?.accelReason ?? '' };
  }

  #dropConsole(vmId: string): void {
    this.#consoles.get(vmId)?.supersede();
    this.#consoles.delete(vmId);
  }

  stop(vmId: string, { graceMs }: hv.StopOptions): Promise<hv.StopMeans> {
    return this.#locks.run(vmId, async () => {
      const run = this.#runs.find(vmId);
      if (run === null) return 'was_stopped';
      const means = await stopRun(run, graceMs);
      this.#runs.forget(run);
      return means;
    });
  }

  async inspect(vmId: string): Promise<hv.GuestFact> {
    return this.#runs.fact(vmId, this.#runs.find(vmId));
  }

  list(): Promise<readonly hv.GuestFact[]> {
    return this.#runs.facts();
  }

  discard(vmId: string): Promise<void> {
    return this.#locks.run(vmId, async () => {
      const run = this.#runs.find(vmId);
      if (run !== null) {
        const { running } = await this.#runs.fact(vmId, run);
        if (running) throw new AppError('internal_error', 'a machine that runs cannot be removed');
        await stopRun(run, 0);
        this.#runs.forget(run);
        run.close();
      }
      await this.#folders.remove(vmId);
    });
  }

  async sample(vmId: string): Promise<hv.GuestSample | null> {
    const run = this.#runs.find(vmId);
    if (run === null) return null;
    trimLog(this.#folders.guestPath(vmId, FILES.consoleLog));
    return sampleRun(run, this.#deps.clock.now());
  }

  async openConsole(vmId: string): Promise<hv.GuestConsole | null> {
    if (this.#runs.find(vmId) === null) return null;
    this.#dropConsole(vmId);
    try {
      const socket = await connectIn(this.#folders.guestPath(vmId), FILES.console);
      const opened = new SocketConsole(socket);
      this.#consoles.set(vmId, opened);
      return opened;
    } catch {
      return null;
    }
  }

  async consoleLog(vmId: string, maxBytes: number): Promise<Uint8Array> {
    try {
      return tail(this.#folders.guestPath(vmId, FILES.consoleLog), maxBytes);
    } catch {
      return new Uint8Array();
    }
  }

  endpoint({ vmId, network }: Pick<hv.GuestSpec, 'vmId' | 'network'>, port: number): hv.GuestEndpoint | null {
    const record = this.#folders.find(vmId);
    return record !== undefined && network.ports.includes(port) ? guestEndpoint(record.slot, port) : null;
  }

  onEnd(listener: (end: hv.GuestEnd) => void): void {
    this.#onEnd = listener;
  }

  async adopt(facts: readonly hv.GuestFact[]): Promise<void> {
    const running = facts.filter((fact) => fact.running);
    await Promise.all(running.map(({ vmId }) => this.#runs.find(vmId)?.watchPersistently()));
  }

  async close(): Promise<void> {
    this.#runs.close();
    for (const opened of this.#consoles.values()) opened.close();
    this.#consoles.clear();
    await this.#probe.close();
  }
}

function notInstalled(): AppError {
  return new AppError('engine_unavailable', NOT_INSTALLED, { hint: INSTALL_HINT });
}

/** QEMU's user network would let the guest reach what listens on this host's own loopback addresses, too. */
function notGuarded(): AppError {
  return new AppError('engine_unavailable', 'machines cannot be given the outside without this host', {
    hint: 'turn outbound connections off for machines',
  });
}

function failedStart(words: string | null, cause: unknown): AppError {
  if (cause instanceof AppError) return cause;
  const detail =
    words === null ? 'the virtual machine does not start' : `the virtual machine does not start: ${words}`;
  return new AppError('internal_error', detail, { cause });
}

/** A user for a process; with KVM in the group that may open its device. */
function userFor(uid: number, accel: 'kvm' | 'tcg'): { uid: number; gid: number } {
  if (accel === 'tcg') return { uid, gid: uid };
  const device = statSync(KVM_DEVICE, { throwIfNoEntry: false });
  return { uid, gid: device?.gid ?? uid };
}

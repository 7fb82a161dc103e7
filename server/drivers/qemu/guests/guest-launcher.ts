/** Starts the process of a guest from its record and specification. */

import { chownSync, closeSync, existsSync, openSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { text } from 'node:stream/consumers';
import type { GuestOrigin, GuestSpec } from '../../../compute/hypervisor.ts';
import { AppError } from '../../../platform/errors.ts';
import { isCode } from '../../../platform/files.ts';
import { ALLOW_OVERCOMMIT, committableBytes } from '../../../platform/host/host-facts.ts';
import { lastLine } from '../../host-process/foreign-files.ts';
import type { HostProcesses } from '../../host-process/host-processes.ts';
import { FILES, qemuArguments, withTap } from '../arguments.ts';
import {
  asDiskError,
  createOverlay,
  createRawDisk,
  growDisk,
  lendBase,
  lendFile,
  writeSeed,
} from '../images/disk.ts';
import { type TinyImage, whyNoTinyImage } from '../images/tiny-image.ts';
import { type Accel, kvmUser } from '../kvm.ts';
import { chooseMachine, noQemuImg, type QemuProgram, type QemuPrograms } from '../program.ts';
import { stopRun } from '../stopping.ts';
import { trimLog } from './guest-console.ts';
import { GUEST, type GuestFolders, type GuestRecord, LOG } from './guest-folders.ts';
import type { Forwards, GuestNetworks } from './guest-networks.ts';
import type { GuestRun } from './guest-run.ts';
import type { GuestRuns } from './guest-runs.ts';

export interface LauncherDeps {
  readonly folders: GuestFolders;
  readonly runs: GuestRuns;
  readonly processes: HostProcesses;
  /** Paths of the built-in image's files. */
  readonly tiny: TinyImage;
  readonly networks: GuestNetworks;
  readonly warn: (vmId: string, text: string) => void;
}

export interface LaunchMeans extends Accel {
  readonly program: QemuProgram;
}

export class GuestLauncher {
  readonly #deps: LauncherDeps;
  /** The warning about missing limits was logged. */
  #hasWarned = false;

  constructor(deps: LauncherDeps) {
    this.#deps = deps;
  }

  /** Resolves when its processor runs. Throws AppErrors and leaves nothing behind. */
  async launch(given: GuestSpec, record: GuestRecord, means: LaunchMeans): Promise<GuestRun> {
    const { folders, runs, processes, networks } = this.#deps;
    const { program, accel, reason } = means;
    const spec = asQemuCan(given, program);
    const { vmId } = spec;
    runs.expect(vmId);
    // A process of its user could interfere with the new run, and would not be ended with it.
    await runs.clear(vmId);
    this.#lendFiles(spec, record, folders.guestPath(vmId));
    trimLog(folders.guestPath(vmId));
    const { boot, diskFormat, uuid } = record;
    const { vcpus, memoryMb, network } = spec;
    const { mac } = network;
    const machine = this.#machineOf(record, program);
    const { wires, guard } = await networks.connect(spec, record);
    const reserve = committableBytes() === null ? 'off' : 'on';
    const args = qemuArguments({
      vmId,
      uuid,
      machine,
      accel,
      vcpus,
      memoryMb,
      reserve,
      boot,
      diskFormat,
      mac,
      privateMac: network.privateLink?.mac ?? null,
      ...wires,
    });
    const log = folders.path(vmId, LOG);
    closeSync(openSync(log, 'w', 0o600));
    const qemu = {
      name: vmId,
      command: program.path,
      args,
      env: { LANG: 'C' },
      user: record.uid === null ? null : userOf(record.uid, accel),
      folder: resolve(folders.guestPath(vmId)),
      opener: wires.tap === null ? [] : withTap(wires.tap),
    };
    const keeper = { folder: resolve(folders.path(vmId)), log: LOG };
    const identity = await processes.keepConfined(qemu, keeper).catch(async (error) => {
      await networks.disconnect(vmId);
      throw failedStart(lastLine(log), error);
    });
    const run = runs.attach(vmId, { ...identity, uuid });
    const size = { vcpus, memoryMb };
    this.limit(run, size);
    runs.remember(run, { accel, accelReason: reason, size });
    // While the process starts, neither delays the other.
    const guarded = guard();
    processes.shells.refill();
    const forwards = await this.bringUp(run, spec, guarded);
    runs.remember(run, { accel, accelReason: reason, forwards });
    return run;
  }

  /** The machine type of the guest's first start, as long as this QEMU supports it. It is stored. */
  #machineOf({ vmId, machine: before }: GuestRecord, program: QemuProgram): string {
    const machine = chooseMachine(before, program);
    if (machine === before) return machine;
    this.#deps.folders.setMachine(vmId, machine);
    if (before !== undefined) {
      this.#deps.warn(
        vmId,
        `QEMU ${program.version} does not support ${before}; the machine now uses ${machine}`,
      );
    }
    return machine;
  }

  /** Applies limits to its process, also again, if this host supports them. */
  limit(run: GuestRun, size: GuestSize): void {
    try {
      const { cgroups } = this.#deps.processes;
      const { problem } = cgroups;
      if (problem !== '' && !this.#hasWarned)
        this.#deps.warn('', `machines have no cgroup limits: ${problem}`);
      this.#hasWarned = true;
      cgroups.assign(run.vmId, run.identity.pid, limitsOf(size));
    } catch (error) {
      this.#deps.warn(run.vmId, `the machine runs without limits: ${(error as NodeJS.ErrnoException).code}`);
    }
  }

  /**
   * Starts its processor, once it is `guarded`, and resolves with the endpoints of its ports. A failed start
   * leaves no process, and does not count as a GuestEnd.
   */
  async bringUp(run: GuestRun, { network }: GuestSpec, guarded = Promise.resolve()): Promise<Forwards> {
    const wasStopping = run.isStopping;
    run.isStopping = true;
    try {
      const forward = () => this.#deps.networks.forward(run, network.ports);
      const [forwards] = await Promise.all([run.whenReady().then(forward), guarded]);
      await run.resume();
      run.isStopping = wasStopping;
      return forwards;
    } catch (error) {
      if (run.isAlive) await stopRun(run, 0);
      this.#deps.runs.forget(run);
      throw failedStart(lastLine(this.#deps.folders.path(run.vmId, LOG)), error);
    }
  }

  #lendFiles({ image }: GuestSpec, { boot, uid }: GuestRecord, folder: string): void {
    if (boot !== 'kernel') return;
    if (image.imageId !== 'tiny')
      throw new AppError('internal_error', 'only the built-in image has a kernel');
    try {
      lendFile(this.#deps.tiny.kernel, join(folder, FILES.kernel), uid);
      lendFile(this.#deps.tiny.initrd, join(folder, FILES.initrd), uid);
    } catch (error) {
      if (!isCode(error, 'ENOENT')) throw asDiskError(error);
      const why = whyNoTinyImage(this.#deps.tiny);
      throw new AppError('engine_unavailable', why?.problem ?? 'the built-in image is being built', {
        hint: why?.fix ?? 'try again',
        cause: error,
      });
    }
  }
}

/** Messages of QEMU and Node when memory is exhausted. */
const NO_MEMORY = /Cannot allocate memory|ENOMEM/;

function noMemory(cause: unknown): AppError {
  const left = committableBytes();
  const mib = Math.floor((left ?? 0) / 2 ** 20);
  const [why, mend] =
    left === null
      ? ['this host has too little memory for a machine of that size', '']
      : [`this host does not overcommit memory: ${mib} MiB are left`, `, or: ${ALLOW_OVERCOMMIT}`];
  return new AppError('insufficient_capacity', why, {
    hint: `choose a smaller instance type, or stop a machine${mend}`,
    retryAfterSeconds: 30,
    cause,
  });
}

/** `error` of a start as an AppError, with the last output of the process. */
export function failedStart(words: string | null, cause: unknown): AppError {
  if (cause instanceof AppError) return cause;
  if (['EMFILE', 'ENFILE', 'EAGAIN'].includes(String((cause as NodeJS.ErrnoException | null)?.code))) {
    return new AppError(
      'insufficient_capacity',
      'this host has no file descriptors left for another machine',
      {
        hint: 'stop a machine, or try again later',
        retryAfterSeconds: 30,
        cause,
      },
    );
  }
  if (NO_MEMORY.test(`${words} ${cause}`)) return noMemory(cause);
  const detail =
    words === null ? 'the virtual machine does not start' : `the virtual machine does not start: ${words}`;
  return new AppError('internal_error', detail, { cause });
}

/** QEMU supports stream sockets from 7.2 on; older ones have no private network. */
function asQemuCan(spec: GuestSpec, { version }: QemuProgram): GuestSpec {
  const [major = 0, minor = 0] = version.split('.').map(Number);
  if (major > 7 || (major === 7 && minor >= 2)) return spec;
  return { ...spec, network: { ...spec.network, privateLink: undefined } };
}

function userOf(uid: number, accel: Accel['accel']): { uid: number; gid: number } {
  return accel === 'kvm' ? kvmUser(uid) : { uid, gid: uid };
}

/** Limits of a guest's process follow from these. */
export interface GuestSize {
  readonly vcpus: number;
  readonly memoryMb: number;
}

/** The control group of all guests. */
export const CGROUPS = 'cloudlet-machines';
const MIB = 1024 * 1024;
/** QEMU's own memory: 150 MiB were measured, with half of its cache of translated code in use. */
const OVERHEAD_BYTES = 512 * MIB;
/** Page tables and the like, which grow with the guest. */
const OVERHEAD_SHARE = 1 / 64;
const PERIOD_US = 100_000;
/** Share of one processor for the I/O threads of a guest. */
const IO_SHARE = 0.25;
/** QEMU uses up to 64 threads for disks, and a few others. */
const OTHER_THREADS = 128;

/** Values by the files of a guest's control group. */
export function limitsOf({ vcpus, memoryMb }: GuestSize): Readonly<Record<string, string>> {
  const memory = memoryMb * MIB;
  return {
    'memory.max': String(memory + OVERHEAD_BYTES + Math.ceil(memory * OVERHEAD_SHARE)),
    // A half-started guest is useless.
    'memory.oom.group': '1',
    'cpu.max': `${Math.round((vcpus + IO_SHARE) * PERIOD_US)} ${PERIOD_US}`,
    'pids.max': String(vcpus + OTHER_THREADS),
  };
}

/** Prepares a guest on this host: folders, disk and seed. */
export interface PreparationDeps {
  readonly folders: GuestFolders;
  readonly programs: QemuPrograms;
  readonly imagesDirectory: string;
}

/**
 * An existing guest keeps its disk, which grows to the size in `spec`. `origin`: the disk to copy. Throws
 * AppErrors.
 */
export async function prepareGuest(
  deps: PreparationDeps,
  spec: GuestSpec,
  origin?: GuestOrigin,
): Promise<GuestRecord> {
  const { folders, programs, imagesDirectory } = deps;
  const { vmId, uuid, image } = spec;
  const base = join(imagesDirectory, `${image.imageId}.${image.format}`);
  const known = folders.find(vmId);
  try {
    if (known !== undefined ? !hasDisk(folders, known) : spec.hasRun === true) throw diskMissing();
    const { rebuilds = 0 } = spec;
    if (known !== undefined && rebuilds > (known.rebuilds ?? 0)) {
      const { machine: _, ...kept } = known;
      const made = await newGuest(programs, { spec, base });
      return await folders.replace({ ...kept, ...made.about, rebuilds }, made.fill);
    }
    if (known !== undefined) {
      const folder = folders.guestPath(vmId);
      lendBaseAgain(folder, base, known);
      const { diskFormat: format, uid: owner } = known;
      await growDisk(folder, { format, diskGb: spec.diskGb, owner, qemuImg: () => programs.image() });
      return known;
    }
    if (origin !== undefined) return await copyGuest(folders, { spec, origin, base });
    const { about, fill } = await newGuest(programs, { spec, base });
    return await folders.create({ vmId, uuid, ...about, ...(rebuilds > 0 && { rebuilds }) }, fill);
  } catch (error) {
    throw asDiskError(error);
  }
}

/** The hardware of a new guest, and the content of its folder: a disk from the image, and the seed. */
async function newGuest(
  programs: PreparationDeps['programs'],
  { spec, base }: { readonly spec: GuestSpec; readonly base: string },
) {
  const { image, diskGb } = spec;
  const machine = (await programs.system())?.machine;
  const diskFormat = image.boot === 'kernel' ? ('raw' as const) : ('qcow2' as const);
  return {
    about: { boot: image.boot, diskFormat, ...(machine === undefined ? {} : { machine }) },
    fill: async (folder: string, { uid: owner }: GuestRecord) => {
      writeSeed(folder, spec, owner);
      if (image.boot === 'kernel') return createRawDisk(folder, diskGb, owner);
      const qemuImg = await programs.image();
      if (qemuImg === null) throw noQemuImg();
      await createOverlay(folder, { base, format: image.format, diskGb, owner, qemuImg });
    },
  };
}

function hasDisk(folders: GuestFolders, { vmId, diskFormat }: GuestRecord): boolean {
  return existsSync(folders.guestPath(vmId, diskName(diskFormat)));
}

function diskName(format: GuestRecord['diskFormat']): string {
  return format === 'raw' ? FILES.rawDisk : FILES.qcow2Disk;
}

/** An empty replacement disk would hide the loss until its owner looks for the data. */
function diskMissing(): AppError {
  return new AppError('disk_missing', 'The disk of this virtual machine is not on this host', {
    hint:
      'The operator must put it back, or mount its file system, and start the machine again; or restore the ' +
      'machine from a recovery point',
  });
}

/** A recovery point contains an image once, not in each guest's folder. */
function lendBaseAgain(folder: string, base: string, { diskFormat, uid }: GuestRecord): void {
  if (diskFormat === 'qcow2' && !existsSync(join(folder, FILES.base))) lendBase(folder, base, uid);
}

/** A guest with the disk and hardware of one in a recovery point, and its own seed. */
async function copyGuest(
  folders: GuestFolders,
  { spec, origin, base }: { readonly spec: GuestSpec; readonly origin: GuestOrigin; readonly base: string },
): Promise<GuestRecord> {
  const { vmId, uuid } = spec;
  const record = await origin.find(folders.recordName(origin.vmId));
  if (record === undefined) throw noDisk();
  const { boot, diskFormat, machine } = JSON.parse(await text(record.read())) as GuestRecord;
  const name = diskName(diskFormat);
  const disk = await origin.find(join(origin.vmId, GUEST, name));
  if (disk === undefined) throw noDisk();
  const guest = { vmId, uuid, boot, diskFormat, ...(machine === undefined ? {} : { machine }) };
  return folders.create(guest, async (folder, { uid }) => {
    writeSeed(folder, spec, uid);
    const path = join(folder, name);
    await disk.writeTo(path);
    if (uid !== null) chownSync(path, uid, uid);
    if (diskFormat === 'qcow2') lendBase(folder, base, uid);
  });
}

function noDisk(): AppError {
  return new AppError('point_not_found', 'The recovery point has no disk of the virtual machine', {
    hint: 'The machine had never been started, or its disk could not be read. Use another recovery point',
  });
}

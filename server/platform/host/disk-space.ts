/**
 * Guards free disk space, because at 0 free bytes not even a delete can be written.
 *
 * Three measures: New bytes must leave a headroom free. Bytes admitted since the last check of the disk count
 * as used. And a reserve of real blocks is released if the disk is full all the same (by another program, for
 * example), so that deletes and ledger commits still succeed.
 */
import { open, rm, stat, statfs, unlink } from 'node:fs/promises';
import { join } from 'node:path';
import { type Alarms, assertWritable } from '../alarms.ts';
import { type Beat, onBeat } from '../background/beat.ts';
import type { Clock } from '../clock.ts';
import { StartupError } from '../data-directory.ts';
import { AppError } from '../errors.ts';

export interface DiskSpaceDeps {
  readonly clock: Clock;
  readonly alarms: Alarms;
  /** A directory on the watched file system; contains the reserve. */
  readonly directory: string;
}

/** Space reserved for one piece of work. Always release it, once the bytes are on disk or will never be. */
export interface SpaceReservation {
  /** Turns reserved bytes into admitted ones; beyond the reservation, checks like assertSpace. */
  take(bytes: number): void;
  /** Releases the rest. Idempotent. */
  release(): void;
}

const MIB = 2 ** 20;
const REFRESH_MS = 500;
/** Twice the maximum size of the metadata's log, which needs as much space again when it is written back. */
const RESERVE_BYTES = 32 * MIB;
const HEADROOM_BYTES = 64 * MIB;
/** Headroom and reserve shrink on a small file system. */
const SMALL_SHARE = 1 / 16;
/** Below this a start cannot work, not even deletes; a small file system needs less. */
const START_BYTES = 16 * MIB;
const START_SHARE = 1 / 32;
/** The reserve is recreated later; otherwise freeing it would not help. */
const REMAKE_AFTER_MS = 5000;
const FREE_SPACE_HINT =
  'Delete objects, old versions, databases (?keep=false skips the last dump) or rows, or move ' +
  'the data directory to a larger disk; writes resume automatically';
/** Below this multiple of the headroom, writers that do not check for space are slowed down. */
const SCARCE_TIMES = 3;
/** Space that machine disks leave for everything else; on a smaller file system a share of it. */
const MACHINE_RESERVE_BYTES = 2048 * MIB;
const MACHINE_RESERVE_SHARE = 1 / 32;
const ALARM = 'out_of_space';
/** A file system with less free space than this (or this share, if small) counts as full. */
const FULL_BYTES = 16 * MIB;
const FULL_SHARE = 1 / 64;
/**
 * A large refused upload releases its space, and the next one is refused again, so the alarm stays
 * this long.
 */
const REFUSAL_SHOWN_MS = 15_000;

/** `low`: less than the headroom is free; `out`: less than half of the headroom. */
export type DiskLevel = 'ample' | 'scarce' | 'low' | 'out';

/** `scarce`: machines have used up their share of the disk; `tight`: they will soon. */
export type MachineRoom = 'ample' | 'tight' | 'scarce';

type Figures = Readonly<Record<'bsize' | 'blocks' | 'bavail' | 'bfree', number>>;

export class DiskSpace {
  readonly #deps: DiskSpaceDeps;
  readonly #reservePath: string;
  #freeBytes = 0;
  #totalBytes = 0;
  #usableBytes = 0;
  #checkedAt = Number.NEGATIVE_INFINITY;
  #admittedBytes = 0;
  #heldBytes = 0;
  #hasReserve = false;
  #releasedAt = Number.NEGATIVE_INFINITY;
  #refusedAt = Number.NEGATIVE_INFINITY;
  #beat: Beat | undefined;
  #checking: Promise<void> | undefined;
  #release: Promise<boolean> | undefined;
  #beforeRelease: () => Promise<void> = async () => {};

  constructor(deps: DiskSpaceDeps) {
    this.#deps = deps;
    this.#reservePath = join(deps.directory, 'reserve');
  }

  /**
   * Checks the disk, creates the reserve if there is space, and starts the periodic check. On a full disk it
   * releases the reserve, so that something can be deleted; throws StartupError if that is not enough. Throws
   * if the directory cannot be checked. The caller must hold the lock of the directory.
   */
  async start(): Promise<void> {
    this.#applyFigures(await statfs(this.#deps.directory));
    if (!this.#isStartable()) await this.#startFromReserve();
    await this.#keepReserve();
    this.#beat ??= onBeat(REFRESH_MS, () => this.refresh());
  }

  #isStartable(): boolean {
    return this.#freeBytes >= Math.min(START_BYTES, this.#totalBytes * START_SHARE);
  }

  async #startFromReserve(): Promise<void> {
    const { directory, clock } = this.#deps;
    await rm(this.#reservePath, { force: true });
    this.#releasedAt = clock.monotonic();
    this.#applyFigures(await statfs(directory));
    if (this.#isStartable()) return;
    const mebibytes = Math.floor(this.#freeBytes / MIB);
    throw new StartupError(
      `The disk of ${directory} is nearly full (${mebibytes} MiB free): free some space first`,
    );
  }

  /** Stops the check; the reserve stays for the next start. */
  async stop(): Promise<void> {
    this.#beat?.stop();
    this.#beat = undefined;
    await this.#checking;
  }

  /** Size of the disk, including used space, without root's share. */
  get usableBytes(): number {
    return this.#usableBytes;
  }

  /** Like assertSpace(), but also throws `read_only` while the metadata cannot be written. */
  assertMayStore(bytes: number): void {
    assertWritable(this.#deps.alarms);
    this.assertSpace(bytes);
  }

  /** Bytes that assertSpace would admit. Never negative. */
  availableBytes(): number {
    return Math.max(0, this.#freeBytes - this.#admittedBytes - this.#heldBytes - this.headroomBytes());
  }

  /**
   * Less than the headroom is free, not counting reservations: writers that do not call assertSpace should
   * stop.
   */
  isLow(): boolean {
    return this.#freeBytes - this.#admittedBytes < this.headroomBytes();
  }

  /** Free space in steps, for writers that do not call assertSpace. */
  level(): DiskLevel {
    const [free, headroom] = [this.#freeBytes - this.#admittedBytes, this.headroomBytes()];
    if (free >= headroom) return free < headroom * SCARCE_TIMES ? 'scarce' : 'ample';
    return free < headroom / 2 ? 'out' : 'low';
  }

  /** The whole disk, minus the admitted and reserved bytes. */
  get figures(): { readonly totalBytes: number; readonly freeBytes: number } {
    const freeBytes = this.#freeBytes - this.#admittedBytes - this.#heldBytes;
    return { totalBytes: this.#totalBytes, freeBytes };
  }

  /** Levels of free space, for machine disks. */
  machineRoom(): MachineRoom {
    const [free, kept] = [this.#freeBytes - this.#admittedBytes, this.#machineReserve()];
    if (free < kept) return 'scarce';
    return free < 1.5 * kept ? 'tight' : 'ample';
  }

  /**
   * Like assertMayStore(), for disks of machines and their copies, which grow without a call: they leave
   * space for everything else. Throws `out_of_space`.
   */
  assertMachineMayGrow(bytes: number): void {
    if (this.#freeBytes - this.#admittedBytes - this.#heldBytes - bytes < this.#machineReserve()) {
      void this.refresh();
      throw machinesOutOfSpace();
    }
    this.assertMayStore(bytes);
  }

  #machineReserve(): number {
    const share = Math.floor(this.#totalBytes * MACHINE_RESERVE_SHARE);
    return Math.max(2 * this.headroomBytes(), Math.min(MACHINE_RESERVE_BYTES, share));
  }

  /** Low, and the reserve was freed: only commits may use the rest. */
  isOut(): boolean {
    return this.isLow() && !this.#hasReserve;
  }

  /** Space that must stay free, including the reserve while it is not on disk. */
  headroomBytes(): number {
    const headroom = Math.min(HEADROOM_BYTES, Math.floor(this.#totalBytes * SMALL_SHARE));
    return headroom + (this.#hasReserve ? 0 : this.#reserveBytes());
  }

  #reserveBytes(): number {
    return Math.min(RESERVE_BYTES, Math.floor(this.#totalBytes * SMALL_SHARE));
  }

  /** Age of the figures, ms. */
  ageMs(): number {
    return this.#deps.clock.monotonic() - this.#checkedAt;
  }

  /**
   * Call before writing `bytes`: admits them, or throws AppError `out_of_space`. Synchronous: it uses a
   * figure at most a second old, less everything admitted since.
   */
  assertSpace(bytes: number): void {
    const available = this.availableBytes();
    if (bytes > available) {
      void this.refresh();
      throw this.#refused();
    }
    this.#admittedBytes += bytes;
    // A burst makes the figure stale early.
    if (this.#admittedBytes > available / 8) void this.refresh();
  }

  /**
   * Reserves `bytes` for work that writes them over time, such as an upload of known length. Throws like
   * assertSpace.
   */
  hold(bytes: number): SpaceReservation {
    const available = this.availableBytes();
    if (bytes > available) throw this.#refused();
    this.#heldBytes += bytes;
    let left = bytes;
    const give = (count: number) => {
      left -= count;
      this.#heldBytes -= count;
    };
    return {
      take: (count) => {
        const promised = Math.min(count, left);
        if (count > promised) this.assertSpace(count - promised);
        give(promised);
        this.#admittedBytes += promised;
      },
      release: () => give(left),
    };
  }

  /**
   * Releases the reserved blocks to the file system, after ENOSPC in a delete or a commit. True if something
   * was released: retry the write. The reserve is created again when there is space.
   */
  async releaseReserve(): Promise<boolean> {
    // Concurrent commits wait for the same release.
    if (this.#release !== undefined) return this.#release;
    if (!this.#hasReserve) return false;
    this.#release = this.#giveReserve().finally(() => {
      this.#release = undefined;
    });
    return this.#release;
  }

  /**
   * `work` is awaited before the reserve is released: it stops writers that would use the space.
   * One at a time.
   */
  beforeRelease(work: () => Promise<void>): void {
    this.#beforeRelease = work;
  }

  async #giveReserve(): Promise<boolean> {
    await this.#beforeRelease().catch(() => undefined);
    this.#hasReserve = false;
    this.#releasedAt = this.#deps.clock.monotonic();
    await unlink(this.#reservePath);
    void this.refresh();
    return true;
  }

  /** True while the reserve is on disk. */
  hasReserve(): boolean {
    return this.#hasReserve;
  }

  /** Checks the disk now. Concurrent calls share one check; a failed one keeps the old figures. */
  refresh(): Promise<void> {
    this.#checking ??= this.#checkAgain().finally(() => {
      this.#checking = undefined;
    });
    return this.#checking;
  }

  async #checkAgain(): Promise<void> {
    const admittedBefore = this.#admittedBytes;
    try {
      const figures = await statfs(this.#deps.directory);
      // The result may not include bytes admitted during the check.
      this.#admittedBytes -= admittedBefore;
      this.#applyFigures(figures);
      await this.#keepReserve();
    } catch {
      // Admissions count against the last figure, so a hanging disk leads to refusals.
    }
  }

  #applyFigures({ bsize, blocks, bavail, bfree }: Figures): void {
    this.#freeBytes = bavail * bsize;
    this.#usableBytes = (blocks - bfree + bavail) * bsize;
    this.#totalBytes = blocks * bsize;
    this.#checkedAt = this.#deps.clock.monotonic();
    this.#tell();
  }

  #refused(): AppError {
    this.#refusedAt = this.#deps.clock.monotonic();
    this.#tell();
    return outOfSpace();
  }

  /** Raises the alarm while uploads are refused, or hardly any space is left, and clears it afterwards. */
  #tell(): void {
    const { alarms, clock } = this.#deps;
    const available = this.availableBytes();
    const full = Math.min(FULL_BYTES, this.#totalBytes * FULL_SHARE);
    const wasRefused = clock.monotonic() - this.#refusedAt < REFUSAL_SHOWN_MS;
    if (available >= full && !wasRefused) {
      alarms.clear(ALARM);
      return;
    }
    const mebibytes = Math.floor(available / MIB);
    alarms.raise(
      ALARM,
      `The disk is nearly full: uploads and database growth beyond the remaining ${mebibytes} MiB are refused`,
      FREE_SPACE_HINT,
    );
  }

  async #keepReserve(): Promise<void> {
    const wanted = this.#reserveBytes();
    if (this.#hasReserve || this.#deps.clock.monotonic() - this.#releasedAt < REMAKE_AFTER_MS) return;
    if (await isReserve(this.#reservePath, wanted)) {
      this.#hasReserve = true;
      return;
    }
    if (this.#freeBytes - this.#heldBytes < this.headroomBytes() + wanted) return;
    this.#hasReserve = await writeReserve(this.#reservePath, wanted);
    if (this.#hasReserve) this.#applyFigures(await statfs(this.#deps.directory));
  }
}

/** The text has no figures: other usage of the disk is not public. */
function outOfSpace(): AppError {
  return new AppError('out_of_space', 'The disk of this cloud is full; nothing was stored', {
    hint: 'Delete objects, old versions or databases, or ask the operator for a larger disk; writes resume automatically',
  });
}

function machinesOutOfSpace(): AppError {
  const rule = 'The disk of this cloud is nearly full: machine disks may not use the remaining space';
  return new AppError('out_of_space', rule, {
    hint: 'Delete snapshots or virtual machines, or ask the operator for a larger disk, and try again',
  });
}

/** True if the whole reserve is on disk, in real blocks: a crash may have left a shorter or a sparse one. */
async function isReserve(path: string, bytes: number): Promise<boolean> {
  try {
    const { size, blocks } = await stat(path);
    return size >= bytes && blocks * 512 >= bytes;
  } catch {
    return false;
  }
}

/** False if the disk had not enough space. */
async function writeReserve(path: string, bytes: number): Promise<boolean> {
  try {
    const file = await open(path, 'w', 0o600);
    try {
      const chunk = Buffer.alloc(MIB, 0xa5);
      for (let written = 0; written < bytes; ) {
        written += (await file.write(chunk, 0, Math.min(chunk.length, bytes - written))).bytesWritten;
      }
      await file.sync();
    } finally {
      await file.close();
    }
    return true;
  } catch {
    await unlink(path).catch(() => undefined);
    return false;
  }
}

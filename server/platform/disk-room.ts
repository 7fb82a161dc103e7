/**
 * Says no while there is still a little room, because at 0 free bytes not even a delete can be written.
 *
 * Three fences keep it so. New bytes must leave a headroom free. What was let in since the last look at
 * the disk counts as used. And a reserve of real blocks is given back when the disk is full all the
 * same (by another program, say), so that deletes and ledger commits still land.
 */
import { open, rm, stat, statfs, unlink } from 'node:fs/promises';
import { join } from 'node:path';
import { type Alarms, assertWritable } from './alarms.ts';
import type { Clock } from './clock.ts';
import { StartupError } from './data-directory.ts';
import { AppError } from './errors.ts';

export interface DiskRoomDeps {
  readonly clock: Clock;
  readonly alarms: Alarms;
  /** On the file system that is watched; the reserve is kept in it. */
  readonly directory: string;
}

/** Room promised to one piece of work. Release it always, when the bytes are on disk or will never be. */
export interface RoomHold {
  /** Turns promised bytes into admitted ones; past the promise it asks as assertRoom does. */
  take(bytes: number): void;
  /** Gives back what was not taken. Idempotent. */
  release(): void;
}

const MIB = 2 ** 20;
const LOOK_EVERY_MS = 500;
/** Twice what the metadata's log may hold before it is written back, which needs as much room again. */
const RESERVE_BYTES = 32 * MIB;
const HEADROOM_BYTES = 64 * MIB;
/** Both fences shrink on a small file system. */
const SMALL_SHARE = 1 / 16;
/** Below this a start can rely on nothing, not even on deletes; a small file system needs less. */
const START_BYTES = 16 * MIB;
const START_SHARE = 1 / 32;
/** The reserve is not made again at once, or freeing it would help nobody. */
const REMAKE_AFTER_MS = 5000;
const MAKE_ROOM =
  'Delete objects, old versions or databases (?keep=false goes without a last dump), or rows in them, or give ' +
  'the data directory a larger disk; writing resumes by itself';
const ALARM = 'out_of_space';
/** Less than this, and on a small file system less than this share, is as good as nothing. */
const SCARCE_BYTES = 16 * MIB;
const SCARCE_SHARE = 1 / 64;
/** A large upload that was refused gives back what it took, and the next one is refused again. */
const REFUSAL_SHOWN_MS = 15_000;

type Figures = Readonly<Record<'bsize' | 'blocks' | 'bavail' | 'bfree', number>>;

export class DiskRoom {
  readonly #deps: DiskRoomDeps;
  readonly #reservePath: string;
  #freeBytes = 0;
  #totalBytes = 0;
  #usableBytes = 0;
  #lookedAt = Number.NEGATIVE_INFINITY;
  #admittedBytes = 0;
  #heldBytes = 0;
  #hasReserve = false;
  #releasedAt = Number.NEGATIVE_INFINITY;
  #refusedAt = Number.NEGATIVE_INFINITY;
  #timer: NodeJS.Timeout | undefined;
  #look: Promise<void> | undefined;
  #release: Promise<boolean> | undefined;
  #beforeRelease: () => Promise<void> = async () => {};

  constructor(deps: DiskRoomDeps) {
    this.#deps = deps;
    this.#reservePath = join(deps.directory, 'reserve');
  }

  /**
   * Looks for the first time, makes the reserve if there is room, and goes on looking. On a full disk it
   * gives the reserve back, so that something can be deleted; throws StartupError when that is not enough.
   * Throws when the directory cannot be asked. Whoever calls holds the lock of the directory.
   */
  async start(): Promise<void> {
    this.#applyFigures(await statfs(this.#deps.directory));
    if (!this.#isStartable()) await this.#startFromReserve();
    await this.#keepReserve();
    this.#timer ??= setInterval(() => void this.refresh(), LOOK_EVERY_MS).unref();
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

  /** Ends the watch; the reserve stays for the next start. */
  async stop(): Promise<void> {
    clearInterval(this.#timer);
    this.#timer = undefined;
    await this.#look;
  }

  /** Of the whole disk, what is used included and what is kept for root left out. */
  get usableBytes(): number {
    return this.#usableBytes;
  }

  /** As assertRoom(), and throws `read_only` while the metadata cannot be written. */
  assertMayStore(bytes: number): void {
    assertWritable(this.#deps.alarms);
    this.assertRoom(bytes);
  }

  /** Bytes that assertRoom would still let in. Never negative. */
  availableBytes(): number {
    return Math.max(0, this.#freeBytes - this.#admittedBytes - this.#heldBytes - this.headroomBytes());
  }

  /** Less is free than must stay so, promises apart: whoever writes without asking should stop. */
  isLow(): boolean {
    return this.#freeBytes - this.#admittedBytes < this.headroomBytes();
  }

  /** Low, and the reserve is not on disk: what is left is for commits alone. */
  isOut(): boolean {
    return this.isLow() && !this.#hasReserve;
  }

  /** What must stay free: while the reserve is not on disk, its room too. */
  headroomBytes(): number {
    const headroom = Math.min(HEADROOM_BYTES, Math.floor(this.#totalBytes * SMALL_SHARE));
    return headroom + (this.#hasReserve ? 0 : this.#reserveBytes());
  }

  #reserveBytes(): number {
    return Math.min(RESERVE_BYTES, Math.floor(this.#totalBytes * SMALL_SHARE));
  }

  /** Age of the figures, ms. */
  ageMs(): number {
    return this.#deps.clock.monotonic() - this.#lookedAt;
  }

  /**
   * Call before writing `bytes`: admits them, or throws AppError `out_of_space`. Takes no time: it
   * counts on a figure at most a second old, less everything admitted since.
   */
  assertRoom(bytes: number): void {
    const available = this.availableBytes();
    if (bytes > available) {
      void this.refresh();
      throw this.#refused();
    }
    this.#admittedBytes += bytes;
    // A burst makes the figure old before its time.
    if (this.#admittedBytes > available / 8) void this.refresh();
  }

  /**
   * Promises `bytes` to work that will write them over time, such as an upload of known length. Throws as
   * assertRoom does.
   */
  hold(bytes: number): RoomHold {
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
        if (count > promised) this.assertRoom(count - promised);
        give(promised);
        this.#admittedBytes += promised;
      },
      release: () => give(left),
    };
  }

  /**
   * Gives the reserved blocks back to the file system, for when it said ENOSPC to a delete or a commit.
   * True when there was something to give: try the write again. It is made anew when there is room.
   */
  async releaseReserve(): Promise<boolean> {
    // Commits that come meanwhile wait for the same.
    if (this.#release !== undefined) return this.#release;
    if (!this.#hasReserve) return false;
    this.#release = this.#giveReserve().finally(() => {
      this.#release = undefined;
    });
    return this.#release;
  }

  /** `work` is waited for before the reserve is given back: it stops what would take it. One at a time. */
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

  /**
   * Looks at the disk now. Calls while a look is under way share it; one that fails leaves the old figures.
   */
  refresh(): Promise<void> {
    this.#look ??= this.#lookAgain().finally(() => {
      this.#look = undefined;
    });
    return this.#look;
  }

  async #lookAgain(): Promise<void> {
    const admittedBefore = this.#admittedBytes;
    try {
      const figures = await statfs(this.#deps.directory);
      // What was admitted while the question was under way may not be in the answer.
      this.#admittedBytes -= admittedBefore;
      this.#applyFigures(figures);
      await this.#keepReserve();
    } catch {
      // Admissions go on counting against the last figure, so that a disk that hangs ends in a refusal, not
      // in a lie.
    }
  }

  #applyFigures({ bsize, blocks, bavail, bfree }: Figures): void {
    this.#freeBytes = bavail * bsize;
    this.#usableBytes = (blocks - bfree + bavail) * bsize;
    this.#totalBytes = blocks * bsize;
    this.#lookedAt = this.#deps.clock.monotonic();
    this.#tell();
  }

  #refused(): AppError {
    this.#refusedAt = this.#deps.clock.monotonic();
    this.#tell();
    return outOfSpace();
  }

  /** Raises the alarm while uploads are refused, or hardly anything fits, and clears it afterwards. */
  #tell(): void {
    const { alarms, clock } = this.#deps;
    const available = this.availableBytes();
    const scarce = Math.min(SCARCE_BYTES, this.#totalBytes * SCARCE_SHARE);
    const wasRefused = clock.monotonic() - this.#refusedAt < REFUSAL_SHOWN_MS;
    if (available >= scarce && !wasRefused) {
      alarms.clear(ALARM);
      return;
    }
    const mebibytes = Math.floor(available / MIB);
    alarms.raise(
      ALARM,
      `The disk is nearly full: uploads, and growth of databases, that need more than the ${mebibytes} MiB left are refused`,
      MAKE_ROOM,
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

/** Without figures: what is written besides the caller's bytes is none of theirs. */
function outOfSpace(): AppError {
  return new AppError('out_of_space', 'The disk of this cloud has no room for more; nothing was stored', {
    hint: 'Delete objects, old versions or databases, or ask the operator for a larger disk; writing resumes by itself',
  });
}

/** True when the whole reserve is there, in real blocks: a crash may have left a shorter or a hollow one. */
async function isReserve(path: string, bytes: number): Promise<boolean> {
  try {
    const { size, blocks } = await stat(path);
    return size >= bytes && blocks * 512 >= bytes;
  } catch {
    return false;
  }
}

/** False when the disk had no room for it after all. */
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

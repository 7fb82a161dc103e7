/**
 * Serial consoles shared by many viewers. The engine opens a guest's console for a single caller,
 * which is this class. The console is opened for the first viewer and kept open until the guest
 * stops, so that later viewers get the output in between.
 */
import { AppError } from '../../platform/errors.ts';
import type { GuestConsole, Hypervisor } from '../hypervisor.ts';

interface ConsolesDeps {
  readonly hypervisor: Pick<Hypervisor, 'capabilities' | 'openConsole' | 'consoleLog'>;
}

/** A client of a console. It must not block the sender and must not change the bytes. */
interface Viewer {
  send(bytes: Uint8Array): void;
  /** The guest stopped, or the engine lost its console. Called once. */
  end(): void;
}

/** One viewer's connection to a console, until leave(). */
export interface Seat {
  /** Sends the latest output (at most 64 KiB), then everything the guest writes. */
  watch(viewer: Viewer): void;
  /** Resolves when the guest accepted the bytes or is gone. Writes of all viewers are queued in order. */
  write(bytes: Uint8Array): Promise<void>;
  leave(): void;
}

const REPLAY_BYTES = 64 * 1024;
const MAX_SEATS = 32;

export class Consoles {
  readonly #deps: ConsolesDeps;
  readonly #shared = new Map<string, Promise<SharedConsole | null>>();
  readonly #open = new Set<SharedConsole>();

  constructor(deps: ConsolesDeps) {
    this.#deps = deps;
  }

  /**
   * Attaches to the guest's console. Throws `vm_not_running`, `engine_unavailable` (no consoles) and
   * `overloaded` (32 viewers already).
   */
  async join(vmId: string): Promise<Seat> {
    if (!this.#deps.hypervisor.capabilities.console) {
      throw new AppError('engine_unavailable', 'The hypervisor of this virtual machine has no console');
    }
    const shared = await this.#of(vmId);
    if (shared === null || shared.isEnded) {
      throw new AppError('vm_not_running', 'A virtual machine has a console only while it is running');
    }
    return shared.take();
  }

  /** Closes all consoles and disconnects the viewers; the guests keep running. */
  close(): void {
    for (const shared of this.#open) shared.release();
  }

  #of(vmId: string): Promise<SharedConsole | null> {
    const known = this.#shared.get(vmId);
    if (known) return known;
    const opening = this.#openFor(vmId);
    this.#shared.set(vmId, opening);
    const forget = () => {
      if (this.#shared.get(vmId) === opening) this.#shared.delete(vmId);
    };
    opening.then((shared) => {
      if (shared === null) forget();
      else
        shared.onEnd(() => {
          forget();
          this.#open.delete(shared);
        });
    }, forget);
    return opening;
  }

  async #openFor(vmId: string): Promise<SharedConsole | null> {
    const { hypervisor } = this.#deps;
    const guest = await hypervisor.openConsole(vmId);
    if (guest === null) return null;
    const shared = new SharedConsole(guest);
    this.#open.add(shared);
    try {
      // Read after opening, so that nothing is missed; bytes received both ways are counted once.
      shared.begin(await hypervisor.consoleLog(vmId, REPLAY_BYTES));
    } catch (error) {
      this.#open.delete(shared);
      shared.release();
      throw error;
    }
    return shared;
  }
}

class SharedConsole {
  readonly #guest: GuestConsole;
  readonly #ring = new ByteRing(REPLAY_BYTES);
  readonly #seats = new Set<Seat>();
  readonly #viewers = new Map<Seat, Viewer>();
  /** Output received before the engine's log was read; null afterwards. */
  #early: Uint8Array[] | null = [];
  #lastWrite: Promise<void> = Promise.resolve();
  #isEnded = false;
  #onEnd: (() => void) | undefined;

  constructor(guest: GuestConsole) {
    this.#guest = guest;
    guest.onData((bytes) => this.#spread(bytes));
    guest.onClose(() => this.#end());
  }

  get isEnded(): boolean {
    return this.#isEnded;
  }

  /** Calls the listener immediately if the console has already ended. */
  onEnd(listener: () => void): void {
    if (this.#isEnded) listener();
    else this.#onEnd = listener;
  }

  /** `log`: earlier output of the guest, as kept by the engine. */
  begin(log: Uint8Array): void {
    const early = Buffer.concat(this.#early ?? []);
    this.#early = null;
    this.#ring.add(log);
    this.#ring.add(early.subarray(overlap(log, early)));
  }

  /** Throws `overloaded`. */
  take(): Seat {
    if (this.#seats.size >= MAX_SEATS) {
      throw new AppError('overloaded', `This console already has ${MAX_SEATS} viewers`);
    }
    const seat: Seat = {
      watch: (viewer) => this.#watch(seat, viewer),
      write: (bytes) => this.#write(bytes),
      leave: () => {
        this.#seats.delete(seat);
        this.#viewers.delete(seat);
      },
    };
    this.#seats.add(seat);
    return seat;
  }

  release(): void {
    this.#guest.close();
    this.#end();
  }

  #watch(seat: Seat, viewer: Viewer): void {
    const replay = this.#ring.read();
    if (replay.length > 0) viewer.send(replay);
    if (this.#isEnded) viewer.end();
    else if (this.#seats.has(seat)) this.#viewers.set(seat, viewer);
  }

  #write(bytes: Uint8Array): Promise<void> {
    const written = this.#lastWrite.then(() => (this.#isEnded ? undefined : this.#guest.write(bytes)));
    // A guest that stops during a write ends the console; the next write must not fail because of it.
    this.#lastWrite = written.catch(() => {});
    return this.#lastWrite;
  }

  #spread(bytes: Uint8Array): void {
    if (this.#early) {
      this.#early.push(bytes);
      return;
    }
    this.#ring.add(bytes);
    for (const viewer of this.#viewers.values()) viewer.send(bytes);
  }

  #end(): void {
    if (this.#isEnded) return;
    this.#isEnded = true;
    const viewers = [...this.#viewers.values()];
    this.#viewers.clear();
    this.#seats.clear();
    for (const viewer of viewers) viewer.end();
    this.#onEnd?.();
  }
}

/** Number of bytes at the start of `next` that are already the end of `before`. */
function overlap(before: Uint8Array, next: Uint8Array): number {
  for (let length = Math.min(before.length, next.length); length > 0; length--) {
    if (Buffer.compare(before.subarray(before.length - length), next.subarray(0, length)) === 0)
      return length;
  }
  return 0;
}

/** Ring buffer of the newest bytes of a stream. */
export class ByteRing {
  readonly #bytes: Uint8Array;
  /** Index of the next byte. */
  #at = 0;
  #isFull = false;

  constructor(sizeBytes: number) {
    this.#bytes = new Uint8Array(sizeBytes);
  }

  add(bytes: Uint8Array): void {
    const size = this.#bytes.length;
    const kept = bytes.subarray(Math.max(0, bytes.length - size));
    const first = kept.subarray(0, size - this.#at);
    this.#bytes.set(first, this.#at);
    this.#bytes.set(kept.subarray(first.length));
    if (this.#at + kept.length >= size) this.#isFull = true;
    this.#at = (this.#at + kept.length) % size;
  }

  /** Copies the content, oldest byte first. */
  read(): Uint8Array {
    if (!this.#isFull) return this.#bytes.slice(0, this.#at);
    return Buffer.concat([this.#bytes.subarray(this.#at), this.#bytes.subarray(0, this.#at)]);
  }
}

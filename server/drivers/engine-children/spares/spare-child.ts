/**
 * A process of an engine that has loaded its code but serves no database yet: the next database
 * that needs a process gets it at once. There is at most one per engine, while its databases are
 * opened now and then and the host has spare memory and slots. It uses a slot like any other, and
 * is the first to release it.
 */
import { once } from 'node:events';
import type { Logger } from 'pino';
import { type Beat, onBeat } from '../../../platform/background/beat.ts';
import type { Clock } from '../../../platform/clock.ts';
import { readHostMemory } from '../../../platform/host/host-facts.ts';
import type { LaunchedChild } from '../child-host.ts';
import type { BusyChild, ChildSlots, IdleChild, SlotUser } from '../child-slots.ts';
import { encodeFrame } from '../frames.ts';
import type { SpareUsers } from './spare-users.ts';

/** Shared by all engines. */
export interface SpareOptions {
  readonly users: SpareUsers;
  /** Delay after a database was opened until the next spare is started, for responsiveness. */
  readonly restMs: number;
  /** How long a spare is kept while no database is opened. */
  readonly keptMs: number;
  /** Available memory of this host. */
  readonly availableBytes: () => number;
}

export const SPARES: Omit<SpareOptions, 'users'> = {
  restMs: 1000,
  keptMs: 10 * 60_000,
  availableBytes: () => readHostMemory().availableBytes,
};

export interface Spare {
  readonly launched: LaunchedChild;
  readonly uid: number | null;
}

interface SpareDeps extends SpareOptions {
  readonly clock: Clock;
  readonly log: Logger;
  readonly slots: ChildSlots;
  /** Starts a process without a database's folder, with low priority until yields('usual'). */
  readonly launch: (name: string, uid: number | null) => Promise<LaunchedChild>;
}

interface Ready extends Spare {
  /** Releases its slot. */
  readonly leave: () => void;
}

/** Memory needed to start one; with less than half of it, none is kept. */
const ROOM_BYTES = 768 * 2 ** 20;
/** Slots that stay for databases. */
const FREE_SLOTS = 2;
const LOOK_MS = 1000;
/** Interval of checking the host's memory while a spare is ready. */
const MEASURE_MS = 5000;
/** Delay after a failed start. */
const AGAIN_MS = 60_000;
/** No account has this id. */
const NOBODY = -1;
const NAME = 'spare';

export class SpareChild implements SlotUser {
  readonly #deps: SpareDeps;
  #ready: Ready | null = null;
  #making: Promise<void> | null = null;
  #beat: Beat | null = null;
  /** Times of the monotonic clock. */
  #wantedAt = Number.NEGATIVE_INFINITY;
  #notBefore = Number.NEGATIVE_INFINITY;
  #measuredAt = Number.NEGATIVE_INFINITY;
  #count = 0;
  #isClosed = false;

  constructor(deps: SpareDeps) {
    this.#deps = deps;
    deps.slots.join(this);
  }

  /** Whether a spare is ready. */
  get isReady(): boolean {
    return this.#ready !== null;
  }

  /** A database is opened, or will be soon. */
  wanted(): void {
    this.#wantedAt = this.#deps.clock.monotonic();
    if (!this.#isClosed) this.#beat ??= onBeat(LOOK_MS, () => this.#look());
  }

  /** Takes the ready spare; null: none. */
  take(): Spare | null {
    const ready = this.#ready;
    this.#ready = null;
    if (ready === null) return null;
    ready.leave();
    ready.launched.yields('usual');
    return ready;
  }

  /** Also waits for a spare that is starting. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#beat?.stop();
    await this.#making;
    await this.#end();
  }

  idle(): readonly IdleChild[] {
    if (this.#ready === null) return [];
    return [{ name: NAME, accountId: NOBODY, rank: Number.NEGATIVE_INFINITY, restsMs: Number.MAX_VALUE }];
  }

  busy(): readonly BusyChild[] {
    return [];
  }

  endIdle(): Promise<void> {
    return this.#end();
  }

  async endBusy(): Promise<void> {}

  #look(): void {
    const { clock, slots, restMs, keptMs, availableBytes } = this.#deps;
    // A spare that is about to be ready must be checked, too.
    if (this.#making !== null) return;
    const now = clock.monotonic();
    if (now - this.#wantedAt >= keptMs) {
      this.#beat?.stop();
      this.#beat = null;
      void this.#end();
    } else if (this.#ready !== null) {
      if (now - this.#measuredAt < MEASURE_MS) return;
      this.#measuredAt = now;
      if (availableBytes() < ROOM_BYTES / 2) void this.#end();
    } else if (now - this.#wantedAt >= restMs && now >= this.#notBefore) {
      if (slots.free <= FREE_SLOTS || availableBytes() < ROOM_BYTES) return;
      this.#making = this.#make().finally(() => {
        this.#making = null;
      });
    }
  }

  async #make(): Promise<void> {
    const { clock, log, slots, users, launch } = this.#deps;
    const uid = users.take();
    if (uid === undefined) return;
    const leave = await slots.take(NOBODY);
    const isOver = () => {
      leave();
      users.release(uid);
    };
    let launched: LaunchedChild | undefined;
    try {
      launched = await launch(`${NAME}-${++this.#count}`, uid);
      await loaded(launched);
    } catch (error) {
      this.#notBefore = clock.monotonic() + AGAIN_MS;
      launched?.kill();
      await launched?.ended;
      isOver();
      log.warn({ err: error, said: launched?.said() }, 'no process could be started ahead of its database');
      return;
    }
    const ready: Ready = { launched, uid, leave };
    this.#ready = ready;
    void launched.ended.then(() => {
      if (this.#ready !== ready) return;
      this.#ready = null;
      isOver();
    });
    if (this.#isClosed) await this.#end();
  }

  async #end(): Promise<void> {
    const ready = this.#ready;
    if (ready === null) return;
    ready.launched.kill();
    await ready.launched.ended;
  }
}

/** Resolves when the child has loaded its code and answers. Calls sent later are not read here. */
async function loaded({ socket, ended }: LaunchedChild): Promise<void> {
  socket.on('error', () => {});
  for (const piece of encodeFrame({ id: 0, kind: 'ping' })) if (piece.length > 0) socket.write(piece);
  const gone = ended.then(() => Promise.reject(new Error('the process ended')));
  await Promise.race([once(socket, 'readable'), gone]);
  // The answer of a process that served no tenant yet.
  if (socket.read() === null) throw new Error('the process closed its socket');
}

/** Cloudlet's side of one child: sends calls, receives answers, and kills it if it is silent for too long. */
import type { Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Clock } from '../../platform/clock.ts';
import { AppError } from '../../platform/errors.ts';
import type { ProcessorTimes } from '../host-process/process-identity.ts';
import type { ProcessorOrder } from '../host-process/processor-order.ts';
import type { LaunchedChild } from './child-host.ts';
import { encodeFrame, type FrameHead, FrameReader, NO_BODY } from './frames.ts';

/** Members of a call besides its id. */
export interface CallHead {
  readonly kind: string;
  /** Requests a message when the process begins this call. */
  readonly tell?: boolean;
  readonly [member: string]: unknown;
}

export interface ChildAnswer {
  readonly head: Readonly<Record<string, unknown>>;
  readonly body: Buffer;
}

export interface CallOptions {
  readonly body?: Uint8Array;
  /** Aborting cancels the call; a child that does not stop is killed. */
  readonly signal?: AbortSignal;
  /** Receives the parts of an answer, in order, and may answer with bytes. A rejection cancels the call. */
  readonly onPart?: (answer: ChildAnswer) => Promise<unknown>;
  /** Called when the process begins the call, if requested. */
  readonly onBegin?: () => void;
}

/** The child's error for a failed call. */
export class ChildRefused extends Error {
  /** `SQLITE_ERROR` and the like; null: the error was not SQLite's. */
  readonly engineCode: string | null;
  /** The host's disk is full, not the database. */
  readonly isDiskFull: boolean;
  /** Stored data is corrupt. */
  readonly isDamaged: boolean;
  /** The child ended the statement after the time of the call. */
  readonly isOverTime: boolean;

  constructor(details: Readonly<Record<string, unknown>>) {
    super(String(details.message ?? 'no reason was given'));
    this.name = 'ChildRefused';
    this.engineCode = typeof details.engineCode === 'string' ? details.engineCode : null;
    this.isDiskFull = details.isDiskFull === true;
    this.isDamaged = details.isDamaged === true;
    this.isOverTime = details.isOverTime === true;
  }
}

/** The process ended before it answered. */
export class ChildGone extends Error {
  /** `silent`: killed because a statement took too long; `displaced`: for another account. */
  readonly why: 'silent' | 'displaced' | 'ended';
  /** The process had not begun the call, so it can be repeated. */
  readonly isUntouched: boolean;

  constructor(why: ChildGone['why'], message: string, isUntouched = false) {
    super(message);
    this.name = 'ChildGone';
    this.why = why;
    this.isUntouched = isUntouched;
  }
}

interface Pending {
  readonly resolve: (answer: ChildAnswer) => void;
  readonly reject: (error: Error) => void;
  readonly onPart: CallOptions['onPart'];
  readonly onBegin: CallOptions['onBegin'];
  /** Whether the process reports when a call begins. */
  readonly tells: boolean;
  hasBegun: boolean;
}

export interface TenantChildOptions {
  readonly clock: Clock;
  /** Maximum silence now, ms. */
  readonly silenceMs: () => number;
  /** True: waits for a processor are no silence. A statement has its limit whatever the host does. */
  readonly isOpening?: () => boolean;
  /** Receives its latest counters. */
  readonly onCounters: (counters: Readonly<Record<string, unknown>>) => void;
  /** Receives its reports of damage. */
  readonly onDamage?: (what: string) => void;
  /** Called when its priority becomes low. */
  readonly onLong?: () => void;
  /** Whether its account recently had a low-priority process: each of them then leaves one processor free. */
  readonly isHeavy?: () => boolean;
}

/** Processor times of the child at one moment. */
interface Used extends ProcessorTimes {
  /** A time of the monotonic clock. */
  readonly at: number;
}

const PINGS_PER_SILENCE = 4;
const MAX_PING_MS = 200;
/**
 * A process that computes for this long, in one piece or in many, leaves one processor free. Where several
 * compute, each waits for a processor most of the time, which counts.
 */
const APART_MS = 150;
/** A process that computes for this long gets low priority on the others too. */
const LAST_MS = 1000;
/** A process gets the usual priority back after it was idle as long as it computed, at most this long. */
const MOST_LONG_MS = 10_000;
/** Shares of the time from which a process computes: on a processor, or there and waiting for one. */
const BUSY_SHARE = 0.25;
const LEAST_SHARE = 0.1;
const WANTED_SHARE = 0.9;
/** A process that used less since the last look has the usual priority anyway. */
const LITTLE_MS = 10;
/** How long a cancelled call may continue while it occupies the process, ms. */
const GIVE_UP_MS = 500;
const GIVE_UP_STEP_MS = 10;
/** Maximum bytes of calls that a busy process has not read, including cancelled ones. */
const MAX_UNREAD_BYTES = 64 * 2 ** 20;

export class TenantChild {
  readonly #launched: LaunchedChild;
  readonly #socket: Socket;
  readonly #options: TenantChildOptions;
  readonly #pending = new Map<number, Pending>();
  /** Resolves when the process has exited. Never rejects. */
  readonly ended: Promise<void>;
  #lastId = 0;
  #isEnding = false;
  #over: ChildGone | null = null;
  /** The child's times when a ping without an answer was sent. */
  #ping: Used | null = null;
  #last: Used | null = null;
  #watchedAt = 0;
  /** Computing time, less the rest since. */
  #longMs = 0;
  /** Lowered while the process computes for long. */
  #order: ProcessorOrder = 'usual';
  #doubt: Promise<void> = Promise.resolve();
  #watch: NodeJS.Timeout | null = null;

  constructor(launched: LaunchedChild, options: TenantChildOptions) {
    this.#launched = launched;
    this.#socket = launched.socket;
    this.#options = options;
    const reader = new FrameReader((head, body) => this.#take(head, body));
    this.#socket.on('data', (piece: Buffer) => this.#read(reader, piece));
    this.#socket.on('error', () => {});
    this.#socket.on('close', () => this.#isOver(new ChildGone('ended', "the database's process ended")));
    this.ended = launched.ended.then(() =>
      this.#isOver(new ChildGone('ended', "the database's process ended")),
    );
  }

  /** False: the process accepts no more calls. */
  get isUsable(): boolean {
    return this.#over === null && !this.#isEnding;
  }

  /** Resolves when it is known whether a cancelled call or its child ended; later calls wait for it. */
  get isCertain(): Promise<void> {
    return this.#doubt;
  }

  get pid(): number {
    return this.#launched.pid;
  }

  /** Number of unanswered calls. */
  get pending(): number {
    return this.#pending.size;
  }

  /**
   * Rejects with ChildRefused, ChildGone, AppError `overloaded`, the reason of the signal, or what `onPart`
   * threw.
   */
  async call(head: CallHead, { body, signal, onPart, onBegin }: CallOptions = {}): Promise<ChildAnswer> {
    signal?.throwIfAborted();
    if (this.#over !== null) throw new ChildGone(this.#over.why, this.#over.message, true);
    if (this.#isEnding) throw new ChildGone('ended', 'the database is closed', true);
    if (body !== undefined && this.#socket.writableLength > MAX_UNREAD_BYTES) throw tooMuch();
    const id = ++this.#lastId;
    const { promise, resolve, reject } = Promise.withResolvers<ChildAnswer>();
    const tells = head.tell === true;
    const pending: Pending = { resolve, reject, onPart, onBegin, tells, hasBegun: false };
    this.#pending.set(id, pending);
    this.#send({ ...head, id }, body);
    this.#keepWatch();
    const giveUp = () => this.#giveUp(id, pending, signal?.reason);
    signal?.addEventListener('abort', giveUp, { once: true });
    try {
      return await promise;
    } finally {
      signal?.removeEventListener('abort', giveUp);
    }
  }

  /** Lets the process write back and exit; kills it after this many ms. */
  async end(withinMs: number): Promise<void> {
    const timer = setTimeout(() => this.kill(new ChildGone('ended', 'the database is closed')), withinMs);
    const answer = this.call({ kind: 'end' });
    this.#isEnding = true;
    await answer.catch(() => {});
    this.kill(new ChildGone('ended', 'the database is closed'));
    clearTimeout(timer);
    await this.ended;
  }

  /** Kills the process; `ended` resolves when it is gone. */
  kill(reason: ChildGone): void {
    this.#isOver(reason);
    this.#launched.kill();
  }

  #send(head: FrameHead, body: Uint8Array = NO_BODY): void {
    const [start, rest] = encodeFrame(head, body);
    this.#socket.cork();
    this.#socket.write(start);
    if (rest.length > 0) this.#socket.write(rest);
    // Calls of one event loop turn are sent together: sending costs more than a call.
    process.nextTick(() => this.#socket.uncork());
  }

  #read(reader: FrameReader, piece: Buffer): void {
    try {
      reader.push(piece);
    } catch {
      // Invalid data: the process no longer runs our code as intended.
      this.kill(new ChildGone('ended', "the database's process failed"));
    }
  }

  #take(head: FrameHead, body: Buffer): void {
    if (head.id === 0) {
      if (head.pong === true) this.#ping = null;
      if (head.damage !== undefined) this.#options.onDamage?.(String(head.damage));
      const counters = head.counters;
      if (typeof counters === 'object' && counters !== null) {
        this.#options.onCounters(counters as Record<string, unknown>);
      }
      return;
    }
    const pending = this.#pending.get(head.id);
    if (pending === undefined) return;
    if (head.begun === true) {
      pending.hasBegun = true;
      pending.onBegin?.();
    } else if (head.part === true) void this.#pass(head, body, pending);
    else this.#resolve(head, body, pending);
  }

  async #pass(head: FrameHead, body: Buffer, pending: Pending): Promise<void> {
    try {
      const answer = await pending.onPart?.({ head, body });
      const bytes = answer instanceof Uint8Array ? answer : undefined;
      if (this.#over === null) this.#send({ id: head.id, kind: 'ack' }, bytes);
    } catch (error) {
      this.#giveUp(head.id, pending, error);
    }
  }

  #resolve(head: FrameHead, body: Buffer, pending: Pending): void {
    this.#pending.delete(head.id);
    const error = head.error;
    if (typeof error === 'object' && error !== null) {
      pending.reject(new ChildRefused(error as Record<string, unknown>));
    } else pending.resolve({ head, body });
  }

  /** Rejects immediately; the child gets a little time to stop the call. */
  #giveUp(id: number, pending: Pending, reason: unknown): void {
    pending.reject(
      reason instanceof Error ? reason : new Error('no client waits for the statement any more'),
    );
    if (this.#over !== null || !this.#pending.has(id)) return;
    this.#send({ id, kind: 'cancel' });
    if (pending.hasBegun) this.#doubt = Promise.all([this.#doubt, this.#seeItEnd(id)]).then(() => {});
  }

  async #seeItEnd(id: number): Promise<void> {
    for (let waited = 0; this.#pending.has(id) && waited < GIVE_UP_MS; waited += GIVE_UP_STEP_MS) {
      await sleep(GIVE_UP_STEP_MS);
    }
    if (this.#pending.has(id)) this.kill(silent());
  }

  /** Pings while calls are pending: no answer means that a statement occupies the process. */
  #keepWatch(): void {
    if (this.#watch !== null) return;
    const { clock, silenceMs, isOpening } = this.#options;
    const stepMs = Math.min(MAX_PING_MS, silenceMs() / PINGS_PER_SILENCE);
    this.#watchedAt = clock.monotonic();
    this.#watch = setInterval(() => {
      const now = { at: clock.monotonic(), ...this.#launched.times() };
      this.#judge(now);
      if (this.#ping !== null) {
        const waitedMs = isOpening?.() === true ? now.waitedMs - this.#ping.waitedMs : 0;
        if (now.at - this.#ping.at - waitedMs >= silenceMs()) this.kill(silent());
      } else if (this.#pending.size > 0) {
        this.#ping = now;
        this.#send({ id: 0, kind: 'ping' });
      } else if (this.#order === 'usual') this.#watchNoMore();
    }, stepMs);
  }

  /** A process that waits for the disk, or for a processor to do a little, does not burden others. */
  #judge(now: Used): void {
    const last = this.#last ?? now;
    this.#last = now;
    // Before this watch nobody called, so nothing was computed.
    const restedMs = Math.max(0, this.#watchedAt - last.at);
    const passedMs = now.at - last.at - restedMs;
    const usedMs = now.cpuMs - last.cpuMs;
    const wantedMs = usedMs + now.waitedMs - last.waitedMs;
    const isStarved = usedMs > passedMs * LEAST_SHARE && wantedMs > passedMs * WANTED_SHARE;
    const isBusy = isStarved || usedMs > passedMs * BUSY_SHARE;
    const rest = restedMs + (isBusy ? 0 : Math.max(0, passedMs - wantedMs));
    this.#longMs = Math.min(MOST_LONG_MS, Math.max(0, this.#longMs - rest) + (isBusy ? wantedMs : 0));
    if (this.#longMs >= LAST_MS) this.#yield('last');
    else if (this.#longMs >= APART_MS && this.#order === 'usual') this.#yield('apart');
    else if (this.#longMs === 0 && (this.#order !== 'usual' || usedMs >= LITTLE_MS))
      this.#yield(this.#options.isHeavy?.() === true ? 'apart' : 'usual');
  }

  #yield(order: ProcessorOrder): void {
    if (order === this.#order || this.#over !== null) return;
    this.#order = order;
    this.#launched.yields(order);
    if (order === 'last') this.#options.onLong?.();
  }

  #watchNoMore(): void {
    if (this.#watch !== null) clearInterval(this.#watch);
    this.#watch = null;
  }

  #isOver(reason: ChildGone): void {
    this.#over ??= reason;
    this.#watchNoMore();
    const pending = [...this.#pending.values()];
    this.#pending.clear();
    const { why, message } = this.#over;
    for (const { reject, tells, hasBegun } of pending)
      reject(new ChildGone(why, message, tells && !hasBegun));
    this.#socket.destroy();
  }
}

function silent(): ChildGone {
  return new ChildGone('silent', 'a statement took longer than allowed');
}

function tooMuch(): AppError {
  return new AppError('overloaded', 'The database is busy and its queue is full', { retryAfterSeconds: 1 });
}

/**
 * The write lease of a repository: one Cloudlet at a time.
 *
 * To acquire it, a process creates `writers/<n + 1>`, where n is the highest number there; of several that
 * try, one succeeds. The highest number is the writer. It renews its file every few seconds while it writes;
 * a file that was not renewed for a while, by the reader's clock, belongs to a dead writer, and the next
 * number may be created. A writer that was wrongly considered dead finds a number higher than its own, and
 * stops.
 */
import { createHash } from 'node:crypto';
import { stat } from 'node:fs/promises';
import type { Clock } from '../../platform/clock.ts';
import { AppError } from '../../platform/errors.ts';
import { randomName } from '../../platform/ids.ts';
import { WRITER } from '../store.ts';
import { NotRemovable, type Target } from './target.ts';

const FOLDER = 'writers';
const DIGITS = 12;
const WRITER_FILE = new RegExp(`^${FOLDER}/\\d{${DIGITS}}$`);

/** Content of a writer's file. */
interface Note {
  /** Identifies a data directory: its next process takes over at once from a killed one. */
  readonly cloud: string;
  /** Host name, for people. */
  readonly host: string;
  readonly session: string;
  readonly beat: number;
  readonly released: boolean;
}

export interface LeaseDeps {
  readonly target: Target;
  readonly clock: Clock;
  readonly cloud: () => Promise<string>;
  readonly host: string;
  /** A writer that is silent for this long is considered dead, ms. */
  readonly silenceMs: number;
}

export interface Holding {
  /** Aborts when another writer took over, or if this cannot be checked. */
  readonly signal: AbortSignal;
  /**
   * Rejects unless this process is still the writer. Call it right before steps that only one
   * writer may do.
   */
  assertHeld(): Promise<void>;
  /** Idempotent. */
  release(): Promise<void>;
}

export class Lease {
  readonly #deps: LeaseDeps;
  readonly #session = randomName(16);
  #users = 0;
  #held: Promise<HeldLease> | undefined;
  /** Content of another writer's file when first seen. */
  #sighting: { readonly text: string; readonly at: number } | undefined;

  constructor(deps: LeaseDeps) {
    this.#deps = deps;
  }

  /**
   * Acquires the lease until the holding is released; one process may hold it several times. Throws
   * `target_in_use`.
   */
  async hold(): Promise<Holding> {
    this.#users++;
    const taking = this.#held ?? this.#take();
    this.#held = taking;
    let isReleased = false;
    const release = async () => {
      if (isReleased) return;
      isReleased = true;
      if (--this.#users > 0) return;
      this.#held = undefined;
      await taking.then((held) => held.release()).catch(() => {});
    };
    try {
      const held = await taking;
      return { signal: held.signal, assertHeld: () => held.assertHeld(), release };
    } catch (error) {
      await release();
      throw error;
    }
  }

  /** Holds the lease for the duration of `work`. */
  async during<T>(work: (holding: Holding) => Promise<T>): Promise<T> {
    const holding = await this.hold();
    try {
      return await work(holding);
    } finally {
      await holding.release();
    }
  }

  async #take(): Promise<HeldLease> {
    const { target, silenceMs, host } = this.#deps;
    const cloud = await this.#deps.cloud();
    const names = await writersOf(target);
    const highest = names.at(-1);
    if (highest !== undefined) await this.#assertFree(highest, cloud);
    const number = (highest === undefined ? 0 : Number(highest.slice(FOLDER.length + 1))) + 1;
    const name = `${FOLDER}/${String(number).padStart(DIGITS, '0')}`;
    const note: Note = { cloud, host, session: this.#session, beat: 0, released: false };
    if (!(await target.create(name, bytesOf(note))))
      throw inUse('Another Cloudlet acquired the lease first', silenceMs);
    await removeAll(target, names);
    return new HeldLease({ target, name, note, silenceMs });
  }

  /** Files of earlier writers that the credentials may not remove. */
  async superseded(): Promise<string[]> {
    return (await writersOf(this.#deps.target)).slice(0, -1);
  }

  async #assertFree(name: string, cloud: string): Promise<void> {
    const { target, clock, silenceMs } = this.#deps;
    const text = (await target.get(name))?.toString('utf8') ?? '';
    const note = readNote(text);
    if (note?.released === true || note?.cloud === cloud) return;
    if (this.#sighting?.text !== name + text) this.#sighting = { text: name + text, at: clock.uptime() };
    if (clock.uptime() - this.#sighting.at >= silenceMs) return;
    throw inUse(
      `Another Cloudlet${note ? `, on ${note.host},` : ''} is writing to ${target.location}`,
      silenceMs,
    );
  }
}

interface Held {
  readonly target: Target;
  readonly name: string;
  readonly note: Note;
  readonly silenceMs: number;
}

class HeldLease {
  readonly #cancel = new AbortController();
  readonly #about: Held;
  readonly #timer: NodeJS.Timeout;
  #beat = 0;
  #renewal: Promise<void> = Promise.resolve();
  #failures = 0;

  constructor(about: Held) {
    this.#about = about;
    this.#timer = setInterval(() => this.#renew(), about.silenceMs / BEATS).unref();
  }

  get signal(): AbortSignal {
    return this.#cancel.signal;
  }

  async assertHeld(): Promise<void> {
    this.signal.throwIfAborted();
    const { target, name, silenceMs } = this.#about;
    const highest = (await writersOf(target)).at(-1);
    if (highest === name) return;
    const lost =
      highest === undefined
        ? new AppError('target_unavailable', 'The recovery target is no longer available')
        : inUse('Another Cloudlet is writing to the recovery target now', silenceMs);
    this.#cancel.abort(lost);
    throw lost;
  }

  async release(): Promise<void> {
    clearInterval(this.#timer);
    await this.#renewal;
    const { target, name, note } = this.#about;
    if (!this.signal.aborted) await target.put(name, bytesOf({ ...note, released: true }));
  }

  #renew(): void {
    const { target, name, note } = this.#about;
    this.#renewal = this.#renewal.then(async () => {
      try {
        await this.assertHeld();
        await target.put(name, bytesOf({ ...note, beat: ++this.#beat }));
        this.#failures = 0;
      } catch (error) {
        if (++this.#failures >= BEATS / 2) this.#cancel.abort(error);
      }
    });
  }
}

/** Renewals within the time after which a silent writer is considered dead. */
const BEATS = 6;

async function writersOf(target: Target): Promise<string[]> {
  const names: string[] = [];
  for await (const name of target.list(FOLDER)) if (WRITER_FILE.test(name)) names.push(name);
  return names.sort();
}

function bytesOf(note: Note): Buffer {
  return Buffer.from(`${JSON.stringify(note)}\n`);
}

/** undefined: it is being written, or its writer was killed while writing it. */
function readNote(text: string): Note | undefined {
  try {
    return JSON.parse(text) as Note;
  } catch {
    return undefined;
  }
}

function inUse(detail: string, silenceMs: number): AppError {
  const seconds = Math.ceil(silenceMs / 1000);
  return new AppError('target_in_use', detail, {
    hint: `Give each cloud its own target. If the other cloud is gone, retry after ${seconds} seconds; a second retry may be needed`,
  });
}

/** Stops if the credentials may not delete files: the files only list earlier writers. */
async function removeAll(target: Target, names: readonly string[]): Promise<void> {
  try {
    for (const name of names) await target.remove(name);
  } catch (error) {
    if (!(error instanceof NotRemovable)) throw error;
  }
}

interface WriterSecret {
  get(name: typeof WRITER): Promise<Buffer>;
}

/** Unchanged if the data directory is moved; a restored cloud has another name. */
export async function cloudName(secrets: WriterSecret): Promise<string> {
  return nameOf('cloudlet journal ', await secrets.get(WRITER));
}

/** A copy of a data directory has another one. */
export async function writerName(secrets: WriterSecret, directory: string): Promise<string> {
  const [secret, { dev, ino }] = await Promise.all([secrets.get(WRITER), stat(directory)]);
  return nameOf(`${secret.toString('hex')} ${dev} ${ino}`);
}

function nameOf(...parts: readonly (string | Buffer)[]): string {
  const hash = createHash('sha256');
  for (const part of parts) hash.update(part);
  return hash.digest('hex').slice(0, 32);
}

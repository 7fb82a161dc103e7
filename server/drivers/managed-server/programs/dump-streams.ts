/** Dumps and loads through client programs, and leftover databases of interrupted loads. */
import { PassThrough, Readable, type Transform } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { LoadFailed } from '../../../databases/engine.ts';
import { randomBase62 } from '../../../platform/ids.ts';
import type { ManagedServerDeps } from '../managed-server.ts';
import type { ClientRun } from './client-programs.ts';

const POLL_MS = 500;
/** The dump is aborted if its reader is slower than this while more bytes are ready. */
const SLOW_BYTES = 256 * 1024;
const SLOW_MS = 30_000;
/** A key of a dump of several databases. */
const KEY_LENGTH = 32;
/** If this much data is pending, the reader is slow, not the program. */
const FULL_BYTES = 16 * 1024;

/** Databases being loaded or replaced by a load: only Cloudlet uses them. */
const PASSING = /^t_[a-z0-9]{16}$/;

/** The client's output, through `through`. Throws `asError` of its error output if it fails at once. */
export async function dumpOf(
  run: ClientRun,
  {
    signal,
    through = new PassThrough(),
    asError,
  }: {
    readonly signal: AbortSignal;
    readonly through?: Transform;
    readonly asError: (complaint: string) => Error;
  },
): Promise<Readable> {
  run.stdin.destroy();
  const stream = notSlow(run);
  signal.addEventListener('abort', run.kill, { once: true });
  stream.once('close', run.kill);
  stream.once('error', () => {});
  run.stdout.pipe(through).pipe(stream, { end: false });
  const isAllThere = new Promise<void>((resolve) => through.once('end', resolve));
  const ended = run.ended.then(async ({ code, complaint }) => {
    if (code !== 0) {
      stream.destroy(new Error(`the client exited with ${code}: ${complaint}`));
      return complaint;
    }
    await isAllThere;
    stream.end();
    return null;
  });
  // An immediate failure is an error, not a truncated file.
  const first = new Promise<null>((resolve) => stream.once('readable', () => resolve(null)));
  const complaint = await Promise.race([first, ended]);
  if (complaint !== null) throw asError(complaint);
  return stream;
}

/** A stream that ends if its reader is too slow: others wait for the program. */
function notSlow(run: ClientRun): PassThrough {
  let entered = 0;
  let before = 0;
  const stream = new PassThrough({
    transform: (piece: Buffer, _encoding, done) => {
      entered += piece.length;
      done(null, piece);
    },
  });
  const timer = setInterval(() => {
    const taken = entered - stream.readableLength;
    const isSlow = stream.readableLength >= FULL_BYTES && taken - before < SLOW_BYTES;
    before = taken;
    if (isSlow) stream.destroy(new Error('the dump was read too slowly'));
  }, SLOW_MS).unref();
  void run.ended.finally(() => clearInterval(timer));
  return stream;
}

/**
 * Loads the dump through `through` with the client, until `isTooLarge` reports that the database is
 * too large. Throws LoadFailed: with the result of `asSaid` for the client's error message.
 */
export async function loadInto(
  run: ClientRun,
  how: {
    readonly dump: Readable;
    readonly through: Transform;
    readonly signal: AbortSignal;
    readonly isTooLarge: () => Promise<boolean>;
    readonly asSaid: (complaint: string) => string;
    /** Reads the client's output to its end; missing: nobody does. */
    readonly read?: ((output: Readable) => Promise<void> | undefined) | undefined;
  },
): Promise<void> {
  how.signal.addEventListener('abort', run.kill, { once: true });
  const read = how.read?.(run.stdout);
  if (read === undefined) run.stdout.resume();
  const readOut = Promise.allSettled([read]);
  const wasTooLarge = endWhen(how.isTooLarge, run);
  const fed = feed(how.dump, how.through, run);
  const { code, complaint } = await run.ended;
  const problem = await fed;
  const [output] = await readOut;
  if (await wasTooLarge) throw new LoadFailed('The dump is larger than the size limit of the database');
  if (problem !== null) throw problem;
  if (code !== 0) throw new LoadFailed(how.asSaid(complaint));
  if (output.status === 'rejected') throw output.reason;
}

/** Ends the load if the database becomes too large; returns whether it did. */
async function endWhen(isTooLarge: () => Promise<boolean>, run: ClientRun): Promise<boolean> {
  const over = Symbol('over');
  for (;;) {
    if ((await Promise.race([run.ended, sleep(POLL_MS, over, { ref: false })])) !== over) return false;
    if (!(await isTooLarge())) continue;
    run.kill();
    return true;
  }
}

/** Resolves with the problem of the dump itself; null: none. */
async function feed(dump: Readable, through: Transform, run: ClientRun): Promise<Error | null> {
  try {
    await pipeline(dump, through, run.stdin);
    return null;
  } catch (error) {
    // If the client ended early, it reports why. Otherwise its input was incomplete.
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'EPIPE' || code === 'ECONNRESET') return null;
    run.kill();
    return error as Error;
  }
}

/** A further database of a dump. */
export interface ExtraDump {
  readonly name: string;
  /** Statements with which a client creates the database and connects to it. */
  readonly statements: string;
  readonly open: () => Promise<Readable>;
}

/**
 * A dump of several databases: the account's own, then those that its programs created for tests. A
 * random key marks where each begins, so no text of a database can be mistaken for a mark; clients
 * of the engines read the whole as SQL that creates each. One that fails, because its tests drop it
 * in the meantime, is marked as broken: it must not fail the dump of the account's own database.
 */
export function joinedDump(first: Readable, extras: readonly ExtraDump[]): Readable {
  if (extras.length === 0) return first;
  const key = randomBase62(KEY_LENGTH);
  const whole = Readable.from(join(first, extras, key), { objectMode: false });
  whole.once('close', () => first.destroy());
  // The stream may fail before anyone reads it.
  return whole.once('error', () => {});
}

async function* join(first: Readable, extras: readonly ExtraDump[], key: string): AsyncGenerator<Buffer> {
  yield Buffer.from(`-- Cloudlet dump ${key}\n`);
  yield* first;
  for (const { name, statements, open } of extras) {
    yield Buffer.from(`\n-- ${key} database ${JSON.stringify(name)}\n${statements}\n-- ${key} content\n`);
    try {
      yield* await open();
    } catch {
      yield Buffer.from(`\n-- ${key} broken\n`);
    }
  }
}

export interface LeftoversDeps extends Pick<ManagedServerDeps, 'alarms' | 'warn'> {
  /** `mysql`. */
  readonly name: string;
  /** For humans. */
  readonly title: string;
  /** The operator's fix for a database that stays. */
  readonly fix: string;
}

/**
 * Removes the named databases that interrupted loads left. One that cannot be removed raises an
 * alarm and stays; its name is not used. Never rejects.
 */
export async function removeLeftovers(
  names: readonly string[],
  remove: (name: string) => Promise<void>,
  { name: engine, title, fix, alarms, warn }: LeftoversDeps,
): Promise<void> {
  const code = `${engine}_leftovers`;
  const left: string[] = [];
  for (const name of names.filter((one) => PASSING.test(one))) {
    try {
      await remove(name);
    } catch (error) {
      left.push(name);
      warn(`the database ${name}, left by an interrupted load into ${title}, could not be removed: ${error}`);
    }
  }
  const detail = `Databases left by interrupted loads cannot be removed from ${title}: ${left.join(', ')}`;
  if (left.length > 0) alarms.raise(code, detail, fix);
  else alarms.clear(code);
}

/** Receives a file uploaded by a tenant; a separate child process checks it before use. */
import { createReadStream, createWriteStream } from 'node:fs';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { type EngineDatabase, LoadFailed } from '../../databases/engine.ts';
import { begin } from '../../databases/file-start.ts';
import type { LeftOut, LoadHow } from '../../databases/left-out.ts';
import type { Clock } from '../../platform/clock.ts';
import { hostDiskFull } from '../../platform/errors.ts';
import { isCode } from '../../platform/files.ts';
import { loadDisplaced } from './child-failures.ts';
import type { ChildHost } from './child-host.ts';
import type { BusyChild, ChildSlots, IdleChild, SlotUser } from './child-slots.ts';
import { FILE } from './children.ts';
import { ChildGone, ChildRefused, TenantChild } from './tenant-child.ts';

/** The file format that tenants upload. */
export interface LoadedKind {
  /** File name in the folder. */
  readonly file: string;
  /** Header of every file. */
  readonly header: Buffer;
  /** Name of a file with SQL text, if the engine accepts it. */
  readonly text?: string;
  /** Whether a text with this beginning has only rows, for existing tables. */
  readonly isDataOnly?: (start: string) => boolean;
  /** Message for a file with another header. */
  readonly otherwise: string;
}

/** Bytes of a text needed to detect that it is data-only. */
const START_BYTES = 64 * 1024;
/** Time to check an uploaded file. */
const CHECK_MS = 10 * 60_000;

async function hasDataAlone(path: string, { isDataOnly }: LoadedKind): Promise<boolean> {
  if (isDataOnly === undefined) return false;
  const pieces: Buffer[] = [];
  for await (const piece of createReadStream(path, { end: START_BYTES - 1 })) pieces.push(piece as Buffer);
  return isDataOnly(Buffer.concat(pieces).toString());
}

/** A file in the folder. */
interface Received {
  readonly file: string;
  /** Name of the file if it is SQL text. */
  readonly text: string | undefined;
  /** True if its rows are for existing tables. */
  readonly isAdded: boolean;
}

interface Receiving extends Pick<EngineDatabase, 'sizeLimitBytes'>, Pick<LoadHow, 'adding'> {
  readonly folder: string;
  readonly kind: LoadedKind;
}

/** Writes the file into the folder. Throws LoadFailed, `host_disk_full`, and the errors of `adding`. */
export async function receiveFile(from: Readable, how: Receiving): Promise<Received> {
  const { folder, kind, sizeLimitBytes, adding } = how;
  const { head, whole } = await begin<Buffer>(from, ({ length }) => length >= kind.header.length);
  const isText = kind.text !== undefined && isTextStart(head, kind);
  const text = isText ? kind.text : undefined;
  const file = text ?? kind.file;
  try {
    await pipeline(
      whole,
      (all) => checked(all, isText ? null : kind, sizeLimitBytes),
      createWriteStream(join(folder, file), { mode: 0o600, flush: true }),
    );
  } catch (error) {
    if (!isCode(error, 'ENOSPC')) throw error;
    throw hostDiskFull(error);
  }
  const isAdded = isText && adding !== undefined && (await hasDataAlone(join(folder, file), kind));
  if (isAdded) adding();
  return { file, text, isAdded };
}

interface ExaminingDeps {
  readonly clock: Clock;
  readonly slots: ChildSlots;
  readonly host: ChildHost;
  readonly keepFreeBytes: () => number;
}

interface Examining {
  readonly folder: string;
  readonly database: EngineDatabase;
  readonly received: Pick<Received, 'text' | 'isAdded'>;
  readonly how: Pick<LoadHow, 'signal' | 'leftOut'>;
}

interface Running extends BusyChild {
  readonly child: TenantChild;
}

/** Processes that check uploaded files. Each holds a slot, which another account may need. */
export class Examinations implements SlotUser {
  readonly #deps: ExaminingDeps;
  readonly #running = new Map<string, Running>();

  constructor(deps: ExaminingDeps) {
    this.#deps = deps;
    deps.slots.join(this);
  }

  /**
   * Has a process check the content of the folder. Throws LoadFailed if the content is unusable or the check
   * takes longer than ten minutes, and `engine_unavailable` when another account needed the slot.
   */
  async examine({ folder, database, received, how }: Examining): Promise<void> {
    const { clock, slots, host, keepFreeBytes } = this.#deps;
    const { sizeLimitBytes, database: name, number, accountId } = database;
    const { signal, leftOut } = how;
    const { text, isAdded } = received;
    const leave = await slots.take(accountId, signal);
    const launched = await host
      .launch(folder, { name: `${name}-load`, uid: host.uidOf(number), isLast: true })
      .catch((error) => {
        leave();
        throw error;
      });
    const child = new TenantChild(launched, { clock, silenceMs: () => CHECK_MS, onCounters: () => {} });
    this.#running.set(name, { name, accountId, since: clock.monotonic(), child });
    try {
      await child.call({ kind: 'keepFree', bytes: keepFreeBytes() });
      const lenient = leftOut !== undefined;
      const { head } = await child.call(
        { kind: 'check', tell: true, name, file: FILE, text, isAdded, sizeLimitBytes, lenient },
        { signal },
      );
      assertUsable(head, leftOut);
    } catch (error) {
      throw examiningError(error);
    } finally {
      this.#running.delete(name);
      child.kill(new ChildGone('ended', 'the file was checked'));
      await child.ended;
      leave();
    }
  }

  idle(): readonly IdleChild[] {
    return [];
  }

  busy(): readonly BusyChild[] {
    return [...this.#running.values()];
  }

  async endIdle(): Promise<void> {}

  async endBusy(name: string, why: string): Promise<void> {
    const running = this.#running.get(name);
    if (running === undefined) return;
    const seconds = Math.round((this.#deps.clock.monotonic() - running.since) / 1000);
    running.child.kill(new ChildGone('displaced', `The load was ended after ${seconds} s: ${why}`));
    await running.child.ended;
  }
}

function examiningError(error: unknown): unknown {
  if (error instanceof ChildRefused && error.isDiskFull) return hostDiskFull(error);
  if (error instanceof ChildRefused) return new LoadFailed(`the file cannot be read: ${error.message}`);
  if (!(error instanceof ChildGone)) return error;
  if (error.why === 'displaced') return loadDisplaced(error);
  const minutes = CHECK_MS / 60_000;
  if (error.why === 'silent') return new LoadFailed(`the file takes longer than ${minutes} minutes to check`);
  return new LoadFailed(
    'the process that checked the file ended: the check may need more memory than is available',
  );
}

/** Checks the child's answer, and records omitted statements. Throws LoadFailed. */
function assertUsable(head: Readonly<Record<string, unknown>>, leftOut: LeftOut | undefined): void {
  if (head.fault !== null) throw new LoadFailed(String(head.fault));
  const { notes, count } = (head.leftOut ?? {}) as Partial<Record<keyof LeftOut, unknown>>;
  if (leftOut === undefined || !Array.isArray(notes)) return;
  for (const { line, text, reason } of notes) {
    const at = typeof line === 'number' ? line : null;
    leftOut.add({ line: at, text: String(text), reason: String(reason) });
  }
  leftOut.addCount(Math.max(0, Number(count) - notes.length) || 0);
}

function isTextStart(start: Buffer, { header }: LoadedKind): boolean {
  return start.length > 0 && !start.subarray(0, header.length).equals(header) && !start.includes(0);
}

async function* checked(
  pieces: AsyncIterable<Buffer>,
  kind: LoadedKind | null,
  limit: number,
): AsyncGenerator<Buffer> {
  let start = Buffer.alloc(0);
  let size = 0;
  const length = kind?.header.length ?? 0;
  for await (const piece of pieces) {
    size += piece.length;
    if (size > limit)
      throw new LoadFailed(`the file exceeds the size limit of the database (${limit} bytes)`);
    if (start.length < length) start = Buffer.concat([start, piece.subarray(0, length)]);
    if (kind !== null && start.length >= length) assertHeader(start, kind);
    yield piece;
  }
  if (kind !== null) assertHeader(start, kind);
}

function assertHeader(start: Buffer, { header, otherwise }: LoadedKind): void {
  if (!start.subarray(0, header.length).equals(header)) throw new LoadFailed(otherwise);
}

/**
 * Commits that wait for the store while it stores a batch, and then go to it all together: one fsync for all
 * that came meanwhile. Both engines use it.
 */
import { AppError } from '../platform/errors.ts';
import type { Statement, StatementResult } from './metadata.ts';
import type { StoreFigures } from './store-figures.ts';

/** A commit that waits for its answer. */
export interface WaitingCommit {
  /** The account that asks, 0 for callers without one; undefined: Cloudlet itself. */
  readonly owner: number | undefined;
  /** In the order in which they came. */
  readonly turn: number;
  readonly statements: readonly Statement[];
  readonly bytes: number;
  readonly resolve: (results: StatementResult[]) => void;
  readonly reject: (error: Error) => void;
}

/** The commits of one owner that wait, and their bytes. */
interface Line {
  readonly commits: WaitingCommit[];
  bytes: number;
}

const MAX_BATCH_COMMITS = 128;
const MAX_BATCH_BYTES = 8 * 2 ** 20;
/** Limits of the queue behind a slow disk. Beyond them the owner that has most is refused, whoever comes. */
const MAX_QUEUED_COMMITS = 20_000;
const MAX_QUEUED_BYTES = 128 * 2 ** 20;

export interface CommitQueueDeps {
  readonly clock: { monotonic(): number };
  readonly figures: StoreFigures;
  /** Stores a batch, answers each of its commits, and then calls done(). It does not throw. */
  readonly send: (batch: readonly WaitingCommit[]) => void;
}

export class CommitQueue {
  readonly #deps: CommitQueueDeps;
  #sentAt = 0;
  /** Those who had their share of the last batch come last. */
  readonly #lines = new Map<number | undefined, Line>();
  #turn = 0;
  #commits = 0;
  #bytes = 0;
  #inFlight: readonly WaitingCommit[] = [];
  #isSendScheduled = false;
  #onIdle: (() => void) | null = null;

  constructor(deps: CommitQueueDeps) {
    this.#deps = deps;
  }

  /** The batch that is being stored. */
  get inFlight(): readonly WaitingCommit[] {
    return this.#inFlight;
  }

  /**
   * Rejects with `overloaded` while too many wait and no other owner has more; or later, when others come.
   */
  add(statements: readonly Statement[], owner?: number): Promise<StatementResult[]> {
    if (!this.#makeRoom(owner)) return Promise.reject(storeBusy('too many commits are queued'));
    return new Promise((resolve, reject) => {
      const bytes = sizeOf(statements);
      const line = this.#lines.get(owner) ?? { commits: [], bytes: 0 };
      if (line.commits.length === 0) this.#lines.set(owner, line);
      line.commits.push({ owner, turn: this.#turn++, statements, bytes, resolve, reject });
      line.bytes += bytes;
      this.#commits++;
      this.#bytes += bytes;
      this.#scheduleSend();
    });
  }

  /** Refuses the newest commits of the owner that has most, where it is full. False: that is `owner`. */
  #makeRoom(owner: number | undefined): boolean {
    for (;;) {
      const isFull = this.#commits >= MAX_QUEUED_COMMITS;
      if (!isFull && this.#bytes < MAX_QUEUED_BYTES) return true;
      const sizeOfLine = (line?: Line) => (isFull ? line?.commits.length : line?.bytes) ?? 0;
      let [longest, most] = [owner, sizeOfLine(this.#lines.get(owner)) + 1];
      for (const [other, line] of this.#lines) {
        if (other !== undefined && sizeOfLine(line) > most) [longest, most] = [other, sizeOfLine(line)];
      }
      const line = this.#lines.get(longest);
      if (longest === owner || line === undefined) return false;
      const refused = this.#take(line, line.commits.length - 1);
      refused.reject(storeBusy(`too many commits of account ${longest} are queued`));
    }
  }

  /** Takes a commit out of its line. */
  #take(line: Line, at: number): WaitingCommit {
    const [taken] = line.commits.splice(at, 1) as [WaitingCommit];
    line.bytes -= taken.bytes;
    this.#commits--;
    this.#bytes -= taken.bytes;
    if (line.commits.length === 0) this.#lines.delete(taken.owner);
    return taken;
  }

  /** The batch is answered: the next one may go. */
  done(): void {
    const { clock, figures } = this.#deps;
    figures.batchSeconds += (clock.monotonic() - this.#sentAt) / 1000;
    this.#inFlight = [];
    this.#scheduleSend();
    if (this.#commits === 0) this.#onIdle?.();
  }

  /** Takes all commits out, those being stored first; nobody else answers them. */
  takeAll(): WaitingCommit[] {
    const all = [...this.#inFlight, ...this.takeWaiting()];
    this.#inFlight = [];
    this.#onIdle?.();
    return all;
  }

  /** Takes out the commits that are not being stored yet; nobody else answers them. */
  takeWaiting(): WaitingCommit[] {
    const waiting = inTurn([...this.#lines.values()].flatMap(({ commits }) => commits));
    this.#lines.clear();
    this.#commits = 0;
    this.#bytes = 0;
    return waiting;
  }

  /** Resolves once no commit waits or is being stored. */
  async idle(): Promise<void> {
    if (this.#commits === 0 && this.#inFlight.length === 0) return;
    await new Promise<void>((resolve) => {
      this.#onIdle = resolve;
    });
  }

  /** At the end of the event loop's turn, so that all commits of one turn share a batch. */
  #scheduleSend(): void {
    if (this.#isSendScheduled || this.#inFlight.length > 0 || this.#commits === 0) return;
    this.#isSendScheduled = true;
    setImmediate(() => {
      this.#isSendScheduled = false;
      this.#sendNext();
    });
  }

  #sendNext(): void {
    if (this.#commits === 0) return;
    const batch = this.#nextBatch();
    this.#inFlight = batch;
    const { clock, figures, send } = this.#deps;
    figures.batches++;
    figures.commits += batch.length;
    this.#sentAt = clock.monotonic();
    send(batch);
  }

  /** Takes the commits of a batch out: where not all fit, an equal share of each owner first. */
  #nextBatch(): WaitingCommit[] {
    if (this.#commits <= MAX_BATCH_COMMITS && this.#bytes <= MAX_BATCH_BYTES) return this.takeWaiting();
    const batch: WaitingCommit[] = [];
    let bytes = 0;
    const takeFrom = (line: Line, most: { readonly commits: number; readonly bytes: number }) => {
      let own = 0;
      for (let taken = 0; taken < most.commits && batch.length < MAX_BATCH_COMMITS; taken++) {
        const [next] = line.commits;
        if (next === undefined) return;
        own += next.bytes;
        // The first of all goes, however large it is.
        if (batch.length > 0 && bytes + next.bytes > MAX_BATCH_BYTES) return;
        if (taken > 0 && own > most.bytes) return;
        bytes += next.bytes;
        batch.push(this.#take(line, 0));
      }
    };
    const lines = this.#lines.size;
    const commits = Math.max(1, Math.floor(MAX_BATCH_COMMITS / lines));
    const share = { commits, bytes: MAX_BATCH_BYTES / lines };
    for (const [owner, line] of [...this.#lines]) {
      const before = batch.length;
      takeFrom(line, share);
      if (batch.length === before || !this.#lines.delete(owner)) continue;
      this.#lines.set(owner, line);
    }
    const rest = { commits: MAX_BATCH_COMMITS, bytes: MAX_BATCH_BYTES };
    for (const line of [...this.#lines.values()]) takeFrom(line, rest);
    return inTurn(batch);
  }
}

function inTurn(commits: WaitingCommit[]): WaitingCommit[] {
  return commits.sort((a, b) => a.turn - b.turn);
}

/** Bytes that a commit brings, near enough to bound memory. */
function sizeOf(statements: readonly Statement[]): number {
  let bytes = 0;
  for (const { params } of statements) {
    bytes += 64;
    for (const param of params) {
      if (param instanceof Uint8Array) bytes += param.byteLength;
      else if (typeof param === 'string') bytes += param.length;
    }
  }
  return bytes;
}

/** Nothing was stored; the same commit may work in a moment. */
export function storeBusy(detail: string): AppError {
  const extras = { retryAfterSeconds: 1, cause: new Error(detail) };
  return new AppError('overloaded', 'The metadata store is busy; nothing was stored', extras);
}

/** Transactions of sessions: their state, and which commands one allows. */
import { Binary, type Document, type Long } from 'bson';
import { isBusy } from '../../sqlite/index.ts';
import type { Clock } from '../clock.ts';
import { CommandError } from '../command-error.ts';
import { plainNumber, wholeNumber } from '../values/numbers.ts';
import type { CommandScope } from './command-scope.ts';

/** A server's `transactionLifetimeLimitSeconds`. */
export const TRANSACTION_SECONDS = 60;
/** Maximum open transactions; each has a connection to the file and its cache. */
const MAX_OPEN = 10;
/** Maximum sessions whose last transaction is remembered. */
const MAX_SESSIONS = 1000;
/** How long a write waits for the transaction that writes, like a client waiting for its response. */
export const WRITER_WAIT_MS = 5000;

/** Errors with this label mean that the whole transaction may be retried. */
const TRANSIENT = { errorLabels: ['TransientTransactionError'] };

const ALLOWED = new Set(
  'find getMore killCursors aggregate distinct insert update delete findAndModify findandmodify create createIndexes'.split(
    ' ',
  ),
);
const ENDS = new Set(['commitTransaction', 'abortTransaction']);
const READ_LEVELS = ['local', 'majority', 'snapshot'];

/** A transaction's own connection to the database. */
export interface OpenScope {
  readonly scope: CommandScope;
  close(): void;
}

interface Session {
  readonly number: bigint;
  state: 'open' | 'committed' | 'aborted';
  /** The last transaction had a write conflict: the next one takes the write lock at its start. */
  readonly isRetry: boolean;
  hasConflicted: boolean;
  readonly endsAt: number;
  open: OpenScope | null;
}

/** A command's part in a transaction. */
interface Part {
  readonly key: string;
  readonly number: bigint;
  readonly isFirst: boolean;
  readonly name: string;
}

interface TransactionsDeps {
  readonly clock: Clock;
  readonly open: () => OpenScope;
  /** Whether a transaction with that number was committed, even by an earlier process. */
  readonly wasCommitted: (key: string, number: bigint) => boolean;
  /** Called after a commit, which changes the database. */
  readonly committed: () => void;
}

/** Runs a command on the given connection. */
type Run = (scope: CommandScope) => Document;

const invalid = (message: string) => new CommandError('InvalidOptions', message);

export class Transactions {
  readonly #deps: TransactionsDeps;
  /** Ordered by their last transactions. */
  readonly #sessions = new Map<string, Session>();

  constructor(deps: TransactionsDeps) {
    this.#deps = deps;
  }

  /** Whether a transaction has written, which blocks other writers. */
  get hasWriter(): boolean {
    for (const { open } of this.#sessions.values()) if (open?.scope.store.isWriting) return true;
    return false;
  }

  /** Whether a transaction is open. */
  get areOpen(): boolean {
    this.endExpired();
    for (const { open } of this.#sessions.values()) if (open !== null) return true;
    return false;
  }

  /** The reply to a command inside a transaction; null: it is outside. Throws CommandError. */
  run(command: Document, run: Run, lifetimeMs = TRANSACTION_SECONDS * 1000): Document | null {
    this.endExpired();
    const part = partOf(command);
    if (part === null) return null;
    if (part.name === 'commitTransaction') return this.#commit(part);
    if (part.name === 'abortTransaction') return this.#abort(part);
    assertAllowed(command, part);
    const session = part.isFirst ? this.#start(part, lifetimeMs) : this.#going(part);
    return this.#within(session, () => {
      const reply = run((session.open as OpenScope).scope);
      if (reply.writeErrors !== undefined) end(session, 'aborted');
      return reply;
    });
  }

  /** Ends expired ones. */
  endExpired(): void {
    const now = this.#deps.clock.monotonic();
    for (const session of this.#sessions.values())
      if (session.open !== null && session.endsAt <= now) end(session, 'aborted');
  }

  close(): void {
    for (const session of this.#sessions.values()) end(session, 'aborted');
  }

  /** Any error ends the transaction, as on a server. */
  #within(session: Session, work: () => Document): Document {
    try {
      return work();
    } catch (error) {
      end(session, 'aborted');
      if (!isBusy(error)) throw error;
      session.hasConflicted = true;
      throw conflict();
    }
  }

  #start({ key, number }: Part, lifetimeMs: number): Session {
    const before = this.#sessions.get(key);
    if (before !== undefined && number < before.number) throw tooOld(number, before.number);
    if (before !== undefined && number === before.number) {
      if (before.state === 'open')
        throw new CommandError(
          'ConflictingOperationInProgress',
          `Cannot start transaction ${number} on session ${key} because a transaction with the same number is already in progress.`,
        );
      throw this.#over(before);
    }
    if (before !== undefined) end(before, 'aborted');
    const open = [...this.#sessions.values()].filter((each) => each.open !== null).length;
    if (open >= MAX_OPEN)
      throw new CommandError(
        'TemporarilyUnavailable',
        `A database has at most ${MAX_OPEN} open transactions. Try again when others have ended`,
        TRANSIENT,
      );
    const isRetry = before?.hasConflicted ?? false;
    if (isRetry && this.hasWriter) throw new WriterTaken(conflict());
    this.#sessions.delete(key);
    this.#forget();
    const endsAt = this.#deps.clock.monotonic() + lifetimeMs;
    const session: Session = { number, state: 'open', isRetry, hasConflicted: false, endsAt, open: null };
    this.#sessions.set(key, session);
    this.#within(session, () => {
      session.open = this.#deps.open();
      session.open.scope.store.begin(isRetry);
      return {};
    });
    return session;
  }

  #forget(): void {
    for (const [key, { open }] of this.#sessions) {
      if (this.#sessions.size < MAX_SESSIONS) return;
      if (open === null) this.#sessions.delete(key);
    }
  }

  /** The open transaction that a command belongs to. Throws CommandError. */
  #going({ key, number }: Part): Session {
    const session = this.#sessions.get(key);
    if (session === undefined || number > session.number) {
      const active = session === undefined ? -1n : session.number;
      throw new CommandError(
        'NoSuchTransaction',
        `Given transaction number ${number} does not match any in-progress transactions. The active transaction number is ${active}`,
        TRANSIENT,
      );
    }
    if (number < session.number) throw tooOld(number, session.number);
    if (session.state !== 'open') throw this.#over(session);
    return session;
  }

  #over({ number, state }: Session): CommandError {
    if (state === 'committed')
      return new CommandError('TransactionCommitted', `Transaction ${number} has been committed.`);
    return new CommandError('NoSuchTransaction', `Transaction ${number} has been aborted.`, TRANSIENT);
  }

  /** A repeated commit gets the same reply. */
  #commit(part: Part): Document {
    const { key, number } = part;
    const known = this.#sessions.get(key);
    if (known?.number === number && known.state === 'committed') return { ok: 1 };
    if (known === undefined && this.#deps.wasCommitted(key, number)) return { ok: 1 };
    const session = this.#going(part);
    this.#within(session, () => {
      session.open?.scope.store.commit(key, number, this.#deps.clock.now());
      return {};
    });
    end(session, 'committed');
    this.#deps.committed();
    return { ok: 1 };
  }

  #abort(part: Part): Document {
    end(this.#going(part), 'aborted');
    return { ok: 1 };
  }
}

/** Another transaction holds the write lock: the command may be repeated when it has ended. */
export class WriterTaken extends Error {
  /** The error if it does not end in time. */
  readonly refused: CommandError;

  constructor(refused: CommandError) {
    super(refused.message);
    this.refused = refused;
  }
}

/** The failure of a write outside of transactions. */
export function writerTaken(): WriterTaken {
  return new WriterTaken(
    new CommandError(
      'LockTimeout',
      'Another transaction has written and is still open; other writes wait until it ends. Pass the session to each ' +
        'operation of that transaction, and commit it soon',
    ),
  );
}

function conflict(): CommandError {
  return new CommandError(
    'WriteConflict',
    'Caused by :: Write conflict during plan execution and yielding is disabled. Please retry your operation or multi-document transaction.',
    TRANSIENT,
  );
}

function tooOld(number: bigint, active: bigint): CommandError {
  return new CommandError(
    'TransactionTooOld',
    `Cannot start transaction with txnNumber ${number}: a newer transaction with txnNumber ${active} has already started`,
  );
}

function end(session: Session, state: 'committed' | 'aborted'): void {
  const { open } = session;
  if (session.state === 'open') session.state = state;
  if (open === null) return;
  session.open = null;
  open.close();
}

/** Throws CommandError for fields that do not belong together. */
function partOf(command: Document): Part | null {
  const [name = ''] = Object.keys(command);
  const { txnNumber, startTransaction, autocommit, lsid } = command;
  if (txnNumber === undefined && startTransaction === undefined && autocommit === undefined) {
    if (ENDS.has(name)) throw invalid(`${name} must be run within a transaction`);
    return null;
  }
  const id: unknown = lsid?.id;
  if (!(id instanceof Binary)) throw invalid('Transaction number requires a session ID to also be specified');
  if (txnNumber === undefined)
    throw invalid(
      `'${startTransaction === undefined ? 'autocommit' : 'startTransaction'}' field requires a transaction number to also be specified`,
    );
  if (autocommit === undefined) {
    if (startTransaction !== undefined)
      throw invalid("'startTransaction' field requires 'autocommit' field to also be specified");
    if (ENDS.has(name)) throw invalid(`${name} must be run within a transaction`);
    throw new CommandError(
      'IllegalOperation',
      'Retryable writes are not supported: only commands with autocommit: false may have a txnNumber',
    );
  }
  if (autocommit !== false) throw invalid('Specifying autocommit=true is not allowed.');
  if (startTransaction !== undefined && startTransaction !== true)
    throw invalid('Specifying startTransaction=false is not allowed.');
  const number = wholeNumber(txnNumber as Long) ?? BigInt(plainNumber(txnNumber));
  if (number < 0n) throw invalid('Transaction number cannot be negative');
  return { key: Buffer.from(id.value()).toString('hex'), number, isFirst: startTransaction === true, name };
}

/** Throws CommandError for commands and options that are not allowed in transactions. */
function assertAllowed(command: Document, { name, isFirst }: Part): void {
  const last = Array.isArray(command.pipeline) ? command.pipeline.at(-1) : null;
  const stage = ['$out', '$merge'].find((each) => last !== null && typeof last === 'object' && each in last);
  if (!ALLOWED.has(name) || command.explain === true)
    throw new CommandError(
      'OperationNotSupportedInTransaction',
      `Cannot run '${name}' in a multi-document transaction.`,
    );
  if (stage !== undefined)
    throw new CommandError('OperationNotSupportedInTransaction', `${stage} cannot be used in a transaction`);
  if (command.writeConcern !== undefined)
    throw invalid('writeConcern is not allowed within a multi-statement transaction');
  const { readConcern } = command;
  if (readConcern === undefined) return;
  if (!isFirst) throw invalid('Only the first command in a transaction may specify a readConcern');
  if (readConcern.level !== undefined && !READ_LEVELS.includes(readConcern.level))
    throw invalid(
      `The readConcern level must be either 'local' (default), 'majority' or 'snapshot' in order to run in a transaction`,
    );
}

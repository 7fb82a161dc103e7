/** Executes MongoDB commands on one database file, in the database's process. */
import { DatabaseSync } from 'node:sqlite';
import type { Document } from 'bson';
import { DurableLog } from '../../sqlite/index.ts';
import type { Clock } from '../clock.ts';
import { CommandError } from '../command-error.ts';
import { withinCommandTime } from '../command-time.ts';
import { asCommandError, noScripts } from '../query/expressions.ts';
import { Cursors, waits } from '../storage/cursors.ts';
import { DocumentsStore } from '../storage/documents-store.ts';
import { DocumentsWriting } from '../storage/documents-writing.ts';
import { renewCollations } from '../storage/renewed-collations.ts';
import { openForTransaction, openStoreFile } from '../storage/store-file.ts';
import { plainNumber } from '../values/numbers.ts';
import { AGGREGATE_COMMANDS } from './aggregate-command.ts';
import { CATALOG_CHANGES, CATALOG_QUESTIONS } from './catalog-commands.ts';
import { type CommandScope, find } from './command-scope.ts';
import { explain } from './explain.ts';
import { FIGURE_COMMANDS, OperationCounters } from './figures.ts';
import { READ_COMMANDS } from './read-commands.ts';
import { assertStableApi } from './stable-api.ts';
import { type OpenScope, Transactions, WRITER_WAIT_MS, WriterTaken, writerTaken } from './transactions.ts';
import { assertNoView } from './views.ts';
import { WRITE_COMMANDS } from './write-commands.ts';

export interface DatabaseOptions {
  /** Path of the database file; created if missing. */
  readonly file: string;
  /** The only `$db` that commands may name. */
  readonly databaseName: string;
  /** Size limit of the file; null: keeps its size, space of deleted data is reused. */
  readonly sizeLimit: () => number | null;
  readonly clock: Clock;
}

export interface CommandContext {
  /** True: commands that write get 13 Unauthorized. */
  readonly readOnly: boolean;
  /** Time limit of the command, in addition to its own; null: none. */
  readonly withinMs?: number | null;
  /** Lifetime of a transaction that this command starts; default: that of a server. */
  readonly transactionMs?: number;
}

const READING = new Map(
  Object.entries({
    ...READ_COMMANDS,
    ...CATALOG_QUESTIONS,
    ...AGGREGATE_COMMANDS,
    ...FIGURE_COMMANDS,
    explain,
  }),
);
const WRITING = new Map(Object.entries({ ...WRITE_COMMANDS, ...CATALOG_CHANGES }));
/** Commands that are not allowed on views. */
const OF_COLLECTIONS = new Set(
  'insert update delete findAndModify findandmodify createIndexes listIndexes dropIndexes deleteIndexes collStats collstats'.split(
    ' ',
  ),
);
const EXPIRY_MS = 60_000;
/** Removed per step, so that other commands are not delayed. */
const MAX_REMOVED = 10_000;

export class DocumentDatabase {
  readonly #store: DocumentsStore;
  readonly #scope: CommandScope;
  readonly #watcher: DatabaseSync;
  readonly #log: DurableLog;
  readonly #transactions: Transactions;
  #expiredAt = 0;

  /** Throws when the file cannot be opened, or belongs to another engine. */
  constructor(options: DatabaseOptions) {
    const { file, databaseName, sizeLimit, clock } = options;
    this.#store = new DocumentsStore(openStoreFile(file), sizeLimit);
    const writing = new DocumentsWriting(this.#store, databaseName);
    const counters = new OperationCounters(clock);
    const cursors = new Cursors(clock);
    this.#scope = { store: this.#store, writing, cursors, clock, counters, databaseName };
    this.#store.load();
    renewCollations(this.#store, writing);
    this.#transactions = new Transactions({
      clock,
      open: () => this.#openScope(options),
      wasCommitted: (session, number) => this.#store.wasCommitted(session, number),
      committed: () => this.#store.load(),
    });
    this.#watcher = new DatabaseSync(file, { readOnly: true });
    this.#log = new DurableLog(file, this.#watcher);
  }

  /** A transaction's own connection, with cursors of its own. */
  #openScope({ file, databaseName, sizeLimit }: DatabaseOptions): OpenScope {
    const connection = openForTransaction(file);
    const store = new DocumentsStore(connection, sizeLimit);
    const writing = new DocumentsWriting(store, databaseName);
    const cursors = new Cursors(this.#scope.clock);
    return { scope: { ...this.#scope, store, writing, cursors }, close: () => connection.close() };
  }

  /** Whether the database is empty. */
  get isUnused(): boolean {
    return this.#store.collections().length === 0;
  }

  get hasTransactions(): boolean {
    return this.#transactions.areOpen;
  }

  /** Bytes of its file. */
  get sizeBytes(): number {
    const sql = 'SELECT page_count * page_size AS bytes FROM pragma_page_count(), pragma_page_size()';
    return Number(this.#watcher.prepare(sql).get()?.bytes);
  }

  /** DocumentsStore.shrink(). */
  shrink(): void {
    this.#transactions.endExpired();
    if (!this.#transactions.hasWriter) this.#store.shrink(this.#scope.clock.monotonic);
  }

  /**
   * The reply to a command that `decodeCommand` created from an OP_MSG; `encodeReply` encodes it. Never
   * throws for invalid input of a client: the reply then has `ok: 0`, or `writeErrors`. Refuses commands for
   * databases other than `databaseName`. Writes survive a crash of this process at once; the response must
   * wait for `durable()`, or a power failure may lose them.
   *
   * Blocks the process until it is done. The command checks its own time limit (command-time.ts); for work
   * that does not check it, the caller measures the time and kills the process. Throws errors that the client
   * did not cause: then the process must end.
   */
  run(command: Document, context: CommandContext): Document {
    try {
      assertStableApi(command);
      const part = this.#transactions.run(
        command,
        (scope) => this.#dispatch(command, context, scope),
        context.transactionMs,
      );
      if (part !== null) return part;
      this.#expire();
      return this.#dispatch(command, context, this.#scope);
    } catch (error) {
      if (error instanceof WriterTaken) return this.#waiting(error);
      const refused = asCommandError(error);
      if (refused instanceof CommandError) return refused.reply();
      throw error;
    }
  }

  /** The reply to a command that may be run again later; `waits` has how long. */
  #waiting({ refused }: WriterTaken): Document {
    const reply = refused.reply();
    waits.set(reply, WRITER_WAIT_MS);
    return reply;
  }

  #dispatch(command: Document, { readOnly, withinMs = null }: CommandContext, scope: CommandScope): Document {
    const [name = ''] = Object.keys(command);
    const { databaseName, clock, counters } = scope;
    if (command.$db !== undefined && command.$db !== databaseName)
      throw new CommandError(
        'Unauthorized',
        `not authorized on ${String(command.$db)} to execute command { ${name}: … }`,
      );
    const reads = READING.get(name);
    const run = reads ?? WRITING.get(name);
    if (name === 'mapReduce') throw noScripts();
    if (run === undefined) throw new CommandError('CommandNotFound', `no such command: '${name}'`);
    const isWrite = reads === undefined || writesAtItsEnd(command);
    if (isWrite && readOnly)
      throw new CommandError(
        'Unauthorized',
        `not authorized on ${databaseName} to execute command { ${name}: … }`,
      );
    counters.count(name);
    if (OF_COLLECTIONS.has(name)) assertNoView(command[name], scope);
    const limits = [plainNumber(command.maxTimeMS ?? 0), withinMs ?? 0].filter((limit) => limit > 0);
    const deadline = clock.monotonic() + Math.min(...limits);
    const remaining = limits.length > 0 ? () => deadline - clock.monotonic() : null;
    const isOwn = scope === this.#scope;
    if (isWrite && isOwn && this.#transactions.hasWriter) throw writerTaken();
    scope.writing.isUnchecked = command.bypassDocumentValidation === true;
    const work = () => run(command, scope);
    return withinCommandTime(remaining, () => (isWrite ? scope.store.transaction(work) : work()));
  }

  /** Removes expired documents, at most once a minute. */
  #expire(): void {
    const { clock } = this.#scope;
    if (clock.monotonic() - this.#expiredAt < EXPIRY_MS || this.#transactions.hasWriter) return;
    this.#expiredAt = clock.monotonic();
    try {
      removeExpired(this.#scope);
    } catch (error) {
      // A full file is not an error of the command that follows.
      if (!(error instanceof CommandError)) throw error;
    }
  }

  /**
   * Resolves when everything written until now is on disk; null: it is. Await it before any
   * response is sent, also those of reads. Rejects if the disk fails; then this process must end.
   */
  durable(): Promise<void> | null {
    return this.#log.flush();
  }

  close(): void {
    this.#transactions.close();
    void this.#log.close();
    this.#watcher.close();
    this.#store.close();
  }
}

function writesAtItsEnd({ pipeline }: Document): boolean {
  const last = Array.isArray(pipeline) ? pipeline.at(-1) : undefined;
  return typeof last === 'object' && last !== null && ('$out' in last || '$merge' in last);
}

/** Removes the expired documents of indexes with `expireAfterSeconds`. */
function removeExpired(scope: CommandScope): void {
  const { store, writing, clock } = scope;
  const expiring = store
    .collections()
    .flatMap((collection) =>
      collection.indexes
        .filter(({ spec }) => spec.expireAfterSeconds !== undefined)
        .map((index) => ({ collection, index })),
    );
  if (expiring.length === 0) return;
  store.transaction(() => {
    for (const { collection, index } of expiring) {
      const before = new Date(clock.now() - plainNumber(index.spec.expireAfterSeconds) * 1000);
      const path = index.fields[0]?.path.join('.') ?? '';
      const filter = { ...index.spec.partialFilterExpression, [path]: { $lte: before } };
      const read = { filter, limit: MAX_REMOVED, collation: index.collation };
      for (const found of find(collection.name, scope, read)) writing.remove(collection, found);
    }
  });
}

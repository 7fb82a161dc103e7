/**
 * A tenant's database in its own process, with its test databases: executes commands, and counts
 * them.
 */
import { statSync } from 'node:fs';
import { type Document, Double } from 'bson';
import {
  type CommandContext,
  CommandError,
  DocumentDatabase,
  decodeDocument,
} from '../../../../../libs/mongo/index.ts';
import type { EngineLimits } from '../../../../databases/engine.ts';
import { systemClock } from '../../../../platform/clock.ts';
import type { Counters, SizeLimit } from '../../../engine-children/child-call.ts';
import { isTestName } from '../../shared/test-databases.ts';
import { TestDocuments } from './test-documents.ts';

/** Drivers send these to `admin`, whichever database the transaction is on. */
const TRANSACTION_ENDS: ReadonlySet<string> = new Set(['commitTransaction', 'abortTransaction']);
const NO_SUCH_TRANSACTION = 251;
/** A whole list in one batch. */
const ALL = { batchSize: 1000 };

export interface TenantDocumentsOptions {
  readonly file: string;
  /** Database name in commands. */
  readonly name: string;
  readonly sizeLimit: SizeLimit;
  readonly limits: EngineLimits;
}

export class TenantDocuments {
  readonly name: string;
  sizeLimit: SizeLimit;
  limits: EngineLimits;
  readonly counters: Counters = { connections: 0, statements: 0, rowsReturned: 0, rowsWritten: 0 };
  readonly tests: TestDocuments;
  readonly #database: DocumentDatabase;
  readonly #file: string;

  constructor({ file, name, sizeLimit, limits }: TenantDocumentsOptions) {
    this.name = name;
    this.#file = file;
    this.sizeLimit = sizeLimit;
    this.limits = limits;
    const limitFor = (others: () => number) => () =>
      this.sizeLimit.mayGrow ? Math.max(1, this.sizeLimit.sizeLimitBytes - others()) : null;
    this.tests = new TestDocuments({ beside: file, limitBytes: limitFor(() => this.#database.sizeBytes) });
    this.#database = new DocumentDatabase({
      file,
      databaseName: name,
      sizeLimit: limitFor(() => this.tests.bytes),
      clock: systemClock,
    });
  }

  /** DocumentDatabase.run(), of the database that the command names, limited to the statement timeout. */
  run(command: Document, { withinMs, ...context }: CommandContext): Document {
    const { statementMs } = this.limits;
    const most = Math.min(withinMs ?? statementMs, statementMs);
    const reply = this.#replyTo(command, { ...context, withinMs: most });
    this.counters.statements++;
    this.counters.rowsReturned += reply.cursor?.firstBatch?.length ?? reply.cursor?.nextBatch?.length ?? 0;
    const isWrite = 'insert' in command || 'update' in command || 'delete' in command;
    if (isWrite && reply.ok === 1) this.counters.rowsWritten += Number(reply.nModified ?? reply.n ?? 0);
    return reply;
  }

  #replyTo(command: Document, context: CommandContext): Document {
    const [first = ''] = Object.keys(command);
    const database = command.$db;
    try {
      if (first === 'listDatabases') return this.#listDatabases(command, context);
      if (typeof database === 'string' && database !== this.name && isTestName(database))
        return this.tests.run(database, command, context);
    } catch (error) {
      if (error instanceof CommandError) return error.reply();
      throw error;
    }
    const reply = this.#database.run(command, context);
    if (database !== 'admin' || !TRANSACTION_ENDS.has(first) || reply.code !== NO_SUCH_TRANSACTION)
      return reply;
    return this.#endInTests(command, context) ?? reply;
  }

  /** Ends a transaction on a test database; the command does not name the database. */
  #endInTests(command: Document, context: CommandContext): Document | null {
    for (const { name } of this.tests.list()) {
      const reply = this.tests.run(name, command, context);
      if (reply.code !== NO_SUCH_TRANSACTION) return reply;
    }
    return null;
  }

  #listDatabases({ filter = {}, nameOnly }: Document, context: CommandContext): Document {
    const all = [{ name: this.name, sizeBytes: this.#database.sizeBytes }, ...this.tests.list()];
    const documents = all.map(({ name, sizeBytes }) => ({
      name,
      sizeOnDisk: new Double(sizeBytes),
      empty: false,
    }));
    const pipeline = [
      { $documents: documents },
      { $match: filter },
      ...(nameOnly === true ? [{ $project: { name: 1 } }] : []),
    ];
    const command = { aggregate: 1, pipeline, cursor: ALL, $db: this.name };
    const { cursor, ...reply } = this.#database.run(command, context);
    if (reply.ok !== 1) return reply;
    const found = {
      databases: cursor.firstBatch.map((each: Uint8Array | Document) =>
        each instanceof Uint8Array ? decodeDocument(each) : each,
      ),
      ok: 1,
    };
    if (nameOnly === true) return found;
    const bytes = this.sizeBytes;
    return { ...found, totalSize: new Double(bytes), totalSizeMb: Math.floor(bytes / 2 ** 20) };
  }

  durable(): Promise<void> | null {
    const [own, tests] = [this.#database.durable(), this.tests.durable()];
    return own === null || tests === null ? (own ?? tests) : Promise.all([own, tests]).then(() => {});
  }

  get sizeBytes(): number {
    return this.#database.sizeBytes + this.tests.bytes;
  }

  /** Bytes of the write-ahead log. */
  logBytes(): number {
    return statSync(`${this.#file}-wal`, { throwIfNoEntry: false })?.size ?? 0;
  }

  shrink(): void {
    this.#database.shrink();
    this.tests.shrink();
  }

  close(): void {
    this.tests.close();
    this.#database.close();
  }
}

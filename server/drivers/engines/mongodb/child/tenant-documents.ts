/** A tenant's database in its own process: what executes commands, and what was counted. */
import { DatabaseSync } from 'node:sqlite';
import type { Document } from 'bson';
import { type CommandContext, DocumentDatabase } from '../../../../../libs/mongo/index.ts';
import type { EngineLimits } from '../../../../databases/engine.ts';
import { systemClock } from '../../../../platform/clock.ts';
import type { Counters, SizeLimit } from '../../../engine-children/child-call.ts';

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
  readonly #database: DocumentDatabase;
  readonly #watcher: DatabaseSync;

  constructor({ file, name, sizeLimit, limits }: TenantDocumentsOptions) {
    this.name = name;
    this.sizeLimit = sizeLimit;
    this.limits = limits;
    const limitBytes = () => (this.sizeLimit.mayGrow ? this.sizeLimit.sizeLimitBytes : null);
    this.#database = new DocumentDatabase({
      file,
      databaseName: name,
      sizeLimit: limitBytes,
      clock: systemClock,
    });
    this.#watcher = new DatabaseSync(file, { readOnly: true });
  }

  /** DocumentDatabase.run(), limited to the statement timeout. */
  run(command: Document, { readOnly, withinMs }: CommandContext): Document {
    const { statementMs } = this.limits;
    const most = Math.min(withinMs ?? statementMs, statementMs);
    const reply = this.#database.run(command, { readOnly, withinMs: most });
    this.counters.statements++;
    this.counters.rowsReturned += reply.cursor?.firstBatch?.length ?? reply.cursor?.nextBatch?.length ?? 0;
    const isWrite = 'insert' in command || 'update' in command || 'delete' in command;
    if (isWrite && reply.ok === 1) this.counters.rowsWritten += Number(reply.nModified ?? reply.n ?? 0);
    return reply;
  }

  durable(): Promise<void> | null {
    return this.#database.durable();
  }

  get sizeBytes(): number {
    const { bytes } = this.#watcher
      .prepare('SELECT page_count * page_size AS bytes FROM pragma_page_count(), pragma_page_size()')
      .get() as { bytes: number };
    return bytes;
  }

  shrink(): void {
    this.#database.shrink();
  }

  close(): void {
    this.#watcher.close();
    this.#database.close();
  }
}

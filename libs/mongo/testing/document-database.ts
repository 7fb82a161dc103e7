/** A database of the built-in MongoDB engine, used with bytes as drivers send them. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { type Document, deserialize, serialize } from 'bson';
import { DocumentDatabase } from '../commands/document-commands.ts';
import { decodeCommand, encodeReply } from '../values/bson-documents.ts';
import { TestClock } from './test-clock.ts';

export class TestDocuments {
  readonly clock = new TestClock();
  readonly file: string;
  sizeLimit: number | null = 2 ** 30;
  database: DocumentDatabase;

  constructor(context: Pick<TestContext, 'after'>) {
    const folder = mkdtempSync(join(tmpdir(), 'documents-'));
    this.file = join(folder, 'documents.sqlite');
    this.database = this.#opened();
    context.after(() => {
      this.database.close();
      rmSync(folder, { recursive: true });
    });
  }

  #opened(): DocumentDatabase {
    const { file, clock } = this;
    return new DocumentDatabase({ file, databaseName: 'shop', sizeLimit: () => this.sizeLimit, clock });
  }

  /** Again, after it was closed. */
  open(): void {
    this.database = this.#opened();
  }

  /** The reply, including errors; its numbers keep their types with `exact`. */
  ask(command: Document, { exact = false, readOnly = false } = {}): Document {
    const reply = this.database.run(decodeCommand(serialize({ ...command, $db: 'shop' })), { readOnly });
    return deserialize(encodeReply(reply), { promoteValues: !exact, bsonRegExp: true });
  }

  /** The reply of a successful command. */
  run(command: Document): Document {
    const reply = this.ask(command);
    if (reply.ok === 1 && !reply.writeErrors) return reply;
    throw new Error(JSON.stringify(reply));
  }

  /** The code of a command's error, or of its first write error. */
  codeOf(command: Document): number {
    const { code, writeErrors } = this.ask(command);
    return code ?? writeErrors?.[0].code;
  }

  insert(collection: string, ...documents: Document[]): void {
    this.run({ insert: collection, documents });
  }

  find(collection: string, filter: Document = {}, more: Document = {}): Document[] {
    return this.run({ find: collection, filter, batchSize: 1000, ...more }).cursor.firstBatch;
  }

  ids(collection: string, filter: Document, more: Document = {}): unknown[] {
    return this.find(collection, filter, more).map(({ _id }) => _id);
  }

  aggregate(collection: string | number, pipeline: Document[], more: Document = {}): Document[] {
    return this.run({ aggregate: collection, pipeline, cursor: { batchSize: 1000 }, ...more }).cursor
      .firstBatch;
  }

  /** How a command reads documents: the first relevant stage in the output of `explain`. */
  sourceOf(command: Document): Document {
    let stage = this.run({ explain: command }).queryPlanner.winningPlan;
    while (stage.inputStage !== undefined) stage = stage.inputStage;
    return stage;
  }

  /** One statement of `update`; returns the document with `_id` 1 afterwards. */
  update(collection: string, u: unknown, more: Document = {}): Document {
    this.run({ update: collection, updates: [{ q: { _id: 1 }, u, ...more }] });
    const [document = {}] = this.find(collection, { _id: 1 });
    return document;
  }
}

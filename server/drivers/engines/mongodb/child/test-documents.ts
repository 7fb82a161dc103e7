/**
 * Test databases of one tenant, created by the first command that names one: a file each, beside
 * that of the tenant's database. The file of a database without collections is removed.
 */
import { closeSync, fsyncSync, openSync, readdirSync, rmSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { Document } from 'bson';
import { type CommandContext, CommandError, DocumentDatabase } from '../../../../../libs/mongo/index.ts';
import { systemClock } from '../../../../platform/clock.ts';
import { MOST_TEST_DATABASES } from '../../shared/test-databases.ts';

/** Their names in letters valid for any file name. */
const FILE = /^test\.((?:[0-9a-f]{2})+)\.sqlite$/;
/** Each open database has caches. */
const MOST_OPEN = 8;
const ENDS = ['', '-wal', '-shm', '-journal'];
const MOST_NAME = 63;

export interface TestDocumentsOptions {
  /** The file of the tenant's database. */
  readonly beside: string;
  /** Limit of all test databases together; null: they may not grow. */
  readonly limitBytes: () => number | null;
}

export class TestDocuments {
  readonly #folder: string;
  readonly #limitBytes: TestDocumentsOptions['limitBytes'];
  /** Bytes of each closed database; 0 for an open one. */
  readonly #bytes = new Map<string, number>();
  /** In order of use. */
  readonly #open = new Map<string, DocumentDatabase>();

  constructor({ beside, limitBytes }: TestDocumentsOptions) {
    this.#folder = dirname(beside);
    this.#limitBytes = limitBytes;
    for (const file of readdirSync(this.#folder)) {
      const letters = FILE.exec(file)?.[1];
      if (letters === undefined) continue;
      const name = Buffer.from(letters, 'hex').toString();
      this.#bytes.set(name, this.#sizeOnDisk(name));
    }
  }

  /** Total bytes. */
  get bytes(): number {
    let sum = 0;
    for (const name of this.#bytes.keys()) sum += this.#bytesOf(name);
    return sum;
  }

  /** Only databases with collections. */
  list(): { readonly name: string; readonly file: string; readonly sizeBytes: number }[] {
    return [...this.#bytes.keys()]
      .filter((name) => this.#open.get(name)?.isUnused !== true)
      .sort()
      .map((name) => ({ name, file: testFile(this.#folder, name), sizeBytes: this.#bytesOf(name) }));
  }

  /** Like DocumentDatabase.run(). Throws CommandError if there would be too many. */
  run(name: string, command: Document, context: CommandContext): Document {
    return this.#opened(name).run(command, context);
  }

  durable(): Promise<void> | null {
    const waits = [...this.#open.values()].flatMap((each) => each.durable() ?? []);
    return waits.length === 0 ? null : Promise.all(waits).then(() => {});
  }

  /** DocumentDatabase.shrink(). */
  shrink(): void {
    for (const each of this.#open.values()) each.shrink();
    this.#removeUnused();
  }

  close(): void {
    this.#removeUnused();
    for (const each of this.#open.values()) each.close();
    this.#open.clear();
  }

  #opened(name: string): DocumentDatabase {
    const there = this.#open.get(name);
    if (there !== undefined) {
      this.#open.delete(name);
      this.#open.set(name, there);
      return there;
    }
    if (!this.#bytes.has(name)) this.#assertRoomFor(name);
    this.#closeOldest();
    const database = new DocumentDatabase({
      file: testFile(this.#folder, name),
      databaseName: name,
      sizeLimit: () => this.#limitOf(name),
      clock: systemClock,
    });
    this.#open.set(name, database);
    if (!this.#bytes.has(name)) syncFolder(this.#folder);
    this.#bytes.set(name, 0);
    return database;
  }

  #limitOf(name: string): number | null {
    const limit = this.#limitBytes();
    return limit === null ? null : Math.max(1, limit - this.bytes + this.#bytesOf(name));
  }

  #assertRoomFor(name: string): void {
    if (Buffer.byteLength(name) > MOST_NAME || /[/\\. "$*<>:|?\0]/.test(name))
      throw new CommandError('InvalidNamespace', `Invalid namespace specified '${name}'`);
    if (this.#bytes.size >= MOST_TEST_DATABASES) this.#removeUnused();
    if (this.#bytes.size >= MOST_TEST_DATABASES)
      throw new CommandError(
        'OperationFailed',
        `there are ${MOST_TEST_DATABASES} test databases, the maximum: drop unused databases (dropDatabase)`,
      );
  }

  #closeOldest(): void {
    for (const [name, database] of this.#open) {
      if (this.#open.size < MOST_OPEN) return;
      if (database.durable() !== null || database.hasTransactions) continue;
      const { isUnused, sizeBytes } = database;
      database.close();
      this.#open.delete(name);
      this.#bytes.set(name, sizeBytes);
      if (isUnused) this.#remove(name);
    }
  }

  #removeUnused(): void {
    for (const [name, database] of this.#open) {
      if (!database.isUnused || database.hasTransactions || database.durable() !== null) continue;
      database.close();
      this.#open.delete(name);
      this.#remove(name);
    }
  }

  #remove(name: string): void {
    for (const end of ENDS) rmSync(`${testFile(this.#folder, name)}${end}`, { force: true });
    this.#bytes.delete(name);
  }

  #bytesOf(name: string): number {
    return this.#open.get(name)?.sizeBytes ?? this.#bytes.get(name) ?? 0;
  }

  #sizeOnDisk(name: string): number {
    const sizes = ['', '-wal'].map(
      (end) => statSync(`${testFile(this.#folder, name)}${end}`, { throwIfNoEntry: false })?.size ?? 0,
    );
    return sizes.reduce((sum, size) => sum + size, 0);
  }
}

/** The file of the test database with that name. */
function testFile(folder: string, name: string): string {
  return join(folder, `test.${Buffer.from(name).toString('hex')}.sqlite`);
}

function syncFolder(folder: string): void {
  const descriptor = openSync(folder, 'r');
  try {
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}

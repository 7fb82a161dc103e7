/** Runs the statements of a text that becomes a database, and leaves out what this SQLite cannot have. */
import type { DatabaseSync } from 'node:sqlite';
import { LeftOut } from '../../../../databases/left-out.ts';
import { VIRTUAL_TABLES } from '../authorizer.ts';
import { NO_VECTOR_INDEX, vectorIndexOf } from '../vectors.ts';
import * as absent from './absent.ts';
import * as virtual from './virtual-tables.ts';

/** Statements about the file: a new one has no free pages and no log. */
const OF_FILE = /^\s*(?:VACUUM|PRAGMA\s+(?:main\s*\.\s*)?wal_checkpoint(?:\s*\([^)]*\))?)\s*;?\s*$/i;
/** Tables that SQLite creates itself; `.schema` prints them nevertheless. */
const OWN_TABLE = /^\s*CREATE TABLE (?:IF NOT EXISTS )?["']?sqlite_(?:sequence|stat[1-4])["']?\s*\(/i;
/** Rows of those tables, which are missing where no table counts its rows or has statistics. */
const OWN_ROWS = /^\s*(?:INSERT INTO|DELETE FROM) ["']?sqlite_(?:sequence|stat[1-4])\b/i;
const NOT_HERE = /^(?:no such (?:module|tokenizer)|unknown tokenizer|not authorized)/;

/** One statement of the text. */
export interface TextStatement {
  readonly text: string;
  readonly line: number;
  /** Values of its parameters. */
  readonly blobs: Record<string, Buffer> | undefined;
}

export interface LoadingHow {
  /** The tables exist, and the text has rows for them. */
  readonly isAdded: boolean;
  /** Statements that cannot be run here are left out, not refused. */
  readonly lenient: boolean;
}

export class LoadedStatements {
  readonly #database: DatabaseSync;
  readonly #how: LoadingHow;
  readonly leftOut = new LeftOut();
  /** Indexes of vectors that are left out. */
  readonly vectorIndexes: string[] = [];
  /** Tables and views that are left out, in lower case. */
  readonly #gone = new Set<string>();
  #parts: ReadonlyMap<string, string> = new Map();
  /** Where the rows of a virtual table come from first: they would be there twice. */
  readonly #filledBy = new Map<string, 'itself' | 'parts'>();

  constructor(database: DatabaseSync, how: LoadingHow) {
    this.#database = database;
    this.#how = how;
    if (how.isAdded) this.#parts = virtual.partsOf(database);
  }

  /** Throws errors of SQLite. */
  run(statement: TextStatement): void {
    const { text } = statement;
    if (OF_FILE.test(text) || (!this.#how.isAdded && OWN_TABLE.test(text))) return;
    const inserted = virtual.insertOf(text);
    if (inserted !== undefined && this.#runInsert(statement, inserted)) return;
    const created = virtual.virtualTableOf(text);
    if (created !== undefined) return void this.#createVirtual(statement, created);
    const part = virtual.createdTable(text);
    if (part !== undefined && this.#parts.has(part)) return;
    this.#runOther(statement);
  }

  #leaveOut({ text, line }: TextStatement, reason: string): void {
    this.leftOut.add({ text, reason, line });
  }

  /** False: it is no INSERT that needs more than to be run. */
  #runInsert(statement: TextStatement, { table, isCommand }: { table: string; isCommand: boolean }): boolean {
    // Told with the table.
    if (this.#gone.has(table) && !this.#has(table)) return true;
    const owner = this.#parts.get(table);
    if (owner !== undefined) {
      // `.dump` writes both, and the rows of the table itself fill its parts.
      if (this.#how.isAdded || this.#filledBy.get(owner) === 'itself') return true;
      this.#filledBy.set(owner, 'parts');
      this.#exec({ ...statement, text: virtual.asReplace(statement.text) });
      return true;
    }
    if (this.#how.isAdded || isCommand || !this.#isVirtual(table)) return false;
    if (this.#filledBy.get(table) !== 'parts') this.#filledBy.set(table, 'itself');
    else if (this.#how.lenient) {
      this.#leaveOut(statement, `the rows of ${table} came with its shadow tables`);
      return true;
    }
    return false;
  }

  #createVirtual(statement: TextStatement, { name, module, sql }: virtual.VirtualTable): void {
    const isLenient = this.#how.lenient;
    if (isLenient && !VIRTUAL_TABLES.has(module.toLowerCase())) {
      this.#leaveOutTable(
        statement,
        name,
        `there is no module ${module} here; the tables in which it kept its content are loaded`,
      );
      return;
    }
    try {
      this.#database.exec(sql);
    } catch (error) {
      const message = error instanceof Error ? error.message : String(error);
      if (isLenient && NOT_HERE.test(message)) {
        const reason = `${message}; the tables in which it kept its content are loaded`;
        return void this.#leaveOutTable(statement, name, reason);
      }
      // It needs a table that follows.
      if (!virtual.isSchemaRow(statement.text) || absent.missingTable(message) === undefined) throw error;
      this.#database.exec('PRAGMA writable_schema = ON');
      this.#exec(statement);
    }
    this.#parts = virtual.partsOf(this.#database);
  }

  #leaveOutTable(statement: TextStatement, name: string, reason: string): void {
    this.#gone.add(name);
    this.#leaveOut(statement, reason);
  }

  #runOther(statement: TextStatement): void {
    if (!this.#how.lenient) return void this.#exec(statement);
    const { text } = statement;
    const vectorIndex = vectorIndexOf(text);
    if (vectorIndex !== undefined) {
      this.vectorIndexes.push(vectorIndex);
      return void this.#leaveOut(statement, NO_VECTOR_INDEX);
    }
    const dependent = absent.dependentOf(text);
    const used = dependent === undefined ? undefined : absent.usedBy(text, this.#gone);
    if (dependent !== undefined && used !== undefined) {
      if (dependent.kind === 'view') this.#gone.add(dependent.name);
      return void this.#leaveOut(statement, `it uses ${used}, which is left out`);
    }
    const changed = absent.withoutCollations(text);
    if (changed !== undefined) this.#leaveOut(statement, changed.reason);
    this.#execWithout(statement, changed?.text ?? text);
  }

  /** Runs `text`, which is the statement or a part of it, if need be without what this SQLite misses. */
  #execWithout(statement: TextStatement, text: string): void {
    try {
      this.#exec({ ...statement, text });
    } catch (error) {
      const message = error instanceof Error ? error.message : String(error);
      const missing = absent.missingTable(message);
      if (missing !== undefined && this.#gone.has(missing))
        return void this.#leaveOut(statement, `it uses ${missing}, which is left out`);
      const reason = absent.whyNoIndex(text, message);
      if (reason !== undefined) return void this.#leaveOut(statement, reason);
      const changed = absent.withoutChecks(text, message);
      if (changed === undefined) throw error;
      this.#leaveOut(statement, changed.reason);
      this.#execWithout(statement, changed.text);
    }
  }

  #exec({ text, blobs }: TextStatement): void {
    try {
      if (blobs === undefined) this.#database.exec(text);
      else this.#database.prepare(text).run(blobs);
    } catch (error) {
      const isOwn = OWN_ROWS.test(text) && error instanceof Error;
      if (!isOwn || !error.message.startsWith('no such table: sqlite_')) throw error;
    }
  }

  #has(table: string): boolean {
    return this.#database.prepare('SELECT 1 FROM pragma_table_list(?)').get(table) !== undefined;
  }

  #isVirtual(table: string): boolean {
    for (const owner of this.#parts.values()) if (owner === table) return true;
    return false;
  }
}

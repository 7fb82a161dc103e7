/** What executes MongoDB's commands on one database's file, in the database's own process. */
import { DatabaseSync } from 'node:sqlite';
import { type Document, Long, ObjectId, serialize } from 'bson';
import { Query } from 'mingo';
import { decodeDocument } from './bson-documents.ts';
import { CommandError } from './command-error.ts';

export interface DatabaseOptions {
  /** Path of the database's file; made if it is not there. */
  readonly file: string;
  /** The only `$db` that commands may name. */
  readonly databaseName: string;
  /** Bytes that the file may have now; null: as it is, what is deleted makes room. */
  readonly sizeLimit: () => number | null;
}

export interface CommandContext {
  /** Whose cursors these are. */
  readonly connection: string;
  /** True: commands that write get 13 Unauthorized. */
  readonly readOnly: boolean;
}

export class DocumentDatabase {
  readonly #database: DatabaseSync;
  readonly #options: DatabaseOptions;

  constructor(options: DatabaseOptions) {
    this.#options = options;
    this.#database = new DatabaseSync(options.file);
    this.#database.exec(`PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL;
      CREATE TABLE IF NOT EXISTS crude (c TEXT, k TEXT, d BLOB, PRIMARY KEY (c, k))`);
  }

  /**
   * The reply to a command, which `decodeCommand` made of an OP_MSG; `encodeReply` makes it bytes. Never
   * throws for what a client sent: such a reply has `ok: 0`, or `writeErrors`. A command of any other
   * database than `databaseName` is refused. What was written is whole after a crash of this process at
   * once; the answer must wait for `durable()`, or a power cut may lose it.
   *
   * It holds the process until it is done, and maybe for ever (`$regex`): the caller keeps the time and
   * kills the process.
   */
  run(command: Document, _context: CommandContext): Document {
    try {
      const [name = ''] = Object.keys(command);
      if (name === 'insert') {
        for (const bytes of command.documents) {
          const document = decodeDocument(bytes);
          document._id ??= new ObjectId();
          this.#database
            .prepare('INSERT INTO crude VALUES (?, ?, ?)')
            .run(command.insert, String(document._id), serialize(document));
        }
        return { n: command.documents.length, ok: 1 };
      }
      if (name === 'find') {
        const query = new Query(command.filter ?? {}, { scriptEnabled: false });
        const rows = this.#database.prepare('SELECT d FROM crude WHERE c = ?').all(command.find);
        const firstBatch = rows
          .map(({ d }) => d as Uint8Array)
          .filter((bytes) => query.test(decodeDocument(bytes)));
        return {
          cursor: { firstBatch, id: Long.ZERO, ns: `${this.#options.databaseName}.${command.find}` },
          ok: 1,
        };
      }
      throw new CommandError('CommandNotFound', `no such command: '${name}'`);
    } catch (error) {
      if (error instanceof CommandError) return error.reply();
      return { ok: 0, errmsg: (error as Error).message, code: 8, codeName: 'UnknownError' };
    }
  }

  /**
   * Resolves when all that was written until now is on the disk; null: it is. To be awaited before any
   * answer is sent, those of reads too. Rejects when the disk fails; then this process must end.
   */
  durable(): Promise<void> | null {
    return null;
  }

  /** Ends the cursors of a connection. */
  connectionEnded(_connection: string): void {}

  close(): void {
    this.#database.close();
  }
}

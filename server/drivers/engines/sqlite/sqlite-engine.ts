/** SQLite: one file per database, opened by its own process. */
import type { Endpoint, Engine, EngineDatabase } from '../../../databases/engine.ts';
import { programFile } from '../../../platform/program-files.ts';
import { ChildEngine, type ChildEngineOptions } from '../../engine-children/child-engine.ts';
import type { ChildEngineKind } from '../../engine-children/child-kind.ts';
import { FILE } from '../../engine-children/children.ts';
import { isDataOnly } from './dumps/data-only.ts';

export interface SqliteEngineOptions extends ChildEngineOptions {
  /** Address of the data origin, `http://host:port`. */
  readonly address: () => string;
}

const KIND: ChildEngineKind = {
  program: {
    name: 'sqlite',
    entry: programFile('drivers/engines/sqlite/child'),
    heapMb: 96,
    youngMb: 1,
    packages: ['@bufbuild/protobuf'],
  },
  version: process.versions.sqlite ?? null,
  dump: { format: 'sqlite', contentType: 'application/vnd.sqlite3' },
  loaded: {
    file: FILE,
    header: Buffer.from('SQLite format 3\0'),
    text: 'load.sql',
    isDataOnly,
    otherwise: 'the file is not a SQLite database: send the database file, or SQL text as `.dump` writes it',
  },
  batch: ({ each }) => {
    const rows = each();
    return { statement: rows[0]?.statement, rows: rows.map(({ params }) => params) };
  },
  spareMs: 0,
  errorName: 'SQLITE_ERROR',
};

export class SqliteEngine extends ChildEngine implements Engine {
  readonly name = 'sqlite';
  readonly #address: () => string;

  constructor(options: SqliteEngineOptions) {
    super(KIND, options);
    this.#address = options.address;
  }

  async endpoint({ databaseId }: EngineDatabase): Promise<Endpoint> {
    const url = new URL(`${this.#address()}/db/${databaseId}/`);
    const tls = url.protocol === 'https:';
    return {
      host: url.hostname,
      port: Number(url.port) || (tls ? 443 : 80),
      tls,
      ca: null,
      uri: (password) => `${url.href}?authToken=${password}`,
    };
  }
}

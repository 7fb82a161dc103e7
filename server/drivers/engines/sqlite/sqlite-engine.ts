/** SQLite: one file per database, opened by its own process. */
import {
  type Endpoint,
  type Engine,
  type EngineDatabase,
  type Insertion,
  MOST_REFUSED,
  type RefusedRow,
  RowsRefused,
  type Scan,
} from '../../../databases/engine.ts';
import { programFile } from '../../../platform/program-files.ts';
import {
  ChildEngine,
  type ChildEngineKind,
  type ChildEngineOptions,
} from '../../engine-children/child-engine.ts';
import { failureOf } from '../../engine-children/child-failures.ts';
import { FILE } from '../../engine-children/children.ts';
import type { ChildAnswer } from '../../engine-children/tenant-child.ts';
import { isDataOnly } from './data-only.ts';

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

  async scan(database: EngineDatabase, { onRows, signal, ...query }: Scan): Promise<void> {
    const onPart = ({ body }: ChildAnswer) => onRows(JSON.parse(body.toString()));
    await this.call(database, { ...query, kind: 'scan' }, { signal, onPart }).catch((error) => {
      throw failureOf(error, KIND.errorName);
    });
  }

  async insert(database: EngineDatabase, { first, batches, signal }: Insertion): Promise<void> {
    const all = batches[Symbol.asyncIterator]();
    const onPart = async () => {
      const next = await all.next();
      if (next.done === true) return undefined;
      const rows = next.value.each();
      const batch = { statement: rows[0]?.statement, rows: rows.map(({ params }) => params) };
      return Buffer.from(JSON.stringify(batch));
    };
    const call = { kind: 'insert', first, most: MOST_REFUSED };
    const answer = await this.call(database, call, { signal, onPart }).catch((error) => {
      throw failureOf(error, KIND.errorName);
    });
    const refused = answer.head.refused as readonly RefusedRow[];
    if (refused.length > 0) throw new RowsRefused(refused);
  }
}

/** Converts an archive of pg_dump to SQL for psql, in the order of pg_restore. */
import { Readable, type Transform } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { createInflate, createZstdDecompress } from 'node:zlib';
import { LoadFailed } from '../../../../databases/engine.ts';
import type { LeftOut } from '../../../../databases/left-out.ts';
import {
  type ArchiveContents,
  type ArchiveEntry,
  type ByteReader,
  damaged,
  type Packed,
} from './archive-entries.ts';

/** Bytes of a large object per statement. */
const LARGE_OBJECT_BYTES = 16_384;
const [DATA_BLOCK, LARGE_OBJECTS_BLOCK] = [1, 3];
const SETTINGS = [
  'statement_timeout = 0',
  'lock_timeout = 0',
  'idle_in_transaction_session_timeout = 0',
  'check_function_bodies = false',
  'client_min_messages = warning',
  'row_security = off',
];
/** pg_restore omits these unless it creates a database. */
const NOT_RESTORED = new Set(['DATABASE']);
const AFTER_ALL: Readonly<Record<string, number>> = {
  ACL: 1,
  'ACL LANGUAGE': 1,
  'DEFAULT ACL': 1,
  'EVENT TRIGGER': 2,
  'MATERIALIZED VIEW DATA': 2,
};

/** Data of an archive, wherever it is. */
export interface ArchiveData {
  /** Rows of a table: SQL, or the lines after COPY with its `\.`. */
  table(entry: ArchiveEntry): AsyncIterable<Uint8Array>;
  /** The large objects with their numbers; each must be read before the next. */
  largeObjects(
    entry: ArchiveEntry,
  ): AsyncIterable<{ readonly oid: string; readonly bytes: AsyncIterable<Uint8Array> }>;
}

export async function* archiveSql(
  { entries }: ArchiveContents,
  data: ArchiveData,
  leftOut: LeftOut | undefined,
): AsyncGenerator<Buffer> {
  noteOwners(entries, leftOut);
  yield sql(SETTINGS.map((setting) => `SET ${setting};\n`).join(''));
  const hasPath = entries.some(({ kind }) => kind === 'SEARCHPATH');
  const state = { schema: '', tablespace: '', accessMethod: '' };
  const rank = ({ kind }: ArchiveEntry) => AFTER_ALL[kind] ?? 0;
  for (const entry of entries.toSorted((one, other) => rank(one) - rank(other))) {
    if (NOT_RESTORED.has(entry.kind)) continue;
    if (!hasPath && entry.schema !== '' && entry.schema !== state.schema) {
      state.schema = entry.schema;
      yield sql(`SET search_path = "${entry.schema.replaceAll('"', '""')}", pg_catalog;\n`);
    }
    yield* placed(entry, state);
    if (entry.definition !== '') yield sql(`${definitionOf(entry)}\n\n`);
    if (!entry.hasData) continue;
    if (entry.kind === 'BLOBS') yield* largeObjectsSql(data.largeObjects(entry));
    else {
      yield sql(entry.copy);
      for await (const piece of data.table(entry)) yield Buffer.from(piece);
    }
  }
}

const sql = (text: string) => Buffer.from(text, 'latin1');

function noteOwners(entries: readonly ArchiveEntry[], leftOut: LeftOut | undefined): void {
  const owners = new Set(entries.map(({ owner }) => owner).filter((owner) => owner !== ''));
  for (const owner of owners) {
    const text = `OWNER TO ${Buffer.from(owner, 'latin1').toString()}`;
    leftOut?.add({ line: null, text, reason: 'loaded objects belong to the user of this database' });
  }
}

/** pg_dump's own settings before a table. */
function* placed(
  { kind, tablespace, accessMethod, isPartitioned }: ArchiveEntry,
  state: { tablespace: string; accessMethod: string },
): Generator<Buffer> {
  if (kind !== 'TABLE' && kind !== 'INDEX' && kind !== 'CONSTRAINT' && kind !== 'MATERIALIZED VIEW') return;
  const quoted = (name: string) => `"${name.replaceAll('"', '""')}"`;
  if (tablespace !== state.tablespace) {
    state.tablespace = tablespace;
    yield sql(`SET default_tablespace = ${tablespace === '' ? "''" : quoted(tablespace)};\n`);
  }
  if (accessMethod === '' || isPartitioned || accessMethod === state.accessMethod) return;
  state.accessMethod = accessMethod;
  yield sql(`SET default_table_access_method = ${quoted(accessMethod)};\n`);
}

function definitionOf({ kind, definition }: ArchiveEntry): string {
  if (kind !== 'BLOB METADATA') return definition;
  const oids = definition.split('\n').filter((oid) => /^\d+$/.test(oid));
  return oids.map((oid) => `SELECT pg_catalog.lo_create('${oid}');`).join('\n');
}

async function* largeObjectsSql(objects: ReturnType<ArchiveData['largeObjects']>): AsyncGenerator<Buffer> {
  yield sql('BEGIN;\n');
  for await (const { oid, bytes } of objects) {
    yield sql(`SELECT pg_catalog.lo_open('${oid}', 131072);\n`);
    for await (const piece of bytes) {
      for (let at = 0; at < piece.length; at += LARGE_OBJECT_BYTES) {
        const hex = Buffer.from(piece.subarray(at, at + LARGE_OBJECT_BYTES)).toString('hex');
        yield sql(`SELECT pg_catalog.lowrite(0, '\\x${hex}');\n`);
      }
    }
    yield sql('SELECT pg_catalog.lo_close(0);\n');
  }
  yield sql('COMMIT;\n');
}

/** The data of an archive in one stream (`-Fc`): blocks in the order of the contents. */
export class StreamedData implements ArchiveData {
  readonly #reader: ByteReader;
  readonly #packed: Packed;

  constructor(reader: ByteReader, packed: Packed) {
    this.#reader = reader;
    this.#packed = packed;
  }

  async *table(entry: ArchiveEntry): AsyncGenerator<Uint8Array> {
    await this.#begin(entry, DATA_BLOCK);
    yield* unpackedData(this.#chunks(), this.#packed);
  }

  async *largeObjects(entry: ArchiveEntry) {
    await this.#begin(entry, LARGE_OBJECTS_BLOCK);
    for (let oid = await this.#reader.integer(); oid !== 0; oid = await this.#reader.integer())
      yield { oid: String(oid), bytes: unpackedData(this.#chunks(), this.#packed) };
  }

  async #begin({ id, tag }: ArchiveEntry, kind: number): Promise<void> {
    const [found, block] = [await this.#reader.byte(), await this.#reader.integer()];
    if (found !== kind || block !== id) {
      const name = Buffer.from(tag, 'latin1').toString();
      throw damaged(
        `the data of ${name} is not at its recorded position; \`pg_restore -f dump.sql FILE\` may find it`,
      );
    }
  }

  async *#chunks(): AsyncGenerator<Buffer> {
    for (let size = await this.#reader.integer(); size !== 0; size = await this.#reader.integer()) {
      if (size < 0) throw damaged('a block of data has no size');
      // In pieces, because blocks can be of any size.
      for (let left = size; left > 0; ) {
        const piece = await this.#reader.bytes(Math.min(left, 65_536));
        left -= piece.length;
        yield piece;
      }
    }
  }
}

/** Throws LoadFailed if the bytes are damaged, or compressed in an unsupported way. */
export async function* unpackedData(
  chunks: AsyncIterable<Uint8Array>,
  packed: Packed,
  inflate: () => Transform = createInflate,
): AsyncGenerator<Uint8Array> {
  if (packed === 'none') {
    yield* chunks;
    return;
  }
  if (packed === 'lz4') {
    throw new LoadFailed(
      'The archive is compressed with lz4, which is not supported: create it with `pg_dump --compress=gzip` or ' +
        'zstd, or convert it to SQL with `pg_restore -f dump.sql FILE`',
    );
  }
  const unpack = packed === 'gzip' ? inflate() : createZstdDecompress();
  const source = Readable.from(chunks, { objectMode: false });
  const feeding = pipeline(source, unpack);
  feeding.catch(() => {});
  try {
    yield* unpack as Readable;
    await feeding;
  } catch (error) {
    if (error instanceof LoadFailed) throw error;
    const code = (error as NodeJS.ErrnoException).code ?? '';
    throw /^(?:Z_|ZSTD|ERR_ZSTD)/.test(code) ? damaged(`data cannot be unpacked (${code})`) : error;
  } finally {
    source.destroy();
  }
}

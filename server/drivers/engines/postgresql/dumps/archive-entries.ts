/** Reads the beginning of pg_dump's archives: their header and table of contents (pg_backup_archiver.c). */
import { LoadFailed } from '../../../../databases/engine.ts';

export const ARCHIVE_MAGIC = Buffer.from('PGDMP');
/** pg_dump 18 writes 1.16; 8.4 wrote 1.11. */
const [OLDEST_MINOR, NEWEST_MINOR] = [10, 16];
/** No server accepts longer definitions. */
const MAX_TEXT = 64 * 2 ** 20;
const MAX_CONTENTS = 256 * 2 ** 20;
const PACKED = ['none', 'gzip', 'lz4', 'zstd'] as const;
const CUSTOM = 1;

export type Packed = (typeof PACKED)[number];

export interface ArchiveEntry {
  readonly id: number;
  readonly hasData: boolean;
  readonly tag: string;
  /** `TABLE`, `TABLE DATA`, `ACL`, … */
  readonly kind: string;
  readonly definition: string;
  readonly copy: string;
  readonly schema: string;
  readonly tablespace: string;
  readonly accessMethod: string;
  readonly isPartitioned: boolean;
  readonly owner: string;
  /** Empty: the format has a single file. */
  readonly file: string;
}

export interface ArchiveContents {
  readonly packed: Packed;
  readonly entries: readonly ArchiveEntry[];
}

/** Reads the requested number of bytes from a stream. */
export class ByteReader {
  readonly #source: AsyncIterator<Uint8Array>;
  #rest: Buffer = Buffer.alloc(0);
  #integerBytes = 4;

  constructor(pieces: AsyncIterable<Uint8Array>) {
    this.#source = pieces[Symbol.asyncIterator]();
  }

  set integerBytes(count: number) {
    if (count < 4 || count > 8) throw damaged('its integers have an unsupported size');
    this.#integerBytes = count;
  }

  /** Throws LoadFailed at the end. */
  async bytes(count: number): Promise<Buffer> {
    const pieces = [this.#rest];
    for (let has = this.#rest.length; has < count; ) {
      const { value, done } = await this.#source.next();
      if (done) throw damaged('it is cut off');
      pieces.push(Buffer.from(value.buffer, value.byteOffset, value.byteLength));
      has += value.length;
    }
    if (pieces.length > 1) this.#rest = Buffer.concat(pieces);
    const taken = this.#rest.subarray(0, count);
    this.#rest = this.#rest.subarray(count);
    return taken;
  }

  async byte(): Promise<number> {
    return (await this.bytes(1))[0] ?? 0;
  }

  /** A sign, then the lowest byte first. */
  async integer(): Promise<number> {
    const bytes = await this.bytes(1 + this.#integerBytes);
    const value = bytes.readUIntLE(1, Math.min(6, this.#integerBytes));
    return bytes[0] === 0 ? value : -value;
  }

  /** Null becomes empty; only the end of a list distinguishes them. */
  async text(): Promise<string | null> {
    const length = await this.integer();
    if (length < 0) return null;
    if (length > MAX_TEXT) throw damaged('a text of its contents is too long');
    return (await this.bytes(length)).toString('latin1');
  }

  async close(): Promise<void> {
    await this.#source.return?.();
  }
}

/** Reads up to the data. In texts, each character is a byte. Throws LoadFailed. */
export async function readContents(reader: ByteReader): Promise<ArchiveContents> {
  if (!(await reader.bytes(ARCHIVE_MAGIC.length)).equals(ARCHIVE_MAGIC)) throw damaged('it has no header');
  const [major, minor] = [await reader.byte(), await reader.byte(), await reader.byte()];
  if (major !== 1 || minor === undefined || minor < OLDEST_MINOR || minor > NEWEST_MINOR) {
    throw new LoadFailed(
      `The archive has version ${major}.${minor}; supported are 1.${OLDEST_MINOR} to 1.${NEWEST_MINOR}. ` +
        'Convert it to SQL with `pg_restore -f dump.sql FILE`',
    );
  }
  reader.integerBytes = await reader.byte();
  const offsetBytes = await reader.byte();
  const isCustom = (await reader.byte()) === CUSTOM;
  const packed = await packedBy(reader, minor);
  // The time of the archive, the name of the database, and the versions of the server and of pg_dump.
  for (let field = 0; field < 7; field++) await reader.integer();
  for (let field = 0; field < 3; field++) await reader.text();
  const count = await reader.integer();
  // The encoding is always there.
  if (count <= 0) throw damaged('it has no table of contents');
  const entries: ArchiveEntry[] = [];
  let size = 0;
  for (let at = 0; at < count; at++) {
    const entry = await readEntry(reader, minor);
    size += entry.definition.length + entry.copy.length + 256;
    if (size > MAX_CONTENTS) throw new LoadFailed('The table of contents of the archive is too large');
    if (isCustom) await reader.bytes(1 + offsetBytes);
    entries.push(isCustom ? entry : { ...entry, file: (await reader.text()) ?? '' });
  }
  return { packed, entries };
}

async function packedBy(reader: ByteReader, minor: number): Promise<Packed> {
  if (minor < 15) return (await reader.integer()) === 0 ? 'none' : 'gzip';
  const packed = PACKED[await reader.byte()];
  if (packed === undefined) throw damaged('its compression is unknown');
  return packed;
}

async function readEntry(reader: ByteReader, minor: number): Promise<ArchiveEntry> {
  const text = async () => (await reader.text()) ?? '';
  const id = await reader.integer();
  const hasData = (await reader.integer()) !== 0;
  // The table and number of the catalogue.
  for (let field = 0; field < 2; field++) await text();
  const [tag, kind] = [await text(), await text()];
  if (minor >= 11) await reader.integer();
  const definition = await text();
  // The statement that drops it.
  await text();
  const [copy, schema, tablespace] = [await text(), await text(), await text()];
  const accessMethod = minor >= 14 ? await text() : '';
  const isPartitioned = minor >= 16 && (await reader.integer()) === 'p'.charCodeAt(0);
  const owner = await text();
  // Skips the OID flag and the dependencies.
  await text();
  while ((await reader.text()) !== null);
  const about = { id, hasData, tag, kind, definition, copy, schema, owner };
  return { ...about, tablespace, accessMethod, isPartitioned, file: '' };
}

export function damaged(why: string): LoadFailed {
  return new LoadFailed(`The archive of pg_dump is damaged: ${why}`);
}

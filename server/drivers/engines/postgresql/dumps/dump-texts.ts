/** A dump in any of pg_dump's formats, as SQL. */
import { Readable } from 'node:stream';
import { begin } from '../../../../databases/file-start.ts';
import type { LeftOut } from '../../../../databases/left-out.ts';
import { ARCHIVE_MAGIC, ByteReader, readContents } from './archive-entries.ts';
import { isTar, UnpackedArchive } from './archive-files.ts';
import { archiveSql, StreamedData } from './archive-sql.ts';

const HEAD_BYTES = 512;

export interface DumpText {
  readonly stream: Readable;
  /** False: made from an archive, whose reader has no lines. */
  readonly hasLines: boolean;
  /** Removes temporary files. */
  close(): void;
}

/** Detects the format by the first bytes. `folder`: for an archive's files; created when needed. */
export async function textOf(
  dump: Readable,
  { folder, leftOut }: { readonly folder: string; readonly leftOut: LeftOut | undefined },
): Promise<DumpText> {
  const { head, whole } = await begin<Buffer>(dump, ({ length }) => length >= HEAD_BYTES);
  const isCustom = head.subarray(0, ARCHIVE_MAGIC.length).equals(ARCHIVE_MAGIC);
  if (isCustom) return { ...made(customSql(whole, leftOut)), close: () => {} };
  if (!isTar(head)) return { stream: streamOf(whole), hasLines: true, close: () => {} };
  const archive = await UnpackedArchive.of(whole, folder);
  return { ...made(filesSql(archive, leftOut)), close: () => archive.close() };
}

const streamOf = (pieces: AsyncIterable<Uint8Array>) =>
  // The stream may fail before anyone reads it.
  Readable.from(pieces, { objectMode: false }).once('error', () => {});
const made = (pieces: AsyncIterable<Uint8Array>) => ({ stream: streamOf(pieces), hasLines: false });

async function* customSql(pieces: AsyncIterable<Buffer>, leftOut: LeftOut | undefined) {
  const reader = new ByteReader(pieces);
  try {
    const contents = await readContents(reader);
    yield* archiveSql(contents, new StreamedData(reader, contents.packed), leftOut);
  } finally {
    await reader.close();
  }
}

async function* filesSql(archive: UnpackedArchive, leftOut: LeftOut | undefined) {
  const reader = archive.contents();
  try {
    yield* archiveSql(await readContents(reader), archive, leftOut);
  } finally {
    await reader.close();
  }
}

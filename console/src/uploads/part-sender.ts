/**
 * Sends a large file in parts. An interrupted upload continues after the last received part, also
 * after a reload or on another day: the cloud lists the parts, and their checksums show whether
 * they belong to the file.
 */
import type { OpenUpload, UploadPart } from '../../../sdk/index.ts';
import { cloud } from '../cloud.ts';
import { text } from '../texts/text.ts';
import { crc32, crcText } from './crc32.ts';

const MIB = 2 ** 20;
/** Smaller files are sent in one piece. */
export const LARGE_BYTES = 64 * MIB;
const PART_BYTES = 16 * MIB;
/** Slightly below the maximum number of parts: parts received earlier may be smaller. */
const MOST_PARTS = 9000;
/** Bytes read at a time: computing their checksum must not block the page. */
const PIECE_BYTES = 4 * MIB;
/** Maximum unfinished uploads of one name to check. */
const MOST_CANDIDATES = 3;

export interface LargeUpload {
  readonly file: File;
  readonly bucket: string;
  readonly name: string;
  /**
   * The upload to continue; undefined: there is none of this name with the file's parts, so begin a
   * new one.
   */
  readonly uploadId: string | undefined;
}

export interface PartListener {
  readonly signal: AbortSignal;
  /** Bytes that were received, or are being sent. */
  readonly onProgress: (sentBytes: number) => void;
  /** Called when its upload is known. */
  readonly onBegun: (uploadId: string) => void;
  readonly onPart: () => void;
}

/** Uploads to which this page is sending parts. */
const sending = new Set<string>();

/** Throws CloudError, and a translated Error if the file is not the one of the upload. */
export async function sendInParts(upload: LargeUpload, listener: PartListener): Promise<void> {
  const { file, bucket } = upload;
  const { signal, onBegun, onProgress, onPart } = listener;
  const begun = await findBegun(upload, listener);
  const uploadId = begun?.id ?? (await begin(upload, signal));
  sending.add(uploadId);
  try {
    onBegun(uploadId);
    let { at, parts, crc } = begun ?? NOTHING;
    const partBytes = Math.max(PART_BYTES, Math.ceil(file.size / MOST_PARTS / MIB) * MIB);
    while (at < file.size) {
      const piece = file.slice(at, at + partBytes);
      const sums = await sumsOf(piece, crc, signal);
      const start = at;
      const part = await cloud.uploadPart(
        bucket,
        uploadId,
        parts + 1,
        { file: piece },
        { signal, onProgress: (sent) => onProgress(start + Math.min(sent, piece.size)) },
      );
      if (part.crc32 !== null && part.crc32 !== crcText(sums.own)) throw new Error(text.uploads.damaged);
      at += piece.size;
      parts++;
      crc = sums.whole;
      onPart();
    }
    const end = { parts, size: file.size, crc32: crcText(crc) };
    await cloud.completeUpload(bucket, uploadId, end, { signal });
  } finally {
    sending.delete(uploadId);
  }
}

/** How many of the arrived parts match the file. */
interface Kept {
  readonly at: number;
  readonly parts: number;
  /** CRC of the file up to there. */
  readonly crc: number;
}

const NOTHING: Kept = { at: 0, parts: 0, crc: 0 };

async function findBegun(
  upload: LargeUpload,
  listener: PartListener,
): Promise<(Kept & { readonly id: string }) | undefined> {
  const { bucket, uploadId } = upload;
  const { signal } = listener;
  if (uploadId !== undefined) {
    const parts = await cloud.listUploadParts(bucket, uploadId, { signal });
    const kept = await keptOf(upload.file, parts, listener);
    if (parts.length > 0 && kept.parts === 0) throw new Error(text.uploads.otherFile);
    return { ...kept, id: uploadId };
  }
  for (const { upload_id: id } of await candidates(upload)) {
    const kept = await keptOf(upload.file, await cloud.listUploadParts(bucket, id, { signal }), listener);
    if (kept.parts > 0) return { ...kept, id };
  }
  return undefined;
}

/** Unfinished uploads of the name, newest first. */
async function candidates({ bucket, name, file }: LargeUpload): Promise<OpenUpload[]> {
  const all = await cloud.listUploads(bucket).all();
  const own = all.filter(
    (one) => one.name === name && one.size > 0 && one.size <= file.size && !sending.has(one.upload_id),
  );
  return own.reverse().slice(0, MOST_CANDIDATES);
}

async function keptOf(
  file: File,
  parts: readonly UploadPart[],
  { signal, onProgress }: PartListener,
): Promise<Kept> {
  let kept = NOTHING;
  for (const { number, size, crc32: crc } of parts) {
    const { at } = kept;
    if (number !== kept.parts + 1 || at + size > file.size || size === 0) break;
    const sums = await sumsOf(file.slice(at, at + size), kept.crc, signal);
    if (crc !== crcText(sums.own)) break;
    kept = { at: at + size, parts: number, crc: sums.whole };
    onProgress(kept.at);
  }
  return kept;
}

async function begin({ bucket, name, file }: LargeUpload, signal: AbortSignal): Promise<string> {
  const wanted = file.type === '' ? { name } : { name, mime_type: file.type };
  return (await cloud.beginUpload(bucket, wanted, { signal })).upload_id;
}

/** The CRC of a piece, and of the file up to its end. */
async function sumsOf(
  piece: Blob,
  before: number,
  signal: AbortSignal,
): Promise<{ own: number; whole: number }> {
  let [own, whole] = [0, before];
  for (let at = 0; at < piece.size; at += PIECE_BYTES) {
    signal.throwIfAborted();
    const bytes = new Uint8Array(await piece.slice(at, at + PIECE_BYTES).arrayBuffer());
    own = crc32(bytes, own);
    whole = crc32(bytes, whole);
  }
  return { own, whole };
}

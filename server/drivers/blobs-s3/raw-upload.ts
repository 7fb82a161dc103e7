/** Stores a sealed blob, with the same requests as an upload. */
import { createHash } from 'node:crypto';
import type { RawCopy } from '../../storage/blobs/blobs.ts';
import { damaged } from '../blob-frames/blob-fault.ts';
import { CHUNK_BYTES } from '../blob-frames/blob-format.ts';
import type { S3Body, S3Objects } from '../s3-client/s3-objects.ts';
import { framesOfPart } from './parts.ts';
import { keyOf } from './sealed-blob.ts';

/** Rejects with a BlobFault, or `data_corrupted` if the bytes have another length. */
export async function storeRawObject(objects: S3Objects, copy: RawCopy): Promise<void> {
  const { name, storedBytes } = copy;
  const key = keyOf(name);
  if ((await objects.head(key))?.sizeBytes === storedBytes) return;
  let uploadId: string | undefined;
  try {
    const etags: string[] = [];
    let sentBytes = 0;
    for await (const { body, bytes, isLast } of partsOf(copy)) {
      sentBytes += bytes;
      if (isLast && sentBytes !== storedBytes)
        throw damaged(`${sentBytes} bytes of ${storedBytes} of ${name}`);
      if (isLast && uploadId === undefined) return await objects.put(key, body);
      uploadId ??= await objects.initiate(key);
      etags.push(await objects.part(key, { uploadId, number: etags.length + 1, body }));
    }
    await objects.complete(key, { uploadId: uploadId ?? '', etags, sizeBytes: storedBytes });
  } catch (error) {
    if (uploadId !== undefined) await objects.abandon(key, uploadId, { tries: 1 }).catch(() => {});
    throw error;
  }
}

interface RawPart {
  readonly body: S3Body;
  readonly bytes: number;
  readonly isLast: boolean;
}

/** Parts of at least 8 MiB, except the last; an empty blob has one empty part. */
async function* partsOf({ bytes }: RawCopy): AsyncIterable<RawPart> {
  let pieces: Uint8Array[] = [];
  let held = 0;
  let index = 0;
  const part = (isLast: boolean): RawPart => {
    const md5 = createHash('md5');
    for (const piece of pieces) md5.update(piece);
    const made = { body: { parts: pieces, md5: md5.digest('base64') }, bytes: held, isLast };
    pieces = [];
    held = 0;
    return made;
  };
  for await (const piece of bytes) {
    if (held >= framesOfPart(index) * CHUNK_BYTES) {
      index++;
      yield part(false);
    }
    // The source may use its memory again.
    pieces.push(Buffer.from(piece));
    held += piece.length;
  }
  yield part(true);
}

/** Reads and verifies chunks on a worker thread. */
import { closeSync, fstatSync, openSync, readvSync } from 'node:fs';
import { join } from 'node:path';
import { blobPath, CHUNK_BYTES, chunkCount, chunkLength, fileLength, frameOffset } from './blob-format.ts';
import type { BlobReply, ReadRequest } from './blob-messages.ts';
import { frameCodec } from './frame-codec.ts';

/** Answers a ReadRequest. Throws what the system calls throw, with the file closed if this call opened it. */
export function readChunks(root: string, request: ReadRequest): BlobReply {
  const opened = request.fd === null;
  const fd = request.fd ?? openSync(join(root, blobPath(request.name)), 'r');
  let keep = false;
  try {
    const goodChunks = readInto(fd, request);
    keep = !request.close;
    return opened && keep ? { goodChunks, fd } : { goodChunks };
  } finally {
    if (opened && !keep) closeSync(fd);
  }
}

function readInto(fd: number, { name, sizeBytes, dataKey, slot, firstChunk, chunks }: ReadRequest): number {
  const codec = frameCodec(name, dataKey);
  // Bytes cut off or added anywhere would shift or orphan frames: nothing of such a file is trusted.
  if (fstatSync(fd).size !== fileLength(sizeBytes, codec.tailBytes)) return 0;
  const lastChunk = chunkCount(sizeBytes) - 1;
  const tails = Buffer.allocUnsafe(chunks * codec.tailBytes);
  const frames = Array.from({ length: chunks }, (_, i) => {
    const index = firstChunk + i;
    return {
      place: { index, last: index === lastChunk },
      body: new Uint8Array(slot, i * CHUNK_BYTES, chunkLength(sizeBytes, index)),
      tail: tails.subarray(i * codec.tailBytes, (i + 1) * codec.tailBytes),
    };
  });
  const parts = frames.flatMap(({ body, tail }) => [body, tail]);
  const wanted = parts.reduce((sum, part) => sum + part.length, 0);
  if (readvSync(fd, parts, frameOffset(firstChunk, codec.tailBytes)) !== wanted) return 0;
  const bad = frames.findIndex(({ body, tail, place }) => !codec.open(body, tail, place));
  return bad === -1 ? chunks : bad;
}

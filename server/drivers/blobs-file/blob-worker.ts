/** A worker thread: everything of a blob that costs processor time or waits for the disk. */
import { closeSync, fstatSync, openSync, readvSync } from 'node:fs';
import { unlink } from 'node:fs/promises';
import { join } from 'node:path';
import { workerData } from 'node:worker_threads';
import { digestsOf } from '../../../libs/s3-wire/index.ts';
import { unlessMissing } from '../../platform/files.ts';
import { asFault, BlobFault } from '../blob-frames/blob-fault.ts';
import {
  blobPath,
  CHUNK_BYTES,
  chunkCount,
  chunkLength,
  fileLength,
  frameOffset,
} from '../blob-frames/blob-format.ts';
import { answerDigests, piecesOf } from '../blob-frames/digest-streams.ts';
import { frameCodec } from '../blob-frames/frame-codec.ts';
import { answerRequests } from '../blob-frames/thread-requests.ts';
import { AlignedAreas } from './aligned-areas.ts';
import { CachedAppender, DirectAppender } from './appender.ts';
import { BlobDirectories } from './blob-directories.ts';
import type {
  BlobReply,
  BlobRequest,
  BlobThreadSetup,
  DiscardRequest,
  ReadRequest,
  StoreRequest,
} from './blob-messages.ts';
import { FrameWriter } from './frame-writer.ts';

const { directory, directWrites } = workerData as BlobThreadSetup;
const directories = new BlobDirectories(directory);
const areas = new AlignedAreas(directory, directWrites);
const files = new Map<number, { readonly name: string; readonly writer: FrameWriter }>();

async function store(request: StoreRequest): Promise<BlobReply> {
  const { stream, create, slot, bytes, last, cuts } = request;
  if (create !== null) {
    // A single slot is faster through the page cache.
    const direct = !last && areas.usable;
    const fd = directories.create(create.name, direct);
    const appender = direct ? new DirectAppender(fd, areas) : new CachedAppender(fd);
    const writer = new FrameWriter(fd, appender, frameCodec(create.name, create.dataKey));
    files.set(stream, { name: create.name, writer });
  }
  const file = files.get(stream);
  // The request that should have created the file failed, and its reply said why.
  if (file === undefined) throw new BlobFault({ kind: 'write', code: 'EBADF', message: 'no such stream' });
  const plain = new Uint8Array(slot, 0, bytes);
  await file.writer.append(plain, last);
  if (!last) return {};
  const durable = makeDurable(file.name, file.writer);
  // Computed while the disk works.
  const digests = digestsOf(plain, request.digests);
  // A longer blob's are hashed by the threads of its digests.
  const pieces = create === null || cuts.length === 0 ? [] : piecesOf(plain, cuts).pieces;
  await durable;
  files.delete(stream);
  return { digests, pieces };
}

/** In any order: the file is unknown until its row is committed, after both. */
async function makeDurable(name: string, writer: FrameWriter): Promise<void> {
  await Promise.all([writer.sync(), directories.sync(name)]);
  await writer.close();
}

async function discard({ stream, remove }: DiscardRequest): Promise<BlobReply> {
  const file = files.get(stream);
  files.delete(stream);
  await file?.writer.close();
  await unlink(join(directory, blobPath(remove))).catch(unlessMissing);
  return {};
}

function answer(request: BlobRequest): BlobReply | Promise<BlobReply> {
  switch (request.op) {
    case 'store':
      return store(request);
    case 'digest':
    case 'drop digests':
      return answerDigests(request);
    case 'discard':
      return discard(request);
    case 'read':
      return readChunks(directory, request);
    case 'close':
      closeSync(request.fd);
      return {};
  }
}

answerRequests(answer, (error, { op }: BlobRequest) => asFault(error, op === 'read' ? 'read' : 'write'));

/** Answers a ReadRequest. Throws system errors, after closing the file if this call opened it. */
function readChunks(root: string, request: ReadRequest): BlobReply {
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
  // Added or removed bytes would shift frames, so the whole file is rejected.
  if (fstatSync(fd).size !== fileLength(sizeBytes, codec.tailBytes)) return 0;
  const lastChunk = chunkCount(sizeBytes) - 1;
  const tails = Buffer.allocUnsafe(chunks * codec.tailBytes);
  const frames = Array.from({ length: chunks }, (_, i) => {
    const index = firstChunk + i;
    return {
      position: { index, last: index === lastChunk },
      body: new Uint8Array(slot, i * CHUNK_BYTES, chunkLength(sizeBytes, index)),
      tail: tails.subarray(i * codec.tailBytes, (i + 1) * codec.tailBytes),
    };
  });
  const parts = frames.flatMap(({ body, tail }) => [body, tail]);
  const wanted = parts.reduce((sum, part) => sum + part.length, 0);
  if (readvSync(fd, parts, frameOffset(firstChunk, codec.tailBytes)) !== wanted) return 0;
  const bad = frames.findIndex(({ body, tail, position }) => !codec.open(body, tail, position));
  return bad === -1 ? chunks : bad;
}

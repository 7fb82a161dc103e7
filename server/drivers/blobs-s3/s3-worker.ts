/** A worker thread: seals blobs and sends them to S3, reads and verifies them. */
import { workerData } from 'node:worker_threads';
import { detachBuffer } from '../../platform/buffers.ts';
import { systemClock } from '../../platform/clock.ts';
import { asFault } from '../blob-frames/blob-fault.ts';
import { answerDigests } from '../blob-frames/digest-streams.ts';
import { answerRequests } from '../blob-frames/thread-requests.ts';
import { S3Counters } from '../s3-client/s3-counters.ts';
import { s3Fault } from '../s3-client/s3-fault.ts';
import { S3Objects } from '../s3-client/s3-objects.ts';
import { S3Requests } from '../s3-client/s3-requests.ts';
import { RangeReading } from './range-reading.ts';
import type {
  PartRequest,
  PutRequest,
  ReadRequest,
  S3ThreadReply,
  S3ThreadRequest,
  S3ThreadSetup,
  SealRequest,
} from './s3-messages.ts';
import { keyOf, SealedBlob } from './sealed-blob.ts';

const { address, counters: memory } = workerData as S3ThreadSetup;
const counters = new S3Counters(memory);
const objects = new S3Objects(new S3Requests({ address, counters, clock: systemClock }), address.prefix);
const blobs = new Map<number, SealedBlob>();
const readings = new Map<number, RangeReading>();

function seal({ stream, name, dataKey, slot, bytes, last }: SealRequest): S3ThreadReply {
  const blob = blobs.get(stream) ?? new SealedBlob(name, dataKey);
  blobs.set(stream, blob);
  blob.seal(new Uint8Array(slot, 0, bytes), last);
  return {};
}

function sealed(stream: number): SealedBlob {
  const blob = blobs.get(stream);
  if (blob === undefined) throw s3Fault('away', 'the write has ended');
  return blob;
}

async function put({ stream, patience }: PutRequest): Promise<S3ThreadReply> {
  const blob = sealed(stream);
  const { signal } = blob;
  const body = blob.take(0);
  await blob.using(objects.put(blob.key, body, { ...patience, signal }));
  body.parts.forEach(detachBuffer);
  blobs.delete(stream);
  return {};
}

async function storePart({ stream, uploadId, part, patience }: PartRequest): Promise<S3ThreadReply> {
  const blob = sealed(stream);
  const { signal } = blob;
  const body = blob.take(part);
  const upload = { uploadId, number: part + 1, body };
  const etag = await blob.using(objects.part(blob.key, upload, { ...patience, signal }));
  body.parts.forEach(detachBuffer);
  return { etag };
}

async function discard(stream: number): Promise<S3ThreadReply> {
  await blobs.get(stream)?.discard();
  blobs.delete(stream);
  return {};
}

async function read(request: ReadRequest): Promise<S3ThreadReply> {
  const { stream, name, sizeBytes, dataKey } = request;
  let reading = readings.get(stream);
  if (reading === undefined) {
    reading = new RangeReading({ objects, counters, key: keyOf(name), name, sizeBytes, dataKey });
    readings.set(stream, reading);
  }
  return { goodChunks: await reading.read(request) };
}

function close(stream: number): S3ThreadReply {
  readings.get(stream)?.close();
  readings.delete(stream);
  return {};
}

answerRequests(
  (request: S3ThreadRequest): S3ThreadReply | Promise<S3ThreadReply> => {
    switch (request.op) {
      case 'seal':
        return seal(request);
      case 'put':
        return put(request);
      case 'part':
        return storePart(request);
      case 'digest':
      case 'drop digests':
        return answerDigests(request);
      case 'discard':
        return discard(request.stream);
      case 'read':
        return read(request);
      case 'close':
        return close(request.stream);
    }
  },
  (error) => asFault(error, 'write'),
);

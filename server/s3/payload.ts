/** The body, as `x-amz-content-sha256` describes it. */
import type { RawHeaders } from './canonical-request.ts';
import { S3Error } from './s3-error.ts';

export type Payload =
  | { readonly kind: 'hash' /** Lower-case hex. */; readonly sha256: string }
  | { readonly kind: 'unsigned' }
  | { readonly kind: 'chunked'; readonly signed: boolean; readonly trailer: boolean };

export const UNSIGNED_PAYLOAD = 'UNSIGNED-PAYLOAD';

const CHUNKED: ReadonlyMap<string, Payload> = new Map([
  ['STREAMING-AWS4-HMAC-SHA256-PAYLOAD', { kind: 'chunked', signed: true, trailer: false }],
  ['STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER', { kind: 'chunked', signed: true, trailer: true }],
  ['STREAMING-UNSIGNED-PAYLOAD-TRAILER', { kind: 'chunked', signed: false, trailer: true }],
]);

function refused(value: string): S3Error {
  const message =
    'x-amz-content-sha256 must be UNSIGNED-PAYLOAD, STREAMING-AWS4-HMAC-SHA256-PAYLOAD, ' +
    'STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER, STREAMING-UNSIGNED-PAYLOAD-TRAILER or a valid sha256 value.';
  return new S3Error('InvalidArgument', message, {
    fields: { ArgumentName: 'x-amz-content-sha256', ArgumentValue: value },
  });
}

/** Throws S3Error: NotImplemented for asymmetric signatures, InvalidArgument for any other unknown word. */
export function payloadOf(value: string): Payload {
  if (value === UNSIGNED_PAYLOAD) return { kind: 'unsigned' };
  if (/^[0-9a-f]{64}$/i.test(value)) return { kind: 'hash', sha256: value.toLowerCase() };
  const chunked = CHUNKED.get(value);
  if (chunked !== undefined) return chunked;
  if (value.startsWith('STREAMING-AWS4-ECDSA-P256-SHA256-PAYLOAD')) {
    throw new S3Error('NotImplemented', 'Asymmetric signatures (SigV4a) are not offered here');
  }
  throw refused(value);
}

/** The payload of a presigned request is what its signed query says, never what an unsigned header says. */
export function presignedPayload(inQuery: string | undefined, headers: RawHeaders): Payload {
  const streaming = headers.get('x-amz-content-sha256')?.find((value) => value.startsWith('STREAMING-'));
  const payload = payloadOf(inQuery ?? UNSIGNED_PAYLOAD);
  if (payload.kind === 'chunked') throw refused(inQuery ?? '');
  // Its body would be stored with the frames.
  if (streaming !== undefined) throw refused(streaming);
  return payload;
}

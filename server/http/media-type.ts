/** What a body must be, said so that the one who sent it knows what to send instead. */
import type { IncomingHttpHeaders } from 'node:http';
import { AppError } from '../platform/errors.ts';

/** Throws `unsupported_media_type` for a form where JSON is wanted. Before the body is read. */
export function assertNoForm({ 'content-type': type }: IncomingHttpHeaders): void {
  if (/^multipart\//i.test(type ?? '')) throw notJson(type);
}

/** Throws `unsupported_media_type` unless the body is a form. Before the body is read. */
export function assertMultipart({ 'content-type': type }: IncomingHttpHeaders): void {
  if (/^multipart\/form-data\s*;/i.test(type ?? '')) return;
  const detail = `The body must be multipart/form-data with a boundary, ${butIs(type)}`;
  throw new AppError('unsupported_media_type', detail, {
    hint: 'curl sends such a form with -F file=@photo.jpg',
  });
}

/** `unsupported_media_type` for a body of this type where JSON is wanted. */
export function notJson(type: string | undefined): AppError {
  const form = type === 'application/x-www-form-urlencoded' ? " (curl's own choice with -d)" : '';
  const detail = `The body must be application/json, ${butIs(type)}${form}`;
  const hint =
    "Send JSON and the header Content-Type: application/json; curl: -H 'Content-Type: application/json'";
  return new AppError('unsupported_media_type', detail, { hint });
}

function butIs(type: string | undefined): string {
  return type === undefined ? 'and the request names no Content-Type' : `not ${type.slice(0, 100)}`;
}

/** Throws `unsupported_media_type` for a compressed body. */
export function assertNotEncoded({ 'content-encoding': encoding }: IncomingHttpHeaders): void {
  if (encoding === undefined || encoding === 'identity') return;
  throw new AppError(
    'unsupported_media_type',
    `The body must not be compressed, and is ${encoding.slice(0, 100)}`,
  );
}

/** True when the head says that a body follows. */
export function announcesBody(headers: IncomingHttpHeaders): boolean {
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0;
}

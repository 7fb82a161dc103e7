/** Sends bytes with validators and ranges (RFC 9110 §13–15), with back-pressure. */
import type { ServerResponse } from 'node:http';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { AppError } from '../../platform/errors.ts';

export interface SentContent {
  readonly sizeBytes: number;
  /** Without quotes. */
  readonly etag: string;
  readonly mimeType: string;
  /** ms since 1970. */
  readonly createdAt: number;
  /** The bytes, if they are in memory. */
  readonly inline: Uint8Array | null;
  /** Content-Disposition. */
  readonly disposition: string;
  /** Cache-Control. */
  readonly caching: string;
  /** Passes on verified bytes; each chunk's memory is reused when the sink's promise settles. */
  read(range: ByteRange, sink: (chunk: Uint8Array) => Promise<void>, signal: AbortSignal): Promise<void>;
  /** Called before the first byte is sent in answer to GET. */
  onBegin(): void;
  /** Called with the number of bytes passed to the kernel, as they go. */
  onSent(bytes: number): void;
}

/**
 * Handles GET or HEAD. Resolves when the last byte was passed to the kernel, or the client has disconnected.
 */
export async function sendContent(
  request: FastifyRequest,
  reply: FastifyReply,
  content: SentContent,
): Promise<void> {
  const etag = `"${content.etag}"`;
  const lastModified = new Date(content.createdAt).toUTCString();
  const headers = request.responseHeaders;
  headers['content-disposition'] = content.disposition;
  headers['cache-control'] = content.caching;
  headers.etag = etag;
  headers['last-modified'] = lastModified;
  headers['accept-ranges'] = 'bytes';
  if (notModified(request, etag, content.createdAt)) {
    end(reply, { status: 304, headers });
    return;
  }
  // Range is defined only for GET (RFC 9110 §14.2).
  const range =
    request.method === 'GET' ? requestedRange(request, content.sizeBytes, [etag, lastModified]) : undefined;
  const { start, end: stop } = range ?? { start: 0, end: content.sizeBytes };
  headers['content-type'] = content.mimeType;
  headers['content-length'] = String(stop - start);
  if (range) headers['content-range'] = `bytes ${start}-${stop - 1}/${content.sizeBytes}`;
  const head = { status: range ? 206 : 200, headers };
  if (request.method !== 'HEAD' && content.inline) {
    content.onBegin();
    // Nothing is sent to a client that has disconnected.
    const isThere = !reply.raw.destroyed;
    end(reply, head, content.inline.subarray(start, stop));
    if (isThere) content.onSent(stop - start);
  } else {
    const read: Read = (sink, signal) => {
      content.onBegin();
      const counting = async (chunk: Uint8Array) => {
        await sink(chunk);
        content.onSent(chunk.length);
      };
      return content.read({ start, end: stop }, counting, signal);
    };
    await sendStream(request, reply, { ...head, read });
  }
}

interface Head {
  readonly status: number;
  readonly headers: Record<string, string>;
}

function end(reply: FastifyReply, { status, headers }: Head, body?: Uint8Array): void {
  reply.hijack();
  reply.raw.writeHead(status, headers);
  if (body === undefined) {
    reply.raw.end();
    return;
  }
  // A one-byte string is sent with the headers in one write, unlike a Buffer.
  const bytes = Buffer.from(body.buffer, body.byteOffset, body.length);
  reply.raw.end(bytes.toString('latin1'), 'latin1');
}

/** Passes on bytes; see SentContent.read. */
export type Read = (sink: (chunk: Uint8Array) => Promise<void>, signal: AbortSignal) => Promise<void>;

/** Handles GET or HEAD with the bytes from `read`, whose number may be unknown. */
export async function sendStream(
  request: FastifyRequest,
  reply: FastifyReply,
  { status, headers, read }: Head & { readonly read: Read },
): Promise<void> {
  if (request.method === 'HEAD') return end(reply, { status, headers });
  await streamBody(reply.raw, read, () => {
    reply.hijack();
    reply.raw.writeHead(status, headers);
  });
}

/** Sends the bytes of `read`. `begin` writes the head before the first byte. */
export async function streamBody(raw: ServerResponse, read: Read, begin: () => void): Promise<void> {
  const gone = new AbortController();
  const leave = () => gone.abort(new AppError('bad_http', 'The client disconnected'));
  raw.on('close', leave);
  let isOpen = false;
  // Headers wait for the first verified bytes, so that early damage still gets a proper error response.
  const open = () => {
    if (isOpen) return;
    isOpen = true;
    begin();
  };
  try {
    await read((chunk) => {
      open();
      return new Promise((resolve, reject) =>
        raw.write(chunk, (error?: Error | null) => {
          if (!error) return resolve();
          // Runs before the close event, if the connection was cut during the write.
          leave();
          reject(error);
        }),
      );
    }, gone.signal);
    open();
    raw.end();
  } catch (error) {
    if (gone.signal.aborted || raw.destroyed) return;
    // Closing the connection is the only way to report an error after the headers were sent.
    if (raw.headersSent) raw.destroy();
    throw error;
  } finally {
    raw.off('close', leave);
  }
}

/** True if a header such as If-Match contains `etag`, including quotes. */
function matches(header: string, etag: string): boolean {
  return (
    header === '*' || header.split(',').some((candidate) => candidate.trim().replace(/^W\//, '') === etag)
  );
}

/** Throws `precondition_failed`. Dates have whole seconds. */
function notModified(request: FastifyRequest, etag: string, createdAt: number): boolean {
  const { headers } = request.raw;
  const created = Math.floor(createdAt / 1000) * 1000;
  if (headers['if-match'] !== undefined) {
    if (!matches(headers['if-match'], etag)) {
      throw new AppError('precondition_failed', 'The ETag of the object does not match If-Match');
    }
  } else if (created > Date.parse(headers['if-unmodified-since'] ?? '')) {
    throw new AppError('precondition_failed', 'The object was changed after If-Unmodified-Since');
  }
  const noneMatch = headers['if-none-match'];
  if (noneMatch !== undefined) return matches(noneMatch, etag);
  return created <= Date.parse(headers['if-modified-since'] ?? '');
}

/** `validators`: the values of If-Range that make the range apply. */
function requestedRange(
  request: FastifyRequest,
  sizeBytes: number,
  validators: readonly string[],
): ByteRange | undefined {
  const condition = request.raw.headers['if-range'];
  if (typeof condition === 'string' && !validators.includes(condition)) return undefined;
  const range = parseRange(request.raw.headers.range, sizeBytes);
  if (range !== 'unsatisfiable') return range;
  throw new AppError('range_not_satisfiable', `The object has ${sizeBytes} bytes`, {
    headers: { 'content-range': `bytes */${sizeBytes}` },
  });
}

export interface ByteRange {
  /** First byte. */
  readonly start: number;
  /** One past the last. */
  readonly end: number;
}

/**
 * The part of `sizeBytes` that a Range header requests; 'unsatisfiable' for 416; undefined to send
 * everything: no header, another unit, bad syntax, or several ranges (which a server may ignore).
 */
export function parseRange(
  header: string | undefined,
  sizeBytes: number,
): ByteRange | 'unsatisfiable' | undefined {
  const match = /^bytes=(\d*)-(\d*)$/.exec(header?.trim() ?? '');
  if (!match || (match[1] === '' && match[2] === '')) return undefined;
  if (match[1] === '') {
    const suffix = Number(match[2]);
    return suffix === 0 || sizeBytes === 0
      ? 'unsatisfiable'
      : { start: Math.max(0, sizeBytes - suffix), end: sizeBytes };
  }
  const start = Number(match[1]);
  const last = match[2] === '' ? Number.POSITIVE_INFINITY : Number(match[2]);
  if (last < start) return undefined;
  return start >= sizeBytes ? 'unsatisfiable' : { start, end: Math.min(last + 1, sizeBytes) };
}

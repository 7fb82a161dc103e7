/** Responses, streamed lists, and problem details (RFC 9457) with the members of the contract §2. */
import type { Duplex } from 'node:stream';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { AppError, ERRORS, type ErrorCode, type FieldProblem } from '../platform/errors.ts';
import { JsonText } from '../platform/json/json.ts';
import { namedObject, Type } from '../platform/json/json-schema.ts';
import { announcesBody, dropRest } from './bodies/body.ts';
import type { Door } from './exchange.ts';
import { JSON_TYPE, type RouteResponse } from './route.ts';

const LINES_TYPE = 'application/x-ndjson; charset=utf-8';
export const PROBLEM_TYPE = 'application/problem+json; charset=utf-8';

export interface Problem {
  /** Relative to the API: the docs page explains every code. */
  readonly type: string;
  readonly title: string;
  readonly status: number;
  readonly detail: string;
  readonly code: ErrorCode;
  readonly request_id: string;
  readonly hint?: string;
  readonly errors?: readonly FieldProblem[];
  /** Repeats `detail`, for clients that read this member. */
  readonly error: string;
}

const FieldProblemShape = namedObject('FieldProblem', { field: Type.String(), message: Type.String() });

/** The schema of Problem, for openapi.json. */
export const PROBLEM_SCHEMA = namedObject(
  'Problem',
  {
    type: Type.String(),
    title: Type.String(),
    status: Type.Integer(),
    detail: Type.String({ description: 'Names the rule that was violated' }),
    code: Type.String({ description: 'Stable error code', enum: Object.keys(ERRORS) }),
    request_id: Type.String(),
    hint: Type.Optional(Type.String({ description: 'How to fix the problem' })),
    errors: Type.Optional(Type.Array(FieldProblemShape)),
    error: Type.String({ description: 'Same text as detail' }),
  },
  { description: 'RFC 9457 problem details' },
);

/** The body for `error`. Never shows its cause. */
export function toProblem(error: AppError, requestId: string): Problem {
  const { http, title } = ERRORS[error.code];
  return {
    ...error.extra,
    type: `/api/docs#error-${error.code}`,
    title,
    status: http,
    detail: error.message,
    code: error.code,
    request_id: requestId,
    ...(error.hint === undefined ? {} : { hint: error.hint }),
    ...(error.fields === undefined ? {} : { errors: error.fields }),
    error: error.message,
  };
}

/** Headers that belong to the error itself. 429 and 503 always carry Retry-After. */
export function problemHeaders(error: AppError): Record<string, string> {
  const headers: Record<string, string> = { ...error.headers };
  const { http } = ERRORS[error.code];
  const retryAfter = error.retryAfterSeconds ?? (http === 429 || http === 503 ? 5 : undefined);
  if (retryAfter !== undefined) headers['retry-after'] = String(Math.max(1, Math.ceil(retryAfter)));
  if (http === 401) headers['www-authenticate'] ??= 'Bearer realm="cloudlet"';
  return headers;
}

/** Fastify's errors before a handler runs. Other unknown errors are internal and stay private. */
const FRAMEWORK_ERRORS: Readonly<Record<string, [ErrorCode, string]>> = {
  FST_ERR_CTP_INVALID_MEDIA_TYPE: ['unsupported_media_type', 'This call does not accept the Content-Type'],
  FST_ERR_CTP_INVALID_CONTENT_LENGTH: ['bad_http', 'The body does not match its Content-Length'],
  FST_ERR_BAD_URL: ['bad_http', 'The path is not a valid percent-encoded URL'],
  FST_ERR_MAX_PARAM_LENGTH: ['not_found', 'A path segment is too long'],
  FST_ERR_ASYNC_CONSTRAINT: ['bad_http', 'Malformed request'],
};

/** Converts any thrown value to an AppError; unknown ones become `internal_error`. */
export function toAppError(error: unknown): AppError {
  if (error instanceof AppError) return error;
  const code = error instanceof Error && 'code' in error ? String(error.code) : '';
  const known = FRAMEWORK_ERRORS[code];
  if (known) return new AppError(known[0], known[1], { cause: error });
  if (code === 'ENOSPC' || code === 'EDQUOT') {
    return new AppError('out_of_space', 'The disk is full; nothing was stored', { cause: error });
  }
  if (code === 'EMFILE' || code === 'ENFILE') {
    return new AppError('insufficient_capacity', 'The process cannot open more files', {
      hint: 'Try again; the operator can raise the open file limit (LimitNOFILE of the service)',
      retryAfterSeconds: 5,
      cause: error,
    });
  }
  return new AppError('internal_error', 'Internal error; the request id identifies the log entry', {
    cause: error,
  });
}

export function contentDisposition(kind: 'attachment' | 'inline', objectName: string): string {
  const name = objectName.slice(objectName.lastIndexOf('/') + 1) || 'download';
  // Characters that could end the header or the quotes are replaced; the extended form keeps them.
  const ascii = name.replace(/[^\x20-\x7e]|["\\]/gu, '_');
  const plain = /^[A-Za-z0-9!#$%&'*+.^_`|~-]+$/.test(ascii) ? ascii : `"${ascii}"`;
  const extended = ascii === name ? '' : `filename*=UTF-8''${encodeExtended(name)}; `;
  return `${kind}; ${extended}filename=${plain}`;
}

/** RFC 8187 ext-value: percent-encoded except attr-char. */
function encodeExtended(name: string): string {
  return encodeURIComponent(name).replace(/['()*]/g, (c) => `%${c.charCodeAt(0).toString(16).toUpperCase()}`);
}

export const Reason = namedObject('Reason', {
  code: Type.String({ description: 'Stable code' }),
  message: Type.String(),
});

/** From this size on, a body is encoded once, before it is counted and sent. */
const LARGE_CHARACTERS = 16 * 1024;
/** From this size on, the chunks of a body are sent one by one instead of joined. */
const LARGE_BYTES = 64 * 1024;
/**
 * Bytes sent per turn of the event loop: the kernel copies them in half a millisecond, which blocks
 * other requests.
 */
const PART_BYTES = 512 * 1024;

const LINE_END = Buffer.from('\n');

function bodyOf({ contentType, body }: RouteResponse): string | Uint8Array | JsonText {
  if (body instanceof JsonText) {
    const whole = new JsonText([...body.pieces, LINE_END], body.memory);
    return whole.length < LARGE_BYTES ? Buffer.concat(whole.pieces) : whole;
  }
  const line = lineOf(contentType, body);
  return line.length < LARGE_CHARACTERS ? line : Buffer.from(line);
}

/** JSON responses end with a line break, so that a terminal's prompt starts on a new line. */
function lineOf(contentType: string, body: string): string {
  return /^application\/(?:problem\+)?json\b/.test(contentType) ? `${body}\n` : body;
}

/**
 * Bypasses Fastify, whose hooks and serializers are not used here and cost a twentieth of a small
 * request.
 */
export function sendResponse(
  door: Pick<Door, 'countUnread'>,
  reply: FastifyReply,
  response: RouteResponse,
): void {
  const { principal, responseHeaders } = reply.request;
  const body = bodyOf(response);
  const bytes = body instanceof JsonText ? body.length : Buffer.byteLength(body);
  // Responses to callers without a credential are shared texts, so they take no memory each.
  if (principal.via !== 'nobody') door.countUnread(bytes, reply.raw, principal.accountId);
  responseHeaders['content-type'] = response.contentType;
  responseHeaders['content-length'] = String(bytes);
  reply.hijack();
  reply.raw.writeHead(response.status, responseHeaders);
  if (body instanceof JsonText) sendParts(reply.raw, body).catch(() => reply.raw.destroy());
  else reply.raw.end(body);
}

/** Other requests are answered between the chunks. */
async function sendParts(raw: FastifyReply['raw'], text: JsonText): Promise<void> {
  raw.once('close', () => text.free());
  for (const piece of text.pieces)
    for (let at = 0; at < piece.length; at += PART_BYTES) {
      if (raw.destroyed) return;
      if (!raw.write(piece.subarray(at, at + PART_BYTES))) await drained(raw);
    }
  raw.end();
}

/** Sends the problem document for `thrown`. */
export function sendProblem(door: Pick<Door, 'refuse'>, reply: FastifyReply, thrown: unknown): void {
  const { request } = reply;
  const error = toAppError(thrown);
  const send = () => {
    const problem = toProblem(error, request.id);
    reply.headers({ ...request.responseHeaders, ...problemHeaders(error), 'content-type': PROBLEM_TYPE });
    keepOpen(request, reply);
    reply.code(problem.status).send(`${JSON.stringify(problem)}\n`);
  };
  door.refuse(request, reply.raw, { error, send });
}

/**
 * Fastify would close the connection at once after a body that it could not read; a shutdown must
 * still close it. If the header is missing there is nothing to remove: removing it would remove
 * Node's own, and the headers would reveal whether the body had arrived by then.
 */
function keepOpen(request: FastifyRequest, reply: FastifyReply): void {
  const bodyComes = !request.raw.complete && announcesBody(request.headers);
  const isStopping = reply.raw.hasHeader('connection');
  if (reply.hasHeader('connection') && (bodyComes || !isStopping)) reply.removeHeader('connection');
  if (bodyComes) dropRest(request.raw);
}

/** Time for a client to read the reason of a refusal. */
const REFUSAL_MS = 5000;

/** Sends the last response on a connection, then closes it, even if the client keeps its half open. */
export function endWith(socket: Duplex, response: string): void {
  socket.end(response);
  setTimeout(() => socket.destroy(), REFUSAL_MS).unref();
}

/** A complete response as text, for sockets without a ServerResponse. `further`: additional headers. */
export function rawProblem(
  error: AppError,
  requestId: string,
  further: Readonly<Record<string, string>> = {},
): string {
  const problem = toProblem(error, requestId);
  const body = `${JSON.stringify(problem)}\n`;
  const headers = {
    ...further,
    ...problemHeaders(error),
    'content-type': PROBLEM_TYPE,
    'content-length': String(Buffer.byteLength(body)),
    'x-request-id': requestId,
    'x-content-type-options': 'nosniff',
    connection: 'close',
  };
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  return `HTTP/1.1 ${problem.status} ${problem.title}\r\n${lines.join('')}\r\n${body}`;
}

const FLUSH_CHARACTERS = 64 * 1024;

/**
 * `entries` yields JSON texts. The first is awaited before the headers are sent, so that an early error is
 * still a proper problem; a later one cuts the connection. Resolves undefined: the response is sent.
 */
export async function streamList(
  request: FastifyRequest,
  reply: FastifyReply,
  entries: AsyncIterable<string>,
): Promise<undefined> {
  return stream(request, reply, { entries, begin: '[', between: ',', end: ']\n', type: JSON_TYPE });
}

/** Like streamList, with one entry per line. */
export async function streamLines(
  request: FastifyRequest,
  reply: FastifyReply,
  entries: AsyncIterable<string>,
): Promise<undefined> {
  return stream(request, reply, { entries, begin: '', between: '\n', end: '\n', type: LINES_TYPE });
}

interface Streamed {
  readonly entries: AsyncIterable<string>;
  readonly begin: string;
  readonly between: string;
  readonly end: string;
  readonly type: string;
}

async function stream(
  request: FastifyRequest,
  reply: FastifyReply,
  { entries, begin, between, end, type }: Streamed,
): Promise<undefined> {
  const iterator = entries[Symbol.asyncIterator]();
  let next = await iterator.next();
  reply.hijack();
  const { raw } = reply;
  raw.writeHead(200, { ...request.responseHeaders, 'content-type': type });
  try {
    if (request.method === 'HEAD') {
      raw.end();
      return undefined;
    }
    let text = begin;
    let separator = '';
    while (!next.done) {
      text += separator + next.value;
      separator = between;
      if (text.length >= FLUSH_CHARACTERS) {
        const ready = raw.write(text);
        text = '';
        if (!ready) await drained(raw);
      }
      if (raw.destroyed) return undefined;
      next = await iterator.next();
    }
    raw.end(separator === '' && begin === '' ? '' : text + end);
  } catch (error) {
    raw.destroy(error as Error);
  } finally {
    await iterator.return?.();
  }
  return undefined;
}

/** Resolves when the response can accept more data, or is closed. */
function drained(raw: FastifyReply['raw']): Promise<void> {
  return new Promise((resolve) => {
    // Closed while waiting for the next entry: neither event will occur.
    if (raw.destroyed) return resolve();
    const done = () => {
      raw.off('drain', done);
      raw.off('close', done);
      resolve();
    };
    raw.on('drain', done);
    raw.on('close', done);
  });
}

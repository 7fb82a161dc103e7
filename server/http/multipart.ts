/** Reads a multipart form as a stream: fields in any order, at most one file, back-pressure kept. */
import type { IncomingMessage } from 'node:http';
import { Busboy } from '@fastify/busboy';
import { AppError, invalidField } from '../errors.ts';

export interface FilePart {
  /** As sent, without folders; empty when the client gave none. */
  readonly fileName: string;
  /** As sent; `application/octet-stream` or `text/plain` often only mean "unknown". */
  readonly mimeType: string;
}

/** Where the bytes of the file part go. */
export interface FileTarget {
  /** The bytes are copied before the call returns; a promise asks to wait. */
  write(chunk: Uint8Array): Promise<void> | undefined;
}

export interface Form {
  readonly fields: ReadonlyMap<string, string>;
  readonly file: FilePart | undefined;
}

/**
 * Taken from one form before others get their turn. A fast sender has up to 2 MiB ready at once, and a
 * dozen of them would keep the event loop for half a second.
 */
const TURN_BYTES = 64 * 1024;
const nextTurn = () => new Promise<void>((resolve) => setImmediate(resolve));

const LIMITS = { fields: 20, files: 2, parts: 24, fieldNameSize: 256, fieldSize: 64 * 1024, headerPairs: 64 };

/**
 * Resolves when the whole form was read and every byte of the file handed to `target`. Rejects with
 * AppError `invalid_multipart` or `invalid_request` (two files, a field twice, a file not named `file`),
 * or whatever `target.write` threw. The rest of the body is left to the caller.
 */
export function readForm(request: IncomingMessage, target: FileTarget): Promise<Form> {
  return new Promise((resolve, reject) => {
    const parser = openParser(request);
    const fields = new Map<string, string>();
    let file: FilePart | undefined;
    let settled = false;
    const fail = (error: unknown) => {
      if (settled) return;
      settled = true;
      request.off('close', onClose);
      request.unpipe(parser);
      reject(error);
    };
    const malformed = (cause: unknown) => fail(unreadable(cause));
    const onClose = () => {
      if (!request.complete) fail(new AppError('bad_http', 'The client went away in the middle of the body'));
    };
    request.on('close', onClose);
    request.on('error', malformed);
    parser.on('error', malformed);
    for (const limit of ['partsLimit', 'filesLimit', 'fieldsLimit'] as const) {
      parser.on(limit, () => fail(new AppError('invalid_multipart', 'The form has too many parts')));
    }
    parser.on('field', (name, value, nameTruncated, valueTruncated) => {
      if (nameTruncated || valueTruncated) fail(invalidField(name, 'is longer than 64 KiB'));
      else if (fields.has(name)) fail(invalidField(name, 'is given twice'));
      else fields.set(name, value);
    });
    parser.on('file', (name, stream, fileName, _encoding, mimeType) => {
      stream.on('error', malformed);
      const problem = fileProblem(name, file);
      if (problem) {
        stream.resume();
        fail(problem);
        return;
      }
      file = { fileName: fileName ?? '', mimeType };
      let taken = 0;
      stream.on('data', (chunk: Buffer) => {
        if (settled) return;
        try {
          taken += chunk.length;
          const waiting = target.write(chunk) ?? (taken >= TURN_BYTES ? nextTurn() : undefined);
          if (waiting === undefined) return;
          taken = 0;
          stream.pause();
          waiting.then(() => stream.resume(), fail);
        } catch (error) {
          fail(error);
        }
      });
    });
    parser.on('finish', () => {
      if (settled) return;
      settled = true;
      request.off('close', onClose);
      resolve({ fields, file });
    });
    request.pipe(parser);
  });
}

/** Throws `invalid_multipart` when the Content-Type names no boundary. */
function openParser(request: IncomingMessage) {
  try {
    const contentType = request.headers['content-type'] ?? '';
    return new Busboy({ headers: { 'content-type': contentType }, limits: LIMITS, defCharset: 'utf8' });
  } catch (cause) {
    throw unreadable(cause);
  }
}

function unreadable(cause: unknown): AppError {
  const why = cause instanceof Error ? cause.message : 'it is malformed';
  return new AppError('invalid_multipart', `The form cannot be read: ${why}`, { cause });
}

function fileProblem(name: string, earlier: FilePart | undefined): AppError | undefined {
  if (earlier) return invalidField('file', 'only one file may be sent in one form');
  if (name !== 'file') return invalidField(name, 'the file part must be named "file"');
  return undefined;
}

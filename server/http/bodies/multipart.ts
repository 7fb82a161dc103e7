/** Reads a multipart form as a stream: fields in any order, at most one file, with back-pressure. */
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import type { FastifyInstance } from 'fastify';
import { pumpBody } from '../../platform/concurrency.ts';
import { AppError, invalidField } from '../../platform/errors.ts';
import { butIs } from './body.ts';
import {
  boundaryOf,
  decodeText,
  type FormEvents,
  FormParser,
  MalformedForm,
  type PartHead,
} from './form-parser.ts';

export interface FilePart {
  /** The file name as sent, without folders; empty: none. */
  readonly fileName: string;
  /** The type as sent; `application/octet-stream` or `text/plain` often only mean "unknown". */
  readonly mimeType: string;
  /** The charset as sent with the type. */
  readonly charset: string | undefined;
}

/** Destination of the file part. */
export interface FileTarget {
  /** The bytes are copied before the call returns; a promise asks the caller to wait. */
  write(chunk: Uint8Array): Promise<void> | undefined;
}

export interface Form {
  readonly fields: ReadonlyMap<string, string>;
  readonly file: FilePart | undefined;
}

/**
 * Bytes read from one form before other requests run. A fast sender has up to 2 MiB ready at once, and a
 * dozen of them would block the event loop for half a second.
 */
const TURN_BYTES = 512 * 1024;

const MAX_FIELDS = 20;
const MAX_FIELD_BYTES = 64 * 1024;
const MAX_NAME_LENGTH = 256;

/** Makes `app` leave forms to the handlers, which read them as streams. */
export function acceptForms(app: FastifyInstance): void {
  app.addContentTypeParser('multipart/form-data', (_request, _payload, done) => done(null));
}

/** Throws `unsupported_media_type` unless the body is a form. Call before the body is read. */
export function assertMultipart({ 'content-type': type }: IncomingHttpHeaders): void {
  if (/^multipart\/form-data\s*;/i.test(type ?? '')) return;
  const detail = `The body must be multipart/form-data with a boundary, ${butIs(type)}`;
  throw new AppError('unsupported_media_type', detail, {
    hint: 'curl sends such a form with -F file=@photo.jpg',
  });
}

/**
 * Resolves when the whole form was read and every byte of the file passed to `target`. Rejects with AppError
 * `invalid_multipart` or `invalid_request` (two files, a duplicate field, a file not named `file`), or the
 * error of `target.write`. The rest of the body is left to the caller.
 */
export async function readForm(request: IncomingMessage, target: FileTarget): Promise<Form> {
  const contents = new FormContents(target);
  const parser = openParser(request, contents);
  const take = (piece: Buffer) => {
    try {
      parser.write(piece);
    } catch (error) {
      // The target's pending promise rejects too when it is aborted, and nothing else awaits it.
      contents.takeWaiting()?.catch(() => {});
      throw error;
    }
    return contents.takeWaiting();
  };
  const lost = () => new AppError('bad_http', 'The client disconnected before its body was read');
  try {
    await pumpBody(request, { take, turnBytes: TURN_BYTES, lost });
    if (!parser.hasEnded) throw new MalformedForm('it is truncated');
  } catch (error) {
    throw error instanceof MalformedForm ? unreadable(error) : error;
  }
  return contents.finish();
}

/** Throws `invalid_multipart` if the Content-Type has no boundary. */
function openParser(request: IncomingMessage, events: FormEvents): FormParser {
  try {
    return new FormParser(boundaryOf(request.headers['content-type'] ?? ''), events);
  } catch (cause) {
    throw unreadable(cause as MalformedForm);
  }
}

function unreadable(cause: MalformedForm): AppError {
  return new AppError('invalid_multipart', `The form cannot be read: ${cause.message}`, { cause });
}

/** Collects the fields and passes the file on. */
class FormContents implements FormEvents {
  readonly #target: FileTarget;
  readonly #fields = new Map<string, string>();
  #file: FilePart | undefined;
  /** The field being read; undefined in the file part. */
  #field: PartHead | undefined;
  #value: Buffer[] = [];
  #valueBytes = 0;
  #waiting: Promise<void> | undefined;

  constructor(target: FileTarget) {
    this.#target = target;
  }

  /** Returns the pending promise of the target, once. */
  takeWaiting(): Promise<void> | undefined {
    const waiting = this.#waiting;
    this.#waiting = undefined;
    return waiting;
  }

  finish(): Form {
    return { fields: this.#fields, file: this.#file };
  }

  onPart(head: PartHead): void {
    const { name, fileName, type, charset } = head;
    if (name.length > MAX_NAME_LENGTH) throw new MalformedForm('the name of a field is too long');
    if (fileName === undefined && type !== 'application/octet-stream') {
      if (this.#fields.size === MAX_FIELDS) throw new MalformedForm('it has too many fields');
      if (this.#fields.has(name)) throw invalidField(name, 'is given twice');
      this.#field = head;
      return;
    }
    if (this.#file) throw invalidField('file', 'must be the only file of the form');
    if (name !== 'file') throw invalidField(name, 'the file part must be named "file"');
    this.#field = undefined;
    this.#file = { fileName: withoutFolders(fileName ?? ''), mimeType: type, charset };
  }

  onBytes(bytes: Buffer): void {
    if (this.#field === undefined) {
      this.#waiting = this.#target.write(bytes);
      return;
    }
    this.#valueBytes += bytes.length;
    if (this.#valueBytes > MAX_FIELD_BYTES) throw invalidField(this.#field.name, 'must not exceed 64 KiB');
    this.#value.push(Buffer.from(bytes));
  }

  onPartEnd(): void {
    if (this.#field === undefined) return;
    const { name, charset } = this.#field;
    this.#fields.set(name, decodeText(Buffer.concat(this.#value), charset ?? 'utf-8'));
    this.#value = [];
    this.#valueBytes = 0;
  }
}

/** The part after the last slash or backslash. */
function withoutFolders(path: string): string {
  const name = path.slice(Math.max(path.lastIndexOf('/'), path.lastIndexOf('\\')) + 1);
  return name === '.' || name === '..' ? '' : name;
}

/**
 * Reads the form of a browser's upload: the fields before the file, then the file as a stream.
 * Anything after the file is ignored.
 * https://docs.aws.amazon.com/AmazonS3/latest/API/sigv4-HTTPPOSTForms.html
 */
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http';
import { type ChecksumAlgorithm, S3Error } from '../../../libs/s3-wire/index.ts';
import {
  boundaryOf,
  decodeText,
  type FormEvents,
  FormParser,
  MalformedForm,
  type PartHead,
} from '../../http/bodies/form-parser.ts';
import {
  type Body,
  BodyChecks,
  pump,
  type ReceivedBody,
  type Receiver,
  type Sink,
} from '../sign/body-reader.ts';

/** The fields of a form, and the name of its file. */
export interface FormHead {
  /** By name in lower case. */
  readonly fields: ReadonlyMap<string, string>;
  /** Without folders; empty: none. */
  readonly fileName: string;
}

/** Limits of the file, both included. */
export interface FileSizes {
  readonly minBytes: number;
  readonly maxBytes: number;
}

const MAX_FIELD_BYTES = 20 * 1024;
/** Rough length of a field's boundary and headers. */
const FIELD_BYTES = 64;

export class FormReader implements FormEvents {
  readonly #fields = new Map<string, string>();
  readonly #head = Promise.withResolvers<FormHead>();
  /** Resolves when the sink of the file is set. */
  readonly #opened = Promise.withResolvers<void>();
  #fieldBytes = 0;
  #part: PartHead | undefined;
  #value: Buffer[] = [];
  #state: 'fields' | 'file' | 'after' = 'fields';
  #ended: Promise<void> = Promise.resolve();
  #waiting: Promise<void> | undefined;
  /** Bytes of the file that arrived with its headers. */
  #early: Buffer[] = [];
  #sink: Sink | undefined;

  /**
   * Resolves at the file. Rejects with S3Error MalformedPOSTRequest, InvalidArgument (no file, a
   * field twice), MaxPostPreDataLengthExceededError, IncompleteBody. Then end the reader with
   * abandon(), or read its file.
   */
  open(request: IncomingMessage, response: ServerResponse): Promise<FormHead> {
    const parser = this.#parserOf(request);
    if (request.headers.expect !== undefined) response.writeContinue();
    const take = (piece: Buffer) => {
      readably(() => parser.write(piece));
      const waiting = this.#waiting;
      this.#waiting = undefined;
      return waiting;
    };
    this.#ended = pump(request, take).then(() => {
      if (!parser.hasEnded) throw malformed('it is truncated');
      if (this.#state === 'fields') throw noFile();
    });
    this.#ended.catch(this.#head.reject);
    this.#opened.promise.catch(() => {});
    return this.#head.promise;
  }

  /** Ends the reading of a form that is refused. */
  abandon(error: unknown): void {
    this.#opened.reject(error);
  }

  /** The file, for an operation whose `headers` are the form's fields. */
  fileOf(headers: IncomingHttpHeaders, sizes: FileSizes): Body {
    const into: Body['into'] = (upload, fallback) => this.#into(upload, { headers, sizes, fallback });
    const whole = async () => {
      throw new S3Error('InvalidRequest', 'The body of this request is a form');
    };
    return { into, whole };
  }

  async #into(
    upload: Receiver,
    {
      headers,
      sizes,
      fallback,
    }: { headers: IncomingHttpHeaders; sizes: FileSizes; fallback: ChecksumAlgorithm },
  ): Promise<ReceivedBody> {
    const checks = new BodyChecks({ headers, payload: { kind: 'unsigned' } }, fallback);
    upload.digest(checks.names);
    const { minBytes, maxBytes } = sizes;
    let bytes = 0;
    const take = (chunk: Uint8Array) => {
      bytes += chunk.length;
      if (bytes > maxBytes) throw wrongSize('EntityTooLarge', bytes, sizes);
      return upload.write(chunk);
    };
    try {
      for (const chunk of this.#early) await take(chunk);
    } catch (error) {
      this.abandon(error);
      throw error;
    }
    this.#early = [];
    this.#sink = take;
    this.#opened.resolve();
    await this.#ended;
    if (bytes < minBytes) throw wrongSize('EntityTooSmall', bytes, sizes);
    const received = await upload.finish();
    return { received, sent: checks.assertMet(received.digests, new Map()) };
  }

  #parserOf({ headers }: IncomingMessage): FormParser {
    return readably(() => new FormParser(boundaryOf(headers['content-type'] ?? ''), this));
  }

  onPart(part: PartHead): void {
    if (this.#state === 'file') this.#state = 'after';
    if (this.#state !== 'fields') return;
    if (part.name.toLowerCase() !== 'file') {
      this.#part = part;
      this.#count(part.name.length + FIELD_BYTES);
      return;
    }
    this.#state = 'file';
    this.#waiting = this.#opened.promise;
    this.#head.resolve({ fields: this.#fields, fileName: withoutFolders(part.fileName ?? '') });
  }

  onBytes(bytes: Buffer): void {
    if (this.#state === 'after') return;
    if (this.#state === 'file') {
      if (this.#sink === undefined) this.#early.push(Buffer.from(bytes));
      else this.#waiting = this.#sink(bytes);
      return;
    }
    this.#count(bytes.length);
    this.#value.push(Buffer.from(bytes));
  }

  onPartEnd(): void {
    if (this.#state !== 'fields' || this.#part === undefined) {
      this.#state = 'after';
      return;
    }
    const { name, charset } = this.#part;
    const lower = name.toLowerCase();
    if (this.#fields.has(lower)) throw new S3Error('InvalidArgument', `The field ${name} is given twice`);
    this.#fields.set(lower, decodeText(Buffer.concat(this.#value), charset ?? 'utf-8'));
    this.#value = [];
  }

  #count(bytes: number): void {
    this.#fieldBytes += bytes;
    if (this.#fieldBytes > MAX_FIELD_BYTES) throw new S3Error('MaxPostPreDataLengthExceededError');
  }
}

function readably<T>(work: () => T): T {
  try {
    return work();
  } catch (error) {
    throw error instanceof MalformedForm ? malformed(error.message) : error;
  }
}

function malformed(why: string): S3Error {
  return new S3Error(
    'MalformedPOSTRequest',
    `The body of your POST request is not well-formed multipart/form-data: ${why}`,
  );
}

function noFile(): S3Error {
  return new S3Error('InvalidArgument', 'POST requires exactly one file upload per request.', {
    fields: { ArgumentName: 'file', ArgumentValue: '0' },
  });
}

function wrongSize(code: 'EntityTooLarge' | 'EntityTooSmall', bytes: number, sizes: FileSizes): S3Error {
  const fields =
    code === 'EntityTooLarge'
      ? { ProposedSize: String(bytes), MaxSizeAllowed: String(sizes.maxBytes) }
      : { ProposedSize: String(bytes), MinSizeAllowed: String(sizes.minBytes) };
  return new S3Error(code, undefined, { fields });
}

function withoutFolders(path: string): string {
  return path.slice(Math.max(path.lastIndexOf('/'), path.lastIndexOf('\\')) + 1);
}

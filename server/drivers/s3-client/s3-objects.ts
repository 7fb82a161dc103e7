/** The S3 operations that Cloudlet needs. Failures are BlobFaults of kind `s3`. */
import { createHash } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { bareDocument, children, readXml, textOf, type XmlElement } from '../../../libs/s3-wire/index.ts';
import { isS3Fault, s3Fault } from './s3-fault.ts';
import type { S3Limits, S3Requests } from './s3-requests.ts';

/** Bytes to store, with their MD5, base64. */
export interface S3Body {
  readonly parts: readonly Uint8Array[];
  readonly md5: string;
  /** Additional headers of the request. */
  readonly headers?: Readonly<Record<string, string>>;
}

export interface S3Entry {
  readonly key: string;
  readonly sizeBytes: number;
  /** ms since 1970. */
  readonly modifiedAt: number;
}

export interface S3Upload {
  readonly key: string;
  readonly uploadId: string;
  /** ms since 1970. */
  readonly startedAt: number;
}

export interface S3Head {
  readonly sizeBytes: number;
  readonly etag: string;
  /** 0: no lock is known of. */
  readonly lockedUntil: number;
}

export interface S3Retention {
  readonly mode: 'GOVERNANCE' | 'COMPLIANCE';
  /** ms since 1970. */
  readonly until: number;
}

const UNTIL = 'x-amz-object-lock-retain-until-date';

/** Headers of a request that stores a locked version. */
export function lockHeaders({ mode, until }: S3Retention): Record<string, string> {
  return { 'x-amz-object-lock-mode': mode, [UNTIL]: new Date(until).toISOString() };
}

/** Bytes that are stored unchanged. */
export function bodyOf(...parts: readonly Uint8Array[]): S3Body {
  const md5 = createHash('md5');
  for (const part of parts) md5.update(part);
  return { parts, md5: md5.digest('base64') };
}

/** Completing a large upload may take S3 this long before the first byte. */
const COMPLETE_SILENCE_MS = 120_000;

export class S3Objects {
  readonly #requests: S3Requests;
  /** Length of the prefix, which keys in listings begin with. */
  readonly #prefix: string;

  constructor(requests: S3Requests, prefix: string) {
    this.#requests = requests;
    this.#prefix = prefix;
  }

  /** Stores an object that must not exist. Rejects with `exists` if a different one does. */
  async put(key: string, { parts, md5, headers: more }: S3Body, limits?: S3Limits): Promise<void> {
    const headers = { ...more, 'content-md5': md5, 'if-none-match': '*' };
    try {
      await this.#requests.sendForText({ method: 'PUT', key, headers, body: parts }, limits);
    } catch (error) {
      // An earlier attempt may have been stored although its answer was lost.
      if (!isS3Fault(error, 'exists')) throw error;
      const found = await this.head(key, limits);
      if (found?.etag !== Buffer.from(md5, 'base64').toString('hex')) throw error;
    }
  }

  /** Stores an object, replacing an existing one. */
  async replace(key: string, { parts, md5, headers: more }: S3Body, limits?: S3Limits): Promise<void> {
    const headers = { ...more, 'content-md5': md5 };
    await this.#requests.sendForText({ method: 'PUT', key, headers, body: parts }, limits);
  }

  /** Locks the current version until then. Rejects where that would shorten a lock. */
  async retain(key: string, { mode, until }: S3Retention, limits?: S3Limits): Promise<void> {
    const date = new Date(until).toISOString();
    const xml = bareDocument('Retention', [
      ['Mode', mode],
      ['RetainUntilDate', date],
    ]);
    const { parts, md5 } = bodyOf(Buffer.from(xml));
    const request = { key, query: { retention: '' }, headers: { 'content-md5': md5 }, body: parts };
    await this.#requests.sendForText({ method: 'PUT', ...request }, limits);
  }

  /** Size, ETag without quotes, and the end of the lock, ms; undefined: no such object. */
  async head(key: string, limits?: S3Limits): Promise<S3Head | undefined> {
    try {
      const answer = await this.#requests.send({ method: 'HEAD', key }, limits);
      answer.resume();
      const { 'content-length': length, etag = '', [UNTIL]: until } = answer.headers;
      const lockedUntil = Date.parse(String(until)) || 0;
      return { sizeBytes: Number(length), etag: etag.replaceAll('"', ''), lockedUntil };
    } catch (error) {
      if (isS3Fault(error, 'missing')) return undefined;
      throw error;
    }
  }

  /**
   * The bytes from `start` up to `end` of an object of `totalBytes`. Rejects with `range` if it has another
   * size, with `missing` if it does not exist.
   */
  async range(
    key: string,
    { start, end, totalBytes }: { start: number; end: number; totalBytes: number },
    limits?: S3Limits,
  ): Promise<IncomingMessage> {
    const headers = { range: `bytes=${start}-${end - 1}` };
    const answer = await this.#requests.send({ method: 'GET', key, headers }, limits);
    const found = /^bytes (\d+)-(\d+)\/(\d+)$/.exec(answer.headers['content-range'] ?? '');
    const [from, to, total] = found?.slice(1).map(Number) ?? [];
    if (from === start && to === end - 1 && total === totalBytes) return answer;
    answer.destroy();
    if (found === null) throw s3Fault('refused', 'the S3 service does not support ranges of objects');
    throw s3Fault('range', `the S3 service returned bytes ${from} to ${to} of ${total}`);
  }

  /** The whole of a small object as text, or undefined. */
  async text(key: string, limits?: S3Limits): Promise<string | undefined> {
    try {
      return await this.#requests.sendForText({ method: 'GET', key }, limits);
    } catch (error) {
      if (isS3Fault(error, 'missing')) return undefined;
      throw error;
    }
  }

  /** The whole of an object of at most `maxBytes`, or undefined. */
  async whole(key: string, maxBytes: number, limits?: S3Limits): Promise<Buffer | undefined> {
    try {
      return await this.#requests.sendForBytes({ method: 'GET', key }, maxBytes, limits);
    } catch (error) {
      if (isS3Fault(error, 'missing')) return undefined;
      throw error;
    }
  }

  /** All bytes of an object as a stream, or undefined. */
  async bytes(key: string, limits?: S3Limits): Promise<IncomingMessage | undefined> {
    try {
      return await this.#requests.send({ method: 'GET', key }, limits);
    } catch (error) {
      if (isS3Fault(error, 'missing')) return undefined;
      throw error;
    }
  }

  /** Removes an object; a missing one is no error. */
  async remove(key: string, limits?: S3Limits): Promise<void> {
    await this.#requests.sendForText({ method: 'DELETE', key }, limits).catch((error: unknown) => {
      if (!isS3Fault(error, 'missing')) throw error;
    });
  }

  /** Begins a multipart upload; resolves to its id. */
  async initiate(key: string, limits?: S3Limits): Promise<string> {
    const answer = await this.#requests.sendForText({ method: 'POST', key, query: { uploads: '' } }, limits);
    const uploadId = textOf(parse(answer), 'UploadId');
    if (!uploadId) throw s3Fault('refused', 'the S3 service returned no upload id');
    return uploadId;
  }

  /** Stores part `number`, from 1; resolves to its ETag. */
  async part(
    key: string,
    { uploadId, number, body }: { uploadId: string; number: number; body: S3Body },
    limits?: S3Limits,
  ): Promise<string> {
    const query = { partNumber: String(number), uploadId };
    const headers = { 'content-md5': body.md5 };
    const answer = await this.#requests.send(
      { method: 'PUT', key, query, headers, body: body.parts },
      limits,
    );
    answer.resume();
    const { etag } = answer.headers;
    if (etag === undefined) throw s3Fault('refused', 'the S3 service returned no ETag of a part');
    return etag;
  }

  /** Makes one object of the parts, of `sizeBytes` in all. Parts are in order. */
  async complete(
    key: string,
    { uploadId, etags, sizeBytes }: { uploadId: string; etags: readonly string[]; sizeBytes: number },
    limits?: S3Limits,
  ): Promise<void> {
    const parts = etags.map((ETag, i) => ['Part', Object.entries({ PartNumber: i + 1, ETag })] as const);
    const xml = bareDocument('CompleteMultipartUpload', parts);
    const request = { method: 'POST', key, query: { uploadId }, body: [Buffer.from(xml)] } as const;
    try {
      const answer = await this.#requests.sendForText(request, { silenceMs: COMPLETE_SILENCE_MS, ...limits });
      // S3 answers 200 before it is done, and may still fail.
      const root = parse(answer);
      if (root.name === 'Error') throw s3Fault('away', `the S3 service returned ${textOf(root, 'Code')}`);
    } catch (error) {
      // An attempt may have succeeded although its response was lost; then the upload no longer
      // exists.
      if (!isS3Fault(error, 'no_upload', 'missing', 'away')) throw error;
      const found = await this.head(key, limits).catch(() => undefined);
      if (found?.sizeBytes !== sizeBytes) throw error;
    }
  }

  /** Aborts a multipart upload and removes its parts; no error if missing. */
  async abandon(key: string, uploadId: string, limits?: S3Limits): Promise<void> {
    const request = { method: 'DELETE', key, query: { uploadId } } as const;
    await this.#requests.sendForText(request, limits).catch((error: unknown) => {
      if (!isS3Fault(error, 'missing', 'no_upload')) throw error;
    });
  }

  /** Objects below `folder`, at constant memory. */
  async *list(folder: string, limits?: S3Limits): AsyncIterable<S3Entry> {
    for (let token = ''; ; ) {
      const query = {
        'list-type': '2',
        prefix: `${this.#prefix}${folder}`,
        ...(token === '' ? {} : { 'continuation-token': token }),
      };
      const root = parse(await this.#requests.sendForText({ method: 'GET', key: '', query }, limits));
      for (const entry of children(root, 'Contents')) {
        const modifiedAt = timeOf(entry, 'LastModified');
        yield { key: this.#keyOf(entry), sizeBytes: Number(textOf(entry, 'Size') ?? 0), modifiedAt };
      }
      if (textOf(root, 'IsTruncated') !== 'true') return;
      token = textOf(root, 'NextContinuationToken') ?? '';
      if (token === '')
        throw s3Fault('refused', 'the S3 service truncated a list without a continuation token');
    }
  }

  /** Uploads in parts below `folder` that were not completed. Nothing where S3 cannot list them. */
  async *uploads(folder: string, limits?: S3Limits): AsyncIterable<S3Upload> {
    const prefix = `${this.#prefix}${folder}`;
    for (let marker: Record<string, string> = {}; ; ) {
      const query = { uploads: '', prefix, ...marker };
      const text = await this.#requests
        .sendForText({ method: 'GET', key: '', query }, limits)
        .catch((error: unknown) => {
          if (isS3Fault(error, 'refused')) return '';
          throw error;
        });
      if (text === '') return;
      const root = parse(text);
      for (const entry of children(root, 'Upload')) {
        const uploadId = textOf(entry, 'UploadId') ?? '';
        yield { key: this.#keyOf(entry), uploadId, startedAt: timeOf(entry, 'Initiated') };
      }
      if (textOf(root, 'IsTruncated') !== 'true') return;
      marker = {
        'key-marker': textOf(root, 'NextKeyMarker') ?? '',
        'upload-id-marker': textOf(root, 'NextUploadIdMarker') ?? '',
      };
    }
  }

  /** Name below the prefix. */
  #keyOf(entry: XmlElement): string {
    const key = textOf(entry, 'Key') ?? '';
    if (!key.startsWith(this.#prefix))
      throw s3Fault('refused', 'the S3 service listed objects that were not requested');
    return key.slice(this.#prefix.length);
  }
}

function parse(text: string): XmlElement {
  try {
    return readXml(text.trim());
  } catch (error) {
    throw s3Fault('refused', `the response of the S3 service is malformed: ${(error as Error).message}`);
  }
}

/** An unreadable time counts as now, so that nothing looks old. */
function timeOf(entry: XmlElement, name: string): number {
  const at = Date.parse(textOf(entry, name) ?? '');
  return Number.isNaN(at) ? Number.MAX_SAFE_INTEGER : at;
}

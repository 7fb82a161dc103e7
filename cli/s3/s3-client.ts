/** The operations of S3 that the client needs. */
import { createHash } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { children, decodeKey, textOf, type XmlElement, xmlDocument } from '../../libs/s3-wire/index.ts';
import { ClientError } from '../failures.ts';
import type { Requests, S3Answer } from './requests.ts';
import { readAnswer, S3Failure } from './s3-failure.ts';

export interface ListedObject {
  readonly key: string;
  readonly size: number;
  /** ISO 8601. */
  readonly modified: string;
  readonly etag: string;
}

export interface ListedVersion extends ListedObject {
  readonly version: string;
  readonly isLatest: boolean;
  readonly isMarker: boolean;
}

export interface ListedPart {
  readonly number: number;
  readonly etag: string;
  readonly size: number;
  readonly crc32: string | undefined;
}

/** An object, or a common prefix of several names. */
export type Entry = { readonly object: ListedObject } | { readonly prefix: string };

const unquoted = (etag: string) => etag.replace(/^"|"$/g, '');

export class S3Client {
  readonly requests: Requests;

  constructor(requests: Requests) {
    this.requests = requests;
  }

  async createBucket(bucket: string): Promise<void> {
    await this.requests.call({ method: 'PUT', bucket });
  }

  async deleteBucket(bucket: string): Promise<void> {
    await this.requests.call({ method: 'DELETE', bucket });
  }

  /** In UTF-8 byte order, page by page. Throws S3Failure. */
  async *list(bucket: string, prefix: string, delimiter = ''): AsyncGenerator<Entry> {
    let token: string | undefined;
    do {
      const { text } = await this.requests.call({
        method: 'GET',
        bucket,
        query: {
          'list-type': '2',
          'encoding-type': 'url',
          ...(prefix !== '' && { prefix }),
          ...(delimiter !== '' && { delimiter }),
          ...(token !== undefined && { 'continuation-token': token }),
        },
      });
      const root = readAnswer(text);
      yield* children(root, 'CommonPrefixes').map((each) => ({ prefix: nameIn(each, 'Prefix') }));
      yield* children(root, 'Contents').map((each) => ({ object: objectIn(each) }));
      const next = textOf(root, 'NextContinuationToken');
      if (next !== undefined && next === token) throw endless();
      token = next;
    } while (token !== undefined);
  }

  /** By name, newest first. */
  async *versions(bucket: string, prefix: string): AsyncGenerator<ListedVersion> {
    let after: Record<string, string> | undefined = {};
    let asked = '';
    while (after !== undefined) {
      if (JSON.stringify(after) === asked) throw endless();
      asked = JSON.stringify(after);
      const query = { versions: '', 'encoding-type': 'url', ...(prefix !== '' && { prefix }), ...after };
      const { text }: S3Answer = await this.requests.call({ method: 'GET', bucket, query });
      const root = readAnswer(text);
      for (const each of root.children) {
        if (each.name !== 'Version' && each.name !== 'DeleteMarker') continue;
        yield {
          ...objectIn(each),
          version: textOf(each, 'VersionId') ?? 'null',
          isLatest: textOf(each, 'IsLatest') === 'true',
          isMarker: each.name === 'DeleteMarker',
        };
      }
      after =
        textOf(root, 'IsTruncated') === 'true'
          ? {
              'key-marker': nameIn(root, 'NextKeyMarker'),
              'version-id-marker': textOf(root, 'NextVersionIdMarker') ?? '',
            }
          : undefined;
    }
  }

  /** Headers of an object; undefined: not found. */
  async head(
    bucket: string,
    key: string,
    version?: string,
  ): Promise<Readonly<Record<string, string>> | undefined> {
    const query = version === undefined ? {} : { versionId: version };
    try {
      const headers = { 'x-amz-checksum-mode': 'ENABLED' };
      return (await this.requests.call({ method: 'HEAD', bucket, key, query, headers })).headers;
    } catch (error) {
      if (error instanceof S3Failure && error.status === 404) return undefined;
      throw error;
    }
  }

  async get(
    at: { readonly bucket: string; readonly key: string; readonly version?: string | undefined },
    headers: Readonly<Record<string, string>> = {},
  ): Promise<IncomingMessage> {
    const query: Record<string, string> = at.version === undefined ? {} : { versionId: at.version };
    const { bucket, key } = at;
    const asked = { 'x-amz-checksum-mode': 'ENABLED', ...headers };
    return this.requests.stream({ method: 'GET', bucket, key, query, headers: asked });
  }

  /** `etag`: deletes the object only if it has this ETag. */
  async deleteOne(bucket: string, key: string, etag?: string): Promise<void> {
    const headers: Record<string, string> = etag === undefined ? {} : { 'if-match': `"${etag}"` };
    await this.requests.call({ method: 'DELETE', bucket, key, headers });
  }

  /** Deletes at most 1,000 in one request. Returns the refusals. */
  async deleteMany(
    bucket: string,
    objects: readonly { readonly key: string; readonly version?: string | undefined }[],
  ): Promise<{ key: string; message: string }[]> {
    const listed = objects.map(({ key, version }) => {
      return ['Object', Object.entries({ Key: key, VersionId: version })] as const;
    });
    const body = Buffer.from(xmlDocument('Delete', [['Quiet', true], ...listed]));
    const headers = { 'content-md5': createHash('md5').update(body).digest('base64') };
    const { text } = await this.requests.call({
      method: 'POST',
      bucket,
      query: { delete: '' },
      headers,
      body,
    });
    return children(readAnswer(text), 'Error').map((each) => {
      return { key: textOf(each, 'Key') ?? '', message: textOf(each, 'Message') ?? 'refused' };
    });
  }

  async beginUpload(bucket: string, key: string, headers: Readonly<Record<string, string>>): Promise<string> {
    const { text } = await this.requests.call({
      method: 'POST',
      bucket,
      key,
      query: { uploads: '' },
      headers,
    });
    return textOf(readAnswer(text), 'UploadId') ?? '';
  }

  /** The parts of an upload in progress, or undefined if there is no such upload. */
  async listParts(bucket: string, key: string, uploadId: string): Promise<ListedPart[] | undefined> {
    const parts: ListedPart[] = [];
    let marker: string | undefined = '';
    while (marker !== undefined) {
      const query = { uploadId, ...(marker !== '' && { 'part-number-marker': marker }) };
      let text: string;
      try {
        ({ text } = await this.requests.call({ method: 'GET', bucket, key, query }));
      } catch (error) {
        if (error instanceof S3Failure && error.status === 404) return undefined;
        throw error;
      }
      const root = readAnswer(text);
      parts.push(...children(root, 'Part').map(partIn));
      const next: string | undefined =
        textOf(root, 'IsTruncated') === 'true' ? textOf(root, 'NextPartNumberMarker') : undefined;
      if (next !== undefined && Number(next) <= Number(marker)) throw endless();
      marker = next;
    }
    return parts;
  }

  async abortUpload(bucket: string, key: string, uploadId: string): Promise<void> {
    await this.requests.call({ method: 'DELETE', bucket, key, query: { uploadId } });
  }
}

const endless = () => new ClientError('the S3 endpoint returned the same page of the list twice');

/** A name in a list requested with `encoding-type=url`. */
function nameIn(element: XmlElement, name: string): string {
  return decodeKey(textOf(element, name) ?? '');
}

function objectIn(element: XmlElement): ListedObject {
  return {
    key: nameIn(element, 'Key'),
    size: Number(textOf(element, 'Size') ?? 0),
    modified: textOf(element, 'LastModified') ?? '',
    etag: unquoted(textOf(element, 'ETag') ?? ''),
  };
}

function partIn(element: XmlElement): ListedPart {
  return {
    number: Number(textOf(element, 'PartNumber')),
    etag: textOf(element, 'ETag') ?? '',
    size: Number(textOf(element, 'Size')),
    crc32: textOf(element, 'ChecksumCRC32'),
  };
}

/** One call of the S3 protocol, for its operation, and its response. */
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http';
import { S3Error } from '../../libs/s3-wire/index.ts';
import type { AccountDirectory } from '../accounts/directory.ts';
import type { Call, Permission, Principal } from '../calls/principal.ts';
import { dropExpected, dropRest } from '../http/bodies/body.ts';
import type { AccountName } from '../storage/buckets/bucket-settings.ts';
import type { BucketRow } from '../storage/buckets/buckets.ts';
import type { NameListing } from '../storage/listing/name-listing.ts';
import type { Content } from '../storage/objects/downloads.ts';
import type { ObjectServices } from '../storage/objects/object-services.ts';
import type { Access, CallFacts } from './access/access.ts';
import type { FormUpload } from './forms/form-operation.ts';
import type { Body } from './sign/body-reader.ts';
import type { Target } from './target.ts';

export type S3Storage = Pick<
  ObjectServices,
  | 'buckets'
  | 'bucketEmptier'
  | 'objects'
  | 'removals'
  | 'partUploads'
  | 'downloads'
  | 'dataKeys'
  | 'storedEncryption'
> & { readonly names: NameListing };

/** The sender of a request and the sender's access. */
export interface S3Sender {
  /** NOBODY: an unsigned request. */
  readonly caller: Principal;
  /** The caller's rights in the bucket; null: the request has no bucket, or creates it. */
  readonly access: Access | null;
  /** The request's values for policies. */
  readonly facts: CallFacts;
}

/** The request. */
export interface S3Request {
  readonly target: Target;
  readonly headers: IncomingHttpHeaders;
  /** Reads the body, once. */
  readonly body: Body;
  /** The uploaded form, if any; `headers`, key and `body` then come from it. */
  readonly form?: FormUpload | undefined;
}

/** The means of every operation. */
export interface S3Tools {
  readonly storage: S3Storage;
  readonly accounts: AccountDirectory;
  readonly response: ServerResponse;
  /** Headers of every response. */
  readonly common: Readonly<Record<string, string>>;
  /** ms since 1970. */
  readonly now: () => number;
  /** The connection is private: encrypted, or local to this host. */
  readonly isPrivate: () => boolean;
  /** `https://host:port` as used by the caller. */
  readonly origin: string;
}

/** `principal`, the bucket's owner, acts on storage, whoever the caller is. */
export interface S3Call extends Call {
  readonly who: S3Sender;
  readonly what: S3Request;
  readonly tools: S3Tools;
  /** The object of an operation with `reads`, which was permitted. */
  content?: Content;
}

/** The response of an operation. A body is XML. */
export interface S3Answer {
  /** Default: 200. */
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly xml?: string;
  readonly json?: string;
}

/** The AWS action, as in policies: `s3:GetObject`. */
export type Action = `s3:${string}`;

export interface S3Operation {
  /** AWS' name. */
  readonly name: string;
  readonly method: string;
  readonly level: 'service' | 'bucket' | 'object';
  /** Query parameters that select the operation; all must be present. */
  readonly query?: readonly string[];
  /** A header that selects it. */
  readonly header?: string;
  readonly action: Action;
  readonly permission: Permission;
  /** Permission on the source of a copy. */
  readonly sourcePermission?: Permission;
  /** Action if the request names a version. */
  readonly versionAction?: Action;
  /** Reads an existing object, whose ACL and tags affect access. */
  readonly reads?: true;
  /** The initiator of the upload is allowed, unless the policy denies it; the operation checks this. */
  readonly byInitiator?: true;
  /** The operation checks access itself, for each name. */
  readonly decides?: true;
  /** True if the operation creates the bucket of the request. */
  readonly makes?: true;
  /** undefined: it has sent the response itself. */
  readonly run: (call: S3Call) => Promise<S3Answer | undefined> | S3Answer;
}

/** Access to the bucket that the request names. */
export function accessOf({ who: { access } }: Pick<S3Call, 'who'>): Access {
  if (access === null) throw new S3Error('NoSuchBucket');
  return access;
}

/** The requested bucket, as of the access decision. */
export async function bucketOf(call: S3Call): Promise<BucketRow> {
  return accessOf(call).bucket;
}

/** The owner of the bucket, or the caller. */
export function ownerOf({ access, caller }: S3Sender): AccountName {
  return access?.owner ?? { id: caller.canonicalId, name: caller.username };
}

/** An account in XML. */
export function accountNodes({ id, name }: AccountName) {
  return [
    ['ID', id],
    ['DisplayName', name],
  ] as const;
}

/** The object of an operation that `reads`. */
export function contentOf({ content }: S3Call): Content {
  if (content === undefined) throw new Error('this operation does not declare that it reads an object');
  return content;
}

export function keyOf({ target }: S3Request): string {
  return target.key ?? '';
}

/** Text of a header; undefined if missing. Values are UTF-8, which Node decodes as latin-1. */
export function headerOf({ headers }: Pick<S3Request, 'headers'>, name: string): string | undefined {
  const value = headers[name];
  return typeof value === 'string' ? fromHeader(value) : undefined;
}

export function fromHeader(value: string): string {
  const bytes = Buffer.from(value, 'latin1');
  const text = bytes.toString('utf8');
  return Buffer.byteLength(text) === bytes.length && !text.includes('\uFFFD') ? text : value;
}

/** Text as Node writes it into a header. */
export function toHeader(text: string): string {
  return Buffer.from(text, 'utf8').toString('latin1');
}

/** Throws S3Error InvalidArgument for a malformed version id. */
export function assertVersionId(text: string, parameter = 'versionId'): void {
  if (/^(?:null|ver-[0-9a-z]{26})$/.test(text)) return;
  const message = text === '' ? 'Version id cannot be the empty string' : 'Invalid version id specified';
  throw new S3Error('InvalidArgument', message, {
    fields: { ArgumentName: parameter, ArgumentValue: text },
  });
}

/** A whole number in the query. Throws InvalidArgument. */
export function numberOf(
  { what: { target } }: S3Call,
  name: string,
  { min = 0, max, absent }: { min?: number; max: number; absent: number },
): number {
  const text = target.query.get(name);
  if (text === undefined || text === '') return absent;
  const value = Number(text);
  if (/^\d{1,10}$/.test(text) && value >= min && value < 2 ** 31) return Math.min(value, max);
  throw new S3Error('InvalidArgument', `Argument ${name} must be an integer between ${min} and 2147483647`, {
    fields: { ArgumentName: name, ArgumentValue: text },
  });
}

/** ISO 8601 with milliseconds, from ms since 1970. */
export const isoTime = (ms: number): string => new Date(ms).toISOString();

/** The response to a request; `common`: headers of every response. */
interface Answering extends Pick<S3Tools, 'response' | 'common'> {
  readonly request: IncomingMessage;
}

const XML = 'application/xml';
const JSON_TYPE = 'application/json';

export function send(
  { request, response, common }: Answering,
  { status = 200, headers = {}, xml, json }: S3Answer,
): void {
  const all: Record<string, string> = { ...common, ...headers };
  const body = xml ?? json;
  if (body === undefined || request.method === 'HEAD' || status === 204 || status === 304) {
    if (body === undefined && status !== 204 && status !== 304) all['content-length'] ??= '0';
    response.writeHead(status, all).end();
    return;
  }
  all['content-type'] = xml === undefined ? JSON_TYPE : XML;
  all['content-length'] = String(Buffer.byteLength(body));
  response.writeHead(status, all).end(body);
}

/** Lets the client, which may still be sending, read the refusal. */
export function dropBody(request: IncomingMessage, response: ServerResponse): void {
  if (request.readableEnded || request.complete) return void request.resume();
  if (request.headers.expect === undefined) dropRest(request);
  else dropExpected(request, response);
}

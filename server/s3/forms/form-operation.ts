/** Uploads by HTML form (POST Object): the fields of the form are the headers of a PutObject. */
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import { bareDocument, S3Error } from '../../../libs/s3-wire/index.ts';
import { putObject } from '../objects/object-operations.ts';
import { readTags } from '../objects/tags.ts';
import { bucketOf, type S3Answer, type S3Call, type S3Operation, toHeader } from '../s3-call.ts';
import { assertKey, headerText } from '../target.ts';
import { missingField } from './form-credentials.ts';
import { ANY_SIZE, assertMeets, readPolicy } from './form-policy.ts';
import type { FileSizes, FormHead } from './form-reader.ts';

export const FORM_OPERATIONS: readonly S3Operation[] = [
  {
    name: 'PostObject',
    action: 's3:PutObject',
    method: 'POST',
    level: 'bucket',
    permission: 'storage:append',
    run: postObject,
  },
];

/** Form fields that are upload headers; all others belong to the form. */
const HEADERS =
  /^(?:cache-control|content-(?:type|md5|disposition|encoding|language)|expires|x-amz-(?:meta-.+|storage-class|checksum-.+|sdk-checksum-algorithm|server-side-encryption.*|grant-.+|object-lock-.+|website-redirect-location))$/;

/** Whether a request without a signature in its headers or query is an upload by form. */
export function isForm({ method, headers }: Pick<IncomingMessage, 'method' | 'headers'>): boolean {
  return method === 'POST' && /^multipart\/form-data\b/i.test(headers['content-type'] ?? '');
}

/** The upload described by a form. */
export interface FormUpload {
  readonly fields: ReadonlyMap<string, string>;
  readonly key: string;
  /** The headers of a PutObject. */
  readonly headers: IncomingHttpHeaders;
  readonly sizes: FileSizes;
}

/**
 * A form as an upload to that bucket, if its policy allows it: one without is limited only by its
 * sender's rights. Throws S3Error: InvalidArgument, InvalidPolicyDocument, AccessDenied, and the
 * errors of object names and tags.
 */
export function formUpload({ fields: sent, fileName }: FormHead, bucket: string, nowMs: number): FormUpload {
  const fields = new Map([...sent].map(([name, text]) => [name, filled(name, text, fileName)]));
  const key = fields.get('key') ?? '';
  if (key === '') throw missingField('key');
  assertKey(key);
  const base64 = fields.get('policy');
  const policy = base64 === undefined ? undefined : readPolicy(base64);
  if (policy !== undefined) assertMeets(new Map([...fields, ['bucket', bucket]]), policy, nowMs);
  const named = fields.get('bucket') ?? bucket;
  if (named !== bucket) throw new S3Error('AccessDenied', 'The field bucket names another bucket');
  return { fields, key, headers: headersOf(fields), sizes: policy?.sizes ?? ANY_SIZE };
}

function filled(name: string, text: string, fileName: string): string {
  return /policy|signature/.test(name) ? text : text.replaceAll(/\$\{filename\}/g, () => fileName);
}

function headersOf(fields: ReadonlyMap<string, string>): IncomingHttpHeaders {
  const headers: Record<string, string> = {};
  for (const [name, text] of fields) {
    if (HEADERS.test(name)) headers[name] = headerText('field', name, toHeader(text));
  }
  const acl = fields.get('acl') ?? fields.get('x-amz-acl');
  if (acl !== undefined) headers['x-amz-acl'] = headerText('field', 'acl', toHeader(acl));
  const tagging = fields.get('tagging');
  if (tagging !== undefined) headers['x-amz-tagging'] = tagPairs(tagging);
  return headers;
}

/** Converts the XML of the field to the format of the header. */
function tagPairs(xml: string): string {
  const pairs = readTags(Buffer.from(xml));
  return pairs.map((pair) => pair.map(encodeURIComponent).join('=')).join('&');
}

async function postObject(call: S3Call): Promise<S3Answer> {
  const { form } = call.what;
  if (form === undefined) {
    await bucketOf(call);
    throw new S3Error('PreconditionFailed', undefined, {
      fields: { Condition: 'Bucket POST must be of the enclosure-type multipart/form-data' },
    });
  }
  const answer = await putObject(call);
  const bucket = call.what.target.bucket ?? '';
  const etag = String(answer.headers?.etag);
  const path = [bucket, ...form.key.split('/')].map(encodeURIComponent).join('/');
  const location = `${call.tools.origin}/${path}`;
  const headers = { ...answer.headers, location };
  const page = pageOf(form.fields);
  if (page !== undefined) {
    const query = { bucket, key: form.key, etag };
    const pairs = Object.entries(query).map(([name, value]) => `${name}=${encodeURIComponent(value)}`);
    page.search += `${page.search === '' ? '?' : '&'}${pairs.join('&')}`;
    return { status: 303, headers: { ...headers, location: page.href } };
  }
  const status = statusOf(form.fields.get('success_action_status'));
  if (status !== 201) return { status, headers };
  const names = { Location: location, Bucket: bucket, Key: form.key, ETag: etag };
  return { status, headers, xml: bareDocument('PostResponse', Object.entries(names)) };
}

/** 204 for everything but the statuses that a form may choose. */
function statusOf(text: string | undefined): number {
  return text === '200' || text === '201' ? Number(text) : 204;
}

/** The redirect target; an invalid URL is ignored. */
function pageOf(fields: ReadonlyMap<string, string>): URL | undefined {
  const text = fields.get('success_action_redirect') ?? fields.get('redirect') ?? '';
  const url = URL.parse(text);
  return url !== null && /^https?:$/.test(url.protocol) ? url : undefined;
}

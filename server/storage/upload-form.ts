/** The multipart upload: a form in any order becomes a published version. */
import mime from 'mime';
import { AppError, invalidField } from '../errors.ts';
import { parseJson } from '../http/json-body.ts';
import { type Form, readForm } from '../http/multipart.ts';
import type { RouteInput } from '../http/route.ts';
import type { Naming, Objects } from './objects.ts';
import type { Uploaded } from './schema.ts';

export const METADATA_MAX_BYTES = 8 * 1024;

type UploadInput = RouteInput<{ name: string }, unknown, unknown>;

/** Stores the file part of the request, or nothing at all. */
export async function receiveUpload(objects: Objects, input: UploadInput): Promise<Uploaded> {
  const { principal, params, request, receipt, identify } = input;
  const { bucket, upload } = await objects.beginUpload(principal, params.name);
  let publishing = false;
  try {
    const form = await readForm(request.raw, upload);
    const naming = readNaming(form);
    objects.checkName(principal, bucket, naming.name);
    const received = await upload.finish();
    identify(JSON.stringify([naming, received.sizeBytes, received.md5]));
    publishing = true;
    return await objects.publish(bucket, received, naming, receipt);
  } catch (error) {
    // Once a commit was tried its outcome may be unknown: the sweeper decides, by what the database says.
    if (!publishing) await upload.abort();
    throw error;
  }
}

/** Throws `invalid_request` with all problems of the fields. */
function readNaming({ fields, file }: Form): Naming {
  if (!file) {
    throw new AppError('invalid_request', 'file: the form has no file part', {
      fields: [{ field: 'file', message: 'is required, as a part with a file name' }],
    });
  }
  const storageClass = fields.get('storage_class');
  if (storageClass !== undefined && storageClass !== 'STANDARD') {
    throw invalidField('storage_class', 'must be STANDARD');
  }
  const name = fields.get('name') ?? file.fileName;
  return { name, mimeType: mimeTypeOf(file.mimeType, name), metadata: readMetadata(fields.get('metadata')) };
}

function readMetadata(text: string | undefined): string | null {
  if (text === undefined || text === '') return null;
  if (Buffer.byteLength(text) > METADATA_MAX_BYTES) throw invalidField('metadata', 'is larger than 8 KiB');
  let value: unknown;
  try {
    value = parseJson(Buffer.from(text, 'utf8'));
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : 'is not JSON';
    throw new AppError('invalid_request', `metadata: ${why}`, {
      fields: [{ field: 'metadata', message: why }],
      cause,
    });
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw invalidField('metadata', 'must be a JSON object');
  }
  return JSON.stringify(value);
}

/** What the client said, unless it said nothing: many send octet-stream or nothing for every file. */
function mimeTypeOf(said: string, name: string): string {
  const vague = said === '' || said === 'application/octet-stream' || said === 'text/plain';
  const type = vague ? (mime.getType(name) ?? (said || 'application/octet-stream')) : said;
  if (
    /^[\w!#$&^.+-]+\/[\w!#$&^.+-]+(\s*;\s*[\w-]+=("[\w .+-]*"|[\w.+-]+))*$/.test(type) &&
    type.length <= 255
  )
    return type;
  throw invalidField('file', 'has a malformed Content-Type');
}

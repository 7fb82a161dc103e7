/** What the fields of an upload form say of the object. */
import mime from 'mime';
import { AppError, invalidField } from '../errors.ts';
import { parseJson } from '../json.ts';
import type { Naming } from './objects.ts';

const METADATA_MAX_BYTES = 8 * 1024;

export interface UploadFields {
  readonly fields: ReadonlyMap<string, string>;
  readonly file: { readonly fileName: string; readonly mimeType: string } | undefined;
}

/** Throws `invalid_request`, naming the field. */
export function readNaming({ fields, file }: UploadFields): Naming {
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

/**
 * As mime.getType(name), which looks for the last folder and the last dot with expressions that go over the
 * whole name: a fiftieth of a small upload.
 */
function typeByName(name: string): string | null {
  const folder = Math.max(name.lastIndexOf('/'), name.lastIndexOf('\\'));
  const dot = name.lastIndexOf('.');
  const isInFolder = folder !== -1;
  if (isInFolder && dot <= folder + 1) return null;
  return mime.getType(name.slice(dot + 1));
}

/** What the client said, unless it said nothing: many send octet-stream or nothing for every file. */
function mimeTypeOf(said: string, name: string): string {
  const vague = said === '' || said === 'application/octet-stream' || said === 'text/plain';
  const type = vague ? (typeByName(name) ?? (said || 'application/octet-stream')) : said;
  if (
    /^[\w!#$&^.+-]+\/[\w!#$&^.+-]+(\s*;\s*[\w-]+=("[\w .+-]*"|[\w.+-]+))*$/.test(type) &&
    type.length <= 255
  )
    return type;
  throw invalidField('file', 'has a malformed Content-Type');
}

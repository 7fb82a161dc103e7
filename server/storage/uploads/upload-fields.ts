/** Reads name, type and metadata of an object from the fields of its upload form. */
import mime from 'mime';
import { unfitTexts } from '../../metadata/change.ts';
import { AppError, type FieldProblem } from '../../platform/errors.ts';
import { JsonProblem, readJson } from '../../platform/json/json.ts';
import type { Naming } from '../objects/objects.ts';
import { MIME_TYPE, MIME_TYPE_MAX_LENGTH } from '../schema.ts';

const METADATA_MAX_BYTES = 8 * 1024;
const TOO_LARGE = 'is larger than 8 KiB';
const WELL_FORMED_TYPE = new RegExp(MIME_TYPE);

export interface UploadFields {
  readonly fields: ReadonlyMap<string, string>;
  readonly file:
    | { readonly fileName: string; readonly mimeType: string; readonly charset: string | undefined }
    | undefined;
}

/** Throws `invalid_request` that names all wrong fields. */
export function readNaming({ fields, file }: UploadFields): Naming {
  if (!file) {
    throw new AppError('invalid_request', 'file: the form has no file', {
      fields: [{ field: 'file', message: 'is required as a form part with a file name' }],
    });
  }
  const problems: FieldProblem[] = [];
  const storageClass = fields.get('storage_class');
  if (storageClass !== undefined && storageClass !== 'STANDARD') {
    problems.push({ field: 'storage_class', message: 'must be STANDARD' });
  }
  const name = fields.get('name') ?? file.fileName;
  const mimeType = mimeTypeOf(file, name);
  if (mimeType === undefined) problems.push({ field: 'file', message: 'has a malformed Content-Type' });
  const metadata = readMetadata(fields.get('metadata'), problems);
  if (problems.length > 0 || mimeType === undefined) {
    const detail = problems.map(({ field, message }) => `${field}: ${message}`).join('; ');
    throw new AppError('invalid_request', detail, { fields: problems });
  }
  return { name, mimeType, metadata };
}

/** JSON text, or null. Adds problems to `problems`. */
function readMetadata(text: string | undefined, problems: FieldProblem[]): string | null {
  if (text === undefined) return null;
  const refuse = (message: string) => {
    problems.push({ field: 'metadata', message });
    return null;
  };
  if (Buffer.byteLength(text) > METADATA_MAX_BYTES) return refuse(TOO_LARGE);
  let value: unknown;
  try {
    value = readJson(text);
  } catch (error) {
    if (error instanceof JsonProblem) return refuse(error.message);
    throw error;
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    return refuse('must be a JSON object, such as {"camera":"X100"}');
  }
  const [unfit] = unfitTexts(value);
  return unfit === undefined ? JSON.stringify(value) : refuse(unfit.message);
}

/** Metadata as stored. Throws `invalid_request` if too large. */
export function metadataText(metadata: Readonly<Record<string, unknown>> | null): string | null {
  const text = metadata === null ? null : JSON.stringify(metadata);
  if (text === null || Buffer.byteLength(text) <= METADATA_MAX_BYTES) return text;
  const fields = [{ field: 'metadata', message: TOO_LARGE }];
  throw new AppError('invalid_request', `metadata: ${TOO_LARGE}`, { fields });
}

/**
 * A faster mime.getType(name), whose expressions scan the whole name for the last folder and dot,
 * which would be a fiftieth of a small upload.
 */
function typeByName(name: string): string | null {
  const folder = Math.max(name.lastIndexOf('/'), name.lastIndexOf('\\'));
  const dot = name.lastIndexOf('.');
  const isInFolder = folder !== -1;
  if (isInFolder && dot <= folder + 1) return null;
  return mime.getType(name.slice(dot + 1));
}

/**
 * The client's type, unless it is a generic one: many send octet-stream or text/plain for every file.
 * undefined if malformed.
 */
function mimeTypeOf(
  { mimeType: said, charset }: NonNullable<UploadFields['file']>,
  name: string,
): string | undefined {
  const vague = said === '' || said === 'application/octet-stream' || said === 'text/plain';
  const whole = charset === undefined ? said : `${said}; charset=${charset}`;
  const type = (vague && typeByName(name)) || whole || 'application/octet-stream';
  return WELL_FORMED_TYPE.test(type) && type.length <= MIME_TYPE_MAX_LENGTH ? type : undefined;
}

/** The media type for a file of that name. */
export function typeOf(name: string): string {
  return typeByName(name) ?? 'application/octet-stream';
}

/** Naming rules of buckets and objects. */
const BUCKET_RULE =
  'A bucket name has 3 to 63 lower-case letters, digits, dots and hyphens, and begins and ends with a letter or digit';

/** The rules of the specification §8. Throws `invalid_bucket_name`. */
export function assertBucketName(name: string): void {
  if (/^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$/.test(name)) return;
  throw new AppError('invalid_bucket_name', BUCKET_RULE, {
    fields: [{ field: 'name', message: BUCKET_RULE }],
  });
}

const OBJECT_NAME_MAX_BYTES = 1024;

/**
 * 1 to 1,024 bytes of UTF-8 without control characters or lone surrogates. `../x` and `a//b` are valid and
 * harmless, because no path is ever made from a name. Throws `invalid_object_name`.
 */
export function assertObjectName(name: string): void {
  const problem = objectNameProblem(name);
  if (problem === undefined) return;
  throw new AppError('invalid_object_name', `The object name ${problem}`, {
    fields: [{ field: 'name', message: problem }],
  });
}

function objectNameProblem(name: string): string | undefined {
  if (name === '') return 'must not be empty; send a file name or the form field "name"';
  if (Buffer.byteLength(name) > OBJECT_NAME_MAX_BYTES)
    return `must not exceed ${OBJECT_NAME_MAX_BYTES} bytes of UTF-8`;
  if (!name.isWellFormed()) return 'must be valid Unicode';
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is refused
  if (/[\u0000-\u001f\u007f]/.test(name)) return 'must not contain control characters';
  return undefined;
}

/** Like SQLite's lower(). */
export function asciiLower(text: string): string {
  return text.replace(/[A-Z]/g, (letter) => letter.toLowerCase());
}

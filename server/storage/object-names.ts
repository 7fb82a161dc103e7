/** Which names buckets and objects may have. */
import { AppError } from '../platform/errors.ts';

const BUCKET_RULE =
  'A bucket name has 3 to 63 lower-case letters, digits, dots and hyphens, and starts and ends with a letter or digit';

/** The rules of the specification §8, no more and no less. Throws `invalid_bucket_name`. */
export function assertBucketName(name: string): void {
  if (/^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$/.test(name)) return;
  throw new AppError('invalid_bucket_name', BUCKET_RULE, {
    fields: [{ field: 'name', message: BUCKET_RULE }],
  });
}

const OBJECT_NAME_MAX_BYTES = 1024;

/**
 * 1 to 1,024 bytes of UTF-8 without control characters or lone surrogates. Anything else is just a
 * name: `../x` and `a//b` lead nowhere, because no path is ever made from it. Throws `invalid_object_name`.
 */
export function assertObjectName(name: string): void {
  const problem = objectNameProblem(name);
  if (problem === undefined) return;
  throw new AppError('invalid_object_name', `The object name ${problem}`, {
    fields: [{ field: 'name', message: problem }],
  });
}

function objectNameProblem(name: string): string | undefined {
  if (name === '') return 'is empty; send a file name or the form field "name"';
  if (Buffer.byteLength(name) > OBJECT_NAME_MAX_BYTES)
    return `is longer than ${OBJECT_NAME_MAX_BYTES} bytes of UTF-8`;
  if (!name.isWellFormed()) return 'is not valid Unicode';
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is refused
  if (/[\u0000-\u001f\u007f]/.test(name)) return 'has a control character';
  return undefined;
}

/** As SQLite's lower(). */
export function asciiLower(text: string): string {
  return text.replace(/[A-Z]/g, (letter) => letter.toLowerCase());
}

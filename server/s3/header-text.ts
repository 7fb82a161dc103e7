/** Text that stands for a header without being one: a field of a form, a parameter of a presigned URL. */
import { S3Error } from './s3-error.ts';

/**
 * `text` has a character per byte, and loses the spaces around it, as headers do. Throws S3Error
 * InvalidArgument for what no header can have.
 */
export function headerText(kind: 'field' | 'parameter', name: string, text: string): string {
  const trimmed = text.trim();
  // biome-ignore lint/suspicious/noControlCharactersInRegex: no header has them
  if (!/[\u0000-\u0008\u000a-\u001f\u007f]/.test(trimmed) && /^[\w!#$%&'*+.^`|~-]+$/.test(name)) {
    return trimmed;
  }
  throw new S3Error('InvalidArgument', `The ${kind} ${name} has characters that no header can have`);
}

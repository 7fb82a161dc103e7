/** The address of a bucket as the settings have it: a URL, and a file with credentials. */
import { readFileSync } from 'node:fs';
import { parseS3Url, type S3Address } from '../../config/s3-address.ts';
import { StartupError } from '../../platform/data-directory.ts';

export interface S3Setting {
  readonly url: string;
  /** Name of the URL's setting, or of its kind, for people. */
  readonly name: string;
  /** Path of a file with `KEY:SECRET`; empty: they are in the URL. */
  readonly file: string;
  /** Name of the file's setting. */
  readonly fileName: string;
}

/** Throws StartupError, which never contains the secret, when the URL or the file is invalid. */
export function addressIn({ url, name, file, fileName }: S3Setting): S3Address {
  try {
    return parseS3Url(url, file === '' ? '' : readFileSync(file, 'utf8'), fileName);
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    if (code !== undefined) throw new StartupError(`${fileName} ${file} cannot be read (${code})`);
    throw new StartupError(`${name} ${message}`);
  }
}

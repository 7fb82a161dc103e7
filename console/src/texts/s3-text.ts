/** The texts of the S3 pages, which come with them: the rest of the console does not wait for these. */
import { s3 } from './en/s3.ts';

/** The shape of a language, as Texts is. */
export const s3Text: typeof s3 = s3;

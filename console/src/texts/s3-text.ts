/** The texts of the S3 pages, loaded with them: the rest of the console does not wait for these. */
import { s3 } from './en/storage/s3.ts';

/** The type of a language, like Texts. */
export const s3Text: typeof s3 = s3;

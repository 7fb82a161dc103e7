/** The texts of a bucket's files that are loaded with their page. */
import { files } from './en/storage/files.ts';

export const filesText = files;

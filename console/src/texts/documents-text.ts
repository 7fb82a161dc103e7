/** The texts of documents, loaded with their page. */
import { documents } from './en/databases/documents.ts';

export const documentsText = documents;

/** MongoDB's query language, storage in a SQLite file, and archives. See README.md. */
export {
  ArchiveContents,
  ArchiveWriter,
  BrokenArchive,
  type DocumentBatch,
  type FoundCollection,
  metadataOf,
} from './archive/archive-format.ts';
export { ARCHIVE_FILE, ARCHIVE_KIND, ARCHIVE_MAGIC } from './archive/archive-kind.ts';
export { Crc64 } from './archive/crc64.ts';
export { CommandError } from './command-error.ts';
export { type CommandContext, DocumentDatabase } from './commands/document-commands.ts';
export { assertStableApi } from './commands/stable-api.ts';
export { TRANSACTION_SECONDS } from './commands/transactions.ts';
export { Malformed, readDocuments, readSections, type Sections, sizeAt } from './message-sections.ts';
export { SERVER_VERSION } from './server-version.ts';
export { waits } from './storage/cursors.ts';
export { TailWaits } from './tail-waits.ts';
export { decodeCommand, decodeDocument, encodeDocument, encodeReply } from './values/bson-documents.ts';
export { BEYOND_LENGTH, FIXED_BYTES, REGEX } from './values/value-sizes.ts';

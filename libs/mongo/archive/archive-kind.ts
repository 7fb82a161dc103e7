/** How an archive is known: for a process that reads no documents, and so does not load bson. */

/** File name of the uploaded archive in the database's folder. */
export const ARCHIVE_FILE = 'archive';
export const ARCHIVE_MAGIC: Buffer = Buffer.from([0x6d, 0xe2, 0x99, 0x81]);
/** Archives that a tenant may load. */
export const ARCHIVE_KIND = {
  file: ARCHIVE_FILE,
  header: ARCHIVE_MAGIC,
  otherwise:
    'the file is not a mongodump archive: create it with `mongodump --archive`; a folder of mongodump is loaded with ' +
    '`mongorestore FOLDER`, and JSON and CSV with an import of rows (`cloudlet db import`)',
};

/**
 * Fills the database of a stopped cloud with objects: the bench measures how the cloud reads them, and a
 * million uploads would take longer than the rest. The rows are those of small uploads.
 */
import { createHash } from 'node:crypto';
import { join } from 'node:path';
import { crc32 } from 'node:zlib';
import Database from 'better-sqlite3';
import { systemClock } from '../server/platform/clock.ts';
import { newId } from '../server/platform/ids.ts';

const CONTENT = Buffer.from('sixteen bytes ok');
const ETAG = createHash('md5').update(CONTENT).digest('hex');
interface Filling {
  readonly objects: number;
  /** Number of versions of an object, by its index; default: every tenth has three. */
  readonly versions?: (index: number) => number;
  /** Number of folders; 0: the top of the bucket. */
  readonly folders?: number;
}

const everyTenthHasThree = (index: number) => (index % 10 === 0 ? 3 : 1);

function statements(database: Database.Database) {
  return {
    blob: database.prepare('INSERT INTO blobs (size_bytes, data, checksum) VALUES (?, ?, ?)'),
    object: database.prepare('INSERT INTO objects (object_id, bucket_id, name) VALUES (?, ?, ?)'),
    version: database.prepare(
      `INSERT INTO versions (version_id, object, blob, size_bytes, etag, mime_type, storage_class, created_at)
       VALUES (?, ?, ?, ?, ?, 'text/plain', 'STANDARD', ?)`,
    ),
    current: database.prepare('UPDATE objects SET current = ?, size_bytes = ?, changed_at = ? WHERE id = ?'),
    bucket: database.prepare(
      `UPDATE buckets SET object_count = ?, size_bytes = ?, version_count = ?, total_bytes = ? WHERE id = ?`,
    ),
    account: database.prepare('UPDATE accounts SET storage_bytes = storage_bytes + ? WHERE id = ?'),
  };
}

/** Puts objects into an empty bucket. */
export function fillBucket(dataDir: string, bucketName: string, filling: Filling): void {
  const database = new Database(join(dataDir, 'metadata.db'));
  // Not durable while it is filled, which is not measured.
  for (const pragma of ['journal_mode = OFF', 'synchronous = OFF', 'cache_size = -262144']) {
    database.pragma(pragma);
  }
  try {
    database.transaction(() => insertObjects(database, bucketName, filling))();
    database.pragma('journal_mode = WAL');
  } finally {
    database.close();
  }
}

function insertObjects(
  database: Database.Database,
  bucketName: string,
  { objects, versions: versionsOf = everyTenthHasThree, folders = 100 }: Filling,
): void {
  const bucket = database
    .prepare<[string], { id: number; account_id: number }>(
      'SELECT id, account_id FROM buckets WHERE name = ?',
    )
    .get(bucketName);
  if (!bucket) throw new Error(`no bucket ${bucketName}`);
  const insert = statements(database);
  const now = systemClock.now();
  const checksum = crc32(CONTENT);
  let versions = 0;
  for (let index = 0; index < objects; index++) {
    const folder = folders === 0 ? '' : `folder-${String(index % folders).padStart(2, '0')}/`;
    const name = `${folder}file-${String(index).padStart(8, '0')}.txt`;
    const object = insert.object.run(newId('obj', systemClock), bucket.id, name).lastInsertRowid;
    let version: number | bigint = 0;
    for (let left = versionsOf(index); left > 0; left--) {
      const blob = insert.blob.run(CONTENT.length, CONTENT, checksum).lastInsertRowid;
      const id = newId('ver', systemClock);
      version = insert.version.run(id, object, blob, CONTENT.length, ETAG, now).lastInsertRowid;
      versions++;
    }
    insert.current.run(version, CONTENT.length, now, object);
  }
  const bytes = (count: number) => count * CONTENT.length;
  insert.bucket.run(objects, bytes(objects), versions, bytes(versions), bucket.id);
  insert.account.run(bytes(versions), bucket.account_id);
}

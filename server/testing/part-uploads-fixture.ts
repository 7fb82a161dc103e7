/** Multipart uploads on the storage fixture, and invariants of their rows. For tests. */
import assert from 'node:assert/strict';
import type { Principal } from '../calls/principal.ts';
import type { Content } from '../storage/objects/downloads.ts';
import { ROW_BYTES } from '../storage/objects/version-row-sql.ts';
import type { PartRow } from '../storage/uploads/part-upload-sql.ts';
import type { Assembly, Completed } from '../storage/uploads/part-uploads.ts';
import { by } from './account-fixture.ts';
import { type StorageFixture, TEST_GRACE_MS } from './storage-fixture.ts';

/** An upload as named by clients. */
export interface TestUpload {
  readonly bucket: string;
  readonly name: string;
  readonly uploadId: string;
}

/** Parts by number; a missing one fails the test. */
export const chosen = (numbers: readonly number[]) => (parts: readonly PartRow[]) =>
  numbers.map((wanted) => parts.find(({ number }) => number === wanted) ?? assert.fail(`no part ${wanted}`));

export type TestPartUploads = ReturnType<typeof partUploadsOf>;

export function partUploadsOf(fixture: StorageFixture, owner: Principal) {
  const { buckets, partUploads, downloads, store } = fixture;
  return {
    async begin(bucket: string, name: string): Promise<TestUpload> {
      const labels = { name, mimeType: 'text/plain', metadata: null, checksum: null };
      const uploadId = await partUploads.begin(by(owner), await buckets.find(owner, bucket), labels);
      return { bucket, name, uploadId };
    },

    async put({ bucket, ...named }: TestUpload, number: number, bytes: Uint8Array): Promise<void> {
      const row = await partUploads.find(await buckets.find(owner, bucket), named);
      const upload = await partUploads.receive(row);
      try {
        await upload.write(bytes);
        const received = await upload.finish();
        await partUploads.putPart(by(owner), row, { number, received, checksum: null });
      } finally {
        await upload.end();
      }
    },

    /** Default: of all parts. */
    async complete(
      { bucket, ...named }: TestUpload,
      numbers?: readonly number[],
      more: Partial<Assembly> = {},
    ): Promise<Completed> {
      const choose = numbers ? chosen(numbers) : (parts: readonly PartRow[]) => parts;
      const found = await buckets.find(owner, bucket);
      const assembly = { bucket: found, choose, checksumOf: () => null, ...more };
      return partUploads.complete(by(owner), named, assembly);
    },

    async abort({ bucket, ...named }: TestUpload): Promise<void> {
      await partUploads.abort(by(owner), await buckets.find(owner, bucket), named);
    },

    /** The live content of a name. */
    async find(bucket: string, name: string): Promise<Content> {
      const { id } = await buckets.find(owner, bucket);
      return downloads.find(owner, (await store.named(id, name))?.object_id ?? assert.fail(`no ${name}`));
    },

    /** Default: all bytes. */
    async read(content: Content, range = { start: 0, end: content.sizeBytes }): Promise<Buffer> {
      const chunks: Buffer[] = [];
      const sink = (chunk: Uint8Array) => {
        chunks.push(Buffer.from(chunk));
        return undefined;
      };
      await downloads.read(content, { range, sink, signal: new AbortController().signal });
      return Buffer.concat(chunks);
    },

    /**
     * Advances past the grace period of assembled objects and then that of their parts, and removes all
     * garbage.
     */
    async sweep() {
      const sweeper = fixture.openSweeper();
      for (let i = 0; i < 2; i++) {
        await partUploads.sweep();
        fixture.clock.advance(TEST_GRACE_MS);
        await sweeper.sweepGarbage();
      }
    },
  };
}

/** Each row is a violated rule, with its location. */
const BROKEN = `
  SELECT 'refs of blob' AS rule, b.id FROM blobs b WHERE b.refs <> (SELECT count(*) FROM versions v WHERE v.blob = b.id)
    + (SELECT count(*) FROM upload_parts p WHERE p.blob = b.id)
  UNION ALL SELECT 'bytes of version', v.id FROM versions v
    WHERE v.blob IS NOT NULL AND v.blob NOT IN (SELECT id FROM blobs)
  UNION ALL SELECT 'bytes of part', p.upload FROM upload_parts p WHERE p.blob NOT IN (SELECT id FROM blobs)
  UNION ALL SELECT 'unnamed blob is garbage', b.id FROM blobs b
    WHERE (b.refs = 0) <> (b.id IN (SELECT blob FROM blob_garbage))
  UNION ALL SELECT 'bytes in a row go at once', b.id FROM blobs b
    WHERE b.refs = 0 AND b.name IS NULL AND b.upload IS NULL
  UNION ALL SELECT 'upload of assembled blob', b.id FROM blobs b JOIN uploads u ON u.id = b.upload
    WHERE u.state <> 1 OR u.size_bytes <> b.size_bytes
  UNION ALL SELECT 'assembled blob without upload', b.id FROM blobs b
    WHERE b.upload IS NOT NULL AND b.upload NOT IN (SELECT id FROM uploads)
  UNION ALL SELECT 'one blob of completed upload', u.id FROM uploads u
    WHERE u.state = 1 AND (SELECT count(*) FROM blobs b WHERE b.upload = u.id) <> 1
  UNION ALL SELECT 'size of upload', u.id FROM uploads u
    WHERE u.state <> 2 AND u.size_bytes <> (SELECT coalesce(sum(p.size_bytes), 0) FROM upload_parts p WHERE p.upload = u.id)
  UNION ALL SELECT 'bucket of open upload', u.id FROM uploads u
    WHERE u.state = 0 AND u.bucket_id NOT IN (SELECT id FROM buckets)
  UNION ALL SELECT 'size of version', v.id FROM versions v JOIN blobs b ON b.id = v.blob
    WHERE v.size_bytes <> b.size_bytes
  UNION ALL SELECT 'one null version', v.object FROM versions v WHERE v.is_null = 1 GROUP BY v.object HAVING count(*) > 1
  UNION ALL SELECT 'counters of bucket', k.id FROM buckets k WHERE k.version_count <> (
      SELECT count(*) FROM versions v JOIN objects o ON o.id = v.object WHERE o.bucket_id = k.id AND v.blob IS NOT NULL)
    OR k.object_count <> (SELECT count(*) FROM objects o WHERE o.bucket_id = k.id AND o.current IS NOT NULL)
    OR k.total_bytes <> (SELECT coalesce(sum(v.size_bytes), 0) FROM versions v JOIN objects o ON o.id = v.object
      WHERE o.bucket_id = k.id)
    OR k.size_bytes <> (SELECT coalesce(sum(v.size_bytes), 0) FROM objects o JOIN versions v ON v.id = o.current
      WHERE o.bucket_id = k.id)
    OR k.metadata_bytes <> (SELECT coalesce(sum(v.metadata_bytes), 0) FROM versions v JOIN objects o ON o.id = v.object
      WHERE o.bucket_id = k.id)
  UNION ALL SELECT 'metadata of version', v.id FROM versions v JOIN objects o ON o.id = v.object
    WHERE v.metadata_bytes - octet_length(o.name) - octet_length(v.mime_type) - coalesce(octet_length(v.metadata), 0)
      - coalesce(octet_length(v.headers), 0) - coalesce(octet_length(v.tags), 0) - coalesce(octet_length(v.acl), 0)
      NOT IN (0, ${ROW_BYTES})
  UNION ALL SELECT 'space of account', a.id FROM accounts a
    WHERE a.storage_bytes <> (SELECT coalesce(sum(k.total_bytes + k.metadata_bytes), 0) FROM buckets k WHERE k.account_id = a.id)
      + (SELECT coalesce(sum(u.size_bytes + u.metadata_bytes), 0) FROM uploads u WHERE u.account_id = a.id AND u.state = 0)
  UNION ALL SELECT 'charged bytes of bucket', k.id FROM buckets k JOIN usage_lines l ON l.resource_id = CAST(k.id AS TEXT)
    WHERE l.meter = 'storage' AND l.level <> k.total_bytes + k.metadata_bytes
      + (SELECT coalesce(sum(u.size_bytes + u.metadata_bytes), 0) FROM uploads u WHERE u.bucket_id = k.id AND u.state = 0)`;

/** Sums of stored bytes that differ from the rows; for the metadata of an earlier version. */
export const WRONG_SUMS = `SELECT * FROM (${BROKEN}) WHERE rule IN
  ('counters of bucket', 'metadata of version', 'space of account', 'charged bytes of bucket')`;

/** Every blob has as many references as it counts, from versions and parts; the counters match the rows. */
export async function assertStoredRows({ metadata }: Pick<StorageFixture, 'metadata'>): Promise<void> {
  assert.deepEqual(await metadata.all(BROKEN), []);
}

/** An object uploaded in parts is in a recovery point with all of them. */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import Database from 'better-sqlite3';
import { LosableCloud } from './recovery-kit.ts';

const SIZES = [300_000, 20, 16_385, 700];

let lost: LosableCloud;
before(async () => {
  lost = await LosableCloud.start();
});
after(() => lost.end());

/** Changes an object so that its bytes are those of others. The cloud must not run. */
function assemble(objectId: string, partIds: readonly string[]): void {
  const database = new Database(join(lost.dataDir, 'metadata.db'));
  try {
    database.transaction(() => {
      const upload = database
        .prepare(
          `INSERT INTO uploads (upload_id, bucket_id, account_id, name, state, size_bytes, encryption, mime_type,
             created_at, ended_at, result)
           SELECT 'upl-' || o.object_id, k.id, k.account_id, o.name, 1, o.size_bytes, k.encryption, '', 1, 2, '{}'
           FROM objects o JOIN buckets k ON k.id = o.bucket_id WHERE o.object_id = ?`,
        )
        .run(objectId).lastInsertRowid;
      const ofObject =
        'SELECT v.blob FROM objects o JOIN versions v ON v.id = o.current WHERE o.object_id = ?';
      const addPart = database.prepare(
        `INSERT INTO upload_parts (upload, number, blob, size_bytes, etag, created_at)
         SELECT ?, ?, id, size_bytes, '', 1 FROM blobs WHERE id = (${ofObject})`,
      );
      const share = database.prepare(`UPDATE blobs SET refs = refs + 1 WHERE id = (${ofObject})`);
      for (const [at, id] of partIds.entries()) {
        assert.equal(addPart.run(upload, at + 1, id).changes + share.run(id).changes, 2);
      }
      const become = `UPDATE blobs SET name = NULL, data = NULL, checksum = NULL, wrapped_key = NULL, upload = ?
        WHERE id = (${ofObject})`;
      assert.equal(database.prepare(become).run(upload, objectId).changes, 1);
    })();
  } finally {
    database.close();
  }
}

test('it is read back byte for byte, in a plain and in an encrypted bucket', async () => {
  const { user } = lost;
  const made: { id: string; parts: string[]; bytes: Buffer }[] = [];
  for (const encryption of [false, true]) {
    const name = encryption ? 'sealed' : 'plain';
    await user.expect(201, '/api/buckets', { json: { name, encryption } });
    const put = async (object: string, bytes: Buffer): Promise<string> =>
      (await user.upload(name, object, bytes)).body.object_id;
    const contents = SIZES.map((size) => randomBytes(size));
    const parts: string[] = [];
    for (const [at, bytes] of contents.entries()) parts.push(await put(`part-${at}`, bytes));
    const bytes = Buffer.concat(contents);
    made.push({ id: await put('whole', bytes), parts, bytes });
  }
  await lost.keepKey();
  await lost.cloud.end();
  for (const { id, parts } of made) assemble(id, parts);
  await lost.startAgain();
  for (const { parts } of made) {
    for (const id of parts) await lost.user.expect(200, `/api/storage/${id}`, { method: 'DELETE' });
  }
  const read = async () => {
    for (const { id, bytes } of made) assert.ok((await lost.user.download(id)).equals(bytes));
  };
  await read();
  await lost.point();
  await lost.lose();
  await read();
});

/**
 * `If-Match` and `If-None-Match` of calls that change an object: of concurrent ones with the same condition,
 * one succeeds.
 */
import assert from 'node:assert/strict';
import { before, describe, test } from 'node:test';
import { type Answer, Client } from '../harness/client.ts';
import type { CloudProcess } from '../harness/cloud-process.ts';
import { sharedCloud } from '../harness/shared-cloud.ts';
import { assertProblem, bodyOf, listOf, newBucket } from './storage-kit.ts';

type Headers = Readonly<Record<string, string>>;

let cloud: CloudProcess;
let user: Client;
before(async () => {
  cloud = await sharedCloud();
  user = await new Client(cloud.api).newUser();
});

function put(bucket: string, content: string, headers: Headers = {}): Promise<Answer> {
  const form = new FormData();
  form.set('file', new Blob([content]), 'doc');
  return user.call(`/api/buckets/${bucket}/upload`, { body: form, headers });
}
const remove = (id: string, headers: Headers, query = '') =>
  user.call(`/api/storage/${id}${query}`, { method: 'DELETE', headers });
const refused = async (answer: Promise<Answer>) => assertProblem(await answer, 412, 'precondition_failed');
const text = async (id: string) => (await user.download(id)).toString();

for (const versioning of [false, true]) {
  describe(versioning ? 'in a versioned bucket' : 'in a bucket without versions', () => {
    test('an upload with If-None-Match: * only makes what is not there', async () => {
      const bucket = await newBucket(user, { versioning });
      const once = { 'if-none-match': '*' };
      const { object_id: id } = bodyOf(await put(bucket, 'one', once));
      await refused(put(bucket, 'two', once));
      assert.equal(await text(id), 'one');
      bodyOf(await remove(id, {}));
      bodyOf(await put(bucket, 'three', once));
      assert.equal((await listOf(user, bucket)).length, 1);
    });

    test('an upload with If-Match only replaces what the caller has seen', async () => {
      const bucket = await newBucket(user, { versioning });
      await refused(put(bucket, 'none', { 'if-match': '*' }));
      assert.deepEqual(await listOf(user, bucket), []);
      const one = bodyOf(await put(bucket, 'one'));
      await refused(put(bucket, 'two', { 'if-match': '"0123456789abcdef0123456789abcdef"' }));
      await refused(put(bucket, 'two', { 'if-match': `W/"${one.etag}"` }));
      await refused(put(bucket, 'two', { 'if-none-match': `"else", "${one.etag}"` }));
      assert.equal(await text(one.object_id), 'one');
      const two = bodyOf(await put(bucket, 'two', { 'if-match': `"else", "${one.etag}"` }));
      await refused(put(bucket, 'three', { 'if-match': `"${one.version_id}"` }));
      bodyOf(await put(bucket, 'three', { 'if-match': `"${two.version_id}"` }));
      assert.equal(await text(one.object_id), 'three');
    });

    test('a deletion with If-Match only removes what the caller has seen', async () => {
      const bucket = await newBucket(user, { versioning });
      const { object_id: id, etag } = bodyOf(await put(bucket, 'one'));
      await refused(remove(id, { 'if-match': '"0123456789abcdef0123456789abcdef"' }));
      await refused(remove(id, { 'if-none-match': '*' }));
      assert.equal(await text(id), 'one');
      bodyOf(await remove(id, { 'if-match': `"${etag}"` }));
      assertProblem(await remove(id, { 'if-match': '*' }), 404, 'object_not_found');
    });

    test('of 32 who would make it, or replace the same, one does', async () => {
      const bucket = await newBucket(user, { versioning });
      const many = (headers: Headers) =>
        Promise.all(Array.from({ length: 32 }, (_, i) => put(bucket, `${i}`, headers)));
      const winner = (answers: readonly Answer[]) => {
        const won = answers.filter(({ status }) => status === 200);
        assert.equal(won.length, 1);
        for (const answer of answers)
          if (answer !== won[0]) assertProblem(answer, 412, 'precondition_failed');
        return won[0]?.body;
      };
      const made = winner(await many({ 'if-none-match': '*' }));
      const replaced = winner(await many({ 'if-match': `"${made.version_id}"` }));
      const [entry, ...others] = await listOf(user, bucket, '?include_versions=true');
      assert.equal(entry?.version_id, replaced.version_id);
      assert.equal(others.length, versioning ? 1 : 0);
    });
  });
}

test('the condition of a deleted version is asked of that version', async () => {
  const bucket = await newBucket(user, { versioning: true });
  const one = bodyOf(await put(bucket, 'one'));
  const two = bodyOf(await put(bucket, 'two'));
  const version = `?version_id=${one.version_id}`;
  await refused(remove(one.object_id, { 'if-match': `"${two.etag}"` }, version));
  bodyOf(await remove(one.object_id, { 'if-match': `"${one.etag}"` }, version));
  assert.equal(await text(one.object_id), 'two');
});

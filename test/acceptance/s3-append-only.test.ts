/** Append-only keys in the hands of an attacker: stored objects can be restored afterwards. */
import assert from 'node:assert/strict';
import { before, describe, test } from 'node:test';
import { CheckedClient } from '../harness/checked-client.ts';
import type { CloudProcess } from '../harness/cloud-process.ts';
import { sharedCloud } from '../harness/shared-cloud.ts';
import {
  completion,
  newKeyPair,
  newS3,
  newS3Bucket,
  newUpload,
  pathOf,
  S3Client,
  setVersioning,
  textOf,
} from './s3-kit.ts';

let cloud: CloudProcess;
let owner: CheckedClient;
let full: S3Client;
/** The attacker, over both protocols. */
let s3: S3Client;
let rest: CheckedClient;

before(async () => {
  cloud = await sharedCloud();
  const anyone = await CheckedClient.open(cloud.api);
  owner = anyone.as((await anyone.register()).api_key);
  full = await newS3(cloud.data, owner);
  const made = await newKeyPair(owner, { scopes: ['storage:append', 'storage:read'] });
  s3 = new S3Client(cloud.data, made);
  rest = anyone.as((made as unknown as { api_key: string }).api_key);
});

const DENIED = [403, 'AccessDenied'] as const;
const suspension = '<VersioningConfiguration><Status>Suspended</Status></VersioningConfiguration>';

/** A bucket with the object `a`. */
async function filled(versioning?: 'Enabled' | 'Suspended') {
  const bucket = await newS3Bucket(full, versioning);
  const path = pathOf(bucket, 'a');
  const { headers } = await full.ok('PUT', path, { body: 'precious' });
  const files = await owner.call(`/api/buckets/${bucket}/files?include_versions=true`);
  return { bucket, path, version: String(headers['x-amz-version-id'] ?? 'null'), id: files.body[0].id };
}

const deletion = (key: string, version = '') =>
  `<Delete><Object><Key>${key}</Key>${version && `<VersionId>${version}</VersionId>`}</Object></Delete>`;

/** Every way to replace or remove the object. */
async function attack({ bucket, path, version, id }: Awaited<ReturnType<typeof filled>>) {
  await s3.call('PUT', path, { body: 'ransom' });
  await s3.call('PUT', path, { headers: { 'x-amz-copy-source': pathOf(bucket, 'b') } });
  const uploadId = await newUpload(s3, path);
  const part = await s3.ok('PUT', path, { query: `partNumber=1&uploadId=${uploadId}`, body: 'ransom' });
  const body = completion([{ number: 1, etag: part.headers.etag }]);
  await s3.call('POST', path, { query: `uploadId=${uploadId}`, body });
  await s3.call('DELETE', path);
  await s3.call('POST', `/${bucket}`, { query: 'delete', body: deletion('a') });
  await s3.call('POST', `/${bucket}`, { query: 'delete', body: deletion('a', version) });
  await s3.call('PUT', path, { query: 'tagging', body: '<Tagging><TagSet></TagSet></Tagging>' });
  await rest.upload(bucket, 'a', 'ransom');
  await rest.call(`/api/storage/${id}`, { method: 'DELETE' });
  await rest.call(`/api/storage/${id}?version_id=${version}`, { method: 'DELETE' });
  await rest.call(`/api/storage/${id}`, { method: 'PATCH', json: { metadata: { ransom: true } } });
  for (const query of ['', `versionId=${version}`, 'versionId=null'])
    await s3.call('DELETE', path, { query });
  await s3.call('DELETE', `/${bucket}`);
  await rest.call(`/api/buckets/${bucket}?force=true`, { method: 'DELETE' });
}

describe('a key that may only append', () => {
  test('creates objects at both doors, also in parts', async () => {
    const bucket = await newS3Bucket(full);
    await s3.ok('PUT', pathOf(bucket, 's3'), { body: 'x' });
    assert.equal((await rest.upload(bucket, 'rest', 'x')).status, 200);
    await s3.ok('PUT', pathOf(bucket, 'copy'), { headers: { 'x-amz-copy-source': pathOf(bucket, 's3') } });
    const path = pathOf(bucket, 'parts');
    const uploadId = await newUpload(s3, path);
    const part = await s3.ok('PUT', path, { query: `partNumber=1&uploadId=${uploadId}`, body: 'x' });
    const body = completion([{ number: 1, etag: part.headers.etag }]);
    await s3.ok('POST', path, { query: `uploadId=${uploadId}`, body });
    for (const key of ['s3', 'rest', 'copy', 'parts'])
      assert.equal((await full.ok('GET', pathOf(bucket, key))).text, 'x');
  });

  for (const versioning of [undefined, 'Suspended'] as const) {
    test(`changes nothing that is there, versioning ${versioning ?? 'off'}`, async () => {
      const found = await filled(versioning);
      await s3.ok('PUT', pathOf(found.bucket, 'b'), { body: 'ransom' });
      await attack(found);
      assert.equal((await full.ok('GET', found.path)).text, 'precious');
      await s3.refused(...DENIED, ['PUT', found.path, { body: 'ransom' }]);
      await s3.refused(...DENIED, ['DELETE', found.path]);
      const { body } = await rest.upload(found.bucket, 'a', 'ransom');
      assert.equal(body.code, 'scope_required');
      const answer = await s3.ok('POST', `/${found.bucket}`, { query: 'delete', body: deletion('a') });
      assert.equal(textOf(answer.text, 'Code'), 'AccessDenied');
    });
  }

  test('replaces and deletes in a versioned bucket, and every version stays', async () => {
    const found = await filled('Enabled');
    await s3.ok('PUT', pathOf(found.bucket, 'b'), { body: 'ransom' });
    await attack(found);
    const named = { query: `versionId=${found.version}` };
    assert.equal((await full.ok('GET', found.path, named)).text, 'precious');
    await s3.refused(...DENIED, ['DELETE', found.path, named]);
    assert.equal((await s3.ok('DELETE', found.path)).headers['x-amz-delete-marker'], 'true');
    assert.equal((await full.call('GET', found.path)).status, 404);
    const restored = { json: { version_id: found.version } };
    await owner.expect(200, `/api/storage/${found.id}/restore`, restored);
    assert.equal((await full.ok('GET', found.path)).text, 'precious');
  });

  test('keeps what was stored before versioning was enabled', async () => {
    const { bucket, path } = await filled();
    await setVersioning(full, bucket, 'Enabled');
    await s3.ok('PUT', path, { body: 'ransom' });
    await s3.ok('DELETE', path);
    await s3.refused(...DENIED, ['DELETE', path, { query: 'versionId=null' }]);
    assert.equal((await full.ok('GET', path, { query: 'versionId=null' })).text, 'precious');
  });

  test('does not touch the settings of buckets, nor other keys', async () => {
    const { bucket } = await filled('Enabled');
    await s3.refused(...DENIED, ['PUT', `/${bucket}`, { query: 'versioning', body: suspension }]);
    for (const query of ['encryption', 'tagging', 'acl', 'lifecycle', 'policy', 'object-lock', 'cors']) {
      assert.notEqual((await s3.call('PUT', `/${bucket}`, { query, body: '<X/>' })).status, 200, query);
      assert.ok((await s3.call('DELETE', `/${bucket}`, { query })).status >= 400, query);
    }
    await s3.refused(...DENIED, ['PUT', '/made-by-an-appender']);
    for (const json of [{ versioning: false }, { encryption: true }])
      await rest.refused(403, 'scope_required', [`/api/buckets/${bucket}`, { method: 'PATCH', json }]);
    const json = { name: 'wider', scopes: ['storage:write'] };
    await rest.refused(403, 'scope_required', ['/api/account/access-keys', { json }]);
  });

  test('uses no upload that another key began, and aborts its own', async () => {
    const { bucket } = await filled('Enabled');
    const path = pathOf(bucket, 'big');
    const begun = await newUpload(full, path);
    const part = await full.ok('PUT', path, { query: `partNumber=1&uploadId=${begun}`, body: 'precious' });
    const body = completion([{ number: 1, etag: part.headers.etag }]);
    const query = `uploadId=${begun}`;
    await s3.refused(...DENIED, ['PUT', path, { query: `partNumber=1&${query}`, body: 'ransom' }]);
    const copy = { 'x-amz-copy-source': pathOf(bucket, 'a') };
    await s3.refused(...DENIED, ['PUT', path, { query: `partNumber=1&${query}`, headers: copy }]);
    await s3.refused(...DENIED, ['POST', path, { query, body }]);
    await s3.refused(...DENIED, ['DELETE', path, { query }]);
    const uploads = `/api/buckets/${bucket}/uploads`;
    await rest.refused(403, 'scope_required', [`${uploads}/${begun}`, { method: 'DELETE' }]);
    await full.ok('POST', path, { query, body });
    assert.equal((await full.ok('GET', path)).text, 'precious');
    for (const abort of [
      (id: string) => s3.ok('DELETE', path, { query: `uploadId=${id}` }),
      (id: string) => rest.expect(200, `${uploads}/${id}`, { method: 'DELETE' }),
      (id: string) => full.ok('DELETE', path, { query: `uploadId=${id}` }),
    ]) {
      await abort(await newUpload(s3, path));
    }
    assert.deepEqual(await owner.expect(200, uploads), []);
  });

  test('loses nothing to versioning that is suspended at the same time', async () => {
    const { bucket, path, version } = await filled('Enabled');
    for (let round = 0; round < 12; round++) {
      await setVersioning(full, bucket, 'Enabled');
      await full.ok('PUT', path, { body: `kept ${round}` });
      const before = await versionsOf(bucket);
      await Promise.all([
        setVersioning(full, bucket, 'Suspended'),
        ...Array.from({ length: 4 }, () => s3.call('PUT', path, { body: 'ransom' })),
        ...Array.from({ length: 4 }, () => s3.call('DELETE', path)),
        rest.upload(bucket, 'a', 'ransom'),
      ]);
      const present = await versionsOf(bucket);
      assert.deepEqual(
        before.filter((each) => !present.includes(each)),
        [],
      );
    }
    assert.equal((await full.ok('GET', path, { query: `versionId=${version}` })).text, 'precious');
  });

  test('may be made by a key that may write, and has no more than that', async () => {
    const scopes = ['account:write', 'storage:write'];
    const { api_key } = (await newKeyPair(owner, { scopes })) as unknown as { api_key: string };
    const writer = owner.as(api_key);
    await newKeyPair(writer, { scopes: ['storage:append'] });
    const json = { name: 'admin', scopes: ['storage:admin'] };
    await writer.refused(403, 'scope_required', ['/api/account/access-keys', { json }]);
  });
});

async function versionsOf(bucket: string): Promise<string[]> {
  const { text } = await full.ok('GET', `/${bucket}`, { query: 'versions' });
  return [...text.matchAll(/<VersionId>(.*?)</g)].map(([, version = '']) => version);
}

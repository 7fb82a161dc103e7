/** Versions as seen by S3 clients, and over both protocols. */
import assert from 'node:assert/strict';
import { before, beforeEach, describe, test } from 'node:test';
import type { Client } from '../harness/client.ts';
import {
  completion,
  md5Of,
  newS3Bucket,
  newUpload,
  pathOf,
  type S3Client,
  setVersioning,
  sharedS3,
  textsOf,
} from './s3-kit.ts';
import { bodyOf, listOf } from './storage-kit.ts';

let user: Client;
let s3: S3Client;
let bucket: string;
let path: string;
before(async () => {
  ({ user, s3 } = await sharedS3());
});
beforeEach(async () => {
  bucket = await newS3Bucket(s3);
  path = pathOf(bucket, 'doc');
});

const put = async (body: string) =>
  (await s3.ok('PUT', path, { body })).headers['x-amz-version-id'] as string;
const remove = async (versionId?: string) =>
  (await s3.ok('DELETE', path, versionId === undefined ? {} : { query: `versionId=${versionId}` })).headers;
const get = async (versionId: string) => (await s3.ok('GET', path, { query: `versionId=${versionId}` })).text;
const versions = async () => {
  const { text } = await s3.ok('GET', `/${bucket}`, { query: 'versions' });
  return [...text.matchAll(/<(Version|DeleteMarker)>.*?<VersionId>(.*?)<.*?<IsLatest>(.*?)</g)].map(
    ([, kind, id, isLatest]) =>
      `${kind === 'Version' ? '' : 'marker '}${id}${isLatest === 'true' ? '!' : ''}`,
  );
};
const counters = async () => {
  const body = bodyOf(await user.call(`/api/buckets/${bucket}`));
  return [body.object_count, body.size, body.version_count, body.total_size];
};

describe('versioning', () => {
  test('is off, enabled or suspended', async () => {
    const status = async () =>
      textsOf((await s3.ok('GET', `/${bucket}`, { query: 'versioning' })).text, 'Status');
    assert.deepEqual(await status(), []);
    for (const each of ['Suspended', 'Enabled', 'Suspended']) {
      await setVersioning(s3, bucket, each);
      assert.deepEqual(await status(), [each]);
    }
    for (const body of ['<x/>', '<VersioningConfiguration><Status>Off</Status></VersioningConfiguration>']) {
      await s3.refused(400, 'MalformedXML', ['PUT', `/${bucket}`, { query: 'versioning', body }]);
    }
  });

  test('keeps what is replaced and deleted', async () => {
    await setVersioning(s3, bucket, 'Enabled');
    const [one, two] = [await put('one'), await put('two!')];
    assert.notEqual(one, two);
    const { 'x-amz-delete-marker': isMarker, 'x-amz-version-id': marker } = await remove();
    assert.equal(isMarker, 'true');
    assert.deepEqual(await versions(), [`marker ${marker}!`, two, one]);
    assert.deepEqual([await get(one), await get(two)], ['one', 'two!']);
    const gone = await s3.refused(404, 'NoSuchKey', ['GET', path]);
    assert.deepEqual(
      [gone.headers['x-amz-delete-marker'], gone.headers['x-amz-version-id']],
      ['true', marker],
    );
    const byId = await s3.refused(405, 'MethodNotAllowed', ['GET', path, { query: `versionId=${marker}` }]);
    assert.deepEqual([byId.headers['x-amz-delete-marker'], byId.headers.allow], ['true', 'DELETE']);
    assert.ok(byId.headers['last-modified']);
    const head = await s3.call('HEAD', path, { query: `versionId=${marker}` });
    assert.deepEqual([head.status, head.text, head.headers['x-amz-delete-marker']], [405, '', 'true']);
    const source = { 'x-amz-copy-source': `${bucket}/doc?versionId=${marker}` };
    await s3.refused(400, 'InvalidRequest', ['PUT', path, { headers: source }]);
    const undone = await remove(marker as string);
    assert.deepEqual([undone['x-amz-delete-marker'], undone['x-amz-version-id']], ['true', marker]);
    assert.equal((await s3.ok('GET', path)).text, 'two!');
    assert.equal((await remove(two))['x-amz-version-id'], two);
    assert.equal((await s3.ok('GET', path)).headers['x-amz-version-id'], one);
    await remove(one);
    assert.deepEqual([await versions(), await counters()], [[], [0, 0, 0, 0]]);
  });

  test('marks names that never were, and knows no made-up versions', async () => {
    await setVersioning(s3, bucket, 'Enabled');
    const { 'x-amz-version-id': marker } = await remove();
    assert.deepEqual(await versions(), [`marker ${marker}!`]);
    await put('x');
    const absent = `ver-${'0'.repeat(26)}`;
    await s3.refused(404, 'NoSuchVersion', ['GET', path, { query: `versionId=${absent}` }]);
    for (const method of ['GET', 'DELETE']) {
      for (const query of ['versionId=made-up', 'versionId=']) {
        await s3.refused(400, 'InvalidArgument', [method, path, { query }]);
      }
    }
    await remove(absent);
    assert.equal((await versions()).length, 2);
  });

  test('has a null version for what was there before, and while it is suspended', async () => {
    assert.equal(await put('before'), undefined);
    await setVersioning(s3, bucket, 'Enabled');
    assert.equal((await s3.ok('GET', path)).headers['x-amz-version-id'], 'null');
    const kept = await put('kept');
    assert.deepEqual(await versions(), [`${kept}!`, 'null']);
    await setVersioning(s3, bucket, 'Suspended');
    assert.equal(await put('suspended'), undefined);
    assert.deepEqual(await versions(), ['null!', kept]);
    assert.deepEqual([await get('null'), await get(kept)], ['suspended', 'kept']);
    assert.deepEqual(await counters(), [1, 9, 2, 13]);
    assert.equal((await remove())['x-amz-version-id'], 'null');
    assert.deepEqual(await versions(), ['marker null!', kept]);
    await put('again');
    assert.deepEqual(await versions(), ['null!', kept]);
    await remove('null');
    assert.deepEqual(await versions(), [`${kept}!`]);
    assert.equal((await s3.ok('GET', path)).text, 'kept');
    assert.deepEqual(await counters(), [1, 4, 1, 4]);
  });

  test('of tags and copies goes by version', async () => {
    await setVersioning(s3, bucket, 'Enabled');
    const [one] = [await put('one'), await put('two')];
    const body = '<Tagging><TagSet><Tag><Key>k</Key><Value>v</Value></Tag></TagSet></Tagging>';
    await s3.ok('PUT', path, { query: `tagging&versionId=${one}`, body });
    assert.deepEqual(textsOf((await s3.ok('GET', path, { query: 'tagging' })).text, 'Key'), []);
    assert.deepEqual(textsOf((await s3.ok('GET', path, { query: `tagging&versionId=${one}` })).text, 'Key'), [
      'k',
    ]);
    const headers = { 'x-amz-copy-source': `/${bucket}/doc?versionId=${one}` };
    const copy = await s3.ok('PUT', path, { headers });
    assert.equal(copy.headers['x-amz-copy-source-version-id'], one);
    assert.equal((await s3.ok('GET', path)).text, 'one');
    assert.equal((await versions()).length, 3);
  });

  test('is deleted many at a time, markers and versions', async () => {
    await setVersioning(s3, bucket, 'Enabled');
    const [one, two] = [await put('one'), await put('two')];
    const ask = async (inner: string) =>
      (await s3.ok('POST', `/${bucket}`, { query: 'delete', body: `<Delete>${inner}</Delete>` })).text;
    const marked = await ask('<Object><Key>doc</Key></Object>');
    const [marker] = textsOf(marked, 'DeleteMarkerVersionId');
    assert.deepEqual(await versions(), [`marker ${marker}!`, two, one]);
    const ids = [one, two, marker].map((id) => `<Object><Key>doc</Key><VersionId>${id}</VersionId></Object>`);
    await ask(ids.join(''));
    assert.deepEqual(await versions(), []);
  });

  test('markers of a page: one without its key, or made up', async () => {
    await setVersioning(s3, bucket, 'Enabled');
    await put('x');
    for (const query of ['version-id-marker=x', 'key-marker=doc&version-id-marker=made-up']) {
      await s3.refused(400, 'InvalidArgument', ['GET', `/${bucket}`, { query: `versions&${query}` }]);
    }
  });
});

describe('a bucket is emptied page by page, each page deleted before the next', () => {
  const upload = (key: string) => s3.ok('PUT', pathOf(bucket, key), { body: key });
  /** `KEY VERSION` of a page, and the query of the page after it. */
  const pageOf = async (query: string) => {
    const { text } = await s3.ok('GET', `/${bucket}`, { query: `versions${query}` });
    const entries = [...text.matchAll(/<(?:Version|DeleteMarker)><Key>(.*?)<\/Key><VersionId>(.*?)</g)];
    const [key = ''] = textsOf(text, 'NextKeyMarker');
    const [id = ''] = textsOf(text, 'NextVersionIdMarker');
    const isTruncated = textsOf(text, 'IsTruncated')[0] === 'true';
    const markers = `&key-marker=${encodeURIComponent(key)}&version-id-marker=${id}`;
    return {
      entries: entries.map(([, name = '', version = '']) => ({ name, version })),
      isTruncated,
      markers,
    };
  };
  const deleteAll = async (entries: readonly { readonly name: string; readonly version: string }[]) => {
    const inner = entries.map(
      ({ name, version }) => `<Object><Key>${name}</Key><VersionId>${version}</VersionId></Object>`,
    );
    const body = `<Delete>${inner.join('')}</Delete>`;
    const { text } = await s3.ok('POST', `/${bucket}`, { query: 'delete', body });
    assert.deepEqual(textsOf(text, 'Code'), [], text);
  };
  /** Names and versions in the listed order. */
  const empty = async (limit: string) => {
    const seen: string[] = [];
    for (let query = limit, more = true; more; ) {
      const { entries, isTruncated, markers } = await pageOf(query);
      seen.push(...entries.map(({ name, version }) => `${name} ${version}`));
      await deleteAll(entries);
      more = isTruncated;
      query = `${limit}${markers}`;
    }
    return seen;
  };

  test('with versions, markers and null versions, in pages of any size', async () => {
    for (const size of [1, 2, 3, 5]) {
      bucket = await newS3Bucket(s3);
      await upload('a');
      await upload('b');
      await setVersioning(s3, bucket, 'Enabled');
      for (const key of ['a', 'a', 'b', 'c', 'd']) await upload(key);
      await s3.ok('DELETE', pathOf(bucket, 'a'));
      await setVersioning(s3, bucket, 'Suspended');
      for (const key of ['b', 'c', 'e']) await upload(key);
      const { entries } = await pageOf('');
      const all = entries.map(({ name, version }) => `${name} ${version}`);
      assert.deepEqual(await empty(`&max-keys=${size}`), all);
      assert.equal(all.length, 10);
      assert.deepEqual((await pageOf('')).entries, []);
    }
  });

  test('without versions, and of more than a page of the usual size', async () => {
    const keys = Array.from({ length: 1150 }, (_, at) => `k${String(at).padStart(4, '0')}`);
    for (let at = 0; at < keys.length; at += 50) await Promise.all(keys.slice(at, at + 50).map(upload));
    const seen = await empty('');
    assert.deepEqual(
      seen,
      keys.map((key) => `${key} null`),
    );
    await s3.ok('DELETE', `/${bucket}`);
  });

  test('goes on where it was when others delete what a page ended with', async () => {
    await setVersioning(s3, bucket, 'Enabled');
    for (const key of ['a', 'a', 'a', 'b']) await upload(key);
    const [newest, middle, oldest, other] = (await pageOf('')).entries;
    const { markers, entries } = await pageOf('&max-keys=2');
    assert.deepEqual(entries, [newest, middle]);
    await deleteAll([middle ?? { name: '', version: '' }]);
    assert.deepEqual((await pageOf(markers)).entries, [oldest, other]);
    await upload('a');
    assert.deepEqual((await pageOf(markers)).entries, [oldest, other]);
  });
});

describe('both doors show one truth', () => {
  const download = async (id: string, query = '') => (await user.download(id, query)).toString();

  test('of what either uploads, deletes and restores', async () => {
    await setVersioning(s3, bucket, 'Enabled');
    const rest = bodyOf(await user.upload(bucket, 'doc', 'by rest', { metadata: '{"a":"1"}' }));
    const read = await s3.ok('GET', path);
    assert.deepEqual([read.text, read.headers.etag], ['by rest', `"${md5Of('by rest')}"`]);
    assert.deepEqual(
      [read.headers['x-amz-version-id'], read.headers['x-amz-meta-a']],
      [rest.version_id, '1'],
    );
    const second = await put('by s3');
    assert.equal(await download(rest.object_id), 'by s3');
    const listed = await listOf(user, bucket, '?include_versions=true');
    assert.deepEqual(
      listed.map(({ version_id }) => version_id),
      [second, rest.version_id],
    );
    const { 'x-amz-version-id': marker } = await remove();
    const marked = await listOf(user, bucket, '?include_versions=true');
    assert.deepEqual([marked[0]?.version_id, marked[0]?.is_delete_marker], [marker, true]);
    assert.deepEqual(await counters(), [0, 0, 2, 12]);
    bodyOf(await user.call(`/api/storage/${rest.object_id}?version_id=${marker}`, { method: 'DELETE' }));
    assert.equal((await s3.ok('GET', path)).text, 'by s3');
    bodyOf(await user.call(`/api/storage/${rest.object_id}`, { method: 'DELETE' }));
    await s3.refused(404, 'NoSuchKey', ['GET', path]);
    assert.deepEqual(await listOf(user, bucket), []);
    assert.equal((await versions()).length, 3);
  });

  test('of parts', async () => {
    const id = await newUpload(s3, path, { headers: { 'content-type': 'text/plain' } });
    const bytes = Buffer.alloc(5 * 2 ** 20, 'part ');
    const parts = [];
    for (const [at, body] of [bytes, Buffer.from('end')].entries()) {
      const { headers } = await s3.ok('PUT', path, { query: `partNumber=${at + 1}&uploadId=${id}`, body });
      parts.push({ number: at + 1, etag: headers.etag });
    }
    await s3.ok('POST', path, { query: `uploadId=${id}`, body: completion(parts) });
    const [file] = await listOf(user, bucket);
    assert.deepEqual([file?.name, file?.size, file?.mime_type], ['doc', bytes.length + 3, 'text/plain']);
    assert.ok((await user.download(file?.id)).equals(Buffer.concat([bytes, Buffer.from('end')])));
    assert.deepEqual(await counters(), [1, bytes.length + 3, 1, bytes.length + 3]);
    bodyOf(await user.call(`/api/storage/${file?.id}`, { method: 'DELETE' }));
    assert.deepEqual(await counters(), [0, 0, 0, 0]);
  });

  test('of names that only S3 allows, and of the state of versioning', async () => {
    await s3.ok('PUT', pathOf(bucket, 'tab\tand\u0001'), { body: 'odd' });
    const [file] = await listOf(user, bucket);
    assert.equal(file?.name, 'tab\tand\u0001');
    assert.equal(await download(file?.id), 'odd');
    bodyOf(await user.call(`/api/buckets/${bucket}`, { method: 'PATCH', json: { versioning: true } }));
    assert.deepEqual(textsOf((await s3.ok('GET', `/${bucket}`, { query: 'versioning' })).text, 'Status'), [
      'Enabled',
    ]);
    bodyOf(await user.call(`/api/buckets/${bucket}`, { method: 'PATCH', json: { versioning: false } }));
    assert.notDeepEqual(textsOf((await s3.ok('GET', `/${bucket}`, { query: 'versioning' })).text, 'Status'), [
      'Enabled',
    ]);
  });

  test('after any history of both', async () => {
    const next = random(7);
    const keys = ['k1', 'k2', 'dir/k3'];
    const pick = <T>(all: readonly T[]) => all[next(all.length)] as T;
    for (let step = 0; step < 150; step++) {
      const key = pick(keys);
      const s3Path = pathOf(bucket, key);
      const object = (await listOf(user, bucket)).find(({ name }) => name === key);
      const all = await listOf(user, bucket, '?include_versions=true');
      const any = all.length === 0 ? undefined : pick(all);
      const acts: (() => Promise<unknown>)[] = [
        () => s3.ok('PUT', s3Path, { body: `s3 ${step}` }),
        async () => bodyOf(await user.upload(bucket, key, `rest ${step}`)),
        () => s3.ok('DELETE', s3Path),
        async () => object && bodyOf(await user.call(`/api/storage/${object.id}`, { method: 'DELETE' })),
        async () =>
          any && s3.ok('DELETE', pathOf(bucket, any.name), { query: `versionId=${any.version_id}` }),
        async () =>
          any && user.call(`/api/storage/${any.id}?version_id=${any.version_id}`, { method: 'DELETE' }),
        () => setVersioning(s3, bucket, pick(['Enabled', 'Suspended', 'Enabled'])),
      ];
      await pick(acts)();
      await assertAgreed(`step ${step}`);
    }
  });
});

function random(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (state * 1_103_515_245 + 12_345) % 2 ** 31;
    return Math.floor((state / 2 ** 31) * below);
  };
}

/** Lists, bytes and counters are the same over both protocols. */
async function assertAgreed(when: string): Promise<void> {
  const { text } = await s3.ok('GET', `/${bucket}`, { query: 'versions' });
  const byS3 = [...text.matchAll(/<(Version|DeleteMarker)><Key>(.*?)<.*?<IsLatest>(.*?)<.*?<\/\1>/g)].map(
    ([, kind, key, isLatest]) => [key, kind === 'DeleteMarker', isLatest === 'true'],
  );
  const all = await listOf(user, bucket, '?include_versions=true');
  assert.deepEqual(
    byS3,
    all.map((each) => [each.name, each.is_delete_marker, each.is_latest]),
    when,
  );
  const live = await listOf(user, bucket);
  const listed = (await s3.ok('GET', `/${bucket}`)).text;
  assert.deepEqual(
    textsOf(listed, 'Key'),
    live.map(({ name }) => name),
    when,
  );
  assert.deepEqual(
    textsOf(listed, 'ETag'),
    live.map(({ etag }) => `"${etag.replaceAll('"', '')}"`),
    when,
  );
  const kept = all.filter(({ is_delete_marker }) => !is_delete_marker);
  const sum = (rows: { size: number }[]) => rows.reduce((total, { size }) => total + size, 0);
  assert.deepEqual(await counters(), [live.length, sum(live as []), kept.length, sum(kept as [])], when);
}

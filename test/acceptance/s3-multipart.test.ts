import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { before, beforeEach, describe, test } from 'node:test';
import type { Client } from '../harness/client.ts';
import { eventually } from '../harness/waiting.ts';
import {
  md5Of,
  metadataOf,
  newS3Bucket,
  newUpload,
  pathOf,
  ROW_BYTES,
  type S3Client,
  sharedS3,
  textOf,
  textsOf,
} from './s3-kit.ts';
import { type Part, type PartUploads, partUploadsTo } from './s3-parts-kit.ts';

const MIB = 2 ** 20;
const NAMED = metadataOf('whole');
const BIG = Buffer.alloc(5 * MIB, 'five mebibytes ');

let user: Client;
let s3: S3Client;
let bucket: string;
let path: string;
let putPart: PartUploads['putPart'];
let completing: PartUploads['completing'];
before(async () => {
  ({ user, s3 } = await sharedS3());
});
beforeEach(async () => {
  bucket = await newS3Bucket(s3);
  path = pathOf(bucket, 'whole');
  ({ putPart, completing } = partUploadsTo(s3, path));
});

/** Bytes for which the account is charged. */
const charged = async (): Promise<number> =>
  (await user.call('/api/billing/quotas')).body.quotas.storage_bytes.used;

describe('parts', () => {
  test('become one object, in order, with what the upload said of it', async () => {
    const headers = { 'content-type': 'text/parts', 'x-amz-meta-a': '1', 'x-amz-tagging': 'k=v' };
    const id = await newUpload(s3, path, { headers });
    const last = await putPart(id, 7, 'the end');
    const first = await putPart(id, 2, BIG);
    await s3.refused(404, 'NoSuchKey', ['GET', path]);
    const done = await s3.ok(...completing(id, [first, last]));
    const etags = Buffer.concat(
      [BIG, Buffer.from('the end')].map((each) => createHash('md5').update(each).digest()),
    );
    const etag = `"${md5Of(etags)}-2"`;
    assert.deepEqual([textOf(done.text, 'ETag'), textOf(done.text, 'Key')], [etag, 'whole']);
    const read = await s3.ok('GET', path);
    assert.ok(read.bytes.equals(Buffer.concat([BIG, Buffer.from('the end')])));
    assert.deepEqual([read.headers.etag, read.headers['content-type']], [etag, 'text/parts']);
    assert.deepEqual([read.headers['x-amz-meta-a'], read.headers['x-amz-tagging-count']], ['1', '1']);
    const range = await s3.ok('GET', path, { headers: { range: `bytes=${5 * MIB - 2}-${5 * MIB + 2}` } });
    assert.equal(range.text, `${BIG.subarray(-2)}the`);
    await s3.refused(404, 'NoSuchUpload', ['GET', path, { query: `uploadId=${id}` }]);
    assert.deepEqual(textsOf((await s3.ok('GET', `/${bucket}`, { query: 'uploads' })).text, 'UploadId'), []);
  });

  test('are read one by one', async () => {
    const id = await newUpload(s3, path);
    await s3.ok(...completing(id, [await putPart(id, 1, BIG), await putPart(id, 2, 'two')]));
    for (const method of ['GET', 'HEAD']) {
      const { status, headers } = await s3.call(method, path, { query: 'partNumber=2' });
      assert.deepEqual([status, headers['content-length'], headers['x-amz-mp-parts-count']], [206, '3', '2']);
      assert.equal(headers['content-range'], `bytes ${5 * MIB}-${5 * MIB + 2}/${5 * MIB + 3}`);
    }
    await s3.refused(416, 'InvalidPartNumber', ['GET', path, { query: 'partNumber=3' }]);
    const both = { query: 'partNumber=1', headers: { range: 'bytes=0-1' } };
    await s3.refused(400, 'InvalidRequest', ['GET', path, both]);
    const headers = { 'x-amz-object-attributes': 'ObjectParts', 'x-amz-max-parts': '1' };
    const { text } = await s3.ok('GET', path, { query: 'attributes', headers });
    assert.deepEqual([textOf(text, 'PartsCount'), textsOf(text, 'PartNumber')], ['2', ['1']]);
    assert.deepEqual([textOf(text, 'IsTruncated'), textOf(text, 'NextPartNumberMarker')], ['true', '1']);
    const more = { ...headers, 'x-amz-part-number-marker': '1' };
    const rest = (await s3.ok('GET', path, { query: 'attributes', headers: more })).text;
    assert.deepEqual([textsOf(rest, 'PartNumber'), textOf(rest, 'IsTruncated')], [['2'], 'false']);
  });

  test('are listed in pages, and replaced by those that come later', async () => {
    const id = await newUpload(s3, path);
    for (const number of [1, 2, 10_000]) await putPart(id, number, `part ${number}`);
    const again = await putPart(id, 2, 'part 2 again');
    const list = async (query = '') => (await s3.ok('GET', path, { query: `uploadId=${id}${query}` })).text;
    const all = await list();
    assert.deepEqual(textsOf(all, 'PartNumber'), ['1', '2', '10000']);
    assert.equal(textsOf(all, 'ETag')[1], again.etag);
    assert.deepEqual(textsOf(all, 'Size'), ['6', '12', '10']);
    const page = await list('&max-parts=2');
    assert.deepEqual([textOf(page, 'IsTruncated'), textOf(page, 'NextPartNumberMarker')], ['true', '2']);
    assert.deepEqual(textsOf(await list('&max-parts=2&part-number-marker=2'), 'PartNumber'), ['10000']);
    for (const number of ['0', '10001', '-1', 'x', '1.5']) {
      const query = `partNumber=${number}&uploadId=${id}`;
      await s3.refused(400, 'InvalidArgument', ['PUT', path, { query, body: 'x' }]);
    }
  });

  test('must be those that the client names', async () => {
    const id = await newUpload(s3, path);
    const [one, two, three] = [
      await putPart(id, 1, BIG),
      await putPart(id, 2, 'small'),
      await putPart(id, 3, 'end'),
    ];
    const cases: [string, readonly Part[]][] = [
      ['InvalidPartOrder', [two, one]],
      ['InvalidPartOrder', [one, one]],
      ['EntityTooSmall', [one, two, three]],
      ['InvalidPart', [one, { number: 4, etag: three.etag }]],
      ['InvalidPart', [{ number: 1, etag: two.etag }]],
      ['MalformedXML', []],
    ];
    for (const [code, parts] of cases) await s3.refused(400, code, completing(id, parts));
    for (const body of ['', '<x/>', '<CompleteMultipartUpload><Part></Part></CompleteMultipartUpload>']) {
      await s3.refused(400, 'MalformedXML', ['POST', path, { query: `uploadId=${id}`, body }]);
    }
    await s3.refused(404, 'NoSuchKey', ['GET', path]);
    await s3.ok(
      ...completing(
        id,
        [one, two].map(({ number, etag }) => ({ number, etag: etag?.replaceAll('"', '') })),
      ),
    );
    assert.equal((await s3.ok('HEAD', path)).headers['content-length'], String(5 * MIB + 5));
  });

  test('are copied from objects, whole and in ranges', async () => {
    const source = `/${bucket}/${encodeURIComponent('a source/ü')}`;
    await s3.ok('PUT', pathOf(bucket, 'a source/ü'), { body: Buffer.concat([BIG, Buffer.from('tail')]) });
    const id = await newUpload(s3, path);
    const copy = async (number: number, range?: string) => {
      const headers = { 'x-amz-copy-source': source, ...(range && { 'x-amz-copy-source-range': range }) };
      return s3.call('PUT', path, { query: `partNumber=${number}&uploadId=${id}`, headers });
    };
    const parts = [];
    for (const [number, range] of [
      [1, undefined],
      [2, `bytes=${5 * MIB}-${5 * MIB + 3}`],
    ] as const) {
      parts.push({ number, etag: textOf((await copy(number, range)).text, 'ETag') });
    }
    assert.equal(textOf((await copy(3, 'bytes=0-99999999')).text, 'Code'), 'InvalidRange');
    for (const range of ['bytes=4-', 'bytes=-4', '0-4', 'bytes=5-4'])
      assert.equal(textOf((await copy(3, range)).text, 'Code'), 'InvalidArgument', range);
    await s3.ok(...completing(id, parts));
    const { bytes } = await s3.ok('GET', path);
    assert.ok(bytes.equals(Buffer.concat([BIG, Buffer.from('tailtail')])));
  });
});

describe('an upload', () => {
  test('that was completed may be completed again, and nothing else', async () => {
    const id = await newUpload(s3, path);
    const part = await putPart(id, 1, 'all');
    const first = await s3.ok(...completing(id, [part]));
    const again = await s3.ok(...completing(id, [part]));
    assert.equal(textOf(again.text, 'ETag'), textOf(first.text, 'ETag'));
    const query = `partNumber=1&uploadId=${id}`;
    await s3.refused(404, 'NoSuchUpload', ['PUT', path, { query, body: 'late' }]);
    await s3.refused(404, 'NoSuchUpload', ['DELETE', path, { query: `uploadId=${id}` }]);
    assert.equal((await s3.ok('GET', path)).text, 'all');
  });

  test('completed many times at once makes one version', async () => {
    await s3.ok('PUT', `/${bucket}`, {
      query: 'versioning',
      body: '<VersioningConfiguration><Status>Enabled</Status></VersioningConfiguration>',
    });
    const id = await newUpload(s3, path);
    const part = await putPart(id, 1, 'all');
    const answers = await Promise.all(Array.from({ length: 6 }, () => s3.ok(...completing(id, [part]))));
    assert.equal(new Set(answers.map(({ headers }) => headers['x-amz-version-id'])).size, 1);
    assert.equal(
      textsOf((await s3.ok('GET', `/${bucket}`, { query: 'versions' })).text, 'VersionId').length,
      1,
    );
  });

  test('completed while a part comes keeps one of the two states', async () => {
    for (let round = 0; round < 5; round++) {
      const id = await newUpload(s3, path);
      const old = await putPart(id, 1, 'old bytes');
      const query = `partNumber=1&uploadId=${id}`;
      const [part, done] = await Promise.all([
        s3.call('PUT', path, { query, body: 'newer bytes' }),
        s3.call(...completing(id, [old])),
      ]);
      if (done.status === 200) assert.equal((await s3.ok('GET', path)).text, 'old bytes');
      else {
        assert.equal(textOf(done.text, 'Code'), 'InvalidPart');
        await s3.ok(...completing(id, [{ number: 1, etag: part.headers.etag }]));
        assert.equal((await s3.ok('GET', path)).text, 'newer bytes');
      }
    }
  });

  test('that was aborted takes nothing more, and gives its space back', async () => {
    const before = await charged();
    const id = await newUpload(s3, path);
    for (const number of [1, 2]) await putPart(id, number, BIG);
    await putPart(id, 2, 'smaller');
    assert.equal(await charged(), before + 5 * MIB + 7 + NAMED + 2 * ROW_BYTES);
    assert.equal((await s3.ok('DELETE', path, { query: `uploadId=${id}` })).status, 204);
    assert.equal(await charged(), before);
    const query = `uploadId=${id}`;
    await s3.refused(404, 'NoSuchUpload', ['DELETE', path, { query }]);
    await s3.refused(404, 'NoSuchUpload', ['PUT', path, { query: `partNumber=1&${query}`, body: 'x' }]);
    await s3.refused(404, 'NoSuchUpload', ['GET', path, { query }]);
    assert.equal(await charged(), before);
  });

  test('charges for the parts that became the object, and no others', async () => {
    const before = await charged();
    const id = await newUpload(s3, path);
    const [one] = [await putPart(id, 1, BIG), await putPart(id, 2, 'left out'), await putPart(id, 3, 'too')];
    await s3.ok(...completing(id, [one as Part]));
    assert.equal(await charged(), before + 5 * MIB + NAMED);
    await s3.ok('DELETE', path);
    assert.equal(await charged(), before);
  });

  test('keeps its bucket from being removed as empty no longer than it lasts', async () => {
    const id = await newUpload(s3, path);
    await putPart(id, 1, 'x');
    const before = await charged();
    const removed = await s3.call('DELETE', `/${bucket}`);
    assert.ok([204, 409].includes(removed.status), removed.text);
    if (removed.status === 204)
      await eventually('the space is back', async () => (await charged()) === before - 1 - NAMED - ROW_BYTES);
  });

  test('is listed by name, then by age, in pages', async () => {
    const ids: string[] = [];
    for (const key of ['b', 'a', 'b', 'dir/x', 'dir/y']) ids.push(await newUpload(s3, pathOf(bucket, key)));
    const [b1, a, b2, x, y] = ids;
    const list = async (query: string) =>
      (await s3.ok('GET', `/${bucket}`, { query: `uploads${query}` })).text;
    assert.deepEqual(textsOf(await list(''), 'UploadId'), [a, b1, b2, x, y]);
    const folded = await list('&delimiter=%2F');
    assert.deepEqual(textsOf(folded, 'UploadId'), [a, b1, b2]);
    assert.deepEqual(
      textsOf(folded, 'Prefix').filter((text) => text !== ''),
      ['dir/'],
    );
    const seen: string[] = [];
    for (let markers = '', more = true; more; ) {
      const page = await list(`&max-uploads=1${markers}`);
      seen.push(...textsOf(page, 'UploadId'));
      more = textOf(page, 'IsTruncated') === 'true';
      markers = more
        ? `&key-marker=${encodeURIComponent(textOf(page, 'NextKeyMarker'))}&upload-id-marker=${textOf(page, 'NextUploadIdMarker')}`
        : '';
    }
    assert.deepEqual(seen, [a, b1, b2, x, y]);
  });

  test('is listed after one that ended, by pages that are ended one by one', async () => {
    const keys = ['a', 'b', 'b', 'b', 'b', 'c'];
    const ids: string[] = [];
    for (const key of keys) ids.push(await newUpload(s3, pathOf(bucket, key)));
    // An aborted one, of the same millisecond as the third: their order is undefined.
    const gone = ids[2]?.replace(/.$/, (end) => (end === '0' ? '1' : '0'));
    const after = await s3.ok('GET', `/${bucket}`, {
      query: `uploads&key-marker=b&upload-id-marker=${gone}`,
    });
    assert.deepEqual(textsOf(after.text, 'UploadId'), ids.slice(2));
    const seen: string[] = [];
    for (let markers = '', more = true; more; ) {
      const { text } = await s3.ok('GET', `/${bucket}`, { query: `uploads&max-uploads=2${markers}` });
      const found = textsOf(text, 'UploadId');
      for (const id of found) {
        const key = keys[ids.indexOf(id)] ?? '';
        await s3.ok('DELETE', pathOf(bucket, key), { query: `uploadId=${id}` });
      }
      seen.push(...found);
      more = textOf(text, 'IsTruncated') === 'true';
      const [key, id] = [textsOf(text, 'NextKeyMarker')[0], textsOf(text, 'NextUploadIdMarker')[0]];
      markers = `&key-marker=${key}&upload-id-marker=${id}`;
    }
    assert.deepEqual(seen, ids);
    const malformed = { query: 'uploads&key-marker=b&upload-id-marker=made-up' };
    await s3.refused(400, 'InvalidArgument', ['GET', `/${bucket}`, malformed]);
  });

  test('writes only when its condition holds', async () => {
    await s3.ok('PUT', path, { body: 'there' });
    const id = await newUpload(s3, path);
    const part = await putPart(id, 1, 'new');
    const none = { headers: { 'if-none-match': '*' } };
    await s3.refused(412, 'PreconditionFailed', completing(id, [part], none));
    await s3.ok('DELETE', path);
    await s3.ok(...completing(id, [part], none));
    assert.equal((await s3.ok('GET', path)).text, 'new');
  });
});

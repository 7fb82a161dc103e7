/** Conditions and checksums of S3 requests. */
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { before, beforeEach, describe, test } from 'node:test';
import { crc32 } from 'node:zlib';
import {
  type Mode,
  md5Of,
  newS3Bucket,
  pathOf,
  type S3Client,
  setVersioning,
  sharedS3,
  textOf,
  textsOf,
} from './s3-kit.ts';

let s3: S3Client;
let bucket: string;
let path: string;
before(async () => {
  ({ s3 } = await sharedS3());
});
beforeEach(async () => {
  bucket = await newS3Bucket(s3);
  path = pathOf(bucket, 'doc');
});

const ETAG = `"${md5Of('first')}"`;
const OTHER = `"${md5Of('other')}"`;
const PAST = new Date(Date.now() - 86_400_000).toUTCString();
const FUTURE = new Date(Date.now() + 86_400_000).toUTCString();

describe('conditions', () => {
  beforeEach(() => s3.ok('PUT', path, { body: 'first' }));

  test('of reads', async () => {
    const cases: [Record<string, string>, number][] = [
      [{ 'if-match': ETAG }, 200],
      [{ 'if-match': ETAG.replaceAll('"', '') }, 200],
      [{ 'if-match': '*' }, 200],
      [{ 'if-match': `${OTHER}, ${ETAG}` }, 200],
      [{ 'if-match': OTHER }, 412],
      [{ 'if-none-match': ETAG }, 304],
      [{ 'if-none-match': OTHER }, 200],
      [{ 'if-modified-since': PAST }, 200],
      [{ 'if-modified-since': FUTURE }, 304],
      [{ 'if-unmodified-since': PAST }, 412],
      [{ 'if-unmodified-since': FUTURE }, 200],
      [{ 'if-match': ETAG, 'if-unmodified-since': PAST }, 200],
      [{ 'if-none-match': OTHER, 'if-modified-since': FUTURE }, 200],
    ];
    for (const [headers, wanted] of cases) {
      for (const method of ['GET', 'HEAD']) {
        const { status, headers: got, text } = await s3.call(method, path, { headers });
        assert.equal(status, wanted, JSON.stringify(headers));
        if (wanted === 304) assert.deepEqual([got.etag, text], [ETAG, '']);
      }
    }
  });

  test('of writes', async () => {
    const put = (headers: Record<string, string>, to = path) =>
      s3.call('PUT', to, { body: 'second', headers });
    for (const headers of [{ 'if-none-match': '*' }, { 'if-none-match': ETAG }, { 'if-match': OTHER }]) {
      assert.equal((await put(headers as never)).status, 412, JSON.stringify(headers));
    }
    await s3.refused(404, 'NoSuchKey', ['PUT', pathOf(bucket, 'new'), { headers: { 'if-match': '*' } }]);
    assert.equal((await s3.ok('GET', path)).text, 'first');
    assert.equal((await put({ 'if-match': ETAG })).status, 200);
    assert.equal((await put({ 'if-none-match': '*' }, pathOf(bucket, 'new'))).status, 200);
  });

  test('of writes at once let one through', async () => {
    const to = pathOf(bucket, 'lock');
    const answers = await Promise.all(
      Array.from({ length: 10 }, (_, at) =>
        s3.call('PUT', to, { body: `${at}`, headers: { 'if-none-match': '*' } }),
      ),
    );
    assert.equal(answers.filter(({ status }) => status === 200).length, 1);
    assert.ok(answers.every(({ status }) => [200, 409, 412].includes(status)));
  });

  test('of copies', async () => {
    const source = { 'x-amz-copy-source': `/${bucket}/doc` };
    const copy = (headers: Record<string, string>) =>
      s3.call('PUT', pathOf(bucket, 'copy'), { headers: { ...source, ...headers } });
    for (const [name, good, bad] of [
      ['x-amz-copy-source-if-match', ETAG, OTHER],
      ['x-amz-copy-source-if-none-match', OTHER, ETAG],
      ['x-amz-copy-source-if-modified-since', PAST, FUTURE],
      ['x-amz-copy-source-if-unmodified-since', FUTURE, PAST],
      ['if-none-match', OTHER, '*'],
    ] as const) {
      assert.equal((await copy({ [name]: good })).status, 200, name);
      assert.equal((await copy({ [name]: bad })).status, 412, name);
    }
  });

  test('of appending, which would otherwise replace the object', async () => {
    const append = { body: 'more', headers: { 'x-amz-write-offset-bytes': '5' } };
    await s3.refused(501, 'NotImplemented', ['PUT', path, append]);
    assert.equal((await s3.ok('HEAD', path)).headers.etag, ETAG);
  });

  test('of deletes', async () => {
    const remove = (headers: Record<string, string>) => s3.call('DELETE', path, { headers });
    assert.equal((await remove({ 'if-match': OTHER })).status, 412);
    assert.equal((await remove({ 'x-amz-if-match-size': '4' })).status, 412);
    assert.equal((await remove({ 'x-amz-if-match-last-modified-time': PAST })).status, 412);
    for (const odd of ['x-amz-if-match-size', 'x-amz-if-match-last-modified-time']) {
      await s3.refused(400, 'InvalidArgument', ['DELETE', path, { headers: { [odd]: 'odd' } }]);
    }
    const many = `<Delete><Object><Key>doc</Key><ETag>${OTHER}</ETag></Object></Delete>`;
    const { text } = await s3.ok('POST', `/${bucket}`, { query: 'delete', body: many });
    assert.deepEqual(textsOf(text, 'Code'), ['PreconditionFailed']);
    assert.equal((await remove({ 'if-match': ETAG, 'x-amz-if-match-size': '5' })).status, 204);
    // An absent object has no ETag.
    for (const etag of [ETAG, '*']) {
      await s3.refused(404, 'NoSuchKey', ['DELETE', path, { headers: { 'if-match': etag } }]);
    }
    const absent = await s3.ok('POST', `/${bucket}`, { query: 'delete', body: many });
    assert.deepEqual(textsOf(absent.text, 'Code'), ['NoSuchKey']);
    await setVersioning(s3, bucket, 'Enabled');
    assert.equal((await remove({})).status, 204);
    for (const etag of [ETAG, '*']) {
      await s3.refused(412, 'PreconditionFailed', ['DELETE', path, { headers: { 'if-match': etag } }]);
    }
    assert.equal((await remove({ 'x-amz-if-match-size': '5' })).status, 412);
    assert.equal((await remove({ 'x-amz-if-match-size': '0' })).status, 204);
  });
});

describe('checksums', () => {
  const crc = Buffer.alloc(4);
  crc.writeUInt32BE(crc32('123456789'));
  /** Of `123456789`. */
  const SUMS: Readonly<Record<string, string>> = {
    crc32: crc.toString('base64'),
    crc32c: '4waSgw==',
    crc64nvme: Buffer.from('ae8b14860a799888', 'hex').toString('base64'),
    sha1: createHash('sha1').update('123456789').digest('base64'),
    sha256: createHash('sha256').update('123456789').digest('base64'),
  };

  test('in headers and trailers are checked, kept and shown', async () => {
    for (const [name, sum] of Object.entries(SUMS)) {
      const header = `x-amz-checksum-${name}`;
      for (const mode of ['hash', 'signed-trailer', 'unsigned-trailer'] as Mode[]) {
        const given = { [header]: sum };
        const wrong = { [header]: `${sum.startsWith('A') ? 'B' : 'A'}${sum.slice(1)}` };
        const ask = (sums: Record<string, string>) => ({
          mode,
          body: '123456789',
          ...(mode === 'hash' ? { headers: sums } : { trailers: sums }),
        });
        await s3.refused(400, 'BadDigest', ['PUT', path, ask(wrong)]);
        await s3.refused(404, 'NoSuchKey', ['GET', path]);
        assert.equal((await s3.ok('PUT', path, ask(given))).headers[header], sum, `${name} ${mode}`);
        const shown = await s3.ok('GET', path, { headers: { 'x-amz-checksum-mode': 'ENABLED' } });
        assert.deepEqual([shown.headers[header], shown.headers['x-amz-checksum-type']], [sum, 'FULL_OBJECT']);
        assert.equal((await s3.ok('GET', path)).headers[header], undefined);
        await s3.ok('DELETE', path);
      }
    }
  });

  test('that are wrong or of no kind store nothing', async () => {
    for (const [headers, code] of [
      [{ 'content-md5': Buffer.from(md5Of('other'), 'hex').toString('base64') }, 'BadDigest'],
      [{ 'content-md5': 'short' }, 'InvalidDigest'],
      [{ 'x-amz-checksum-crc32': 'short' }, 'InvalidRequest'],
      [{ 'x-amz-checksum-crc32': SUMS.crc32, 'x-amz-checksum-sha1': SUMS.sha1 }, 'InvalidRequest'],
      [{ 'x-amz-checksum-md17': 'AAAA' }, 'InvalidRequest'],
    ] as [Record<string, string>, string][]) {
      await s3.refused(400, code, ['PUT', path, { body: '123456789', headers }]);
    }
    await s3.refused(404, 'NoSuchKey', ['GET', path]);
  });

  test('of copies are those of the source, or of the kind that is asked for', async () => {
    await s3.ok('PUT', path, { body: '123456789', headers: { 'x-amz-checksum-sha1': SUMS.sha1 ?? '' } });
    const [source, target] = [{ 'x-amz-copy-source': path }, `/${bucket}/copy`];
    for (const encryption of [{}, { 'x-amz-server-side-encryption': 'AES256' }]) {
      for (const [name, sum] of Object.entries(SUMS)) {
        const asked = name === 'sha1' ? {} : { 'x-amz-checksum-algorithm': name.toUpperCase() };
        const copy = await s3.ok('PUT', target, { headers: { ...source, ...encryption, ...asked } });
        assert.deepEqual(
          [textOf(copy.text, `Checksum${name.toUpperCase()}`), textOf(copy.text, 'ChecksumType')],
          [sum, 'FULL_OBJECT'],
        );
        const shown = await s3.ok('GET', target, { headers: { 'x-amz-checksum-mode': 'ENABLED' } });
        assert.deepEqual([shown.text, shown.headers[`x-amz-checksum-${name}`]], ['123456789', sum]);
      }
    }
    const wrong = { headers: { ...source, 'x-amz-checksum-algorithm': 'MD17' } };
    await s3.refused(400, 'InvalidRequest', ['PUT', target, wrong]);
  });

  test('are made where the client sent none', async () => {
    await s3.ok('PUT', path, { body: '123456789' });
    const { headers } = await s3.ok('HEAD', path, { headers: { 'x-amz-checksum-mode': 'ENABLED' } });
    assert.equal(headers['x-amz-checksum-crc64nvme'], SUMS.crc64nvme);
  });
});

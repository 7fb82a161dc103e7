/** Encryption with keys of the client (SSE-C), of the account (SSE-KMS) and of the cloud (SSE-S3). */
import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';
import { after, before, describe, test } from 'node:test';
import { Client } from '../harness/client.ts';
import type { CloudProcess } from '../harness/cloud-process.ts';
import {
  assertRefused,
  completion,
  md5Of,
  newS3,
  newS3Bucket,
  newUpload,
  pathOf,
  S3Client,
  startS3,
  textOf,
} from './s3-kit.ts';

let cloud: CloudProcess;
let owner: Client;
let s3: S3Client;
let bucket: string;
before(async () => {
  ({ cloud, user: owner, s3 } = await startS3());
  bucket = await newS3Bucket(s3);
});
after(() => cloud.stop());

const SSE = 'x-amz-server-side-encryption';
type Headers = Readonly<Record<string, string>>;

/** The headers of a client's key. */
function keyHeaders(key: Buffer, side = ''): Headers {
  const name = `x-amz-${side}server-side-encryption-customer-`;
  return {
    [`${name}algorithm`]: 'AES256',
    [`${name}key`]: key.toString('base64'),
    [`${name}key-MD5`]: createHash('md5').update(key).digest('base64'),
  };
}

const KEY = randomBytes(32);
const OTHER = randomBytes(32);
const MINE = keyHeaders(KEY);
const THEIRS = keyHeaders(OTHER);
const SIZES = [0, 1, 13, 16 * 1024, 16 * 1024 + 1, 1_000_003];
const bytesOf = (size: number) => Buffer.alloc(size, 'bytes that a client encrypts; ');
const at = (key: string) => pathOf(bucket, key);

describe('a key of the client', () => {
  for (const size of SIZES) {
    test(`encrypts ${size} bytes, which are read with it only`, async () => {
      const [path, body] = [at(`c/${size}`), bytesOf(size)];
      const put = await s3.ok('PUT', path, { headers: MINE, body });
      assert.equal(put.headers[`${SSE}-customer-algorithm`], 'AES256');
      assert.equal(put.headers[`${SSE}-customer-key-md5`], MINE[`${SSE}-customer-key-MD5`]);
      assert.equal(put.headers[SSE], undefined);
      if (size > 0) assert.notEqual(put.headers.etag, `"${md5Of(body)}"`);
      const read = await s3.ok('GET', path, { headers: MINE });
      assert.ok(read.bytes.equals(body));
      assert.equal(read.headers[`${SSE}-customer-algorithm`], 'AES256');
      const head = await s3.ok('HEAD', path, { headers: MINE });
      assert.equal(head.headers['content-length'], String(size));
      for (const headers of [undefined, THEIRS]) {
        await s3.refused(400, 'InvalidRequest', ['GET', path, headers ? { headers } : {}]);
        assert.equal((await s3.call('HEAD', path, headers ? { headers } : {})).status, 400);
      }
      for (const [start, end] of [
        [0, 0],
        [1, 16],
        [17, 40_000],
        [size - 5, size - 1],
      ] as const) {
        if (start < 0 || end >= size) continue;
        const range = await s3.ok('GET', path, { headers: { ...MINE, range: `bytes=${start}-${end}` } });
        assert.ok(range.bytes.equals(body.subarray(start, end + 1)), `${start}-${end}`);
      }
    });
  }

  test('keeps checksums and what a client sends with the bytes', async () => {
    const body = 'summed';
    const sum = createHash('sha256').update(body).digest('base64');
    await s3.ok('PUT', at('c/sum'), { headers: { ...MINE, 'x-amz-checksum-sha256': sum }, body });
    const headers = { ...MINE, 'x-amz-checksum-mode': 'ENABLED' };
    assert.equal((await s3.ok('HEAD', at('c/sum'), { headers })).headers['x-amz-checksum-sha256'], sum);
    const asked = { 'x-amz-object-attributes': 'ObjectSize,Checksum' };
    const query = 'attributes';
    await s3.refused(400, 'InvalidRequest', ['GET', at('c/sum'), { query, headers: asked }]);
    const told = await s3.ok('GET', at('c/sum'), { query, headers: { ...MINE, ...asked } });
    assert.equal(textOf(told.text, 'ObjectSize'), '6');
    assert.equal((await s3.ok('GET', at('c/sum'), { query: 'tagging' })).status, 200);
  });

  test('is refused where its headers are not right', async () => {
    const name = `${SSE}-customer-`;
    const without = (part: string) =>
      Object.fromEntries(Object.entries(MINE).filter(([each]) => each !== name + part));
    const bad: [string, Headers][] = [
      ['InvalidArgument', without('algorithm')],
      ['InvalidArgument', without('key')],
      ['InvalidArgument', without('key-MD5')],
      ['InvalidArgument', { ...MINE, [`${name}key-MD5`]: 'AAAAAAAAAAAAAAAAAAAAAA==' }],
      ['InvalidArgument', { ...MINE, [`${name}key`]: 'c2hvcnQ=' }],
      ['InvalidEncryptionAlgorithmError', { ...MINE, [`${name}algorithm`]: 'AES128' }],
      ['InvalidArgument', { ...MINE, [SSE]: 'AES256' }],
    ];
    for (const [code, headers] of bad) {
      await s3.refused(400, code, ['PUT', at('c/bad'), { headers, body: 'x' }]);
    }
    await s3.refused(404, 'NoSuchKey', ['GET', at('c/bad'), { headers: MINE }]);
    await s3.ok('PUT', at('plain'), { body: 'plain' });
    await s3.refused(400, 'InvalidRequest', ['GET', at('plain'), { headers: MINE }]);
  });

  test('encrypts each part of an upload, and no part comes without it', async () => {
    const path = at('c/parts');
    const uploadId = await newUpload(s3, path, { headers: MINE });
    const query = (number: number) => `partNumber=${number}&uploadId=${uploadId}`;
    for (const headers of [{}, THEIRS]) {
      await s3.refused(400, 'InvalidRequest', ['PUT', path, { query: query(1), headers, body: 'x' }]);
    }
    const parts = [randomBytes(5 * 2 ** 20 + 3), randomBytes(100)];
    const etags: (string | undefined)[] = [];
    for (const [i, body] of parts.entries()) {
      const put = await s3.ok('PUT', path, { query: query(i + 1), headers: MINE, body });
      assert.equal(put.headers[`${SSE}-customer-algorithm`], 'AES256');
      etags.push(put.headers.etag);
    }
    const body = completion(etags.map((etag, i) => ({ number: i + 1, etag })));
    await s3.ok('POST', path, { query: `uploadId=${uploadId}`, body });
    const whole = Buffer.concat(parts);
    const read = await s3.ok('GET', path, { headers: MINE });
    assert.ok(read.bytes.equals(whole));
    const middle = { ...MINE, range: `bytes=${5 * 2 ** 20 - 7}-${5 * 2 ** 20 + 50}` };
    const ranged = await s3.ok('GET', path, { headers: middle });
    assert.ok(ranged.bytes.equals(whole.subarray(5 * 2 ** 20 - 7, 5 * 2 ** 20 + 51)));
    await s3.refused(400, 'InvalidRequest', ['GET', path, {}]);
    await s3.refused(400, 'InvalidRequest', ['GET', path, { headers: THEIRS }]);
    const other = await newUpload(s3, at('c/plain-parts'));
    const sent = { query: `partNumber=1&uploadId=${other}`, headers: MINE, body: 'x' };
    await s3.refused(400, 'InvalidRequest', ['PUT', at('c/plain-parts'), sent]);
  });

  test('is asked for when an upload with a checksum is completed', async () => {
    const headers = { ...MINE, 'x-amz-checksum-algorithm': 'CRC32' };
    const uploadId = await newUpload(s3, at('c/summed'), { headers });
    const query = `uploadId=${uploadId}`;
    const sum = { ...MINE, 'x-amz-checksum-crc32': 'jNwWgw==' };
    const part = { query: `partNumber=1&${query}`, headers: sum, body: 'x' };
    const { etag } = (await s3.ok('PUT', at('c/summed'), part)).headers;
    const body = completion([{ number: 1, etag, more: '<ChecksumCRC32>jNwWgw==</ChecksumCRC32>' }]);
    await s3.refused(400, 'InvalidRequest', ['POST', at('c/summed'), { query, body }]);
    await s3.refused(400, 'InvalidRequest', ['POST', at('c/summed'), { query, body, headers: THEIRS }]);
    await s3.ok('POST', at('c/summed'), { query, body, headers: MINE });
  });

  test('is what REST, links and archives say is missing', async () => {
    const lone = await newS3Bucket(s3);
    for (const [key, size] of [
      ['small', 10],
      ['large', 100_000],
    ] as const) {
      await s3.ok('PUT', pathOf(lone, key), { headers: MINE, body: bytesOf(size) });
    }
    const files = (await owner.call(`/api/buckets/${lone}/files`)).body as { id: string; name: string }[];
    assert.equal(files.length, 2);
    for (const { id } of files) {
      for (const path of [`/api/storage/${id}/download`, `/api/storage/${id}/cdn-url`]) {
        const { status, body } = await owner.call(path);
        assert.deepEqual([status, body.code], [400, 'customer_key_required'], path);
        assert.match(body.hint, /over S3/);
      }
    }
    await s3.ok('PUT', pathOf(lone, 'a-plain-one'), { body: 'x' });
    const archive = await owner.call(`/api/buckets/${lone}/archive`);
    assert.deepEqual([archive.status, archive.body.code], [400, 'customer_key_required']);
  });

  test('survives a crash, and is not needed to verify the bytes', async () => {
    await s3.ok('PUT', at('c/kept'), { headers: MINE, body: bytesOf(300_000) });
    await cloud.kill();
    await cloud.start();
    owner = new Client(cloud.api, owner.key);
    s3 = await newS3(cloud.data, owner);
    assert.ok((await s3.ok('GET', at('c/kept'), { headers: MINE })).bytes.equals(bytesOf(300_000)));
  });
});

describe('a named key', () => {
  const named = (keyId: string) => ({ [SSE]: 'aws:kms', [`${SSE}-aws-kms-key-id`]: keyId });
  const setDefault = (inner: string) =>
    s3.call('PUT', `/${bucket}`, {
      query: 'encryption',
      body: `<ServerSideEncryptionConfiguration><Rule><ApplyServerSideEncryptionByDefault>${inner}</ApplyServerSideEncryptionByDefault></Rule></ServerSideEncryptionConfiguration>`,
    });
  before(async () => {
    for (const id of ['testkey-1', 'testkey-2']) {
      const made = await owner.call('/api/encryption-keys', { json: { id } });
      assert.equal(made.status, 201, JSON.stringify(made.body));
    }
  });

  test('is made, listed, used and deleted by its name', async () => {
    const call = (method: string, path = '', json?: object) =>
      owner.call(`/api/encryption-keys${path}`, { method, ...(json && { json }) });
    assert.equal((await call('POST', '', { id: 'testkey-1' })).body.code, 'encryption_key_exists');
    assert.equal((await call('POST', '', { id: '../x' })).status, 400);
    const listed = (await call('GET')).body as { id: string }[];
    assert.deepEqual(
      listed.map(({ id }) => id),
      ['testkey-1', 'testkey-2'],
    );
    await call('POST', '', { id: 'brief' });
    await s3.ok('PUT', at('k/brief'), { headers: named('brief'), body: 'x' });
    assert.equal((await call('DELETE', '/brief')).body.code, 'encryption_key_in_use');
    assert.equal((await call('DELETE', '/none')).body.code, 'encryption_key_not_found');
    await call('POST', '', { id: 'unused' });
    assert.equal((await call('DELETE', '/unused')).status, 200);
    const stranger = await new Client(cloud.api).newUser();
    assert.deepEqual((await stranger.call('/api/encryption-keys')).body, []);
    const strange = await newS3(cloud.data, stranger);
    const own = await newS3Bucket(strange);
    const put = { headers: named('testkey-1'), body: 'x' };
    await strange.refused(400, 'KMS.NotFoundException', ['PUT', pathOf(own, 'a'), put]);
  });

  test('that is disabled neither opens nor encrypts anything, at both doors, until it is enabled', async () => {
    const change = (user: Client, enabled: boolean) =>
      user.call('/api/encryption-keys/paused', { method: 'PATCH', json: { enabled } });
    await owner.call('/api/encryption-keys', { json: { id: 'paused' } });
    const headers = named('paused');
    for (const size of [10, 100_000]) {
      await s3.ok('PUT', at(`p/${size}`), { headers, body: bytesOf(size) });
      await s3.ok('GET', at(`p/${size}`));
    }
    const uploadId = await newUpload(s3, at('p/parts'), { headers });
    const files = await owner.call(`/api/buckets/${bucket}/files?prefix=p/`);
    const stranger = await new Client(cloud.api).newUser();
    assert.equal((await change(stranger, false)).body.code, 'encryption_key_not_found');
    assert.match((await change(owner, false)).body.disabled_at, /^\d{4}-/);
    const DISABLED = [400, 'KMS.DisabledException'] as const;
    for (const { id, name } of files.body as { id: string; name: string }[]) {
      await s3.refused(...DISABLED, ['GET', at(name)]);
      const { status, body } = await owner.call(`/api/storage/${id}/download`);
      assert.deepEqual([status, body.code], [409, 'encryption_key_disabled']);
      const source = { 'x-amz-copy-source': at(name) };
      await s3.refused(...DISABLED, ['PUT', at('p/copy'), { headers: source }]);
      await s3.refused(...DISABLED, ['PUT', at('p/copy'), { headers: { ...source, ...headers } }]);
    }
    await s3.refused(...DISABLED, ['PUT', at('p/new'), { headers, body: 'x' }]);
    const part = { query: `partNumber=1&uploadId=${uploadId}`, body: 'x' };
    await s3.refused(...DISABLED, ['PUT', at('p/parts'), part]);
    await s3.refused(...DISABLED, ['POST', at('p/other'), { query: 'uploads', headers }]);
    await cloud.kill();
    await cloud.start();
    owner = new Client(cloud.api, owner.key);
    s3 = new S3Client(cloud.data, s3.pair);
    await s3.refused(...DISABLED, ['GET', at('p/10')]);
    assert.equal((await change(owner, true)).body.disabled_at, null);
    assert.ok((await s3.ok('GET', at('p/100000'))).bytes.equals(bytesOf(100_000)));
    await s3.ok('PUT', at('p/parts'), part);
  });

  for (const size of SIZES) {
    test(`encrypts ${size} bytes, which are read without naming it`, async () => {
      const [path, body] = [at(`k/${size}`), bytesOf(size)];
      const put = await s3.ok('PUT', path, { headers: named('testkey-1'), body });
      assert.equal(put.headers[SSE], 'aws:kms');
      assert.equal(put.headers[`${SSE}-aws-kms-key-id`], 'testkey-1');
      assert.notEqual(put.headers.etag, `"${md5Of(body)}"`);
      const read = await s3.ok('GET', path);
      assert.ok(read.bytes.equals(body));
      assert.equal(read.headers[`${SSE}-aws-kms-key-id`], 'testkey-1');
      assert.equal((await s3.ok('HEAD', path)).headers[SSE], 'aws:kms');
      for (const method of ['GET', 'HEAD']) {
        assert.equal((await s3.call(method, path, { headers: named('testkey-1') })).status, 400);
      }
    });
  }

  test('must be named, and be one that the account has', async () => {
    const put = (headers: Headers) => s3.call('PUT', at('k/never'), { headers, body: 'x' });
    assertRefused(await put({ [SSE]: 'aws:kms' }), 400, 'InvalidArgument');
    assertRefused(await put({ [`${SSE}-aws-kms-key-id`]: 'testkey-1' }), 400, 'InvalidArgument');
    assertRefused(await put(named('no-such-key')), 400, 'KMS.NotFoundException');
    assertRefused(await put({ [SSE]: 'rot13' }), 400, 'InvalidArgument');
    await s3.refused(404, 'NoSuchKey', ['GET', at('k/never'), {}]);
    const arn = 'arn:aws:kms:us-east-1:1:key/testkey-2';
    const shown = await s3.ok('PUT', at('k/arn'), { headers: named(arn), body: 'x' });
    assert.equal(shown.headers[`${SSE}-aws-kms-key-id`], 'testkey-2');
  });

  test('of account or client makes the ETag of a part: the same bytes have the same one', async () => {
    for (const [key, headers] of [
      ['c/again', MINE],
      ['k/again', { [SSE]: 'aws:kms', [`${SSE}-aws-kms-key-id`]: 'testkey-1' }],
    ] as const) {
      const own = headers === MINE ? { headers } : {};
      const etagIn = async (uploadId: string, body: string | Buffer) => {
        const query = `partNumber=1&uploadId=${uploadId}`;
        return (await s3.ok('PUT', at(key), { ...own, query, body })).headers.etag;
      };
      const [one, two] = [
        await newUpload(s3, at(key), { headers }),
        await newUpload(s3, at(key), { headers }),
      ];
      for (const body of ['small', bytesOf(300_000)]) {
        const etag = await etagIn(one, body);
        assert.match(etag ?? '', /^"[0-9a-f]{32}"$/);
        assert.notEqual(etag, `"${md5Of(body)}"`);
        assert.equal(await etagIn(one, body), etag);
        assert.notEqual(await etagIn(one, `${body}!`), etag);
        assert.notEqual(await etagIn(two, body), etag);
      }
    }
  });

  test('encrypts uploads in parts', async () => {
    const path = at('k/parts');
    const uploadId = await newUpload(s3, path, { headers: named('testkey-2') });
    const parts = [randomBytes(5 * 2 ** 20), randomBytes(100)];
    const etags: (string | undefined)[] = [];
    for (const [i, body] of parts.entries()) {
      const query = `partNumber=${i + 1}&uploadId=${uploadId}`;
      const { headers } = await s3.ok('PUT', path, { query, body });
      assert.equal(headers[`${SSE}-aws-kms-key-id`], 'testkey-2');
      etags.push(headers.etag);
    }
    const body = completion(etags.map((etag, i) => ({ number: i + 1, etag })));
    const done = await s3.ok('POST', path, { query: `uploadId=${uploadId}`, body });
    assert.equal(done.headers[SSE], 'aws:kms');
    const read = await s3.ok('GET', path);
    assert.ok(read.bytes.equals(Buffer.concat(parts)));
    assert.equal(read.headers[`${SSE}-aws-kms-key-id`], 'testkey-2');
  });

  test('may be the default of a bucket, for REST uploads too', async () => {
    const query = 'encryption';
    await s3.refused(404, 'ServerSideEncryptionConfigurationNotFoundError', ['GET', `/${bucket}`, { query }]);
    const kms = '<SSEAlgorithm>aws:kms</SSEAlgorithm>';
    assertRefused(await setDefault(kms), 400, 'InvalidArgument');
    assertRefused(await setDefault('<SSEAlgorithm>AES512</SSEAlgorithm>'), 400, 'MalformedXML');
    const set = await setDefault(`${kms}<KMSMasterKeyID>testkey-1</KMSMasterKeyID>`);
    assert.equal(set.status, 200, set.text);
    const { text } = await s3.ok('GET', `/${bucket}`, { query });
    assert.deepEqual(
      [textOf(text, 'SSEAlgorithm'), textOf(text, 'KMSMasterKeyID')],
      ['aws:kms', 'testkey-1'],
    );
    const put = await s3.ok('PUT', at('k/default'), { body: 'x' });
    assert.equal(put.headers[`${SSE}-aws-kms-key-id`], 'testkey-1');
    const unnamed = await s3.ok('PUT', at('k/default'), { headers: { [SSE]: 'aws:kms' }, body: 'x' });
    assert.equal(unnamed.headers[`${SSE}-aws-kms-key-id`], 'testkey-1');
    const sent = await owner.upload(bucket, 'rest', 'by REST');
    assert.equal(sent.status, 200, JSON.stringify(sent.body));
    const read = await s3.ok('GET', at('rest'));
    assert.deepEqual([read.text, read.headers[SSE]], ['by REST', 'aws:kms']);
    assert.equal((await owner.call(`/api/storage/${sent.body.object_id}/download`)).status, 200);
    assert.equal((await s3.ok('DELETE', `/${bucket}`, { query })).status, 204);
    assert.equal((await s3.ok('PUT', at('k/default'), { body: 'x' })).headers[SSE], undefined);
  });
});

describe('copies', () => {
  const shown = (to: string) => (to === 'cloud' ? 'AES256' : to === 'kms' ? 'aws:kms' : undefined);
  const sources: Readonly<Record<string, { put: Headers; read: Headers; source: Headers }>> = {
    plain: { put: {}, read: {}, source: {} },
    cloud: { put: { [SSE]: 'AES256' }, read: {}, source: {} },
    kms: { put: { [SSE]: 'aws:kms', [`${SSE}-aws-kms-key-id`]: 'testkey-1' }, read: {}, source: {} },
    mine: { put: MINE, read: MINE, source: keyHeaders(KEY, 'copy-source-') },
    theirs: { put: THEIRS, read: THEIRS, source: keyHeaders(OTHER, 'copy-source-') },
  };
  for (const [from, source] of Object.entries(sources)) {
    test(`of ${from} bytes are encrypted as asked`, async () => {
      for (const size of [1, 1024, 70_000]) {
        const path = at(`copy/${from}`);
        await s3.ok('PUT', path, { headers: source.put, body: bytesOf(size) });
        for (const [to, target] of Object.entries(sources)) {
          const headers = { ...target.put, ...source.source, 'x-amz-copy-source': path };
          const copied = await s3.ok('PUT', at(`copy/${from}-${to}`), { headers });
          assert.equal(copied.headers[SSE], shown(to));
          const read = await s3.ok('GET', at(`copy/${from}-${to}`), { headers: target.read });
          assert.ok(read.bytes.equals(bytesOf(size)), `${from} to ${to}`);
          assert.equal(read.headers[SSE], shown(to));
          if (target.read === MINE)
            await s3.refused(400, 'InvalidRequest', ['GET', at(`copy/${from}-${to}`), {}]);
        }
        if (source.read === MINE) {
          const headers = { 'x-amz-copy-source': path };
          assertRefused(await s3.call('PUT', at('copy/never'), { headers }), 400, 'InvalidRequest');
        }
      }
    });
  }
});

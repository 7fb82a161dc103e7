/** S3 requests with any error in their signature are refused and store nothing. */
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { before, describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import {
  anonymously,
  completion,
  encoded,
  type Mode,
  newS3Bucket,
  type Prepared,
  pathOf,
  policy,
  S3Client,
  type S3Request,
  setPolicy,
  sharedS3,
  statement,
  textOf,
  textsOf,
  transmit,
} from './s3-kit.ts';

let s3: S3Client;
let bucket: string;
before(async () => {
  ({ s3 } = await sharedS3());
  bucket = await newS3Bucket(s3);
});

const BODY = Buffer.from('bytes that are signed. '.repeat(6000));
const SUM = createHash('sha256').update(BODY).digest('base64');
const MODES: readonly Mode[] = ['hash', 'unsigned', 'signed-chunks', 'signed-trailer', 'unsigned-trailer'];
const hasTrailer = (mode: Mode) => mode.endsWith('-trailer');

function requestIn(mode: Mode): S3Request {
  const trailers = hasTrailer(mode) ? { 'x-amz-checksum-sha256': SUM } : undefined;
  const headers = { 'x-amz-meta-a': 'signed', ...(mode === 'unsigned' && { 'x-amz-checksum-sha256': SUM }) };
  return { mode, body: BODY, headers, ...(trailers && { trailers }) };
}

const path = () => pathOf(bucket, 'never');
const inMode = (mode: Mode) => s3.prepare('PUT', path(), requestIn(mode));

function changedBody({ body, ...rest }: Prepared): Prepared {
  const changed = Buffer.from(body);
  const at = Math.floor(changed.length / 3);
  changed[at] = (changed[at] as number) ^ 1;
  return { ...rest, body: changed };
}

function withBody(prepared: Prepared, body: Buffer): Prepared {
  return { ...prepared, body, headers: { ...prepared.headers, 'content-length': String(body.length) } };
}

const edited = (prepared: Prepared, edit: (text: string) => string) =>
  withBody(prepared, Buffer.from(edit(prepared.body.toString('latin1')), 'latin1'));
const withHeaders = (prepared: Prepared, headers: Record<string, string>): Prepared => ({
  ...prepared,
  headers: { ...prepared.headers, ...headers },
});

/** Every possible error in a request in that mode. */
function wrongs(mode: Mode): Record<string, () => Prepared> {
  const good = () => inMode(mode);
  const wrongSecret = new S3Client(s3.base, { ...s3.pair, secret_access_key: 'w'.repeat(40) });
  const all: Record<string, () => Prepared> = {
    'wrong secret': () => wrongSecret.prepare('PUT', path(), requestIn(mode)),
    'another method': () => ({ ...good(), method: 'POST' }),
    'another key': () => ({ ...good(), target: `${path()}2` }),
    'another query': () => ({ ...good(), target: `${path()}?tagging` }),
    'changed header': () => withHeaders(good(), { 'x-amz-meta-a': 'changed' }),
    'another header': () => withHeaders(good(), { 'x-amz-meta-b': 'added' }),
    'a copy source': () => withHeaders(good(), { 'x-amz-copy-source': `/${bucket}/x` }),
    'another mode': () =>
      withHeaders(good(), {
        'x-amz-content-sha256':
          mode === 'unsigned' ? 'STREAMING-UNSIGNED-PAYLOAD-TRAILER' : 'UNSIGNED-PAYLOAD',
      }),
    'changed body': () => changedBody(good()),
    'too old': () => s3.prepare('PUT', path(), { ...requestIn(mode), at: Date.now() - 16 * 60_000 }),
    'too new': () => s3.prepare('PUT', path(), { ...requestIn(mode), at: Date.now() + 16 * 60_000 }),
    'no signature': () => {
      const { authorization: _, ...headers } = good().headers;
      return { ...good(), headers };
    },
    'another region in the scope': () => {
      const { authorization = '' } = good().headers;
      return withHeaders(good(), { authorization: authorization.replace('us-east-1', 'eu-west-1') });
    },
  };
  if (mode === 'hash' || mode === 'unsigned') return all;
  Object.assign(all, {
    'extra trailer': () => edited(good(), (text) => `${text.slice(0, -2)}x-amz-meta-b:1\r\n\r\n`),
    'bytes after the end': () => edited(good(), (text) => `${text}0\r\n\r\n`),
    'no last chunk': () => edited(good(), (text) => text.slice(0, text.lastIndexOf('\r\n0'))),
    'a false length': () =>
      s3.prepare('PUT', path(), {
        ...requestIn(mode),
        headers: { 'x-amz-decoded-content-length': String(BODY.length - 1) },
      }),
    'frames that are none': () => edited(good(), (text) => `zz\r\n${text}`),
  });
  if (hasTrailer(mode)) {
    all['no trailer'] = () =>
      edited(good(), (text) => `${text.slice(0, text.indexOf('x-amz-checksum'))}\r\n`);
    all['a trailer that was not declared'] = () =>
      edited(good(), (text) => text.replace('x-amz-checksum-sha256', 'x-amz-checksum-crc32'));
  }
  if (!mode.startsWith('signed')) return all;
  all['missing chunk signature'] = () => edited(good(), (text) => text.replace(/;chunk-signature=\w+/, ''));
  all['last chunk unsigned'] = () => edited(good(), (text) => text.replace(/0;chunk-signature=\w+/, '0'));
  all['chunks in another order'] = () =>
    edited(good(), (text) => {
      const [first = '', second = ''] = [...text.matchAll(/;chunk-signature=(\w+)/g)].map(([, each]) => each);
      return text.replace(first, 'FIRST').replace(second, first).replace('FIRST', second);
    });
  if (mode === 'signed-trailer') {
    all['no signature of the trailers'] = () =>
      edited(good(), (text) => text.replace(/x-amz-trailer-signature:\w+\r\n/, ''));
  }
  return all;
}

async function assertNothing(what: string): Promise<void> {
  const { text } = await s3.ok('GET', `/${bucket}`, { query: 'versions' });
  assert.deepEqual(textsOf(text, 'Key'), [], what);
}

for (const mode of MODES) {
  describe(`a request signed as ${mode}`, () => {
    test('is stored when all is right', async () => {
      const key = pathOf(bucket, `good ${mode}`);
      await s3.ok('PUT', key, requestIn(mode));
      const read = await s3.ok('GET', key);
      assert.ok(read.bytes.equals(BODY));
      assert.deepEqual(
        [read.headers['x-amz-meta-a'], read.headers['content-encoding']],
        ['signed', undefined],
      );
      await s3.ok('DELETE', key);
    });

    test('is refused and stores nothing when anything is wrong', async () => {
      for (const [what, make] of Object.entries(wrongs(mode))) {
        const reply = await transmit(s3.base, make());
        assert.ok(reply.status >= 400 && reply.status < 500, `${what}: ${reply.status} ${reply.text}`);
        assert.equal(textsOf(reply.text, 'Code').length, 1, `${what}: ${reply.text}`);
        await assertNothing(what);
      }
    });
  });
}

describe('a presigned request', () => {
  const presigned = (more: S3Request = {}) =>
    s3.prepare('PUT', path(), { presigned: 60, body: BODY, ...more });

  test('does what its signer meant', async () => {
    const key = pathOf(bucket, 'presigned');
    const put = s3.prepare('PUT', key, { presigned: 60, body: BODY });
    assert.equal((await transmit(s3.base, put)).status, 200);
    const get = s3.prepare('GET', key, { presigned: 60, query: 'response-content-type=text%2Fplain' });
    const read = await transmit(s3.base, get);
    assert.ok(read.bytes.equals(BODY));
    assert.equal(read.headers['content-type'], 'text/plain');
    const unsigned = s3.prepare('GET', key, { presigned: 60 });
    const more = `${unsigned.target}&response-content-type=text%2Fhtml`;
    assert.equal((await transmit(s3.base, { ...unsigned, target: more })).status, 403);
    await s3.ok('DELETE', key);
  });

  test('is refused when anything is wrong', async () => {
    const good = presigned();
    const cases: Record<string, Prepared> = {
      'another method': { ...good, method: 'DELETE' },
      'another key': { ...good, target: good.target.replace('never', 'other') },
      'another expiry': { ...good, target: good.target.replace('Expires=60', 'Expires=61') },
      'a copy source': withHeaders(good, { 'x-amz-copy-source': `/${bucket}/x` }),
      metadata: withHeaders(good, { 'x-amz-meta-b': 'added' }),
      frames: withHeaders(good, { 'x-amz-content-sha256': 'STREAMING-UNSIGNED-PAYLOAD-TRAILER' }),
      'signed twice': withHeaders(good, { authorization: String(inMode('hash').headers.authorization) }),
      ended: presigned({ at: Date.now() - 61_000 }),
      'not begun': presigned({ at: Date.now() + 16 * 60_000 }),
      'no time': presigned({ presigned: 0 }),
      'longer than a week': presigned({ presigned: 604_801 }),
    };
    for (const [what, request] of Object.entries(cases)) {
      const reply = await transmit(s3.base, request);
      assert.ok([400, 403].includes(reply.status), `${what}: ${reply.status} ${reply.text}`);
      await assertNothing(what);
    }
    const brief = presigned({ presigned: 1 });
    await sleep(2100);
    assert.equal((await transmit(s3.base, brief)).status, 403);
    await assertNothing('replayed after its end');
  });
});

describe('the query of a presigned request', () => {
  let links: string;
  before(async () => {
    links = await newS3Bucket(s3);
  });
  const assertNotStored = () => s3.refused(404, 'NoSuchKey', ['GET', pathOf(links, 'never')]);
  /** As written by signers that move headers into the query. */
  const hoisted = (headers: Readonly<Record<string, string>>) =>
    Object.entries(headers)
      .map(([name, value]) => `${encoded(name)}=${encoded(value)}`)
      .join('&');
  const ask = (method: string, key: string, { query = '', ...more }: S3Request = {}) =>
    transmit(s3.base, s3.prepare(method, pathOf(links, key), { presigned: 60, query, ...more }));
  const put = (key: string, headers: Readonly<Record<string, string>>, more: S3Request = {}) =>
    ask('PUT', key, { query: hoisted(headers), body: 'linked', ...more });
  const codeOf = ({ status, text }: { status: number; text: string }) => [status, textsOf(text, 'Code')[0]];

  test('stands for headers: metadata, lists, tags, encryption, redirect', async () => {
    const stored = await put('hoisted', {
      'x-amz-meta-colour': 'bläu',
      'X-Amz-Meta-Size': '2 m',
      'x-amz-acl': 'public-read',
      'x-amz-tagging': 'a=1&b=2',
      'x-amz-server-side-encryption': 'AES256',
      'x-amz-website-redirect-location': '/other',
      'x-amz-storage-class': 'STANDARD',
    });
    assert.equal(stored.status, 200, stored.text);
    assert.equal(stored.headers['x-amz-server-side-encryption'], 'AES256');
    const { headers, bytes } = await anonymously(s3.base, 'GET', pathOf(links, 'hoisted'));
    assert.equal(bytes.toString(), 'linked');
    assert.equal(Buffer.from(String(headers['x-amz-meta-colour']), 'latin1').toString(), 'bläu');
    assert.equal(headers['x-amz-meta-size'], '2 m');
    assert.equal(headers['x-amz-website-redirect-location'], '/other');
    const tags = await s3.ok('GET', pathOf(links, 'hoisted'), { query: 'tagging' });
    assert.deepEqual(textsOf(tags.text, 'Value'), ['1', '2']);
    assert.deepEqual(codeOf(await put('cold', { 'x-amz-storage-class': 'GLACIER' })), [
      400,
      'InvalidStorageClass',
    ]);
    const grants = await put('granted', { 'x-amz-grant-read': 'id="nobody"' });
    assert.deepEqual(codeOf(grants), [400, 'InvalidArgument']);
  });

  test('copies, whole objects and parts, and never stores an empty one instead', async () => {
    await put('source', { 'x-amz-meta-from': 'source' });
    const from = { 'x-amz-copy-source': `/${links}/source` };
    const copied = await ask('PUT', 'copy', { query: hoisted(from) });
    assert.match(copied.text, /<CopyObjectResult/);
    const described = { ...from, 'x-amz-metadata-directive': 'REPLACE', 'x-amz-meta-from': 'copy' };
    await ask('PUT', 'replaced', { query: hoisted(described) });
    for (const [key, meta] of [
      ['copy', 'source'],
      ['replaced', 'copy'],
    ] as const) {
      const { headers, text } = await s3.ok('GET', pathOf(links, key));
      assert.deepEqual([text, headers['x-amz-meta-from']], ['linked', meta]);
    }
    const condition = { ...from, 'x-amz-copy-source-if-match': '"other"' };
    assert.equal((await ask('PUT', 'copy', { query: hoisted(condition) })).status, 412);

    const begun = await ask('POST', 'parts', { query: `uploads=&${hoisted({ 'x-amz-meta-in': 'parts' })}` });
    const upload = `uploadId=${textOf(begun.text, 'UploadId')}`;
    const first = await ask('PUT', 'parts', {
      query: `partNumber=1&${upload}&${hoisted({ ...from, 'x-amz-copy-source-range': 'bytes=0-2' })}`,
    });
    assert.match(first.text, /<CopyPartResult/);
    const body = completion([{ number: 1, etag: textOf(first.text, 'ETag') }]);
    await s3.ok('POST', pathOf(links, 'parts'), { query: upload, body });
    const joined = await s3.ok('GET', pathOf(links, 'parts'));
    assert.deepEqual([joined.text, joined.headers['x-amz-meta-in']], ['lin', 'parts']);

    // Only a link's query counts: the copy is refused, not treated as another operation.
    const inHeaderMode = await s3.call('PUT', pathOf(links, 'never'), { query: hoisted(from) });
    assert.deepEqual(codeOf(inHeaderMode), [400, 'InvalidRequest']);
    await assertNotStored();
  });

  test('guards as the headers would: the expected owner, and keys of the client', async () => {
    const { status } = await put('guarded', { 'x-amz-expected-bucket-owner': 'f'.repeat(64) });
    assert.equal(status, 403);
    const key = Buffer.alloc(32, 7);
    const name = 'x-amz-server-side-encryption-customer';
    const customer = {
      [`${name}-algorithm`]: 'AES256',
      [`${name}-key`]: key.toString('base64'),
      [`${name}-key-md5`]: createHash('md5').update(key).digest('base64'),
    };
    assert.equal((await put('locked', customer)).status, 200);
    assert.equal((await ask('GET', 'locked')).status, 400);
    const read = await ask('GET', 'locked', { query: hoisted(customer) });
    assert.deepEqual([read.status, read.text], [200, 'linked']);
  });

  test('is what the conditions of a policy see', async () => {
    const condition = { StringEquals: { 's3:x-amz-metadata-directive': 'REPLACE' } };
    const denied = statement(links, { Effect: 'Deny', Action: 's3:PutObject', Condition: condition });
    await setPolicy(s3, links, policy(denied));
    try {
      const from = { 'x-amz-copy-source': `/${links}/hoisted`, 'x-amz-metadata-directive': 'REPLACE' };
      assert.equal((await ask('PUT', 'never', { query: hoisted(from) })).status, 403);
      assert.equal((await put('allowed', {})).status, 200);
    } finally {
      await s3.ok('DELETE', `/${links}`, { query: 'policy' });
    }
  });

  test('agrees with the headers, says each thing once, and says what a header can', async () => {
    const meta = { 'x-amz-meta-a': 'b' };
    assert.equal((await put('agreed', meta, { headers: meta })).status, 200);
    const differs = await put('never', meta, { headers: { 'x-amz-meta-a': 'c' } });
    assert.deepEqual(codeOf(differs), [403, 'AccessDenied']);
    const unsigned = s3.prepare('PUT', pathOf(links, 'never'), {
      presigned: 60,
      query: hoisted(meta),
      body: BODY,
    });
    const added = await transmit(s3.base, withHeaders(unsigned, { 'x-amz-meta-a': 'c' }));
    assert.deepEqual(codeOf(added), [403, 'AccessDenied']);
    const twice = await ask('PUT', 'never', { query: 'x-amz-meta-a=b&x-amz-meta-a=c' });
    assert.deepEqual(codeOf(twice), [400, 'InvalidArgument']);
    const cases = await ask('PUT', 'never', { query: 'X-Amz-Meta-A=b&x-amz-meta-a=b' });
    assert.deepEqual(codeOf(cases), [400, 'InvalidArgument']);
    const line = await put('never', { 'x-amz-meta-a': 'b\r\nx-amz-acl: public-read' });
    assert.deepEqual(codeOf(line), [400, 'InvalidArgument']);
    await assertNotStored();
    const changed = { ...unsigned, target: unsigned.target.replace('meta-a=b', 'meta-a=c') };
    assert.equal((await transmit(s3.base, changed)).status, 403);
    await assertNotStored();
  });

  test('does not state checksums: those that signers put there are of an empty body', async () => {
    const sums = { 'x-amz-checksum-crc32': 'AAAAAA==', 'x-amz-sdk-checksum-algorithm': 'CRC32' };
    assert.equal((await put('summed', sums)).status, 200);
  });
});

test('every header of Amazon must be signed, and the host', async () => {
  const good = inMode('hash');
  for (const name of ['host', 'x-amz-date', 'x-amz-meta-a']) {
    const { authorization = '' } = good.headers;
    const without = authorization
      .replace(new RegExp(`(SignedHeaders=[^,]*?);?${name}`), '$1')
      .replace('=;', '=');
    const reply = await transmit(s3.base, withHeaders(good, { authorization: without }));
    assert.equal(reply.status, 403, `${name}: ${reply.text}`);
  }
  await assertNothing('unsigned headers');
});

test('other kinds of credentials are refused by name', async () => {
  const good = inMode('hash');
  for (const [authorization, code] of [
    ['AWS key:signature', 'InvalidRequest'],
    ['AWS4-HMAC-SHA256 nonsense', 'AuthorizationHeaderMalformed'],
    ['AWS4-HMAC-SHA256 ', 'AuthorizationHeaderMalformed'],
    [String(good.headers.authorization).replace('/s3/', '/ec2/'), 'AuthorizationHeaderMalformed'],
    [String(good.headers.authorization).replace('HMAC-SHA256', 'ECDSA-P256-SHA256'), 'NotImplemented'],
  ] as const) {
    const reply = await transmit(s3.base, withHeaders(good, { authorization }));
    assert.deepEqual(textsOf(reply.text, 'Code'), [code], reply.text);
  }
  const token = await s3.call('PUT', path(), { headers: { 'x-amz-security-token': 'x' } });
  assert.deepEqual(textsOf(token.text, 'Code'), ['InvalidToken']);
  await assertNothing('other credentials');
});

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { AwsClient } from 'aws4fetch';
import {
  authorization,
  EXAMPLE_KEY,
  EXAMPLE_MS,
  EXAMPLE_SECRET,
  EXAMPLE_TIME,
  presignedQuery,
  sha256,
} from '../../server/testing/sign-s3.ts';
import { S3Error } from './s3-error.ts';
import {
  anonymousPayload,
  type RawRequest,
  readCredentials,
  readHead,
  verifySignature,
} from './signature.ts';

const SCOPE = `${EXAMPLE_KEY}/20130524/us-east-1/s3/aws4_request`;
const EMPTY = sha256('');
const HOST = 'examplebucket.s3.amazonaws.com';
const isCode = (code: string) => (error: unknown) => error instanceof S3Error && error.code === code;

function head(method: string, rawUrl: string, headers: Readonly<Record<string, string>>): RawRequest {
  return { method, rawUrl, rawHeaders: Object.entries(headers).flat() };
}

function verify(request: RawRequest, secret = EXAMPLE_SECRET, nowMs = EXAMPLE_MS) {
  const signed = readCredentials(readHead(request));
  assert.ok(signed !== null);
  return verifySignature(signed, readHead(request), secret, nowMs);
}

/** Spaces after the commas, as in Amazon's examples. */
function withSignature(names: string, signature: string): string {
  return `AWS4-HMAC-SHA256 Credential=${SCOPE}, SignedHeaders=${names}, Signature=${signature}`;
}

describe("Amazon's examples", () => {
  const common = { Host: HOST, 'x-amz-date': EXAMPLE_TIME, 'x-amz-content-sha256': EMPTY };
  const usual = 'host;x-amz-content-sha256;x-amz-date';
  const examples: Readonly<Record<string, RawRequest>> = {
    'GET of an object with a range': head('GET', '/test.txt', {
      ...common,
      Range: 'bytes=0-9',
      Authorization: withSignature(
        'host;range;x-amz-content-sha256;x-amz-date',
        'f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41',
      ),
    }),
    'PUT of an object whose name is sent plainly': head('PUT', '/test$file.text', {
      ...common,
      Date: 'Fri, 24 May 2013 00:00:00 GMT',
      'x-amz-storage-class': 'REDUCED_REDUNDANCY',
      'x-amz-content-sha256': '44ce7dd67c959e0d3524ffac1771dfbba87d2b6b4b4e99e42034a8b803f8b072',
      Authorization: withSignature(
        'date;host;x-amz-content-sha256;x-amz-date;x-amz-storage-class',
        '98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd',
      ),
    }),
    'GET ?lifecycle': head('GET', '/?lifecycle', {
      ...common,
      Authorization: withSignature(usual, 'fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543'),
    }),
    'list of objects': head('GET', '/?prefix=J&max-keys=2', {
      ...common,
      Authorization: withSignature(usual, '34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7'),
    }),
    'presigned GET': head(
      'GET',
      `/test.txt?X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=${encodeURIComponent(SCOPE)}` +
        `&X-Amz-Date=${EXAMPLE_TIME}&X-Amz-Expires=86400&X-Amz-SignedHeaders=host` +
        '&X-Amz-Signature=aeeed9bbccd4d02ee5c0109b86d86835f995330da4c265957d157751f604d404',
      { Host: HOST },
    ),
    'PUT in chunks': head('PUT', '/examplebucket/chunkObject.txt', {
      Host: 's3.amazonaws.com',
      'x-amz-date': EXAMPLE_TIME,
      'x-amz-storage-class': 'REDUCED_REDUNDANCY',
      'x-amz-content-sha256': 'STREAMING-AWS4-HMAC-SHA256-PAYLOAD',
      'Content-Encoding': 'aws-chunked',
      'x-amz-decoded-content-length': '66560',
      'Content-Length': '66824',
      Authorization: withSignature(
        'content-encoding;content-length;host;x-amz-content-sha256;x-amz-date;x-amz-decoded-content-length;' +
          'x-amz-storage-class',
        '4f232c4386841ef735655705268965c44a0e4690baa4adea153f7db9fa80a0a9',
      ),
    }),
  };
  for (const [what, request] of Object.entries(examples)) {
    test(`${what} is accepted, and with another secret refused`, () => {
      const verified = verify(request);
      assert.equal(verified.scope, '20130524/us-east-1/s3/aws4_request');
      assert.throws(() => verify(request, 'another'), isCode('SignatureDoesNotMatch'));
      // With the key from the cache.
      assert.deepEqual(verify(request), verified);
    });
  }
});

const PAYLOADS: Readonly<Record<string, object>> = {
  [EMPTY]: { kind: 'hash', sha256: EMPTY },
  'UNSIGNED-PAYLOAD': { kind: 'unsigned' },
  'STREAMING-AWS4-HMAC-SHA256-PAYLOAD': { kind: 'chunked', signed: true, trailer: false },
  'STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER': { kind: 'chunked', signed: true, trailer: true },
  'STREAMING-UNSIGNED-PAYLOAD-TRAILER': { kind: 'chunked', signed: false, trailer: true },
};

/** A PUT in header mode, or presigned. */
function request(mode: string): RawRequest {
  const headers = { host: 'h:80', 'x-amz-meta-a': 'b  c', 'content-type': 'text/plain' };
  const unsigned = { method: 'PUT', path: '/b/k%20%2B', query: ['b=2', 'a=%2F', 'a=1'] };
  const tidy = { ...headers, 'x-amz-meta-a': 'b c' };
  if (mode === 'presigned') {
    const query = presignedQuery({ ...unsigned, headers: tidy }, EXAMPLE_SECRET);
    return head('PUT', `${unsigned.path}?${query}`, headers);
  }
  const added = { 'x-amz-date': EXAMPLE_TIME, 'x-amz-content-sha256': mode };
  const Authorization = authorization({ ...unsigned, headers: { ...tidy, ...added } }, EXAMPLE_SECRET);
  return head('PUT', `${unsigned.path}?b=2&a=%2f&a=1`, { ...headers, ...added, Authorization });
}

const swapped = (from: string, to: string) => (sent: RawRequest) => ({
  ...sent,
  rawUrl: sent.rawUrl.replace(from, to),
  rawHeaders: sent.rawHeaders.map((text) => text.replace(from, to)),
});
const added = (name: string, value: string) => (sent: RawRequest) => ({
  ...sent,
  rawHeaders: [...sent.rawHeaders, name, value],
});

describe('an altered request is refused', () => {
  const alterations: Readonly<Record<string, [alter: (sent: RawRequest) => RawRequest, code: string]>> = {
    'altered method': [(sent) => ({ ...sent, method: 'GET' }), 'SignatureDoesNotMatch'],
    'altered header': [swapped('b  c', 'b d'), 'SignatureDoesNotMatch'],
    'another value of a header': [added('x-amz-meta-a', 'd'), 'SignatureDoesNotMatch'],
    'altered host': [swapped('h:80', 'h:81'), 'SignatureDoesNotMatch'],
    'added x-amz header': [added('X-Amz-Copy-Source', '/other/secret'), 'AccessDenied'],
    'altered query': [swapped('b=2', 'b=3'), 'SignatureDoesNotMatch'],
    'added query': [swapped('b=2', 'b=2&acl'), 'SignatureDoesNotMatch'],
    'a plus as a space': [swapped('a=1', 'a=+'), 'SignatureDoesNotMatch'],
    'altered path': [swapped('/k', '/l'), 'SignatureDoesNotMatch'],
    'a slash more': [swapped('/b/', '/b//'), 'SignatureDoesNotMatch'],
    'two credentials': [
      (sent) => {
        const name = sent.rawHeaders.includes('Authorization');
        return name
          ? swapped('?', '?X-Amz-Algorithm=x&')(sent)
          : added('authorization', 'AWS4-HMAC-SHA256 x')(sent);
      },
      'InvalidArgument',
    ],
    'a session token': [added('x-amz-security-token', 't'), 'InvalidToken'],
  };
  for (const mode of [...Object.keys(PAYLOADS), 'presigned']) {
    test(mode, () => {
      const sent = request(mode);
      assert.deepEqual(readCredentials(readHead(sent))?.payload, PAYLOADS[mode] ?? { kind: 'unsigned' });
      assert.equal(verify(sent).seed.length, 64);
      assert.throws(() => verify(sent, 'wrong'), isCode('SignatureDoesNotMatch'));
      for (const [what, [alter, code]] of Object.entries(alterations)) {
        assert.throws(() => verify(alter(sent)), isCode(code), what);
      }
      const lifeMs = mode === 'presigned' ? 86_400_000 : 900_000;
      const late = mode === 'presigned' ? 'AccessDenied' : 'RequestTimeTooSkewed';
      verify(sent, EXAMPLE_SECRET, EXAMPLE_MS + lifeMs);
      assert.throws(() => verify(sent, EXAMPLE_SECRET, EXAMPLE_MS + lifeMs + 1), isCode(late));
      verify(sent, EXAMPLE_SECRET, EXAMPLE_MS - 900_000);
      assert.throws(() => verify(sent, EXAMPLE_SECRET, EXAMPLE_MS - 900_001), isCode(late));
    });
  }

  test('another body word is another request', () => {
    const sent = request(EMPTY);
    assert.throws(() => verify(swapped(EMPTY, 'UNSIGNED-PAYLOAD')(sent)), isCode('SignatureDoesNotMatch'));
  });

  test('the headers that are not signed are named', () => {
    const sent = added('x-amz-acl', 'public-read')(request('presigned'));
    assert.throws(
      () => verify(sent),
      (error: unknown) => error instanceof S3Error && error.fields.HeadersNotSigned === 'x-amz-acl',
    );
  });

  test('the host must be signed', () => {
    const headers = { 'x-amz-date': EXAMPLE_TIME, 'x-amz-content-sha256': EMPTY };
    const Authorization = authorization({ method: 'GET', path: '/', headers }, EXAMPLE_SECRET);
    assert.throws(
      () => verify(head('GET', '/', { ...headers, Host: 'h', Authorization })),
      isCode('AccessDenied'),
    );
  });

  test('an unsigned x-amz-content-sha256 changes nothing of a presigned request, or is refused', () => {
    const hash = added('x-amz-content-sha256', sha256('x'))(request('presigned'));
    assert.deepEqual(readCredentials(readHead(hash))?.payload, { kind: 'unsigned' });
    verify(hash);
    const streaming = added(
      'x-amz-content-sha256',
      'STREAMING-UNSIGNED-PAYLOAD-TRAILER',
    )(request('presigned'));
    assert.throws(() => readCredentials(readHead(streaming)), isCode('InvalidArgument'));
  });
});

describe('malformed credentials', () => {
  const good = request(EMPTY);
  const value = good.rawHeaders.at(-1) ?? '';
  const header: Readonly<Record<string, string>> = {
    '': 'AccessDenied',
    'AWS HAHAHA': 'InvalidArgument',
    'AWS id:signature': 'InvalidRequest',
    'Bearer x': 'InvalidArgument',
    'AWS4-HMAC-SHA256': 'AuthorizationHeaderMalformed',
    'AWS4-HMAC-SHA256 Credential=HAHAHA': 'AuthorizationHeaderMalformed',
    'AWS4-HMAC-SHA512 x': 'AuthorizationHeaderMalformed',
    'AWS4-ECDSA-P256-SHA256 Credential=x': 'NotImplemented',
    [value.replace('/s3/', '/ec2/')]: 'AuthorizationHeaderMalformed',
    [value.replace('/aws4_request', '/aws3')]: 'AuthorizationHeaderMalformed',
    [value.replace('/us-east-1', '/')]: 'AuthorizationHeaderMalformed',
    [value.replace('/20130524', '/20130525')]: 'AuthorizationHeaderMalformed',
    [value.replace('/20130524', '/2013')]: 'AuthorizationHeaderMalformed',
    [value.replace(/,Signature.*/, '')]: 'AuthorizationHeaderMalformed',
    [`${value},Signature=x`]: 'AuthorizationHeaderMalformed',
    [value.replace('host;', 'host;;')]: 'AuthorizationHeaderMalformed',
    [value.replace('/us-east-1', '/us-west-9')]: 'SignatureDoesNotMatch',
    [value.replace(/Signature=.*/, 'Signature=é')]: 'SignatureDoesNotMatch',
  };
  for (const [text, code] of Object.entries(header)) {
    test(`Authorization: ${text.slice(0, 90)}`, () => {
      const sent = { ...good, rawHeaders: [...good.rawHeaders.slice(0, -1), text] };
      assert.throws(() => verify(sent), isCode(code));
    });
  }

  const url = request('presigned').rawUrl;
  const query: readonly [from: string | RegExp, to: string, code: string][] = [
    ['Expires=86400', 'Expires=0', 'AccessDenied'],
    ['Expires=86400', 'Expires=-7', 'AccessDenied'],
    ['Expires=86400', 'Expires=604801', 'AccessDenied'],
    ['Expires=86400', 'Expires=9s', 'AuthorizationQueryParametersError'],
    [/&X-Amz-Expires=\d+/, '', 'AuthorizationQueryParametersError'],
    [/&X-Amz-Signature=\w+/, '', 'AuthorizationQueryParametersError'],
    ['X-Amz-Date', 'X-Amz-Date=1&X-Amz-Date', 'AuthorizationQueryParametersError'],
    ['T000000Z', 'T250000Z', 'AuthorizationQueryParametersError'],
    ['AWS4-HMAC-SHA256', 'AWS4', 'AuthorizationQueryParametersError'],
    ['AWS4-HMAC-SHA256', 'AWS4-ECDSA-P256-SHA256', 'NotImplemented'],
    ['%2Fs3%2F', '%2Fsts%2F', 'AuthorizationQueryParametersError'],
    ['?', '?X-Amz-Security-Token=t&', 'InvalidToken'],
    ['?', '?X-Amz-Content-Sha256=STREAMING-UNSIGNED-PAYLOAD-TRAILER&', 'InvalidArgument'],
    [/\?.*/, '?AWSAccessKeyId=a&Expires=1&Signature=b', 'InvalidRequest'],
  ];
  for (const [from, to, code] of query) {
    test(`query: ${to || `without ${from}`}`, () => {
      const sent = { ...request('presigned'), rawUrl: url.replace(from, to) };
      assert.throws(() => verify(sent), isCode(code));
    });
  }

  const content: readonly [value: string, code: string][] = [
    ['', 'MissingSecurityHeader'],
    ['STREAMING-AWS4-ECDSA-P256-SHA256-PAYLOAD', 'NotImplemented'],
    ['STREAMING-SOMETHING', 'InvalidArgument'],
    ['abc', 'InvalidArgument'],
  ];
  for (const [word, code] of content) {
    test(`x-amz-content-sha256: ${word}`, () => {
      assert.throws(() => readCredentials(readHead(swapped(EMPTY, word)(good))), isCode(code));
    });
  }

  test('no date, or none that can be', () => {
    for (const date of ['', '20131324T000000Z', 'yesterday']) {
      assert.throws(
        () => readCredentials(readHead(swapped(EXAMPLE_TIME, date)(good))),
        isCode('AccessDenied'),
      );
    }
  });
});

test('a request without credentials is anonymous, and may have unsigned chunks only', () => {
  assert.equal(readCredentials(readHead(head('GET', '/b/k?acl', { Host: 'h' }))), null);
  const payload = (word: string) =>
    anonymousPayload(readHead(head('PUT', '/b/k', { 'X-Amz-Content-Sha256': word })));
  assert.deepEqual(anonymousPayload(readHead(head('PUT', '/b/k', {}))), { kind: 'unsigned' });
  assert.deepEqual(payload('STREAMING-UNSIGNED-PAYLOAD-TRAILER'), {
    kind: 'chunked',
    signed: false,
    trailer: true,
  });
  assert.throws(() => payload('STREAMING-AWS4-HMAC-SHA256-PAYLOAD'), isCode('AccessDenied'));
});

test('only Date, quoted spaces and Latin-1 bytes', () => {
  const headers = {
    host: 'h',
    date: 'Fri, 24 May 2013 00:00:00 GMT',
    'x-amz-content-sha256': 'UNSIGNED-PAYLOAD',
  };
  const quoted = { ...headers, 'x-amz-meta-a': '"a  b" c' };
  const Authorization = authorization({ method: 'GET', path: '/', headers: quoted }, EXAMPLE_SECRET);
  verify(head('GET', '/', { ...quoted, 'x-amz-meta-a': ' "a  b"   c ', Authorization }));
  const bytes = Buffer.from('é€').toString('latin1');
  const sent = { ...headers, 'x-amz-meta-a': bytes };
  const signed = authorization(
    { method: 'GET', path: '/', headers: { ...headers, 'x-amz-meta-a': 'é€' } },
    EXAMPLE_SECRET,
  );
  verify(head('GET', '/', { ...sent, Authorization: signed }));
});

describe('aws4fetch signs', () => {
  const client = new AwsClient({
    accessKeyId: 'AK',
    secretAccessKey: 's',
    service: 's3',
    region: 'eu-west-7',
  });
  const keys = ['a//b', '%2Fa', 'a%20b', '%25', "!'()*", 'a%2Bb', '%E2%82%AC', 'k~_-.', 'a%0Db', '$&,:;=@'];
  for (const key of keys) {
    test(key, async () => {
      for (const signQuery of [false, true]) {
        const url = `http://h.example/b/${key}?prefix=a%20b%2B&x=%C3%A9&y=`;
        const init = {
          method: 'PUT',
          headers: { 'x-amz-meta-a': 'b' },
          aws: { signQuery, allHeaders: true },
        };
        const made = await client.sign(url, init);
        const rawHeaders = ['host', 'h.example', ...[...made.headers].flat()];
        const sent = { method: 'PUT', rawUrl: made.url.slice('http://h.example'.length), rawHeaders };
        const signed = readCredentials(readHead(sent));
        assert.equal(signed?.accessKeyId, 'AK');
        verifySignature(signed, readHead(sent), 's', Date.now());
        assert.throws(
          () => verifySignature(signed, readHead(sent), 't', Date.now()),
          isCode('SignatureDoesNotMatch'),
        );
      }
    });
  }
});

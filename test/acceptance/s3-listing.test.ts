import assert from 'node:assert/strict';
import { before, describe, test } from 'node:test';
import {
  elementsOf,
  encoded,
  newS3Bucket,
  pathOf,
  type S3Client,
  sharedS3,
  textOf,
  textsOf,
} from './s3-kit.ts';

let s3: S3Client;
before(async () => {
  ({ s3 } = await sharedS3());
});

async function bucketOf(keys: readonly string[]): Promise<string> {
  const bucket = await newS3Bucket(s3);
  await Promise.all(keys.map((key) => s3.ok('PUT', pathOf(bucket, key), { body: key })));
  return bucket;
}

const byBytes = (a: string, b: string) => Buffer.compare(Buffer.from(a), Buffer.from(b));
const list = async (bucket: string, query: string) => (await s3.ok('GET', `/${bucket}`, { query })).text;
const prefixesOf = (xml: string) =>
  elementsOf(xml, 'CommonPrefixes').flatMap((inner) => textsOf(inner, 'Prefix'));
/** Names as written with `encoding-type=url`. */
const urlOf = (name: string) => encoded(name).replaceAll('%2F', '/');

const ODD = [
  '.',
  '..',
  '../x',
  './a',
  '/a',
  '//',
  'a//b',
  'a/',
  'a',
  'a/b',
  'a+b',
  'a b',
  'a%b',
  'a%2Fb',
  'a%20b',
  'a&<b>"c\'',
  'ü',
  'u\u0308',
  '日本語/キー',
  '🎈',
  '\uFFFD',
  '\uE000',
  '!*()~',
  '?query',
  '#hash',
  ':;=@$,',
  '\\back',
  'tab\there',
  'line\nfeed',
  'carriage\rreturn',
  '\u0001control',
  '\u007Fdel',
  '\u0085next',
  ' leading',
  'trailing ',
  'x'.repeat(1024),
  'ß'.repeat(512),
  'con',
  'a/../b',
  'a/./b',
  '\uFFFE',
];

describe('keys of every kind', () => {
  test('are stored, listed, read and deleted as they are', async () => {
    const bucket = await bucketOf(ODD);
    const sorted = [...ODD].sort(byBytes);
    for (const query of ['encoding-type=url', 'list-type=2&encoding-type=url']) {
      assert.deepEqual(textsOf(await list(bucket, query), 'Key'), sorted.map(urlOf));
    }
    assert.deepEqual(textsOf(await list(bucket, ''), 'Key'), sorted);
    for (const key of ODD) assert.equal((await s3.ok('GET', pathOf(bucket, key))).text, key);
    const seen: string[] = [];
    for (let token = '', more = true; more; ) {
      const page = await list(bucket, `list-type=2&max-keys=1${token}`);
      seen.push(...textsOf(page, 'Key'));
      more = textOf(page, 'IsTruncated') === 'true';
      if (more) token = `&continuation-token=${encoded(textOf(page, 'NextContinuationToken'))}`;
    }
    assert.deepEqual(seen, sorted);
    for (const key of ODD.slice(0, 20)) {
      await s3.ok('PUT', pathOf(bucket, 'copy'), {
        headers: { 'x-amz-copy-source': `/${bucket}/${encoded(key)}` },
      });
      assert.equal((await s3.ok('GET', pathOf(bucket, 'copy'))).text, key);
    }
    for (const key of ODD) assert.equal((await s3.ok('DELETE', pathOf(bucket, key))).status, 204);
    assert.deepEqual(textsOf(await list(bucket, ''), 'Key'), ['copy']);
  });

  test('are refused when no key can be so', async () => {
    const bucket = await newS3Bucket(s3);
    await s3.refused(400, 'KeyTooLongError', ['PUT', pathOf(bucket, 'x'.repeat(1025))]);
    await s3.refused(400, 'KeyTooLongError', ['PUT', pathOf(bucket, 'ß'.repeat(513))]);
    for (const raw of ['%00', 'a%00b', '%FF', '%C3', '%ED%A0%80', '%zz', '%'])
      await s3.refused(400, 'InvalidURI', ['PUT', `/${bucket}/${raw}`]);
    assert.deepEqual(textsOf(await list(bucket, ''), 'Key'), []);
  });
});

describe('a list', () => {
  const keys = [
    'a',
    'a/1',
    'a/2',
    'a/b/3',
    'b',
    'b-c',
    'b/',
    'c/x',
    'ca',
    'd||e',
    'd||f||g',
    'ü/1',
    '\u{1F388}/1',
  ];
  let bucket: string;
  before(async () => {
    bucket = await bucketOf(keys);
  });

  /** The expected content of a list. */
  function model(prefix: string, delimiter: string): string[] {
    const entries = new Set<string>();
    for (const key of keys.filter((each) => each.startsWith(prefix))) {
      const end = delimiter === '' ? -1 : key.indexOf(delimiter, prefix.length);
      entries.add(end < 0 ? `key ${key}` : `prefix ${key.slice(0, end + delimiter.length)}`);
    }
    return [...entries].sort((x, y) => byBytes(x.replace(/^\w+ /, ''), y.replace(/^\w+ /, '')));
  }

  const entriesOf = (xml: string) =>
    [
      ...textsOf(xml, 'Key').map((key) => `key ${key}`),
      ...prefixesOf(xml).map((name) => `prefix ${name}`),
    ].sort((x, y) => byBytes(x.replace(/^\w+ /, ''), y.replace(/^\w+ /, '')));

  test('is the same in pages of any size, with any prefix and delimiter, in all three forms', async () => {
    for (const [prefix, delimiter] of [
      ['', ''],
      ['', '/'],
      ['a', '/'],
      ['a/', '/'],
      ['', '||'],
      ['d||', '||'],
      ['', 'b'],
      ['c', 'a'],
      ['', '-c'],
      ['ü', '/'],
      ['nothing', '/'],
      ['b/', '/'],
      ['', '\u{1F388}'],
      ['', 'a/1'],
    ] as const) {
      const wanted = model(prefix, delimiter);
      const common = `prefix=${encoded(prefix)}&delimiter=${encoded(delimiter)}`;
      for (const size of [1, 2, 3, 1000]) {
        const forms = [
          { query: 'list-type=2', markers: [['continuation-token', 'NextContinuationToken']] },
          { query: '', markers: [['marker', 'NextMarker']] },
          {
            query: 'versions',
            markers: [
              ['key-marker', 'NextKeyMarker'],
              ['version-id-marker', 'NextVersionIdMarker'],
            ],
          },
        ] as const;
        for (const { query, markers } of forms) {
          const seen: string[] = [];
          for (let more = true, after = ''; more; ) {
            const page = await list(
              bucket,
              [query, common, `max-keys=${size}${after}`].filter(Boolean).join('&'),
            );
            const entries = entriesOf(page);
            assert.ok(entries.length <= size);
            if (query === 'list-type=2') assert.equal(textOf(page, 'KeyCount'), String(entries.length));
            seen.push(...entries);
            more = textOf(page, 'IsTruncated') === 'true';
            const next = markers.map(([name, element]) => {
              const [value = name === 'marker' ? (textsOf(page, 'Key').at(-1) ?? '') : ''] = textsOf(
                page,
                element,
              );
              return value === '' ? '' : `&${name}=${encoded(value)}`;
            });
            after = next.join('');
            assert.ok(!more || after !== '', 'a cut page names the next one');
            assert.ok(seen.length <= wanted.length, `${query} ${common} ${size}: ${seen}`);
          }
          assert.deepEqual(seen, wanted, `${query} ${common} ${size}`);
        }
      }
    }
  });

  test('begins after a name, and a token goes before it', async () => {
    const page = await list(bucket, 'list-type=2&start-after=b-c&max-keys=1');
    assert.deepEqual(textsOf(page, 'Key'), ['b/']);
    const token = encoded(textOf(page, 'NextContinuationToken'));
    const next = await list(bucket, `list-type=2&start-after=a&max-keys=1&continuation-token=${token}`);
    assert.deepEqual(textsOf(next, 'Key'), ['c/x']);
    assert.deepEqual(textsOf(await list(bucket, 'marker=c%2Fx&max-keys=1'), 'Key'), ['ca']);
    assert.deepEqual(textsOf(await list(bucket, 'marker=zzz'), 'Key').length, 2);
  });

  test('takes its size and tells it', async () => {
    assert.deepEqual(textsOf(await list(bucket, 'max-keys=0'), 'IsTruncated'), ['false']);
    assert.equal(textOf(await list(bucket, 'max-keys=5000'), 'MaxKeys'), '1000');
    for (const wrong of ['-1', 'x', '1.5', '2147483648', '99999999999']) {
      await s3.refused(400, 'InvalidArgument', ['GET', `/${bucket}`, { query: `max-keys=${wrong}` }]);
    }
    for (const query of ['list-type=1', 'encoding-type=xml', 'list-type=2&continuation-token=made-up']) {
      await s3.refused(400, 'InvalidArgument', ['GET', `/${bucket}`, { query }]);
    }
  });

  test('of version 1 shows a prefix that reads the same decoded or not', async () => {
    for (const [prefix, shown] of [
      ['foo/', 'foo/'],
      ['a b/ä', 'a b/ä'],
      ['\n', '\n'],
      ['100%+', '100%25%2B'],
      ['\u0001', '%01'],
    ] as const) {
      const query = `prefix=${encoded(prefix)}`;
      assert.equal(textOf(await list(bucket, `${query}&encoding-type=url`), 'Prefix'), shown);
      const later = await list(bucket, `${query}&encoding-type=url&list-type=2`);
      assert.equal(textOf(later, 'Prefix'), urlOf(prefix));
      assert.equal(textOf(await list(bucket, query), 'Prefix'), prefix);
    }
  });

  test('shows owners where they are asked for', async () => {
    assert.doesNotMatch(await list(bucket, 'list-type=2'), /<Owner>/);
    assert.match(
      textsOf(await list(bucket, 'list-type=2&fetch-owner=true'), 'ID')[0] ?? '',
      /^[0-9a-f]{64}$/,
    );
    assert.equal(textsOf(await list(bucket, ''), 'DisplayName').length, keys.length);
  });

  test('of over a thousand names comes in pages', async () => {
    const many = Array.from({ length: 1005 }, (_, at) => `k${String(at).padStart(4, '0')}`);
    const large = await newS3Bucket(s3);
    const left = [...many];
    const lane = async () => {
      for (let key = left.pop(); key !== undefined; key = left.pop())
        await s3.ok('PUT', pathOf(large, key), { body: '' });
    };
    await Promise.all(Array.from({ length: 16 }, lane));
    const page = await list(large, 'list-type=2');
    assert.deepEqual(textsOf(page, 'Key'), many.slice(0, 1000));
    const token = encoded(textOf(page, 'NextContinuationToken'));
    assert.deepEqual(
      textsOf(await list(large, `list-type=2&continuation-token=${token}`), 'Key'),
      many.slice(1000),
    );
  });
});

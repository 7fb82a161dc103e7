/** Lifecycle rules: set by S3 clients, shown in headers, and run. */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { isDeepStrictEqual } from 'node:util';
import { Client } from '../harness/client.ts';
import { ADMIN_KEY, CloudProcess } from '../harness/cloud-process.ts';
import { eventually } from '../harness/waiting.ts';
import { completion, newS3, newS3Bucket, newUpload, pathOf, S3Client, textOf, textsOf } from './s3-kit.ts';

const query = 'lifecycle';
const DAY_MS = 86_400_000;
const DAY_SECONDS = 2;

let cloud: CloudProcess;
let owner: Client;
let accountId: number;
let apiKey: string;
let s3: S3Client;
before(async () => {
  cloud = await CloudProcess.start({ env: { CLOUDLET_S3_LIFECYCLE_DAY_SECONDS: String(DAY_SECONDS) } });
  const account = await new Client(cloud.api).register();
  accountId = account.id;
  apiKey = account.api_key;
  owner = new Client(cloud.api, account.api_key);
  s3 = await newS3(cloud.data, owner);
});
after(() => cloud.stop());

const configuration = (...rules: string[]) =>
  `<LifecycleConfiguration>${rules.map((each) => `<Rule>${each}</Rule>`).join('')}</LifecycleConfiguration>`;
const rule = (id: string, inner: string, filter = '<Filter></Filter>') =>
  `<ID>${id}</ID>${filter}<Status>Enabled</Status>${inner}`;
const disabled = (text: string) => text.replace('>Enabled<', '>Disabled<');
const days = (count: number | string) => `<Expiration><Days>${count}</Days></Expiration>`;
const within = (prefix: string) => `<Filter><Prefix>${prefix}</Prefix></Filter>`;
const NONCURRENT = (inner: string) => `<NoncurrentVersionExpiration>${inner}</NoncurrentVersionExpiration>`;
const ABORT =
  '<AbortIncompleteMultipartUpload><DaysAfterInitiation>1</DaysAfterInitiation></AbortIncompleteMultipartUpload>';
const MARKERS = '<Expiration><ExpiredObjectDeleteMarker>true</ExpiredObjectDeleteMarker></Expiration>';

const put = (bucket: string, ...rules: string[]) =>
  s3.ok('PUT', `/${bucket}`, { query, body: configuration(...rules) });
const keysOf = async (bucket: string) => textsOf((await s3.ok('GET', `/${bucket}`)).text, 'Key');
const versionsOf = async (bucket: string) => {
  const { text } = await s3.ok('GET', `/${bucket}`, { query: 'versions' });
  return [...text.matchAll(/<(Version|DeleteMarker)><Key>(.*?)<\/Key>/g)].map(
    ([, kind, key]) => `${key}${kind === 'DeleteMarker' ? '!' : ''}`,
  );
};

const becomes = (look: () => Promise<string[]>, wanted: string[]) =>
  eventually(wanted.join(' '), async () => isDeepStrictEqual(await look(), wanted));

describe('the rules of a bucket', () => {
  test('are put, read as they were put, and removed', async () => {
    const bucket = await newS3Bucket(s3);
    const path = `/${bucket}`;
    await s3.refused(404, 'NoSuchLifecycleConfiguration', ['GET', path, { query }]);
    const tag = '<Tag><Key>k</Key><Value>v&amp;</Value></Tag>';
    const sizes =
      '<ObjectSizeGreaterThan>500</ObjectSizeGreaterThan><ObjectSizeLessThan>64000</ObjectSizeLessThan>';
    const rules = [
      disabled(rule('old form', days(3), '<Prefix>logs/</Prefix>')),
      rule('everything', days(365)),
      rule(
        'tag',
        '<Expiration><Date>2030-01-31T00:00:00.000Z</Date></Expiration>',
        `<Filter>${tag}</Filter>`,
      ),
      rule('and', days(1), `<Filter><And><Prefix>a/</Prefix>${tag}${sizes}</And></Filter>`),
      rule('markers', MARKERS + ABORT, within('m/')),
      rule(
        'versions',
        NONCURRENT('<NoncurrentDays>30</NoncurrentDays><NewerNoncurrentVersions>5</NewerNoncurrentVersions>'),
      ),
    ];
    const made = await put(bucket, ...rules);
    assert.equal(made.headers['x-amz-transition-default-minimum-object-size'], 'all_storage_classes_128K');
    const { text, headers } = await s3.ok('GET', path, { query });
    for (const each of rules) assert.ok(text.includes(`<Rule>${each}</Rule>`), `${each} in ${text}`);
    assert.equal(headers['x-amz-transition-default-minimum-object-size'], 'all_storage_classes_128K');
    // Old clients omit `And`.
    const bare = rule('bare', days(1), `<Filter><Prefix>a/</Prefix>${tag}</Filter>`);
    await put(bucket, bare);
    const said = bare.replace('<Filter>', '<Filter><And>').replace('</Filter>', '</And></Filter>');
    assert.ok((await s3.ok('GET', path, { query })).text.includes(said));
    const body = configuration(`${within('x')}<Status>Enabled</Status>${days(1)}`);
    const varies = { 'x-amz-transition-default-minimum-object-size': 'varies_by_storage_class' };
    await s3.ok('PUT', path, { query, body, headers: varies });
    const named = await s3.ok('GET', path, { query });
    assert.match(textOf(named.text, 'ID'), /^.{8,}$/);
    assert.equal(named.headers['x-amz-transition-default-minimum-object-size'], 'varies_by_storage_class');
    assert.equal((await s3.ok('DELETE', path, { query })).status, 204);
    await s3.refused(404, 'NoSuchLifecycleConfiguration', ['GET', path, { query }]);
  });

  test('are refused where AWS refuses them', async () => {
    const path = `/${await newS3Bucket(s3)}`;
    const tags = '<Filter><Tag><Key>k</Key><Value>v</Value></Tag></Filter>';
    const date = (text: string) => `<Expiration><Date>${text}</Date></Expiration>`;
    const transition = (when: string, to = 'GLACIER') =>
      `<Transition>${when}<StorageClass>${to}</StorageClass></Transition>`;
    const many = Array.from({ length: 1001 }, (_, i) => rule(`r${i}`, days(1)));
    for (const [status, code, ...rules] of [
      [400, 'MalformedXML'],
      [400, 'MalformedXML', ...many],
      [400, 'InvalidArgument', rule('same', days(1)), rule('same', days(2), within('x'))],
      [400, 'InvalidArgument', rule('i'.repeat(256), days(1))],
      [400, 'InvalidArgument', rule('r', days(0))],
      [400, 'InvalidArgument', rule('r', days(-1))],
      [400, 'MalformedXML', rule('r', days('soon'))],
      [400, 'MalformedXML', rule('r', days(1)).replace('>Enabled<', '>enabled<')],
      [400, 'MalformedXML', rule('r', days(1), '')],
      [400, 'MalformedXML', rule('r', days(1), '<Prefix/><Filter/>')],
      [400, 'MalformedXML', rule('r', days(1), '<Filter><Prefix>a</Prefix><And/></Filter>')],
      [400, 'MalformedXML', rule('r', days(1), '<Filter><Prefix>a</Prefix><Tag/></Filter>')],
      [400, 'MalformedXML', rule('r', '<Expiration/>')],
      [400, 'MalformedXML', rule('r', `<Expiration><Days>1</Days><Date>2030-01-01</Date></Expiration>`)],
      [400, 'MalformedXML', rule('r', date('20200101'))],
      [400, 'InvalidArgument', rule('r', date('2030-01-01T12:00:00Z'))],
      [400, 'InvalidRequest', rule('r', '')],
      [400, 'InvalidRequest', rule('r', ABORT, tags)],
      [400, 'InvalidRequest', rule('r', MARKERS, tags)],
      [400, 'MalformedXML', rule('r', NONCURRENT('<NewerNoncurrentVersions>1</NewerNoncurrentVersions>'))],
      [400, 'InvalidArgument', rule('r', NONCURRENT('<NoncurrentDays>0</NoncurrentDays>'))],
      [400, 'MalformedXML', rule('r', transition('<Date>20300101</Date>'))],
      [400, 'MalformedXML', rule('r', transition('<Days>1</Days>', 'ATTIC'))],
      [400, 'InvalidArgument', rule('r', transition('<Days>-1</Days>'))],
      [501, 'NotImplemented', rule('r', transition('<Days>1</Days>'))],
    ] as const) {
      await s3.refused(status, code, ['PUT', path, { query, body: configuration(...rules) }]);
    }
    await s3.refused(404, 'NoSuchLifecycleConfiguration', ['GET', path, { query }]);
    const headers = { 'x-amz-transition-default-minimum-object-size': 'none' };
    const body = configuration(rule('r', days(1)));
    await s3.refused(400, 'InvalidArgument', ['PUT', path, { query, body, headers }]);
    await s3.ok('PUT', path, { query, body: configuration(...many.slice(1)) });
    await s3.ok('PUT', path, { query, body: configuration(rule('r', date('2017-09-27'))) });
  });

  test('are changed over JSON too, by the same rules', async () => {
    const bucket = await newS3Bucket(s3);
    const change = (json: object) => owner.call(`/api/buckets/${bucket}/settings`, { method: 'PATCH', json });
    const lifecycle = [
      { id: 'a', enabled: true, prefix: 'p/', tags: { t: '1' }, days: 3 },
      { id: 'b', enabled: false, noncurrent_days: 2, noncurrent_kept: 1, abort_days: 7 },
      { id: 'c', enabled: true, date: '2031-01-01' },
    ];
    assert.deepEqual((await change({ lifecycle })).body.lifecycle, lifecycle);
    assert.deepEqual(textsOf((await s3.ok('GET', `/${bucket}`, { query })).text, 'ID'), ['a', 'b', 'c']);
    for (const wrong of [{ days: 0 }, { days: 1, date: '2031-01-01' }, { date: 'soon' }, {}]) {
      const refused = await change({ lifecycle: [{ id: 'a', enabled: true, ...wrong }] });
      assert.deepEqual(
        [refused.status, refused.body.errors[0].field],
        [400, 'lifecycle'],
        JSON.stringify(wrong),
      );
    }
    await change({ lifecycle: null });
    await s3.refused(404, 'NoSuchLifecycleConfiguration', ['GET', `/${bucket}`, { query }]);
  });
});

test('answers about a current version tell when it goes, in real days', async () => {
  const bucket = await newS3Bucket(s3, 'Enabled');
  await put(
    bucket,
    rule('slow &amp; sure', days(30), within('logs/')),
    rule('up', ABORT),
    rule('later', days(99)),
  );
  const told = (headers: Record<string, unknown>) => {
    const [, date = '', id] =
      /^expiry-date="(.+)", rule-id="(.+)"$/.exec(String(headers['x-amz-expiration'])) ?? [];
    const at = Date.parse(date);
    assert.equal(at % DAY_MS, 0, date);
    return [Math.floor((at - Date.now()) / DAY_MS), id];
  };
  const path = pathOf(bucket, 'logs/a');
  const first = await s3.ok('PUT', path, { body: 'x' });
  assert.deepEqual(told(first.headers), [30, 'slow%20%26%20sure']);
  for (const verb of ['GET', 'HEAD']) assert.deepEqual(told((await s3.ok(verb, path)).headers)[0], 30);
  const version = { query: `versionId=${first.headers['x-amz-version-id']}` };
  assert.equal((await s3.ok('HEAD', path, version)).headers['x-amz-expiration'], undefined);
  const copied = await s3.ok('PUT', pathOf(bucket, 'b'), {
    headers: { 'x-amz-copy-source': `/${bucket}/logs/a` },
  });
  assert.deepEqual(told(copied.headers), [99, 'later']);
  const created = await s3.ok('POST', path, { query: 'uploads' });
  assert.equal(created.headers['x-amz-abort-rule-id'], 'up');
  assert.equal(Date.parse(String(created.headers['x-amz-abort-date'])) % DAY_MS, 0);
  const id = textOf(created.text, 'UploadId');
  const { headers } = await s3.ok('PUT', path, { query: `partNumber=1&uploadId=${id}`, body: 'part' });
  const body = completion([{ number: 1, etag: headers.etag }]);
  assert.deepEqual(told((await s3.ok('POST', path, { query: `uploadId=${id}`, body })).headers)[0], 30);
});

describe('rules are run', () => {
  test('by prefix, size and tag, and leave the rest', async () => {
    const bucket = await newS3Bucket(s3);
    const tagged = (value: string) => ({ 'x-amz-tagging': `keep=${value}` });
    for (const key of ['old/1', 'old/2', 'other']) await s3.ok('PUT', pathOf(bucket, key), { body: 'x' });
    await s3.ok('PUT', pathOf(bucket, 'large'), { body: 'x'.repeat(2000) });
    for (const value of ['no', 'yes']) {
      await s3.ok('PUT', pathOf(bucket, `tag-${value}`), { body: 'x', headers: tagged(value) });
    }
    await put(
      bucket,
      rule('p', days(1), within('old/')),
      rule('s', days(1), '<Filter><ObjectSizeGreaterThan>1000</ObjectSizeGreaterThan></Filter>'),
      rule('t', days(1), '<Filter><Tag><Key>keep</Key><Value>no</Value></Tag></Filter>'),
      disabled(rule('off', days(1), within('other'))),
      rule('later', days(5000), within('other')),
    );
    const left = ['other', 'tag-yes'];
    await becomes(() => keysOf(bucket), left);
    assert.deepEqual(await versionsOf(bucket), left);
    const { body } = await owner.call(`/api/buckets/${bucket}`);
    assert.deepEqual([body.object_count, body.size, body.version_count], [2, 2, 2]);
  });

  test('where versions are kept: objects go behind markers, old versions and lone markers go for good', async () => {
    const bucket = await newS3Bucket(s3, 'Enabled');
    for (let i = 0; i < 4; i++) await s3.ok('PUT', pathOf(bucket, 'v/a'), { body: `x${i}` });
    for (const key of ['c/a', 'l/a']) await s3.ok('PUT', pathOf(bucket, key), { body: 'x' });
    await s3.ok('DELETE', pathOf(bucket, 'm/a'));
    const kept = '<NoncurrentDays>1</NoncurrentDays><NewerNoncurrentVersions>1</NewerNoncurrentVersions>';
    await put(
      bucket,
      rule('v', NONCURRENT(kept), within('v/')),
      rule('c', days(1), within('c/')),
      rule('m', MARKERS, within('m/')),
      rule('l', days(1) + NONCURRENT('<NoncurrentDays>1</NoncurrentDays>'), within('l/')),
    );
    // In l/ the marker is removed too, once it hides nothing and is a day old.
    await becomes(() => versionsOf(bucket), ['c/a!', 'c/a', 'v/a', 'v/a']);
    assert.equal((await s3.ok('GET', pathOf(bucket, 'v/a'))).text, 'x3');
  });

  test('for uploads that were not completed, and respect locks', async () => {
    const bucket = 'locked-and-aging';
    await s3.ok('PUT', `/${bucket}`, { headers: { 'x-amz-bucket-object-lock-enabled': 'true' } });
    await newUpload(s3, pathOf(bucket, 'up'));
    const headers = { 'x-amz-object-lock-legal-hold': 'ON' };
    await s3.ok('PUT', pathOf(bucket, 'held'), { body: 'held', headers });
    for (let i = 0; i < 2; i++) await s3.ok('PUT', pathOf(bucket, 'free'), { body: 'free' });
    for (const key of ['held', 'free']) await s3.ok('DELETE', pathOf(bucket, key));
    await put(bucket, rule('r', NONCURRENT('<NoncurrentDays>1</NoncurrentDays>') + ABORT));
    await becomes(() => versionsOf(bucket), ['free!', 'held!', 'held']);
    const uploads = await s3.ok('GET', `/${bucket}`, { query: 'uploads' });
    assert.deepEqual(textsOf(uploads.text, 'UploadId'), []);
  });

  test('while the account is suspended', async () => {
    const bucket = await newS3Bucket(s3);
    await s3.ok('PUT', pathOf(bucket, 'a'), { body: 'x' });
    const admin = new Client(cloud.api, ADMIN_KEY);
    const path = `/api/admin/accounts/${accountId}`;
    await put(bucket, rule('r', days(1)));
    assert.equal((await admin.call(`${path}/suspend`, { json: { reason: 'test' } })).status, 200);
    await new Promise((resolve) => setTimeout(resolve, DAY_SECONDS * 3000));
    assert.equal((await admin.call(`${path}/resume`, { method: 'POST' })).status, 200);
    assert.deepEqual(await keysOf(bucket), []);
  });
});

test('kill -9 in the middle of a run loses nothing that should stay, and the run goes on', async () => {
  const bucket = await newS3Bucket(s3, 'Enabled');
  const keys = Array.from({ length: 1500 }, (_, i) => `k/${String(i).padStart(4, '0')}`);
  const upload = async (key: string) => void (await s3.ok('PUT', pathOf(bucket, key), { body: 'x' }));
  for (let at = 0; at < keys.length; at += 50) await Promise.all(keys.slice(at, at + 50).map(upload));
  await s3.ok('PUT', pathOf(bucket, 'kept'), { body: 'kept' });
  await put(bucket, rule('r', days(1), within('k/')));
  const markers = async () => {
    const seen: string[] = [];
    for (let marker = ''; ; ) {
      const { text } = await s3.ok('GET', `/${bucket}`, { query: `versions&prefix=k/&key-marker=${marker}` });
      seen.push(...[...text.matchAll(/<DeleteMarker><Key>(.*?)</g)].map(([, key = '']) => key));
      if (!text.includes('<IsTruncated>true')) return seen;
      marker = textOf(text, 'NextKeyMarker');
    }
  };
  await eventually('the run begins', async () => (await markers()).length > 0);
  await cloud.crash();
  await cloud.start();
  s3 = new S3Client(cloud.data, s3.pair);
  owner = new Client(cloud.api, apiKey);
  assert.ok((await markers()).length < keys.length, 'it was killed in the middle');
  await eventually('the run ends', async () => (await markers()).length >= keys.length);
  const all = await markers();
  assert.equal(new Set(all).size, all.length, 'no name has two markers');
  assert.equal((await s3.ok('GET', pathOf(bucket, 'kept'))).text, 'kept');
  const { body } = await owner.call(`/api/buckets/${bucket}`);
  assert.deepEqual([body.object_count, body.version_count], [1, keys.length + 1]);
});

/** Uploads by HTML form, according to Amazon's text on browser-based uploads; and signatures of version 2. */
import assert from 'node:assert/strict';
import { createHash, createHmac } from 'node:crypto';
import { after, before, describe, test } from 'node:test';
import { Client } from '../harness/client.ts';
import { ADMIN_KEY, CloudProcess } from '../harness/cloud-process.ts';
import {
  assertRefused,
  type KeyPair,
  md5Of,
  newKeyPair,
  newS3,
  newS3Bucket,
  pathOf,
  type S3Client,
  type S3Reply,
  textOf,
  textsOf,
  transmit,
} from './s3-kit.ts';

let cloud: CloudProcess;
let owner: Client;
let s3: S3Client;
let bucket: string;
before(async () => {
  cloud = await CloudProcess.start({ env: { CLOUDLET_S3_SIGV2: 'on' } });
  owner = await new Client(cloud.api).newUser();
  s3 = await newS3(cloud.data, owner);
  bucket = await newS3Bucket(s3);
});
after(() => cloud.stop());

interface Form {
  readonly fields?: Readonly<Record<string, string>>;
  /** Conditions in addition to those for the bucket, the key and `acl`. */
  readonly conditions?: readonly unknown[];
  readonly expiration?: string;
  readonly policy?: object;
  readonly pair?: KeyPair;
  readonly version?: 2 | 4 | null;
  readonly file?: string | Buffer | null;
  readonly fileName?: string;
  readonly trailing?: string;
}

const FILE_NAME = '$\u007bfilename}';
const hour = () => new Date(Date.now() + 3_600_000).toISOString();

/** The fields of a signed form. */
function signedFields({ pair = s3.pair, version = 2, ...form }: Form): Record<string, string> {
  const { fields = {}, conditions = [], expiration = hour() } = form;
  const common = { key: 'form/a', ...fields };
  if (version === null) return common;
  const date = new Date().toISOString().replace(/[-:]|\.\d+/g, '');
  const scope = `${date.slice(0, 8)}/us-east-1/s3/aws4_request`;
  const own: Record<string, string> =
    version === 2
      ? {}
      : {
          'x-amz-algorithm': 'AWS4-HMAC-SHA256',
          'x-amz-credential': `${pair.access_key_id}/${scope}`,
          'x-amz-date': date,
        };
  const all = [
    { bucket },
    ['starts-with', '$key', 'form/'],
    ...Object.entries(own).map(pairOf),
    ...conditions,
  ];
  const text = JSON.stringify(form.policy ?? { expiration, conditions: all });
  const policy = Buffer.from(text).toString('base64');
  if (version === 2) {
    const signature = createHmac('sha1', pair.secret_access_key).update(policy).digest('base64');
    return { AWSAccessKeyId: pair.access_key_id, policy, signature, ...common };
  }
  const key = scope
    .split('/')
    .reduce<string | Buffer>(
      (before, step) => createHmac('sha256', before).update(step).digest(),
      `AWS4${pair.secret_access_key}`,
    );
  const signature = createHmac('sha256', key).update(policy).digest('hex');
  return { ...own, policy, 'x-amz-signature': signature, ...common };
}

const pairOf = ([name, value]: [string, string]) => ({ [name]: value });

function bodyOf(fields: Readonly<Record<string, string>>, form: Form): Buffer {
  const { file = 'form bytes', fileName = 'photo.txt', trailing = '' } = form;
  const part = (name: string, more = '') =>
    `--BOUNDARY\r\nContent-Disposition: form-data; name="${name}"${more}\r\n\r\n`;
  const head = Object.entries(fields).map(([name, value]) => `${part(name)}${value}\r\n`);
  const content =
    file === null
      ? []
      : [Buffer.from(part('file', `; filename="${fileName}"`)), Buffer.from(file), Buffer.from('\r\n')];
  return Buffer.concat([Buffer.from(head.join('')), ...content, Buffer.from(`${trailing}--BOUNDARY--\r\n`)]);
}

function sendForm(fields: Readonly<Record<string, string>>, form: Form = {}): Promise<S3Reply> {
  const body = bodyOf(fields, form);
  const headers = {
    host: new URL(cloud.data).host,
    'content-type': 'multipart/form-data; boundary=BOUNDARY',
    'content-length': String(body.length),
  };
  return transmit(cloud.data, { method: 'POST', target: `/${bucket}`, headers, body });
}

const post = (form: Form = {}) => sendForm(signedFields(form), form);

async function isStored(key = 'form/a'): Promise<boolean> {
  return (await s3.call('HEAD', pathOf(bucket, key))).status === 200;
}

/** The form is refused, and nothing is stored. */
async function assertFormRefused(status: number, code: string, form: Form): Promise<S3Reply> {
  const reply = await post(form);
  assertRefused(reply, status, code);
  assert.ok(!(await isStored(form.fields?.key ?? 'form/a')), `${code}: ${JSON.stringify(form)}`);
  return reply;
}

describe('a form', () => {
  for (const version of [2, 4] as const) {
    test(`that is signed with version ${version} stores its file`, async () => {
      const reply = await post({ version, fields: { key: `form/v${version}` } });
      assert.deepEqual([reply.status, reply.text], [204, '']);
      assert.equal(reply.headers.etag, `"${md5Of('form bytes')}"`);
      assert.equal(reply.headers.location, `${cloud.data}/${bucket}/form/v${version}`);
      const read = await s3.ok('GET', pathOf(bucket, `form/v${version}`));
      assert.equal(read.text, 'form bytes');
      assert.equal(read.headers['content-type'], 'binary/octet-stream');
    });
  }

  test('carries headers, metadata, tags and a checksum as fields, in any case', async () => {
    const sum = createHash('sha256').update('form bytes').digest('base64');
    const fields = {
      kEy: 'form/b',
      'Content-Type': 'text/plain',
      'Cache-Control': 'no-store',
      'x-amz-meta-Name': 'ä',
      aCl: 'private',
      tagging: '<Tagging><TagSet><Tag><Key>a b</Key><Value>c +</Value></Tag></TagSet></Tagging>',
      'x-amz-checksum-sha256': sum,
      'x-ignore-this': 'x',
    };
    const mentioned = ['cOntent-tYpe', 'Cache-Control', 'x-amz-meta-name', 'ACL', 'tagging'];
    const conditions = [
      ...mentioned.map((name) => ['StArTs-WiTh', `$${name}`, '']),
      { 'x-amz-checksum-sha256': sum },
    ];
    const { key: _, ...signed } = signedFields({ fields, conditions });
    const reply = await sendForm(signed);
    assert.equal(reply.status, 204, reply.text);
    assert.equal(reply.headers['x-amz-checksum-sha256'], sum);
    const { headers } = await s3.ok('HEAD', pathOf(bucket, 'form/b'));
    assert.deepEqual(
      [headers['content-type'], headers['cache-control'], headers['x-amz-meta-name']],
      ['text/plain', 'no-store', Buffer.from('ä').toString('latin1')],
    );
    const tags = await s3.ok('GET', pathOf(bucket, 'form/b'), { query: 'tagging' });
    assert.match(tags.text, /<Key>a b<\/Key><Value>c \+<\/Value>/);
  });

  test('of many bytes is stored whole, and what follows the file is ignored', async () => {
    const file = Buffer.alloc(3 * 1024 * 1024, 'many bytes of a form; ');
    const trailing =
      '--BOUNDARY\r\nContent-Disposition: form-data; name="file"\r\n\r\nsecond\r\n' +
      '--BOUNDARY\r\nContent-Disposition: form-data; name="key"\r\n\r\nother\r\n';
    const reply = await post({ fields: { key: 'form/large' }, file, trailing });
    assert.equal(reply.status, 204, reply.text);
    const read = await s3.ok('GET', pathOf(bucket, 'form/large'));
    assert.ok(read.bytes.equals(file));
    assert.equal((await post({ fields: { key: 'form/empty' }, file: '' })).status, 204);
    assert.equal((await s3.ok('GET', pathOf(bucket, 'form/empty'))).bytes.length, 0);
  });

  test('may name the object after the file', async () => {
    const conditions = [['eq', '$x-amz-meta-file', 'photo.txt']];
    const fields = { key: `form/${FILE_NAME}`, 'x-amz-meta-file': FILE_NAME };
    const reply = await post({ fields, conditions, fileName: 'C:/Pictures/photo.txt' });
    assert.equal(reply.status, 204, reply.text);
    assert.ok(await isStored('form/photo.txt'));
    const strict = { expiration: hour(), conditions: [{ bucket }, { key: `form/${FILE_NAME}` }] };
    assertRefused(await post({ fields: { key: `form/${FILE_NAME}` }, policy: strict }), 403, 'AccessDenied');
  });

  test('chooses the status of its answer', async () => {
    const answer = (status: string) =>
      post({
        fields: { key: 'form/status', success_action_status: status },
        conditions: [['starts-with', '$success_action_status', '']],
      });
    assert.equal((await answer('200')).status, 200);
    for (const odd of ['204', '404', '302', 'x']) assert.equal((await answer(odd)).status, 204);
    const created = await answer('201');
    assert.equal(created.status, 201);
    assert.match(created.text, /<PostResponse><Location>/);
    assert.equal(textOf(created.text, 'Bucket'), bucket);
    assert.equal(textOf(created.text, 'Key'), 'form/status');
    assert.equal(textOf(created.text, 'ETag'), `"${md5Of('form bytes')}"`);
    assert.equal(textOf(created.text, 'Location'), created.headers.location);
  });

  test('sends the browser on, to an address that is one', async () => {
    const redirected = async (to: string) =>
      post({
        fields: { key: 'form/a&b', success_action_redirect: to },
        conditions: [['eq', '$success_action_redirect', to]],
      });
    const etag = `%22${md5Of('form bytes')}%22`;
    const reply = await redirected('https://example.org/done');
    const query = `bucket=${bucket}&key=form%2Fa%26b&etag=${etag}`;
    assert.deepEqual([reply.status, reply.headers.location], [303, `https://example.org/done?${query}`]);
    assert.equal((await redirected('https://a.b/?c=d')).headers.location, `https://a.b/?c=d&${query}`);
    for (const odd of ['javascript:alert(1)', 'nowhere', '//example.org/']) {
      assert.equal((await redirected(odd)).status, 204);
    }
  });

  test('makes versions', async () => {
    const versioned = await newS3Bucket(s3, 'Enabled');
    const before = bucket;
    bucket = versioned;
    try {
      const [one, two] = [await post(), await post({ file: 'two' })];
      assert.ok(one.headers['x-amz-version-id']);
      assert.notEqual(one.headers['x-amz-version-id'], two.headers['x-amz-version-id']);
    } finally {
      bucket = before;
    }
  });
});

describe('a form is refused', () => {
  test('without a signature, and with one that is wrong or incomplete', async () => {
    await assertFormRefused(403, 'AccessDenied', { version: null });
    const wrong = { ...s3.pair, secret_access_key: 'x'.repeat(40) };
    const unknown = { ...s3.pair, access_key_id: 'CLAK0000000000000000' };
    for (const version of [2, 4] as const) {
      await assertFormRefused(403, 'SignatureDoesNotMatch', { pair: wrong, version });
      await assertFormRefused(403, 'InvalidAccessKeyId', { pair: unknown, version });
      const fields = signedFields({ version });
      const needed = ['policy', version === 2 ? 'signature' : 'x-amz-signature', 'key'];
      for (const name of needed) {
        const { [name]: _, ...rest } = fields;
        assertRefused(await sendForm(rest), 400, 'InvalidArgument');
      }
      const other = signedFields({ version, conditions: [{ acl: 'private' }] });
      assertRefused(await sendForm({ ...fields, policy: other.policy ?? '' }), 403, 'SignatureDoesNotMatch');
    }
    assert.ok(!(await isStored()));
  });

  test('where its policy has expired, is malformed, or not met', async () => {
    const denied = (form: Form) => assertFormRefused(403, 'AccessDenied', form);
    const malformed = (policy: object) => assertFormRefused(400, 'InvalidPolicyDocument', { policy });
    await denied({ expiration: new Date(Date.now() - 1000).toISOString() });
    await denied({ fields: { acl: 'private' } });
    await denied({ fields: { 'x-amz-meta-a': '1' }, conditions: [['eq', '$x-amz-meta-a', '']] });
    await denied({ conditions: [['starts-with', '$x-amz-meta-a', 'b']] });
    await denied({ fields: { bucket: 'other' }, conditions: [{ bucket: 'other' }] });
    await denied({ policy: { expiration: hour(), conditions: [['starts-with', '$key', 'form/']] } });
    await denied({ fields: { key: 'elsewhere/a' } });
    await malformed({ expiration: String(new Date()), conditions: [] });
    await malformed({ conditions: [] });
    await malformed({ expiration: hour() });
    await malformed({ expiration: hour(), conditions: [{}] });
    await malformed({ expiration: hour(), conditions: [['content-length-range', 0]] });
    await malformed({ expiration: hour(), conditions: [['content-length-range', -1, 0]] });
  });

  test('with a file of the wrong size, whole or broken', async () => {
    const sized = (min: number, max: number) => ({ conditions: [['content-length-range', min, max]] });
    await assertFormRefused(400, 'EntityTooLarge', sized(0, 0));
    await assertFormRefused(400, 'EntityTooLarge', sized(0, 9));
    await assertFormRefused(400, 'EntityTooLarge', { ...sized(0, 100_000), file: Buffer.alloc(900_000) });
    await assertFormRefused(400, 'EntityTooSmall', sized(11, 100));
    assert.equal((await post({ fields: { key: 'form/sized' }, ...sized(10, 10) })).status, 204);
    await assertFormRefused(400, 'InvalidArgument', { file: null });
    const sum = createHash('sha256').update('other').digest('base64');
    const fields = { 'x-amz-checksum-sha256': sum };
    await assertFormRefused(400, 'BadDigest', { fields, conditions: [fields] });
  });

  test('that is no form, too large before its file, or says something twice', async () => {
    const big = { 'x-amz-meta-a': 'x'.repeat(21 * 1024) };
    await assertFormRefused(400, 'MaxPostPreDataLengthExceededError', { fields: big });
    const twice = { ...signedFields({}), KEY: 'form/b' };
    assertRefused(await sendForm(twice), 400, 'InvalidArgument');
    const headers = {
      host: new URL(cloud.data).host,
      'content-type': 'multipart/form-data; boundary=BOUNDARY',
      'content-length': '4',
    };
    const broken = { method: 'POST', target: `/${bucket}`, headers, body: Buffer.from('none') };
    assertRefused(await transmit(cloud.data, broken), 400, 'MalformedPOSTRequest');
    await s3.refused(412, 'PreconditionFailed', ['POST', `/${bucket}`, {}]);
    const odd = { 'x-amz-meta-a': 'a\u0001b' };
    await assertFormRefused(400, 'InvalidArgument', {
      fields: odd,
      conditions: [['starts-with', '$x-amz-meta-a', '']],
    });
  });

  test('to a bucket that is not there', async () => {
    const before = bucket;
    bucket = 'no-such-bucket';
    try {
      assertRefused(await post(), 404, 'NoSuchBucket');
    } finally {
      bucket = before;
    }
  });

  test('by keys that may not write there, strangers, and suspended accounts', async () => {
    const denied = (pair: KeyPair) => assertFormRefused(403, 'AccessDenied', { pair });
    await denied(await newKeyPair(owner, { scopes: ['storage:read'] }));
    await denied(await newKeyPair(owner, { buckets: [{ name: bucket, prefix: 'in/' }] }));
    const stranger = await newS3(cloud.data, await new Client(cloud.api).newUser());
    await assertFormRefused(403, 'AccessDenied', { pair: stranger.pair });
    const account = await new Client(cloud.api).register();
    const admin = new Client(cloud.api, ADMIN_KEY);
    const { pair } = await newS3(cloud.data, new Client(cloud.api, account.api_key));
    const path = `/api/admin/accounts/${account.id}/suspend`;
    assert.equal((await admin.call(path, { json: { reason: 'test' } })).status, 200);
    await denied(pair);
  });
});

describe('signatures of version 2', () => {
  /** In the headers, or, with a time in s since 1970, in the query. */
  function signed(method: string, path: string, { query = '', expires = 0, amz = '', body = '' } = {}) {
    const { access_key_id: id, secret_access_key: secret } = s3.pair;
    const date = new Date().toUTCString();
    const resource = `${path}${query === '' ? '' : `?${query}`}`;
    const amzLine = amz === '' ? '' : `x-amz-meta-a:${amz}\n`;
    const text = [method, '', '', expires === 0 ? date : expires, `${amzLine}${resource}`].join('\n');
    const signature = createHmac('sha1', secret).update(text).digest('base64');
    const headers: Record<string, string> = { host: new URL(cloud.data).host };
    if (body !== '') headers['content-length'] = String(body.length);
    if (amz !== '') headers['x-amz-meta-a'] = amz;
    const old = [`AWSAccessKeyId=${id}`, `Expires=${expires}`, `Signature=${encodeURIComponent(signature)}`];
    const all = [query, ...(expires === 0 ? [] : old)].filter((each) => each !== '').join('&');
    if (expires === 0) Object.assign(headers, { date, authorization: `AWS ${id}:${signature}` });
    return { method, target: all === '' ? path : `${path}?${all}`, headers, body: Buffer.from(body) };
  }

  test('in headers and in the query are accepted where the operator wants it', async () => {
    const path = pathOf(bucket, 'old');
    const put = await transmit(cloud.data, signed('PUT', path, { body: 'old bytes', amz: 'b' }));
    assert.equal(put.status, 200, put.text);
    const soon = Math.floor(Date.now() / 1000) + 60;
    const read = await transmit(cloud.data, signed('GET', path, { expires: soon }));
    assert.deepEqual([read.text, read.headers['x-amz-meta-a']], ['old bytes', 'b']);
    const tags = await transmit(cloud.data, signed('GET', path, { query: 'tagging' }));
    assert.equal(tags.status, 200, tags.text);
  });

  test('that are wrong, late, or doubled are refused', async () => {
    const path = pathOf(bucket, 'never');
    const request = signed('PUT', path, { body: 'x' });
    const refused = async (status: number, code: string, sent: typeof request) =>
      assertRefused(await transmit(cloud.data, sent), status, code);
    await refused(403, 'SignatureDoesNotMatch', { ...request, target: `${path}r` });
    await refused(403, 'AccessDenied', signed('PUT', path, { expires: 1_000_000_000, body: 'x' }));
    const old = { ...request, headers: { ...request.headers, date: 'Tue, 07 Jul 2010 21:53:04 GMT' } };
    await refused(403, 'RequestTimeTooSkewed', old);
    const garbage = { ...request, headers: { ...request.headers, authorization: 'AWS HAHAHA' } };
    await refused(400, 'InvalidArgument', garbage);
    const soon = Math.floor(Date.now() / 1000) + 60;
    const both = signed('PUT', path, { expires: soon, body: 'x' });
    await refused(400, 'InvalidArgument', { ...both, headers: { ...request.headers } });
    assert.ok(!(await isStored('never')));
  });

  test('are refused by default in headers, while links and forms are not', async () => {
    const plain = await CloudProcess.start();
    const [before, client] = [cloud, s3];
    try {
      cloud = plain;
      s3 = await newS3(plain.data, await new Client(plain.api).newUser());
      await s3.ok('PUT', `/${bucket}`);
      const reply = await transmit(plain.data, signed('GET', `/${bucket}`));
      assertRefused(reply, 400, 'InvalidRequest');
      assert.match(textsOf(reply.text, 'Message')[0] ?? '', /Please use AWS4-HMAC-SHA256/);
      const expires = Math.floor(Date.now() / 1000) + 60;
      const link = await transmit(plain.data, signed('GET', `/${bucket}`, { expires }));
      assert.equal(link.status, 200, link.text);
      assert.equal((await post()).status, 204);
    } finally {
      [cloud, s3] = [before, client];
      await plain.stop();
    }
  });
});

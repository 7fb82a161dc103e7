/** Every operation of S3 × every kind of caller. */
import assert from 'node:assert/strict';
import { before, describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { Client } from '../harness/client.ts';
import { ADMIN_KEY, type CloudProcess } from '../harness/cloud-process.ts';
import { sharedCloud } from '../harness/shared-cloud.ts';
import {
  anonymously,
  assertRefused,
  newKeyPair,
  newS3,
  newUpload,
  pathOf,
  policy,
  S3Client,
  type S3Reply,
  type S3Request,
  setPolicy,
  statement,
  textOf,
  transmit,
} from './s3-kit.ts';
import { ADMINISTERS, APPENDS, OPERATIONS } from './s3-operations.ts';

const BUCKET = 'guarded';
const OTHER = 'not-for-the-limited';
const KEY = 'in/a';
const XML: Readonly<Record<string, string>> = {
  PutBucketVersioning: '<VersioningConfiguration><Status>Enabled</Status></VersioningConfiguration>',
  PutBucketEncryption:
    '<ServerSideEncryptionConfiguration><Rule><ApplyServerSideEncryptionByDefault><SSEAlgorithm>AES256</SSEAlgorithm></ApplyServerSideEncryptionByDefault></Rule></ServerSideEncryptionConfiguration>',
  PutBucketCors:
    '<CORSConfiguration><CORSRule><AllowedOrigin>*</AllowedOrigin><AllowedMethod>GET</AllowedMethod></CORSRule></CORSConfiguration>',
  PutObjectLockConfiguration:
    '<ObjectLockConfiguration><ObjectLockEnabled>Enabled</ObjectLockEnabled></ObjectLockConfiguration>',
  PutBucketLifecycleConfiguration:
    '<LifecycleConfiguration><Rule><ID>r</ID><Filter/><Status>Enabled</Status><Expiration><Days>1</Days></Expiration></Rule></LifecycleConfiguration>',
  PutObjectRetention:
    '<Retention><Mode>GOVERNANCE</Mode><RetainUntilDate>2999-01-01T00:00:00Z</RetainUntilDate></Retention>',
  PutObjectLegalHold: '<LegalHold><Status>ON</Status></LegalHold>',
  PutBucketTagging: '<Tagging><TagSet></TagSet></Tagging>',
  PutBucketLogging: '<BucketLoggingStatus/>',
  PutBucketNotificationConfiguration: '<NotificationConfiguration/>',
  PutBucketAccelerateConfiguration:
    '<AccelerateConfiguration><Status>Suspended</Status></AccelerateConfiguration>',
  PutBucketRequestPayment:
    '<RequestPaymentConfiguration><Payer>BucketOwner</Payer></RequestPaymentConfiguration>',
  PutBucketPolicy: policy(statement('guarded', { Effect: 'Deny', Action: 's3:PutObject' })),
  PutPublicAccessBlock: '<PublicAccessBlockConfiguration></PublicAccessBlockConfiguration>',
  PutBucketOwnershipControls:
    '<OwnershipControls><Rule><ObjectOwnership>ObjectWriter</ObjectOwnership></Rule></OwnershipControls>',
  PutObjectTagging: '<Tagging><TagSet></TagSet></Tagging>',
  DeleteObjects: `<Delete><Object><Key>${KEY}</Key></Object></Delete>`,
  CompleteMultipartUpload:
    '<CompleteMultipartUpload><Part><PartNumber>1</PartNumber><ETag>x</ETag></Part></CompleteMultipartUpload>',
};

let cloud: CloudProcess;
let owner: Client;
let accountId: number;
let full: S3Client;
let uploadId: string;
before(async () => {
  cloud = await sharedCloud();
  const account = await new Client(cloud.api).register();
  accountId = account.id;
  owner = new Client(cloud.api, account.api_key);
  full = await newS3(cloud.data, owner);
  for (const bucket of [BUCKET, OTHER]) {
    await full.ok('PUT', `/${bucket}`);
    await full.ok('PUT', pathOf(bucket, KEY), { body: 'guarded bytes' });
    await full.ok('PUT', pathOf(bucket, 'out/a'), { body: 'guarded bytes' });
  }
  uploadId = await newUpload(full, pathOf(BUCKET, KEY));
});

interface Place {
  readonly bucket?: string;
  readonly key?: string;
}

/** A request for an operation that would have an effect if it were permitted. */
function requestFor(
  { name, method, level, query = [], header }: (typeof OPERATIONS)[number],
  { bucket = BUCKET, key = KEY }: Place = {},
): [method: string, path: string, request: S3Request] {
  const values: Record<string, string> = { 'list-type': '2', partNumber: '1', uploadId };
  const path = level === 'service' ? '/' : level === 'bucket' ? `/${bucket}` : pathOf(bucket, key);
  const headers: Record<string, string> = {};
  if (header !== undefined) headers[header] = `/${bucket}/${key}`;
  if (name === 'CopyObject') headers['x-amz-metadata-directive'] = 'REPLACE';
  if (name === 'GetObjectAttributes') headers['x-amz-object-attributes'] = 'ETag';
  return [
    method,
    path,
    {
      query: query.map((each) => (values[each] === undefined ? each : `${each}=${values[each]}`)).join('&'),
      headers,
      ...(XML[name] !== undefined && { body: XML[name] }),
    },
  ];
}

/** Operations that a policy of the bucket can name. */
const inBucket = ({ level, name }: (typeof OPERATIONS)[number]) =>
  level !== 'service' && name !== 'CreateBucket';

const client = async (fields: object) => new S3Client(cloud.data, await newKeyPair(owner, { ...fields }));

function assertDenied(name: string, reply: S3Reply, code = 'AccessDenied'): void {
  const status = code === 'NoSuchUpload' ? 404 : 403;
  if (name.startsWith('Head')) assert.deepEqual([reply.status, reply.text], [status, ''], name);
  else assertRefused(reply, status, code);
}

/** Nothing was changed by callers without permission. */
async function assertUntouched(): Promise<void> {
  for (const bucket of [BUCKET, OTHER]) {
    const listed = await full.ok('GET', `/${bucket}`, { query: 'versions' });
    const keys = [...listed.text.matchAll(/<Key>(.*?)<\/Key><VersionId>(.*?)</g)].map(
      ([, key, version]) => `${key} ${version}`,
    );
    assert.deepEqual(keys, [`${KEY} null`, 'out/a null']);
    assert.equal((await full.ok('GET', pathOf(bucket, KEY))).text, 'guarded bytes');
    assert.doesNotMatch((await full.ok('GET', `/${bucket}`, { query: 'versioning' })).text, /Status/);
  }
  const parts = await full.ok('GET', pathOf(BUCKET, KEY), { query: `uploadId=${uploadId}` });
  assert.doesNotMatch(parts.text, /<Part>/);
}

describe('every operation', () => {
  test('refuses nobody', async () => {
    for (const operation of OPERATIONS) {
      const [method, path, request] = requestFor(operation);
      const { headers, ...signed } = full.prepare(method, path, request);
      const { authorization: _, ...unsigned } = headers;
      assertDenied(operation.name, await transmit(cloud.data, { ...signed, headers: unsigned }));
    }
    await assertUntouched();
  });

  test('refuses made-up keys and wrong secrets', async () => {
    const unknown = new S3Client(cloud.data, { ...full.pair, access_key_id: 'CLAK0000000000000000' });
    const wrong = new S3Client(cloud.data, { ...full.pair, secret_access_key: 'x'.repeat(40) });
    for (const operation of OPERATIONS) {
      assertDenied(operation.name, await unknown.call(...requestFor(operation)), 'InvalidAccessKeyId');
      assertDenied(operation.name, await wrong.call(...requestFor(operation)), 'SignatureDoesNotMatch');
    }
    await assertUntouched();
  });

  test('shows a stranger nothing and changes nothing for him', async () => {
    const stranger = await newS3(cloud.data, await new Client(cloud.api).newUser());
    for (const operation of OPERATIONS) {
      if (operation.level === 'service') continue;
      const reply = await stranger.call(...requestFor(operation));
      if (operation.name === 'CreateBucket') assertRefused(reply, 409, 'BucketAlreadyExists');
      else assertDenied(operation.name, reply);
    }
    await assertUntouched();
  });

  test('lets a stranger do what a policy allows, by the name that AWS has for it', async () => {
    const user = await new Client(cloud.api).newUser();
    const stranger = await newS3(cloud.data, user);
    const Principal = { AWS: (await user.call('/api/account')).body.canonical_id };
    const bucket = 'shared';
    await full.ok('PUT', `/${bucket}`);
    for (const operation of OPERATIONS.filter(inBucket)) {
      if (operation.header !== undefined || operation.name === 'DeleteBucket') continue;
      await full.ok('PUT', pathOf(bucket, KEY), { body: 'shared bytes' });
      const { action } = operation;
      await setPolicy(full, bucket, policy(statement(bucket, { Principal, Action: action })));
      const reply = await stranger.call(...requestFor(operation, { bucket }));
      assert.notEqual(reply.status, 403, `${operation.name}: ${reply.text}`);
      if (/Policy$/.test(operation.name)) assertRefused(reply, 405, 'MethodNotAllowed');
      await setPolicy(
        full,
        bucket,
        policy(statement(bucket, { Principal, NotAction: action, Action: undefined })),
      );
      assertDenied(operation.name, await stranger.call(...requestFor(operation, { bucket })));
    }
    assert.equal((await full.ok('GET', pathOf(BUCKET, KEY))).text, 'guarded bytes');
  });

  test('refuses what a policy denies, to the owner too', async () => {
    const allowed = statement(BUCKET, {});
    const anonymous = (operation: (typeof OPERATIONS)[number]) => {
      const [method, path, request] = requestFor(operation);
      return anonymously(cloud.data, method, path, request);
    };
    for (const operation of OPERATIONS.filter(inBucket)) {
      const { action } = operation;
      const denied = statement(BUCKET, { Effect: 'Deny', Action: action });
      await setPolicy(full, BUCKET, policy(allowed, denied));
      assertDenied(operation.name, await anonymous(operation));
      if (/Policy$/.test(operation.name)) continue;
      if (operation.name === 'DeleteObjects') {
        const reply = await full.ok('POST', `/${BUCKET}`, { query: 'delete', body: XML.DeleteObjects ?? '' });
        assert.equal(textOf(reply.text, 'Code'), 'AccessDenied');
      } else assertDenied(operation.name, await full.call(...requestFor(operation)));
    }
    await full.ok('DELETE', `/${BUCKET}`, { query: 'policy' });
    await assertUntouched();
  });

  test('of another bucket does not take an upload of this one', async () => {
    const stranger = await newS3(cloud.data, await new Client(cloud.api).newUser());
    await stranger.ok('PUT', '/strange');
    for (const s3 of [stranger, full]) {
      const bucket = s3 === full ? OTHER : 'strange';
      for (const operation of OPERATIONS.filter(({ query = [] }) => query.includes('uploadId'))) {
        if (operation.header !== undefined) continue;
        const reply = await s3.call(...requestFor(operation, { bucket }));
        assertDenied(operation.name, reply, 'NoSuchUpload');
      }
    }
    await assertUntouched();
  });

  test('that changes something refuses a key that may only read', async () => {
    const reader = await client({ scopes: ['storage:read'] });
    for (const operation of OPERATIONS) {
      const reply = await reader.call(...requestFor(operation));
      if (!operation.isRead) assertDenied(operation.name, reply);
      else assert.notEqual(reply.status, 403, operation.name);
    }
    await assertUntouched();
  });

  test('that reads refuses a key that may only write; a copy reads', async () => {
    const writer = await client({ scopes: ['storage:write'] });
    for (const operation of OPERATIONS) {
      if (!operation.isRead && operation.header === undefined) continue;
      assertDenied(operation.name, await writer.call(...requestFor(operation)));
    }
    await assertUntouched();
    await writer.ok('PUT', pathOf(BUCKET, KEY), { body: 'guarded bytes' });
  });

  test('refuses a key that may only append, or lets it do nothing that cannot be undone', async () => {
    const appender = await client({ scopes: ['storage:append', 'storage:read'] });
    for (const operation of OPERATIONS) {
      if (operation.isRead || ['AbortMultipartUpload', 'CreateMultipartUpload'].includes(operation.name))
        continue;
      const reply = await appender.call(...requestFor(operation));
      if (!APPENDS.includes(operation.name)) assertDenied(operation.name, reply);
      else assert.doesNotMatch(reply.text, /lacks the scope/, operation.name);
    }
    await full.ok('DELETE', pathOf(BUCKET, KEY), { query: `uploadId=${uploadId}` });
    uploadId = await newUpload(full, pathOf(BUCKET, KEY));
    await assertUntouched();
  });

  test('that says who may reach what refuses a key that may only write, and the other way round', async () => {
    const writer = await client({ scopes: ['storage:write', 'storage:read'] });
    const keeper = await client({ scopes: ['storage:admin'] });
    for (const operation of OPERATIONS) {
      if (operation.isRead) continue;
      const isKept = ADMINISTERS.includes(operation.name);
      const reply = isKept ? await writer.call(...requestFor(operation)) : undefined;
      if (reply) assertDenied(operation.name, reply);
      else assertDenied(operation.name, await keeper.call(...requestFor(operation)));
    }
    await assertUntouched();
  });

  test('refuses a key of another bucket', async () => {
    const limited = await client({ buckets: [{ name: OTHER }] });
    for (const operation of OPERATIONS) {
      if (operation.level === 'service') continue;
      const reply = await limited.call(...requestFor(operation));
      assert.ok([403, 404].includes(reply.status), `${operation.name}: ${reply.status} ${reply.text}`);
    }
    await assertUntouched();
    assert.match((await limited.ok('GET', '/')).text, new RegExp(`<Name>${OTHER}<`));
    assert.doesNotMatch((await limited.ok('GET', '/')).text, new RegExp(`<Name>${BUCKET}<`));
  });

  test('keeps a key within its prefix', async () => {
    const limited = await client({ buckets: [{ name: BUCKET, prefix: 'out/' }] });
    for (const operation of OPERATIONS) {
      if (operation.level !== 'object') continue;
      const reply = await limited.call(...requestFor(operation));
      assert.ok([403, 404].includes(reply.status), `${operation.name}: ${reply.status} ${reply.text}`);
    }
    for (const query of ['', 'list-type=2', 'versions', 'uploads', 'list-type=2&prefix=o', 'prefix=in/']) {
      await limited.refused(403, 'AccessDenied', ['GET', `/${BUCKET}`, { query }]);
    }
    for (const change of OPERATIONS.filter(({ level, isRead }) => level === 'bucket' && !isRead)) {
      if (['DeleteObjects', 'PostObject'].includes(change.name)) continue;
      const reply = await limited.call(...requestFor(change));
      assert.ok([403, 404, 409].includes(reply.status), `${change.name}: ${reply.status} ${reply.text}`);
    }
    const body = XML.DeleteObjects as string;
    const deleted = await limited.ok('POST', `/${BUCKET}`, { query: 'delete', body });
    assert.equal(textOf(deleted.text, 'Code'), 'AccessDenied');
    const copy = { headers: { 'x-amz-copy-source': `/${BUCKET}/${KEY}` } };
    assert.ok([403, 404].includes((await limited.call('PUT', pathOf(BUCKET, 'out/b'), copy)).status));
    await assertUntouched();
    assert.equal((await limited.ok('GET', pathOf(BUCKET, 'out/a'))).text, 'guarded bytes');
    assert.match((await limited.ok('GET', `/${BUCKET}`, { query: 'prefix=out/' })).text, /out\/a/);
  });

  test('refuses keys that have ended', async () => {
    const brief = await client({ expires_in: 1 });
    const pair = await newKeyPair(owner);
    const revoked = new S3Client(cloud.data, pair);
    await revoked.ok('GET', '/');
    const gone = await owner.call(`/api/account/access-keys/${pair.id}`, { method: 'DELETE' });
    assert.equal(gone.status, 200);
    await sleep(2100);
    for (const operation of OPERATIONS) {
      for (const ended of [brief, revoked]) {
        assertDenied(operation.name, await ended.call(...requestFor(operation)), 'InvalidAccessKeyId');
      }
    }
    await assertUntouched();
  });

  test('of a suspended account is refused, and of one without credits what costs', async () => {
    const admin = new Client(cloud.api, ADMIN_KEY);
    const path = `/api/admin/accounts/${accountId}`;
    const tell = async (action: string, json: object) =>
      assert.equal((await admin.call(`${path}/${action}`, { json })).status, 200);
    await tell('suspend', { reason: 'test' });
    for (const operation of OPERATIONS) {
      assertDenied(operation.name, await full.call(...requestFor(operation)));
    }
    assert.equal((await admin.call(`${path}/resume`, { method: 'POST' })).status, 200);
    await assertUntouched();
    const { credits } = (await owner.call('/api/account')).body;
    await tell('credits', { amount: -credits, reason: 'test' });
    for (const name of ['PutObject', 'CopyObject', 'CreateMultipartUpload', 'UploadPart', 'UploadPartCopy']) {
      const operation = OPERATIONS.find((each) => each.name === name);
      assert.ok(operation);
      assertDenied(name, await full.call(...requestFor(operation)));
    }
    await full.refused(403, 'AccessDenied', ['PUT', '/new-one']);
    await assertUntouched();
    assert.equal((await full.ok('DELETE', pathOf(BUCKET, 'out/a'))).status, 204);
  });
});

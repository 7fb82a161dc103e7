/** Object lock: set by S3 clients, and no call removes a locked version. */
import assert from 'node:assert/strict';
import { before, describe, test } from 'node:test';
import type { Client } from '../harness/client.ts';
import type { CloudProcess } from '../harness/cloud-process.ts';
import {
  completion,
  elementsOf,
  newKeyPair,
  newS3Bucket,
  newUpload,
  pathOf,
  S3Client,
  setVersioning,
  sharedS3,
  textOf,
  textsOf,
} from './s3-kit.ts';

let cloud: CloudProcess;
let owner: Client;
let s3: S3Client;

before(async () => {
  ({ cloud, user: owner, s3 } = await sharedS3());
});

const DAY_MS = 86_400_000;
const BYPASS = { 'x-amz-bypass-governance-retention': 'true' };
const inDays = (days: number) => new Date(Date.now() + days * DAY_MS).toISOString();
const retention = (mode: string, until: string) =>
  `<Retention><Mode>${mode}</Mode><RetainUntilDate>${until}</RetainUntilDate></Retention>`;
const hold = (status: string) => `<LegalHold><Status>${status}</Status></LegalHold>`;
const configuration = (rule = '', status = 'Enabled') =>
  `<ObjectLockConfiguration><ObjectLockEnabled>${status}</ObjectLockEnabled>${rule}</ObjectLockConfiguration>`;
const byDefault = (inner: string) => `<Rule><DefaultRetention>${inner}</DefaultRetention></Rule>`;

let buckets = 0;
async function newLockable(): Promise<string> {
  const bucket = `lockable-${++buckets}`;
  await s3.ok('PUT', `/${bucket}`, { headers: { 'x-amz-bucket-object-lock-enabled': 'true' } });
  return bucket;
}

/** Uploads an object; returns its path and the query that names the version. */
async function newVersion(bucket: string, headers: Record<string, string> = {}, key = 'kept') {
  const path = pathOf(bucket, key);
  const put = await s3.ok('PUT', path, { body: 'kept bytes', headers });
  return { path, version: `versionId=${put.headers['x-amz-version-id']}` };
}

const locked = (mode: string, days = 1): Record<string, string> => ({
  'x-amz-object-lock-mode': mode,
  'x-amz-object-lock-retain-until-date': inDays(days),
});

describe('the configuration of a bucket', () => {
  test('is enabled as it is made, and turns versioning on for good', async () => {
    const bucket = await newLockable();
    const path = `/${bucket}`;
    assert.equal(textOf((await s3.ok('GET', path, { query: 'versioning' })).text, 'Status'), 'Enabled');
    const { text } = await s3.ok('GET', path, { query: 'object-lock' });
    assert.match(
      text,
      /<ObjectLockConfiguration xmlns=[^>]*><ObjectLockEnabled>Enabled<\/ObjectLockEnabled><\/Obj/,
    );
    const suspended = '<VersioningConfiguration><Status>Suspended</Status></VersioningConfiguration>';
    const suspend = { query: 'versioning', body: suspended };
    await s3.refused(409, 'InvalidBucketState', ['PUT', path, suspend]);
    const patched = await owner.call(`/api/buckets/${bucket}`, {
      method: 'PATCH',
      json: { versioning: false },
    });
    assert.deepEqual([patched.status, patched.body.code], [409, 'object_locked']);
    const { body } = await owner.call(`/api/buckets/${bucket}`);
    assert.deepEqual([body.versioning, body.object_lock], [true, true]);
  });

  test('is enabled later where versioning is on', async () => {
    const bucket = await newS3Bucket(s3);
    const [path, query] = [`/${bucket}`, 'object-lock'];
    await s3.refused(404, 'ObjectLockConfigurationNotFoundError', ['GET', path, { query }]);
    await s3.refused(409, 'InvalidBucketState', ['PUT', path, { query, body: configuration() }]);
    await setVersioning(s3, bucket, 'Suspended');
    await s3.refused(409, 'InvalidBucketState', ['PUT', path, { query, body: configuration() }]);
    await setVersioning(s3, bucket, 'Enabled');
    for (const inner of [
      '<Mode>COMPLIANCE</Mode><Days>1</Days>',
      '<Mode>GOVERNANCE</Mode><Years>2</Years>',
    ]) {
      await s3.ok('PUT', path, { query, body: configuration(byDefault(inner)) });
      assert.ok((await s3.ok('GET', path, { query })).text.includes(byDefault(inner)));
    }
    await s3.ok('PUT', path, { query, body: configuration() });
    assert.doesNotMatch((await s3.ok('GET', path, { query })).text, /Rule/);
    await s3.refused(405, 'MethodNotAllowed', ['DELETE', path, { query }]);
    await s3.ok('HEAD', path);
  });

  test('is refused where AWS refuses it', async () => {
    const path = `/${await newLockable()}`;
    const query = 'object-lock';
    for (const [code, body] of [
      ['MalformedXML', configuration('', 'Disabled')],
      ['MalformedXML', configuration('<Rule/>')],
      ['MalformedXML', configuration(byDefault('<Days>1</Days>'))],
      ['MalformedXML', configuration(byDefault('<Mode>GOVERNANCE</Mode>'))],
      ['MalformedXML', configuration(byDefault('<Mode>governance</Mode><Days>1</Days>'))],
      ['MalformedXML', configuration(byDefault('<Mode>abc</Mode><Years>1</Years>'))],
      ['MalformedXML', configuration(byDefault('<Mode>GOVERNANCE</Mode><Days>1</Days><Years>1</Years>'))],
      ['MalformedXML', configuration(byDefault('<Mode>GOVERNANCE</Mode><Days>soon</Days>'))],
      ['InvalidRetentionPeriod', configuration(byDefault('<Mode>GOVERNANCE</Mode><Days>0</Days>'))],
      ['InvalidRetentionPeriod', configuration(byDefault('<Mode>GOVERNANCE</Mode><Years>-1</Years>'))],
      ['InvalidRetentionPeriod', configuration(byDefault('<Mode>GOVERNANCE</Mode><Days>36501</Days>'))],
      ['MalformedXML', '<Other/>'],
      ['MissingRequestBodyError', ''],
    ] as const) {
      await s3.refused(400, code, ['PUT', path, { query, body }]);
    }
  });

  test('is changed over JSON too, by the same rules', async () => {
    const bucket = await newLockable();
    const change = (json: object) => owner.call(`/api/buckets/${bucket}/settings`, { method: 'PATCH', json });
    const lock = { default: { mode: 'GOVERNANCE', days: 7 } };
    assert.deepEqual((await change({ lock })).body.lock, lock);
    const { text } = await s3.ok('GET', `/${bucket}`, { query: 'object-lock' });
    assert.ok(text.includes(byDefault('<Mode>GOVERNANCE</Mode><Days>7</Days>')));
    const removed = await change({ lock: null });
    assert.deepEqual([removed.status, removed.body.code], [409, 'object_locked']);
    const wrong = await change({ lock: { default: { mode: 'GOVERNANCE', days: 0 } } });
    assert.deepEqual([wrong.status, wrong.body.errors[0].field], [400, 'lock']);
    const plain = await newS3Bucket(s3);
    const path = `/api/buckets/${plain}/settings`;
    const early = await owner.call(path, { method: 'PATCH', json: { lock: { default: null } } });
    assert.deepEqual([early.status, early.body.code], [409, 'object_locked']);
  });

  test('gives new versions its default, which a request replaces', async () => {
    const bucket = await newLockable();
    const body = configuration(byDefault('<Mode>GOVERNANCE</Mode><Days>3</Days>'));
    await s3.ok('PUT', `/${bucket}`, { query: 'object-lock', body });
    const own = await newVersion(bucket);
    const { headers } = await s3.ok('HEAD', own.path);
    assert.equal(headers['x-amz-object-lock-mode'], 'GOVERNANCE');
    const until = Date.parse(String(headers['x-amz-object-lock-retain-until-date']));
    assert.ok(Math.abs(until - Date.now() - 3 * DAY_MS) < 60_000);
    const uploaded = await owner.upload(bucket, 'by-rest', 'kept bytes');
    assert.equal(uploaded.status, 200);
    const byRest = await s3.ok('HEAD', pathOf(bucket, 'by-rest'));
    assert.equal(byRest.headers['x-amz-object-lock-mode'], 'GOVERNANCE');
    const other = await newVersion(bucket, locked('COMPLIANCE'), 'other');
    assert.equal((await s3.ok('GET', other.path)).headers['x-amz-object-lock-mode'], 'COMPLIANCE');
  });
});

describe('the lock of a version', () => {
  test('is set with an upload, a copy and an upload in parts, and shown', async () => {
    const bucket = await newLockable();
    const until = inDays(1);
    const wanted = {
      'x-amz-object-lock-mode': 'GOVERNANCE',
      'x-amz-object-lock-retain-until-date': until,
      'x-amz-object-lock-legal-hold': 'ON',
    };
    const source = await newVersion(bucket, {}, 'source');
    const copied = { ...wanted, 'x-amz-copy-source': `/${bucket}/source` };
    const made = [await newVersion(bucket, wanted, 'put')];
    const copy = await s3.ok('PUT', pathOf(bucket, 'copy'), { headers: copied });
    made.push({ path: pathOf(bucket, 'copy'), version: `versionId=${copy.headers['x-amz-version-id']}` });
    const parts = pathOf(bucket, 'parts');
    const id = await newUpload(s3, parts, { headers: wanted });
    const { headers } = await s3.ok('PUT', parts, { query: `partNumber=1&uploadId=${id}`, body: 'part' });
    const body = completion([{ number: 1, etag: headers.etag }]);
    const done = await s3.ok('POST', parts, { query: `uploadId=${id}`, body });
    made.push({ path: parts, version: `versionId=${done.headers['x-amz-version-id']}` });
    for (const { path, version } of made) {
      for (const verb of ['GET', 'HEAD']) {
        const shown = (await s3.ok(verb, path)).headers;
        assert.equal(shown['x-amz-object-lock-mode'], 'GOVERNANCE', path);
        assert.equal(shown['x-amz-object-lock-retain-until-date'], until);
        assert.equal(shown['x-amz-object-lock-legal-hold'], 'ON');
      }
      const { text } = await s3.ok('GET', path, { query: `retention&${version}` });
      assert.deepEqual([textOf(text, 'Mode'), textOf(text, 'RetainUntilDate')], ['GOVERNANCE', until]);
      assert.equal(textOf((await s3.ok('GET', path, { query: 'legal-hold' })).text, 'Status'), 'ON');
      await s3.refused(403, 'AccessDenied', ['DELETE', path, { query: version, headers: BYPASS }]);
      await s3.ok('PUT', path, { query: `legal-hold&${version}`, body: hold('OFF') });
      await s3.refused(403, 'AccessDenied', ['DELETE', path, { query: version }]);
      await s3.ok('DELETE', path, { query: version, headers: BYPASS });
    }
    assert.equal((await s3.ok('GET', source.path)).headers['x-amz-object-lock-mode'], undefined);
    await s3.ok('DELETE', source.path, { query: source.version });
  });

  test('is refused with an upload where AWS refuses it', async () => {
    const bucket = await newLockable();
    const plain = await newS3Bucket(s3);
    const both = locked('GOVERNANCE');
    const until = { 'x-amz-object-lock-retain-until-date': inDays(1) };
    for (const [code, target, headers] of [
      ['InvalidRequest', plain, both],
      ['InvalidRequest', plain, { 'x-amz-object-lock-legal-hold': 'ON' }],
      ['InvalidArgument', bucket, until],
      ['InvalidArgument', bucket, { 'x-amz-object-lock-mode': 'GOVERNANCE' }],
      ['InvalidArgument', bucket, { ...until, 'x-amz-object-lock-mode': 'governance' }],
      ['InvalidArgument', bucket, locked('COMPLIANCE', -1)],
      ['InvalidArgument', bucket, { ...both, 'x-amz-object-lock-retain-until-date': 'tomorrow' }],
      ['InvalidArgument', bucket, { 'x-amz-object-lock-legal-hold': 'abc' }],
    ] as const) {
      const path = pathOf(target, 'refused');
      await s3.refused(400, code, ['PUT', path, { body: 'x', headers }]);
      await s3.refused(400, code, ['POST', path, { query: 'uploads', headers }]);
      await s3.refused(404, 'NoSuchKey', ['GET', path]);
    }
  });

  test('may be set later, and refused where AWS refuses it', async () => {
    const bucket = await newLockable();
    const { path, version } = await newVersion(bucket);
    for (const query of ['retention', 'legal-hold']) {
      await s3.refused(404, 'NoSuchObjectLockConfiguration', ['GET', path, { query }]);
    }
    for (const [code, query, body] of [
      ['MalformedXML', 'retention', retention('governance', inDays(1))],
      ['MalformedXML', 'retention', '<Retention><Mode>GOVERNANCE</Mode></Retention>'],
      ['InvalidArgument', 'retention', retention('GOVERNANCE', inDays(-1))],
      ['MalformedXML', 'legal-hold', hold('abc')],
      ['MalformedXML', 'legal-hold', '<LegalHold/>'],
    ] as const) {
      await s3.refused(400, code, ['PUT', path, { query, body }]);
    }
    const plain = await newS3Bucket(s3, 'Enabled');
    const other = await newVersion(plain);
    for (const [query, body] of [
      ['retention', retention('GOVERNANCE', inDays(1))],
      ['legal-hold', hold('ON')],
    ] as const) {
      await s3.refused(400, 'InvalidRequest', ['PUT', other.path, { query, body }]);
      await s3.refused(400, 'InvalidRequest', ['GET', other.path, { query }]);
      await s3.refused(404, 'NoSuchKey', ['PUT', pathOf(bucket, 'none'), { query, body }]);
    }
    await s3.ok('PUT', path, { query: `legal-hold&${version}`, body: hold('ON') });
    await s3.refused(403, 'AccessDenied', ['DELETE', path, { query: version, headers: BYPASS }]);
    await s3.ok('PUT', path, { query: 'legal-hold', body: hold('OFF') });
    assert.equal(textOf((await s3.ok('GET', path, { query: 'legal-hold' })).text, 'Status'), 'OFF');
    await s3.ok('DELETE', path, { query: version });
  });

  test('in the mode GOVERNANCE is weakened only by those who may and say so', async () => {
    const { path, version } = await newVersion(await newLockable(), locked('GOVERNANCE', 2));
    const writer = new S3Client(
      cloud.data,
      await newKeyPair(owner, { scopes: ['storage:write', 'storage:read'] }),
    );
    const query = `retention&${version}`;
    await s3.ok('PUT', path, { query, body: retention('GOVERNANCE', inDays(3)) });
    for (const body of [
      retention('GOVERNANCE', inDays(1)),
      retention('COMPLIANCE', inDays(4)),
      '<Retention/>',
    ]) {
      await s3.refused(403, 'AccessDenied', ['PUT', path, { query, body }]);
      await writer.refused(403, 'AccessDenied', ['PUT', path, { query, body, headers: BYPASS }]);
    }
    await writer.refused(403, 'AccessDenied', ['DELETE', path, { query: version, headers: BYPASS }]);
    await s3.ok('PUT', path, { query, body: retention('GOVERNANCE', inDays(1)), headers: BYPASS });
    await s3.ok('PUT', path, { query, body: '<Retention/>', headers: BYPASS });
    await s3.refused(404, 'NoSuchObjectLockConfiguration', ['GET', path, { query }]);
    await writer.ok('PUT', path, { query, body: retention('GOVERNANCE', inDays(1)) });
    const twice = `<Delete><Object><Key>kept</Key><VersionId>${version.slice(10)}</VersionId></Object></Delete>`;
    const [bucket] = path.slice(1).split('/');
    const deleting = { query: 'delete', body: twice };
    const refused = await s3.ok('POST', `/${bucket}`, deleting);
    assert.deepEqual(textsOf(refused.text, 'Code'), ['AccessDenied']);
    const { text } = await s3.ok('POST', `/${bucket}`, { ...deleting, headers: BYPASS });
    assert.equal(elementsOf(text, 'Deleted').length, 1);
  });

  test('in the mode COMPLIANCE is weakened by nobody', async () => {
    const { path, version } = await newVersion(await newLockable(), locked('COMPLIANCE', 2));
    const query = `retention&${version}`;
    for (const body of [
      retention('COMPLIANCE', inDays(1)),
      retention('GOVERNANCE', inDays(9)),
      '<Retention/>',
    ]) {
      await s3.refused(403, 'AccessDenied', ['PUT', path, { query, body, headers: BYPASS }]);
    }
    await s3.refused(403, 'AccessDenied', ['DELETE', path, { query: version, headers: BYPASS }]);
    await s3.ok('PUT', path, { query, body: retention('COMPLIANCE', inDays(3)) });
    await s3.refused(403, 'AccessDenied', ['PUT', path, { query, body: retention('COMPLIANCE', inDays(2)) }]);
  });

  test('does not hinder a marker, nor that it is removed again', async () => {
    const { path, version } = await newVersion(await newLockable(), locked('COMPLIANCE'));
    const { headers } = await s3.ok('DELETE', path);
    assert.equal(headers['x-amz-delete-marker'], 'true');
    await s3.refused(404, 'NoSuchKey', ['GET', path]);
    const marker = `versionId=${headers['x-amz-version-id']}`;
    for (const query of ['retention', 'legal-hold']) {
      await s3.refused(405, 'MethodNotAllowed', ['GET', path, { query: `${query}&${marker}` }]);
    }
    await s3.refused(403, 'AccessDenied', ['DELETE', path, { query: version }]);
    await s3.ok('DELETE', path, { query: marker });
    assert.equal((await s3.ok('GET', path)).text, 'kept bytes');
    await s3.ok('PUT', path, { body: 'newer' });
    assert.equal((await s3.ok('GET', path, { query: version })).text, 'kept bytes');
  });
});

describe('a locked version', () => {
  test('is kept from REST, which shows its lock', async () => {
    const bucket = await newLockable();
    const { path, version } = await newVersion(bucket, locked('GOVERNANCE'));
    const { body: files } = await owner.call(`/api/buckets/${bucket}/files?include_versions=true`);
    const [{ id, version_id, lock }] = files;
    assert.deepEqual([lock.mode, lock.legal_hold], ['GOVERNANCE', false]);
    assert.match(lock.retain_until, /^\d{4}-/);
    assert.deepEqual((await owner.call(`/api/storage/${id}`)).body.lock, lock);
    const removal = { method: 'DELETE' };
    const refused = await owner.call(`/api/storage/${id}?version_id=${version_id}`, removal);
    assert.deepEqual([refused.status, refused.body.code], [409, 'object_locked']);
    assert.equal((await owner.call(`/api/storage/${id}`, removal)).status, 200);
    assert.equal((await s3.ok('GET', path, { query: version })).text, 'kept bytes');
  });

  test('keeps its bucket, and all that is in it, from being removed by force', async () => {
    const bucket = await newLockable();
    for (const key of ['a', 'z']) await newVersion(bucket, {}, key);
    const { path, version } = await newVersion(bucket, locked('COMPLIANCE'), 'm');
    await s3.ok('DELETE', path);
    const forced = await owner.call(`/api/buckets/${bucket}?force=true`, { method: 'DELETE' });
    assert.deepEqual([forced.status, forced.body.code], [409, 'object_locked']);
    const { text } = await s3.ok('GET', `/${bucket}`, { query: 'versions' });
    assert.deepEqual(textsOf(text, 'Key'), ['a', 'm', 'm', 'z']);
    await s3.refused(409, 'BucketNotEmpty', ['DELETE', `/${bucket}`]);
    assert.equal((await s3.ok('GET', path, { query: version })).text, 'kept bytes');
    const free = await newLockable();
    await newVersion(free);
    assert.equal((await owner.call(`/api/buckets/${free}?force=true`, { method: 'DELETE' })).status, 200);
  });

  test('is either locked or gone when both come at once', async () => {
    const bucket = await newLockable();
    let kept = 0;
    for (let round = 0; round < 40; round++) {
      const { path, version } = await newVersion(bucket, {}, `raced-${round}`);
      const lock = { query: `retention&${version}`, body: retention('COMPLIANCE', inDays(1)) };
      const calls = [() => s3.call('PUT', path, lock), () => s3.call('DELETE', path, { query: version })];
      const sent = (round % 2 === 0 ? calls : calls.toReversed()).map((call) => call());
      const replies = await Promise.all(sent);
      const [set, removed] = round % 2 === 0 ? replies : replies.toReversed();
      assert.ok(set && removed);
      const isThere = (await s3.call('GET', path, { query: version })).status === 200;
      if (set.status === 200) {
        assert.deepEqual([removed.status, isThere], [403, true], removed.text);
        kept++;
      } else assert.deepEqual([set.status, removed.status, isThere], [404, 204, false], set.text);
    }
    assert.ok(kept > 0 && kept <= 40);
  });
});

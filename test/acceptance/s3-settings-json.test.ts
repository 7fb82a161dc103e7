/** Settings of buckets and uploads in progress, as read and changed by the console: consistent with S3. */
import assert from 'node:assert/strict';
import { before, describe, test } from 'node:test';
import { CheckedClient } from '../harness/checked-client.ts';
import type { CloudProcess } from '../harness/cloud-process.ts';
import { sharedCloud } from '../harness/shared-cloud.ts';
import {
  anonymously,
  metadataOf,
  newKeyPair,
  newS3,
  newUpload,
  pathOf,
  ROW_BYTES,
  type S3Client,
  textsOf,
} from './s3-kit.ts';

let cloud: CloudProcess;
let owner: CheckedClient;
let stranger: CheckedClient;
let s3: S3Client;
const SETTINGS = '/api/buckets/shown/settings';

before(async () => {
  cloud = await sharedCloud();
  const anyone = await CheckedClient.open(cloud.api);
  owner = anyone.as((await anyone.register()).api_key);
  stranger = anyone.as((await anyone.register()).api_key);
  s3 = await newS3(cloud.data, owner);
  await s3.ok('PUT', '/shown');
});

const change = (json: object) => [SETTINGS, { method: 'PATCH', json }] as const;

/** A client with a key with these scopes. */
async function keyWith(scopes: readonly string[], more: object = {}): Promise<CheckedClient> {
  const { api_key } = (await newKeyPair(owner, { scopes, ...more })) as unknown as { api_key: string };
  return owner.as(api_key);
}

describe('settings', () => {
  test('that S3 sets are shown, and the other way round', async () => {
    assert.equal((await owner.expect(200, SETTINGS)).tags, null);
    const body = '<Tagging><TagSet><Tag><Key>a</Key><Value>x + y</Value></Tag></TagSet></Tagging>';
    await s3.ok('PUT', '/shown', { query: 'tagging', body });
    assert.deepEqual((await owner.expect(200, SETTINGS)).tags, { a: 'x + y' });
    const { tags } = await owner.expect(200, ...change({ tags: { b: '@1', 'ü ': '' } }));
    assert.deepEqual(tags, { b: '@1', 'ü ': '' });
    assert.match((await s3.ok('GET', '/shown', { query: 'tagging' })).text, /<Value>@1<\/Value>/);
    await owner.expect(200, ...change({}));
    assert.equal((await owner.expect(200, SETTINGS)).tags.b, '@1');
    assert.equal((await owner.expect(200, ...change({ tags: null }))).tags, null);
    await s3.refused(404, 'NoSuchTagSet', ['GET', '/shown', { query: 'tagging' }]);
  });

  test('hold rules for pages of other origins', async () => {
    const rule = { origins: ['https://*.example.org'], methods: ['GET', 'PUT'] };
    const whole = { ...rule, id: 'one', headers: ['x-*'], exposed_headers: ['etag'], max_age_seconds: 60 };
    const cors = [whole, { ...rule, headers: [], exposed_headers: [] }];
    const settings = await owner.expect(200, ...change({ cors: [whole, rule] }));
    assert.deepEqual(settings.cors, cors);
    const headers = { origin: 'https://a.example.org' };
    const read = await s3.ok('GET', '/shown', { headers, query: 'cors' });
    assert.equal(read.headers['access-control-allow-origin'], headers.origin);
    for (const wrong of [
      [],
      [{ ...rule, methods: ['PATCH'] }],
      [{ ...rule, origins: ['*.*'] }],
      [{ ...rule, origins: ['a b'] }],
      [{ ...rule, max_age_seconds: -1 }],
    ]) {
      const { errors } = await owner.refused(400, 'invalid_request', [...change({ cors: wrong })]);
      assert.match(errors[0].field, /^cors/);
    }
    assert.deepEqual((await owner.expect(200, SETTINGS)).cors, cors);
    await owner.expect(200, ...change({ cors: null }));
  });

  test('are checked as S3 checks them, and a wrong one changes nothing', async () => {
    await owner.expect(200, ...change({ tags: { kept: 'yes' } }));
    const many = Object.fromEntries(Array.from({ length: 51 }, (_, i) => [`t${i}`, '']));
    for (const tags of [many, { '': 'x' }, { a: 'x'.repeat(257) }, { ['n'.repeat(129)]: '' }]) {
      const { errors } = await owner.refused(400, 'invalid_request', [...change({ tags })]);
      assert.equal(errors[0].field, 'tags');
    }
    for (const json of [{ tags: 'a=b' }, { tags: { a: 1 } }, { tag: {} }])
      await owner.refused(400, 'invalid_request', [...change(json)]);
    assert.deepEqual((await owner.expect(200, SETTINGS)).tags, { kept: 'yes' });
  });

  test('have a list of grants to others, as S3 shows it, with the checks of S3', async () => {
    const found = await stranger.expect(200, '/api/account');
    const { canonical_id: account, username, email } = found;
    const grants = [
      { account, permission: 'READ' },
      { group: 'all', permission: 'READ' },
    ];
    const { acl } = await owner.expect(200, ...change({ acl: grants }));
    assert.deepEqual(acl, [
      { account, account_name: username, permission: 'READ' },
      { group: 'all', permission: 'READ' },
    ]);
    assert.deepEqual((await owner.expect(200, SETTINGS)).acl, acl);
    const { text } = await s3.ok('GET', '/shown', { query: 'acl' });
    assert.deepEqual(textsOf(text, 'Permission'), ['FULL_CONTROL', 'READ', 'READ']);
    assert.equal((await anonymously(cloud.data, 'GET', '/shown')).status, 200);
    const ENFORCED = 'BucketOwnerEnforced';
    const BLOCKED = { block_acls: true, ignore_acls: false, block_policy: false, restrict: false };
    for (const json of [
      { acl: [{ permission: 'READ' }] },
      { acl: [{ account, group: 'all', permission: 'READ' }] },
      // Grants by an e-mail address would reveal who has it.
      { acl: [{ account: email, permission: 'READ' }] },
      { acl: [{ account: 'nobody@example.org', permission: 'READ' }] },
      { acl: [{ account: '0', permission: 'READ' }] },
      { acl: [{ group: 'all', permission: 'ALL' }] },
      { acl: [] },
      { acl: grants, public_access: BLOCKED },
      { acl: grants, ownership: ENFORCED },
      { ownership: ENFORCED },
    ]) {
      await owner.refused(400, 'invalid_request', [...change(json)]);
    }
    assert.equal((await owner.expect(200, ...change({ acl: null, ownership: ENFORCED }))).acl, null);
    await owner.refused(400, 'invalid_request', [...change({ acl: grants })]);
    assert.equal((await anonymously(cloud.data, 'GET', '/shown')).status, 403);
    await owner.expect(200, ...change({ ownership: null }));
  });

  test('are for keys that may administer the storage', async () => {
    const writer = await keyWith(['storage:write', 'storage:read']);
    await writer.expect(200, SETTINGS);
    await writer.refused(403, 'scope_required', [...change({ tags: null })]);
    const limited = await keyWith(['storage:*'], { buckets: [{ name: 'shown' }] });
    await limited.refused(403, 'scope_required', [...change({ tags: null })]);
    await (await keyWith(['storage:admin'])).expect(200, ...change({ tags: { by: 'admin' } }));
    await stranger.refused(404, 'bucket_not_found', [SETTINGS]);
    await stranger.refused(404, 'bucket_not_found', [...change({ tags: null })]);
    assert.deepEqual((await owner.expect(200, SETTINGS)).tags, { by: 'admin' });
  });
});

describe('uploads in progress', () => {
  const UPLOADS = '/api/buckets/busy/uploads';
  const names = (list: { name: string }[]) => list.map(({ name }) => name).join(' ');
  const stored = async () => (await owner.expect(200, '/api/billing/quotas')).quotas.storage_bytes.used;
  const gone = { method: 'DELETE' };

  test('are listed by name and age, page by page, and aborted', async () => {
    await s3.ok('PUT', '/busy');
    assert.deepEqual(await owner.expect(200, UPLOADS), []);
    const ids = new Map<string, string>();
    for (const name of ['b', 'in/a', 'b2', 'in/b']) ids.set(name, await newUpload(s3, pathOf('busy', name)));
    await newUpload(s3, pathOf('busy', 'b'));
    const uploadId = ids.get('b') ?? '';
    await s3.ok('PUT', pathOf('busy', 'b'), { query: `partNumber=1&uploadId=${uploadId}`, body: '12345' });
    const list = await owner.expect(200, UPLOADS);
    assert.equal(names(list), 'b b b2 in/a in/b');
    assert.deepEqual([list[0].upload_id, list[0].size, list[1].size], [uploadId, 5, 0]);
    const life = Date.parse(`${list[0].ends_at}Z`) - Date.parse(`${list[0].created_at}Z`);
    assert.equal(life, 7 * 86_400_000);

    let [url, seen] = [`${UPLOADS}?limit=2`, ''];
    for (let pages = 0; url !== '' && pages < 9; pages++) {
      const { headers, body } = await owner.call(url);
      seen += `${names(body)}|`;
      url = /<(.*?)>; rel="next"/.exec(headers.get('link') ?? '')?.[1] ?? '';
    }
    assert.equal(seen, 'b b|b2 in/a|in/b|');
    await owner.refused(400, 'invalid_cursor', [`${UPLOADS}?limit=2&cursor=WzFd`]);

    const before = await stored();
    const aborted = await owner.expect(200, `${UPLOADS}/${uploadId}`, gone);
    assert.deepEqual(aborted, { upload_id: uploadId });
    await owner.refused(404, 'upload_not_found', [`${UPLOADS}/${uploadId}`, gone]);
    const part = { query: `partNumber=2&uploadId=${uploadId}`, body: 'x' };
    await s3.refused(404, 'NoSuchUpload', ['PUT', pathOf('busy', 'b'), part]);
    assert.equal(await stored(), before - 5 - metadataOf('b') - ROW_BYTES);
    assert.equal(names(await owner.expect(200, UPLOADS)), 'b b2 in/a in/b');
  });

  test('of other buckets, names and accounts are out of reach', async () => {
    const limited = await keyWith(['storage:*'], { buckets: [{ name: 'busy', prefix: 'in/' }] });
    const own = await limited.expect(200, UPLOADS);
    assert.equal(names(own), 'in/a in/b');
    const [beyond] = await owner.expect(200, UPLOADS);
    await limited.refused(404, 'upload_not_found', [`${UPLOADS}/${beyond.upload_id}`, gone]);
    await owner.refused(404, 'upload_not_found', [`/api/buckets/shown/uploads/${beyond.upload_id}`, gone]);
    await stranger.refused(404, 'bucket_not_found', [UPLOADS]);
    await stranger.refused(404, 'bucket_not_found', [`${UPLOADS}/${beyond.upload_id}`, gone]);
    const reader = await keyWith(['storage:read']);
    await reader.refused(403, 'scope_required', [`${UPLOADS}/${beyond.upload_id}`, gone]);
    await limited.expect(200, `${UPLOADS}/${own[0].upload_id}`, gone);
    assert.equal(names(await owner.expect(200, UPLOADS)), 'b b2 in/b');
  });
});

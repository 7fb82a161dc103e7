/** Access control lists, and the owners of objects. */
import assert from 'node:assert/strict';
import { before, describe, test } from 'node:test';
import { Client } from '../harness/client.ts';
import type { CloudProcess } from '../harness/cloud-process.ts';
import { sharedCloud } from '../harness/shared-cloud.ts';
import {
  anonymously,
  assertRefused,
  elementsOf,
  newS3,
  newUpload,
  policy,
  type S3Client,
  setPolicy,
  statement,
  textOf,
  textsOf,
} from './s3-kit.ts';

interface Person {
  readonly s3: S3Client;
  readonly id: string;
  readonly name: string;
  readonly email: string;
}

const SIGNED = 'http://acs.amazonaws.com/groups/global/AuthenticatedUsers';

let cloud: CloudProcess;
let owner: Person;
let other: Person;
let third: Person;
let made = 0;

before(async () => {
  cloud = await sharedCloud();
  const person = async (): Promise<Person> => {
    const user = await new Client(cloud.api).newUser();
    const { canonical_id: id, username: name, email } = (await user.call('/api/account')).body;
    return { s3: await newS3(cloud.data, user), id, name, email };
  };
  [owner, other, third] = [await person(), await person(), await person()];
});

async function newBucket(headers: Record<string, string> = {}): Promise<string> {
  const name = `acl-${++made}`;
  await owner.s3.ok('PUT', `/${name}`, { headers });
  await owner.s3.ok('PUT', `/${name}/a`, { body: 'bytes of a' });
  return name;
}

const anonymous = (method: string, path: string, query = '') =>
  anonymously(cloud.data, method, path, { query });

/** `grantee permission`, sorted; the grantee is a name or a group. */
async function listOf(path: string, asker = owner): Promise<string[]> {
  const { text } = await asker.s3.ok('GET', path, { query: 'acl' });
  const names = new Map([owner, other, third].map(({ id }, at) => [id, ['owner', 'other', 'third'][at]]));
  return elementsOf(text, 'Grant')
    .map((grant) => {
      const [id] = textsOf(grant, 'ID');
      const [uri = ''] = textsOf(grant, 'URI');
      const grantee = id === undefined ? uri.replace(/.*\//, '') : names.get(id);
      return `${grantee} ${textOf(grant, 'Permission')}`;
    })
    .sort();
}

function list(
  ownerId: string,
  ...grants: readonly (readonly [grantee: string, permission: string])[]
): string {
  const all = grants.map(
    ([grantee, permission]) =>
      `<Grant><Grantee xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" xsi:type="x">${grantee}</Grantee><Permission>${permission}</Permission></Grant>`,
  );
  return `<AccessControlPolicy><Owner><ID>${ownerId}</ID></Owner><AccessControlList>${all.join('')}</AccessControlList></AccessControlPolicy>`;
}

async function setOwnership(bucket: string, ownership: string): Promise<void> {
  const body = `<OwnershipControls><Rule><ObjectOwnership>${ownership}</ObjectOwnership></Rule></OwnershipControls>`;
  await owner.s3.ok('PUT', `/${bucket}`, { query: 'ownershipControls', body });
}

describe('lists by name', () => {
  test('of objects', async () => {
    const bucket = await newBucket();
    for (const [name, grants] of [
      ['private', []],
      ['public-read', ['AllUsers READ']],
      ['public-read-write', ['AllUsers READ', 'AllUsers WRITE']],
      ['authenticated-read', ['AuthenticatedUsers READ']],
      ['bucket-owner-read', []],
      ['bucket-owner-full-control', []],
    ] as const) {
      const headers = { 'x-amz-acl': name };
      await owner.s3.ok('PUT', `/${bucket}/b`, { headers, body: 'x' });
      const expected = [...grants, 'owner FULL_CONTROL'];
      assert.deepEqual(await listOf(`/${bucket}/b`), expected, name);
      await owner.s3.ok('PUT', `/${bucket}/a`, { query: 'acl', headers });
      assert.deepEqual(await listOf(`/${bucket}/a`), expected, name);
      const isPublic = name.startsWith('public');
      assert.equal((await anonymous('GET', `/${bucket}/a`)).status, isPublic ? 200 : 403, name);
      const isSigned = isPublic || name === 'authenticated-read';
      assert.equal((await other.s3.call('GET', `/${bucket}/b`)).status, isSigned ? 200 : 403, name);
    }
    const wrong = { headers: { 'x-amz-acl': 'public' }, body: 'x' };
    await owner.s3.refused(400, 'InvalidArgument', ['PUT', `/${bucket}/b`, wrong]);
  });

  test('of buckets', async () => {
    const bucket = await newBucket({ 'x-amz-acl': 'public-read' });
    assert.deepEqual(await listOf(`/${bucket}`), ['AllUsers READ', 'owner FULL_CONTROL']);
    const shown = await owner.s3.ok('GET', `/${bucket}`, { query: 'acl' });
    assert.deepEqual(textsOf(shown.text, 'Permission'), ['READ', 'FULL_CONTROL']);
    assert.deepEqual(textsOf(shown.text, 'DisplayName'), [owner.name, owner.name]);
    assert.deepEqual(textsOf((await anonymous('GET', `/${bucket}`)).text, 'Key'), ['a']);
    // The list of a bucket does not apply to its objects.
    assertRefused(await anonymous('GET', `/${bucket}/a`), 403, 'AccessDenied');
    assertRefused(await anonymous('GET', `/${bucket}/missing`), 404, 'NoSuchKey');
    assertRefused(await anonymous('PUT', `/${bucket}/b`), 403, 'AccessDenied');
    const set = (name: string) =>
      owner.s3.ok('PUT', `/${bucket}`, { query: 'acl', headers: { 'x-amz-acl': name } });
    await set('public-read-write');
    assert.equal((await anonymously(cloud.data, 'PUT', `/${bucket}/b`, { body: 'of nobody' })).status, 200);
    assert.equal((await owner.s3.ok('GET', `/${bucket}/b`)).text, 'of nobody');
    assert.equal((await anonymous('DELETE', `/${bucket}/b`)).status, 204);
    const shared = { body: 'for all', headers: { 'x-amz-acl': 'public-read' } };
    const put = () => anonymously(cloud.data, 'PUT', `/${bucket}/c`, shared);
    assert.equal((await put()).status, 200);
    assert.equal((await anonymous('GET', `/${bucket}/c`)).text, 'for all');
    assert.equal((await anonymous('DELETE', `/${bucket}/c`)).status, 204);
    await set('private');
    assertRefused(await put(), 403, 'AccessDenied');
    assertRefused(await anonymous('GET', `/${bucket}`), 403, 'AccessDenied');
    await owner.s3.ok('DELETE', `/${bucket}/a`);
    await owner.s3.ok('DELETE', `/${bucket}`);
    assertRefused(await anonymous('GET', `/${bucket}/a`), 404, 'NoSuchBucket');
  });
});

describe('grants', () => {
  test('in headers, by id and group, and never by e-mail address', async () => {
    const bucket = await newBucket();
    const headers = {
      'x-amz-grant-read': `id="${other.id}", uri="${SIGNED}"`,
      'x-amz-grant-read-acp': `id="${third.id}"`,
      'x-amz-grant-full-control': `id=${owner.id}`,
    };
    await owner.s3.ok('PUT', `/${bucket}/b`, { headers, body: 'x' });
    const inOrder = await owner.s3.ok('GET', `/${bucket}/b`, { query: 'acl' });
    assert.deepEqual(textsOf(inOrder.text, 'Permission'), ['READ', 'READ', 'READ_ACP', 'FULL_CONTROL']);
    const grants = ['AuthenticatedUsers READ', 'other READ', 'owner FULL_CONTROL', 'third READ_ACP'];
    assert.deepEqual(await listOf(`/${bucket}/b`), grants);
    assert.deepEqual(await listOf(`/${bucket}/b`, third), grants);
    await other.s3.refused(403, 'AccessDenied', ['GET', `/${bucket}/b`, { query: 'acl' }]);
    const put = (more: Record<string, string>) =>
      ['PUT', `/${bucket}/c`, { headers: more, body: 'x' }] as const;
    const read = (grantee: string) => put({ 'x-amz-grant-read': grantee });
    await owner.s3.refused(400, 'InvalidArgument', [...read(`id="${'f'.repeat(64)}"`)]);
    await owner.s3.refused(400, 'InvalidArgument', [...read('uri="http://example.org"')]);
    await owner.s3.refused(400, 'InvalidArgument', [...read('everyone')]);
    // The same for an address with an account and one without.
    const answers: string[] = [];
    for (const address of [third.email, 'no@example.org']) {
      const call = read(`emailAddress="${address}"`);
      const { text } = await owner.s3.refused(400, 'UnresolvableGrantByEmailAddress', [...call]);
      answers.push(...textsOf(text, 'Message'));
    }
    assert.equal(new Set(answers).size, 1);
    const both = put({ 'x-amz-acl': 'private', 'x-amz-grant-read': `id=${other.id}` });
    await owner.s3.refused(400, 'InvalidRequest', [...both]);
    await owner.s3.refused(404, 'NoSuchKey', ['GET', `/${bucket}/c`]);
  });

  test('in a document, each with what it allows', async () => {
    const bucket = await newBucket();
    const set = (path: string, ...grants: readonly (readonly [string, string])[]) =>
      owner.s3.call('PUT', path, { query: 'acl', body: list(owner.id, ...grants) });
    const them = `<ID>${other.id}</ID>`;
    const status = async (method: string, path: string, query = '') =>
      (await other.s3.call(method, path, { query, ...(method === 'PUT' && { body: 'x' }) })).status;
    for (const [permission, allowed] of [
      ['READ', ['GET ', 'GET versions', 'GET uploads']],
      ['WRITE', ['PUT /new']],
      ['READ_ACP', ['GET acl']],
      ['FULL_CONTROL', ['GET ', 'GET versions', 'GET uploads', 'PUT /new', 'GET acl']],
    ] as const) {
      assert.equal((await set(`/${bucket}`, [them, permission])).status, 200);
      for (const [method, query, key] of [
        ['GET', '', ''],
        ['GET', 'versions', ''],
        ['GET', 'uploads', ''],
        ['PUT', '', '/new'],
        ['GET', 'acl', ''],
      ] as const) {
        const isAllowed = (allowed as readonly string[]).includes(`${method} ${query}${key}`);
        const answer = await status(method, `/${bucket}${key}`, query);
        assert.equal(answer, isAllowed ? 200 : 403, `${permission}: ${method} ${query}${key}`);
      }
    }
    assert.equal((await set(`/${bucket}/a`, [them, 'WRITE_ACP'])).status, 200);
    assert.equal(await status('GET', `/${bucket}/a`), 403);
    const give = { query: 'acl', body: list(owner.id, [them, 'READ']) };
    assert.equal((await other.s3.call('PUT', `/${bucket}/a`, give)).status, 200);
    assert.equal(await status('GET', `/${bucket}/a`), 200);
    // The owner keeps permissions that the list does not mention.
    assert.deepEqual(await listOf(`/${bucket}/a`), ['other READ']);
    assert.equal((await owner.s3.ok('GET', `/${bucket}/a`)).text, 'bytes of a');
    assert.equal((await set(`/${bucket}`)).status, 200);
    assert.deepEqual(await listOf(`/${bucket}`), []);
  });

  test('that are not well-formed are refused', async () => {
    const bucket = await newBucket();
    const put = (body: string, headers = {}) =>
      ['PUT', `/${bucket}/a`, { query: 'acl', body, headers }] as const;
    const { s3 } = owner;
    await s3.refused(400, 'MissingSecurityHeader', [...put('')]);
    await s3.refused(400, 'MalformedACLError', [...put('no XML')]);
    await s3.refused(400, 'MalformedACLError', [...put('<AccessControlPolicy/>')]);
    await s3.refused(400, 'MalformedACLError', [...put(list(owner.id, ['<ID>x</ID>', 'EVERYTHING']))]);
    await s3.refused(400, 'MalformedACLError', [...put(list(owner.id, ['', 'READ']))]);
    await s3.refused(400, 'InvalidArgument', [...put(list(owner.id, ['<ID>x</ID>', 'READ']))]);
    const address = '<EmailAddress>no@example.org</EmailAddress>';
    await s3.refused(400, 'UnresolvableGrantByEmailAddress', [...put(list(owner.id, [address, 'READ']))]);
    await s3.refused(403, 'AccessDenied', [...put(list(other.id))]);
    await s3.refused(400, 'UnexpectedContent', [...put(list(owner.id), { 'x-amz-acl': 'private' })]);
    await s3.refused(404, 'NoSuchKey', ['PUT', `/${bucket}/none`, { query: 'acl', body: list(owner.id) }]);
    assert.deepEqual(await listOf(`/${bucket}/a`), ['owner FULL_CONTROL']);
  });
});

describe('what others upload', () => {
  const upload = (bucket: string, headers: Record<string, string> = {}) =>
    other.s3.call('PUT', `/${bucket}/theirs`, { headers, body: 'theirs' });
  const openBucket = async (ownership: string | undefined) => {
    const bucket = await newBucket();
    if (ownership !== undefined) await setOwnership(bucket, ownership);
    await setPolicy(
      owner.s3,
      bucket,
      policy(statement(bucket, { Action: ['s3:PutObject', 's3:ListBucket'] })),
    );
    return bucket;
  };
  const ownerOf = async (bucket: string) => {
    const { text } = await owner.s3.ok('GET', `/${bucket}`, { query: 'prefix=theirs' });
    return textOf(text, 'ID');
  };

  test('is theirs, and the owner of the bucket reaches it', async () => {
    for (const ownership of [undefined, 'ObjectWriter']) {
      const bucket = await openBucket(ownership);
      assert.equal((await upload(bucket)).status, 200);
      assert.equal(await ownerOf(bucket), other.id);
      assert.deepEqual(await listOf(`/${bucket}/theirs`, other), ['other FULL_CONTROL']);
      assert.equal((await other.s3.ok('GET', `/${bucket}/theirs`)).text, 'theirs');
      assert.equal((await owner.s3.ok('GET', `/${bucket}/theirs`)).text, 'theirs');
      await third.s3.refused(403, 'AccessDenied', ['GET', `/${bucket}/theirs`]);
      await other.s3.refused(403, 'AccessDenied', ['GET', `/${bucket}/a`]);
      assert.equal((await upload(bucket, { 'x-amz-acl': 'bucket-owner-read' })).status, 200);
      assert.deepEqual(await listOf(`/${bucket}/theirs`, other), ['other FULL_CONTROL', 'owner READ']);
      const uploadId = await newUpload(other.s3, `/${bucket}/theirs`, {
        headers: { 'x-amz-acl': 'public-read' },
      });
      const { text } = await other.s3.ok('GET', `/${bucket}`, { query: 'prefix=x' });
      assert.deepEqual(textsOf(text, 'Key'), []);
      await other.s3.ok('PUT', `/${bucket}/theirs`, {
        query: `partNumber=1&uploadId=${uploadId}`,
        body: 'p',
      });
      const { headers } = await other.s3.ok('PUT', `/${bucket}/theirs`, {
        query: `partNumber=1&uploadId=${uploadId}`,
        body: 'parts',
      });
      const body = `<CompleteMultipartUpload><Part><PartNumber>1</PartNumber><ETag>${headers.etag}</ETag></Part></CompleteMultipartUpload>`;
      await other.s3.ok('POST', `/${bucket}/theirs`, { query: `uploadId=${uploadId}`, body });
      assert.equal((await anonymous('GET', `/${bucket}/theirs`)).text, 'parts');
    }
  });

  test('is the owner’s where they say so, with the preferred setting', async () => {
    const bucket = await openBucket('BucketOwnerPreferred');
    assert.equal((await upload(bucket)).status, 200);
    assert.equal(await ownerOf(bucket), other.id);
    assert.equal((await upload(bucket, { 'x-amz-acl': 'bucket-owner-full-control' })).status, 200);
    assert.equal(await ownerOf(bucket), owner.id);
    await other.s3.refused(403, 'AccessDenied', ['GET', `/${bucket}/theirs`]);
  });

  test('is always the owner’s where that is enforced, and no list counts', async () => {
    const bucket = await openBucket('BucketOwnerEnforced');
    for (const acl of ['public-read', 'authenticated-read', 'private', 'bucket-owner-read']) {
      const headers = { 'x-amz-acl': acl };
      assertRefused(await upload(bucket, headers), 400, 'AccessControlListNotSupported');
      for (const [method, path, request] of [
        ['PUT', `/${bucket}/b`, { headers: { ...headers, 'x-amz-copy-source': `/${bucket}/a` } }],
        ['POST', `/${bucket}/b`, { headers, query: 'uploads' }],
        ['PUT', `/${bucket}/a`, { headers, query: 'acl' }],
        ...(acl === 'bucket-owner-read' ? [] : [['PUT', `/${bucket}`, { headers, query: 'acl' }] as const]),
      ] as const) {
        await owner.s3.refused(400, 'AccessControlListNotSupported', [method, path, request]);
      }
    }
    const toOwner = { 'x-amz-acl': 'bucket-owner-full-control' };
    assert.equal((await upload(bucket, toOwner)).status, 200);
    await owner.s3.ok('PUT', `/${bucket}/a`, { query: 'acl', headers: toOwner });
    assert.equal((await upload(bucket, { 'x-amz-grant-full-control': `id=${owner.id}` })).status, 200);
    assert.equal(await ownerOf(bucket), owner.id);
    await other.s3.refused(403, 'AccessDenied', ['GET', `/${bucket}/theirs`]);
    await setOwnership(bucket, 'ObjectWriter');
    await owner.s3.ok('PUT', `/${bucket}/a`, { query: 'acl', headers: { 'x-amz-acl': 'public-read' } });
    assert.equal((await anonymous('GET', `/${bucket}/a`)).status, 200);
    await setOwnership(bucket, 'BucketOwnerEnforced');
    assertRefused(await anonymous('GET', `/${bucket}/a`), 403, 'AccessDenied');
    assert.deepEqual(await listOf(`/${bucket}/a`), ['owner FULL_CONTROL']);
    const open = { query: 'acl', headers: { 'x-amz-acl': 'public-read' } };
    for (const path of [`/${bucket}`, `/${bucket}/a`]) {
      await owner.s3.refused(400, 'AccessControlListNotSupported', ['PUT', path, open]);
    }
  });
});

test('ownership is read, set, removed, and not enforced over lists for others', async () => {
  const bucket = await newBucket();
  const query = 'ownershipControls';
  await owner.s3.refused(404, 'OwnershipControlsNotFoundError', ['GET', `/${bucket}`, { query }]);
  await setOwnership(bucket, 'BucketOwnerPreferred');
  const { text } = await owner.s3.ok('GET', `/${bucket}`, { query });
  assert.equal(textOf(text, 'ObjectOwnership'), 'BucketOwnerPreferred');
  const wrong = '<OwnershipControls><Rule><ObjectOwnership>Mine</ObjectOwnership></Rule></OwnershipControls>';
  await owner.s3.refused(400, 'MalformedXML', ['PUT', `/${bucket}`, { query, body: wrong }]);
  await owner.s3.ok('PUT', `/${bucket}`, { query: 'acl', headers: { 'x-amz-acl': 'public-read' } });
  const body = wrong.replace('Mine', 'BucketOwnerEnforced');
  const enforced = ['PUT', `/${bucket}`, { query, body }] as const;
  await owner.s3.refused(400, 'InvalidBucketAclWithObjectOwnership', [...enforced]);
  assert.equal((await owner.s3.ok('DELETE', `/${bucket}`, { query })).status, 204);
  await owner.s3.refused(404, 'OwnershipControlsNotFoundError', ['GET', `/${bucket}`, { query }]);
  const headers = { 'x-amz-object-ownership': 'BucketOwnerEnforced', 'x-amz-acl': 'public-read' };
  await owner.s3.refused(400, 'InvalidBucketAclWithObjectOwnership', ['PUT', '/acl-refused', { headers }]);
  await owner.s3.refused(404, 'NoSuchBucket', ['GET', '/acl-refused']);
  await owner.s3.refused(400, 'InvalidArgument', [
    'PUT',
    '/acl-refused',
    { headers: { 'x-amz-object-ownership': 'Mine' } },
  ]);
});

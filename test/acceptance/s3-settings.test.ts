/** Settings of buckets changed by S3 clients. */
import assert from 'node:assert/strict';
import { before, describe, test } from 'node:test';
import { type S3Client, sharedS3, textsOf } from './s3-kit.ts';

let s3: S3Client;
const bucket = 'settings';

before(async () => {
  ({ s3 } = await sharedS3());
  await s3.ok('PUT', `/${bucket}`);
});

describe('buckets', () => {
  test('have tags, which are read, replaced and removed', async () => {
    const [path, query] = [`/${bucket}`, 'tagging'];
    const tagged = (...names: string[]) =>
      `<Tagging><TagSet>${names.map((name) => `<Tag><Key>${name}</Key><Value>v @1</Value></Tag>`).join('')}</TagSet></Tagging>`;
    await s3.refused(404, 'NoSuchTagSet', ['GET', path, { query }]);
    for (const names of [['a', 'b'], ['b']]) {
      assert.equal((await s3.ok('PUT', path, { query, body: tagged(...names) })).status, 204);
      const { text } = await s3.ok('GET', path, { query });
      assert.deepEqual(
        [...text.matchAll(/<Key>(\w)<\/Key><Value>v @1</g)].map(([, name]) => name),
        names,
      );
    }
    await s3.refused(400, 'InvalidTag', ['PUT', path, { query, body: tagged('a', 'a') }]);
    for (const set of ['', '<TagSet><Tag><Key>a</Key></Tag></TagSet>', '<TagSet><Other/></TagSet>']) {
      await s3.refused(400, 'MalformedXML', ['PUT', path, { query, body: `<Tagging>${set}</Tagging>` }]);
    }
    const many = Array.from({ length: 51 }, (_, i) => `t${i}`);
    await s3.refused(400, 'InvalidTag', ['PUT', path, { query, body: tagged(...many) }]);
    for (const name of ['aws:own', 'AWS:own', 'a#b', 'a&amp;b', '']) {
      await s3.refused(400, 'InvalidTag', ['PUT', path, { query, body: tagged(name) }]);
    }
    assert.match((await s3.ok('GET', path, { query })).text, /<Key>b</);
    assert.equal((await s3.ok('DELETE', path, { query })).status, 204);
    await s3.refused(404, 'NoSuchTagSet', ['GET', path, { query }]);
  });

  test('may have tags from the beginning', async () => {
    const tags = '<Tags><Tag><Key>team</Key><Value>a</Value></Tag></Tags>';
    const body = `<CreateBucketConfiguration>${tags}</CreateBucketConfiguration>`;
    await s3.ok('PUT', '/tagged', { body });
    assert.match((await s3.ok('GET', '/tagged', { query: 'tagging' })).text, /<Key>team<.*<Value>a</);
    const odd = body.replace('team', 'aws:team');
    await s3.refused(400, 'InvalidTag', ['PUT', '/tagged-oddly', { body: odd }]);
    await s3.refused(404, 'NoSuchBucket', ['GET', '/tagged-oddly']);
  });

  test('are listed by region', async () => {
    const region = '<LocationConstraint>eu-west-1</LocationConstraint>';
    await s3.ok('PUT', '/europe', {
      body: `<CreateBucketConfiguration>${region}</CreateBucketConfiguration>`,
    });
    const list = async (name: string) =>
      textsOf((await s3.ok('GET', '/', { query: `bucket-region=${name}` })).text, 'Name');
    assert.deepEqual(await list('eu-west-1'), ['europe']);
    assert.ok((await list('us-east-1')).includes(bucket));
    assert.deepEqual(await list('eu-west-2'), []);
  });

  test('take what they have anyway of what is not offered, and nothing else', async () => {
    const settings = [
      [
        'logging',
        'BucketLoggingStatus',
        '',
        '<LoggingEnabled><TargetBucket>b</TargetBucket></LoggingEnabled>',
      ],
      ['notification', 'NotificationConfiguration', '', '<EventBridgeConfiguration/>'],
      ['accelerate', 'AccelerateConfiguration', '<Status>Suspended</Status>', '<Status>Enabled</Status>'],
      [
        'requestPayment',
        'RequestPaymentConfiguration',
        '<Payer>BucketOwner</Payer>',
        '<Payer>Requester</Payer>',
      ],
    ] as const;
    for (const [query, root, unset, set] of settings) {
      const put = (content: string) => ({ query, body: `<${root} xmlns="urn:x">${content}</${root}>` });
      await s3.ok('PUT', `/${bucket}`, put(unset));
      await s3.refused(501, 'NotImplemented', ['PUT', `/${bucket}`, put(set)]);
      await s3.refused(400, 'MalformedXML', ['PUT', `/${bucket}`, { query, body: '<x/>' }]);
      await s3.ok('GET', `/${bucket}`, { query });
    }
  });

  test('lose a website and a replication that they never had', async () => {
    for (const query of ['website', 'replication']) {
      assert.equal((await s3.ok('DELETE', `/${bucket}`, { query })).status, 204);
      await s3.refused(501, 'NotImplemented', ['PUT', `/${bucket}`, { query, body: '<x/>' }]);
    }
  });
});

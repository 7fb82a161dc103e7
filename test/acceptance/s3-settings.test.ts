/** Settings of buckets that S3 clients make. */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { Client } from '../harness/client.ts';
import { CloudProcess } from '../harness/cloud-process.ts';
import { newS3, type S3Client } from './s3-kit.ts';

let cloud: CloudProcess;
let s3: S3Client;
const bucket = 'settings';

before(async () => {
  cloud = await CloudProcess.start();
  s3 = await newS3(cloud.data, await new Client(cloud.api).newUser());
  await s3.ok('PUT', `/${bucket}`);
});
after(() => cloud.stop());

describe('buckets', () => {
  test('have tags, which are read, replaced and removed', async () => {
    const [path, query] = [`/${bucket}`, 'tagging'];
    const tagged = (...names: string[]) =>
      `<Tagging><TagSet>${names.map((name) => `<Tag><Key>${name}</Key><Value>v&amp;</Value></Tag>`).join('')}</TagSet></Tagging>`;
    await s3.refused(404, 'NoSuchTagSet', ['GET', path, { query }]);
    for (const names of [['a', 'b'], ['b']]) {
      assert.equal((await s3.ok('PUT', path, { query, body: tagged(...names) })).status, 204);
      const { text } = await s3.ok('GET', path, { query });
      assert.deepEqual(
        [...text.matchAll(/<Key>(\w)<\/Key><Value>v&amp;</g)].map(([, name]) => name),
        names,
      );
    }
    await s3.refused(400, 'InvalidTag', ['PUT', path, { query, body: tagged('a', 'a') }]);
    await s3.refused(400, 'MalformedXML', ['PUT', path, { query, body: '<Tagging/>' }]);
    const many = Array.from({ length: 51 }, (_, i) => `t${i}`);
    await s3.refused(400, 'BadRequest', ['PUT', path, { query, body: tagged(...many) }]);
    assert.match((await s3.ok('GET', path, { query })).text, /<Key>b</);
    assert.equal((await s3.ok('DELETE', path, { query })).status, 204);
    await s3.refused(404, 'NoSuchTagSet', ['GET', path, { query }]);
  });
});

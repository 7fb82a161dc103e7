/** An account that uses everything it can get, beside one that works; and buckets in the host name. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { after, before, describe, test } from 'node:test';
import { Client } from '../harness/client.ts';
import { CloudProcess } from '../harness/cloud-process.ts';
import { eventually } from '../harness/waiting.ts';
import { assertRefused, newS3, pathOf, S3Client, textOf, transmit } from './s3-kit.ts';

const MIB = 2 ** 20;
const DOMAIN = 's3.test';
const PER_WINDOW = 200;
/** Of almost 2 MiB each, together more than an account's share of the memory for bodies. */
const HELD = 72;

let cloud: CloudProcess;
let attacker: S3Client;
let victim: S3Client;
before(async () => {
  const env = { CLOUDLET_S3_DOMAIN: DOMAIN, CLOUDLET_RATE_S3: String(PER_WINDOW) };
  cloud = await CloudProcess.start({ env });
  attacker = await newS3(cloud.data, await new Client(cloud.api).newUser());
  victim = await newS3(cloud.data, await new Client(cloud.api).newUser());
  await attacker.ok('PUT', '/attacker');
  await victim.ok('PUT', '/victim');
});
after(() => cloud.stop());

const deletion = (count: number) =>
  `<Delete>${Array.from({ length: count }, (_, i) => `<Object><Key>none-${i}</Key></Object>`).join('')}</Delete>`;

test('a policy that takes long to evaluate refuses its own bucket, and holds up nobody', async () => {
  const path = pathOf('attacker', 'a'.repeat(1000));
  await attacker.ok('PUT', path, { body: 'x' });
  // Without a limit it takes seconds of the event loop for each request.
  const agent = 'a'.repeat(12_000);
  const likes = ['', 'a'].map((more) => `*?${'a'.repeat(6000)}${more}b*`);
  const statement = {
    Effect: 'Allow',
    Principal: '*',
    Action: 's3:GetObject',
    Resource: 'arn:aws:s3:::attacker/*',
    Condition: { StringLike: { 'aws:UserAgent': likes } },
  };
  const policy = JSON.stringify({ Version: '2012-10-17', Statement: [statement] });
  await attacker.ok('PUT', '/attacker', { query: 'policy', body: policy });
  const anonymous = () => fetch(`${cloud.data}${path}`, { headers: { 'user-agent': agent } });
  const flood = Array.from({ length: 30 }, async () => {
    const reply = await anonymous();
    return [reply.status, textOf(await reply.text(), 'Message')] as const;
  });
  for (let round = 0; round < 5; round++) await victim.ok('GET', '/victim');
  for (const [status, message] of await Promise.all(flood)) {
    assert.equal(status, 403);
    assert.match(message, /takes too long to evaluate: use fewer wildcards/);
  }
  await attacker.ok('DELETE', '/attacker', { query: 'policy' });
  assert.equal((await attacker.ok('GET', path)).text, 'x');
});

test('bodies that an account holds half-sent leave memory for those of others', async () => {
  const sockets: Socket[] = [];
  const { hostname, port } = new URL(cloud.data);
  // Almost all of a body that the cloud keeps whole: most of it white space.
  const body = deletion(1).replace('<Object>', `${' '.repeat(1.9 * MIB)}<Object>`);
  let refused = 0;
  try {
    for (let i = 0; i < HELD; i++) {
      const { method, target, headers } = attacker.prepare('POST', '/attacker', { query: 'delete', body });
      const socket = connect(Number(port), hostname).on('error', () => {});
      socket.once('data', (text) => {
        if (String(text).startsWith('HTTP/1.1 503')) refused += 1;
      });
      sockets.push(socket);
      await once(socket, 'connect');
      const lines = Object.entries(headers).map((pair) => pair.join(': '));
      socket.write(
        `${method} ${target} HTTP/1.1\r\n${lines.join('\r\n')}\r\n\r\n${body.slice(0, 1.9 * MIB)}`,
      );
    }
    for (let round = 0; round < 5; round++) {
      await victim.ok('POST', '/victim', { query: 'delete', body: deletion(1000) });
      const path = pathOf('victim', 'object');
      await victim.ok('PUT', path, { body: Buffer.alloc(MIB) });
      assert.equal((await victim.ok('GET', path)).bytes.length, MIB);
    }
    await eventually('the account is refused beyond its share', async () => refused > 0);
  } finally {
    for (const socket of sockets) socket.destroy();
  }
});

describe('requests beyond the rate of a key', () => {
  test('are asked to slow down, in XML and with a time, while others work', async () => {
    const link = attacker.prepare('GET', '/attacker', { presigned: 60 });
    for (const send of [() => attacker.call('GET', '/attacker'), () => transmit(cloud.data, link)]) {
      const replies = await Promise.all(Array.from({ length: 3 * PER_WINDOW }, send));
      const slowed = replies.filter(({ status }) => status === 503);
      assert.ok(slowed.length > 0, 'all were answered');
      for (const reply of slowed) {
        assertRefused(reply, 503, 'SlowDown');
        assert.match(reply.headers['retry-after'] ?? '', /^[1-9]\d*$/);
      }
    }
    await victim.ok('GET', '/victim');
  });
});

describe('a bucket in the name of the host', () => {
  /** Signs and sends with that host. */
  const named = (
    bucket: string,
    [method, path]: readonly [string, string],
    { query = '', body = '' } = {},
  ) => {
    const host = `${bucket}.${DOMAIN}:${new URL(cloud.data).port}`;
    const there = new S3Client(`http://${host}`, victim.pair);
    return transmit(cloud.data, there.prepare(method, path, { query, body }));
  };

  test('is the bucket, and the path is the key', async () => {
    assert.equal((await named('victim', ['PUT', '/a%20b/c'], { body: 'by host' })).status, 200);
    assert.equal((await victim.ok('GET', pathOf('victim', 'a b/c'))).text, 'by host');
    assert.equal((await named('victim', ['GET', '/a%20b/c'])).text, 'by host');
    const listed = await named('victim', ['GET', '/'], { query: 'list-type=2&prefix=a' });
    assert.deepEqual([listed.status, textOf(listed.text, 'Key')], [200, 'a b/c']);
    assert.equal((await named('made-by-host', ['PUT', '/'])).status, 200);
    await victim.ok('HEAD', '/made-by-host');
    assertRefused(await named('no-such-bucket', ['GET', '/']), 404, 'NoSuchBucket');
  });

  test('is signed as it was sent, and of other domains there is none', async () => {
    const { method, target, headers, body } = victim.prepare('GET', pathOf('victim', 'a b/c'));
    const moved = { ...headers, host: `attacker.${DOMAIN}` };
    assertRefused(
      await transmit(cloud.data, { method, target, headers: moved, body }),
      403,
      'SignatureDoesNotMatch',
    );
    const foreign = new S3Client('http://victim.s3.elsewhere', victim.pair).prepare('GET', '/a%20b/c');
    assert.notEqual((await transmit(cloud.data, foreign)).status, 200);
  });
});

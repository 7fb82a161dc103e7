/** Requests of hostile and broken S3 clients. */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { Client } from '../harness/client.ts';
import { CloudProcess } from '../harness/cloud-process.ts';
import { openSocket, readToEnd } from '../harness/raw-http.ts';
import {
  newS3,
  newS3Bucket,
  newUpload,
  type Prepared,
  pathOf,
  S3Client,
  textOf,
  textsOf,
  transmit,
} from './s3-kit.ts';

let cloud: CloudProcess;
let user: Client;
let s3: S3Client;
let bucket: string;
before(async () => {
  cloud = await CloudProcess.start({ env: { CLOUDLET_SLOW_BODY_SECONDS: '2' } });
  user = await new Client(cloud.api).newUser();
  s3 = await newS3(cloud.data, user);
  bucket = await newS3Bucket(s3);
});
after(() => cloud.stop());

const charged = async (): Promise<number> =>
  (await user.call('/api/billing/quotas')).body.quotas.storage_bytes.used;
const keys = async () => textsOf((await s3.ok('GET', `/${bucket}`)).text, 'Key');

/** The head of a request as text. */
function headOf({ method, target, headers }: Prepared, more: Readonly<Record<string, string>> = {}): string {
  const lines = Object.entries({ ...headers, ...more }).map(([name, value]) => `${name}: ${value}\r\n`);
  return `${method} ${target} HTTP/1.1\r\n${lines.join('')}\r\n`;
}

describe('documents', () => {
  test('that are bombs, lies or too long are refused at once', async () => {
    const entities = Array.from({ length: 20 }, (_, at) => `<!ENTITY e${at + 1} "&e${at};&e${at};">`).join(
      '',
    );
    const bombs = [
      `<!DOCTYPE x [<!ENTITY e0 "x">${entities}]><Delete><Object><Key>&e20;</Key></Object></Delete>`,
      '<!DOCTYPE x SYSTEM "file:///etc/passwd"><Delete></Delete>',
      '<Delete><Object><Key>&undefined;</Key></Object></Delete>',
      '<Delete><Object><Key>a</Object></Key></Delete>',
      '<Delete><Object><Key>a</Key></Object>',
      `${'<a>'.repeat(100_000)}`,
      `<Delete ${'a="1" '.repeat(50_000)}></Delete>`,
      '\uFEFF',
      'not xml',
    ];
    const started = performance.now();
    for (const body of bombs) {
      const reply = await s3.call('POST', `/${bucket}`, { query: 'delete', body });
      assert.deepEqual([reply.status, textOf(reply.text, 'Code')], [400, 'MalformedXML'], body.slice(0, 80));
      assert.doesNotMatch(reply.text, /root:/);
    }
    const long = { query: 'delete', body: ' '.repeat(2 * 2 ** 20 + 1) };
    await s3.refused(400, 'MaxMessageLengthExceeded', ['POST', `/${bucket}`, long]);
    assert.ok(performance.now() - started < 10_000);
  });
});

describe('bodies', () => {
  test('of another length than announced store nothing', async () => {
    const good = s3.prepare('PUT', pathOf(bucket, 'short'), { body: 'x'.repeat(1000) });
    const socket = await openSocket(cloud.data);
    socket.write(headOf(good));
    socket.write(good.body.subarray(0, 500));
    await sleep(200);
    socket.destroy();
    const longer = await openSocket(cloud.data);
    longer.write(headOf(good, { 'content-length': '10' }));
    longer.write(good.body);
    assert.match(await readToEnd(longer, 5000), /^HTTP\/1\.1 400 /);
    assert.deepEqual(await keys(), []);
    assert.equal(await charged(), 0);
  });

  test('that come too slowly are cut off', async () => {
    const good = s3.prepare('PUT', pathOf(bucket, 'slow'), { body: 'x'.repeat(1000) });
    const socket = await openSocket(cloud.data);
    socket.write(headOf(good));
    const started = performance.now();
    const drip = setInterval(() => socket.write('x'), 500);
    await readToEnd(socket, 60_000);
    clearInterval(drip);
    assert.ok(performance.now() - started < 50_000);
    assert.deepEqual(await keys(), []);
  });

  test('are asked for only when the signature is good', async () => {
    const wrong = new S3Client(cloud.data, { ...s3.pair, secret_access_key: 'w'.repeat(40) });
    for (const [client, wanted] of [
      [wrong, /^HTTP\/1\.1 403 .*<Code>SignatureDoesNotMatch/s],
      [s3, /^HTTP\/1\.1 100 Continue\r\n\r\nHTTP\/1\.1 200 /],
    ] as const) {
      const put = client.prepare('PUT', pathOf(bucket, 'asked'), { body: 'hello' });
      const socket = await openSocket(cloud.data);
      socket.write(headOf(put, { expect: '100-continue', connection: 'close' }));
      if (client === s3) socket.once('data', () => socket.write('hello'));
      assert.match(await readToEnd(socket, 10_000), wanted);
    }
    await s3.ok('DELETE', pathOf(bucket, 'asked'));
  });

  test('of more than 5 GiB are refused before they are sent', async () => {
    const most = 5 * 2 ** 30;
    const path = pathOf(bucket, 'large');
    const uploadId = await newUpload(s3, path);
    const size = { 'x-amz-decoded-content-length': String(most + 1) };
    for (const query of ['', `partNumber=1&uploadId=${uploadId}`]) {
      for (const put of [
        s3.prepare('PUT', path, { query, mode: 'unsigned' }),
        s3.prepare('PUT', path, { query, mode: 'signed-chunks', headers: size }),
      ]) {
        const length = { 'content-length': String(most + 1) };
        const socket = await openSocket(cloud.data);
        socket.write(headOf(put, { ...length, expect: '100-continue', connection: 'close' }));
        const answer = await readToEnd(socket, 10_000);
        assert.match(answer, /^HTTP\/1\.1 400 .*<Code>EntityTooLarge/s);
        assert.match(answer, new RegExp(`<MaxSizeAllowed>${most}<`));
      }
    }
    await s3.ok('DELETE', path, { query: `uploadId=${uploadId}` });
  });

  test('of refused requests are read so far that the client sees why', async () => {
    const wrong = new S3Client(cloud.data, { ...s3.pair, secret_access_key: 'w'.repeat(40) });
    for (const bytes of [1000, 900_000, 20_000_000]) {
      await wrong.refused(403, 'SignatureDoesNotMatch', [
        'PUT',
        pathOf(bucket, 'x'),
        { body: Buffer.alloc(bytes) },
      ]);
    }
  });
});

describe('requests', () => {
  test('with huge heads are refused', async () => {
    const socket = await openSocket(cloud.data);
    socket.write(headOf(s3.prepare('GET', `/${bucket}`), { 'x-amz-meta-a': 'v'.repeat(20_000) }));
    assert.match(await readToEnd(socket, 10_000), /^HTTP\/1\.1 4\d\d /);
  });

  test('of HEAD that fail have no body', async () => {
    const stranger = await newS3(cloud.data, await new Client(cloud.api).newUser());
    for (const [client, path, query, wanted] of [
      [s3, '/no-such-bucket', '', 404],
      [s3, pathOf(bucket, 'missing'), '', 404],
      [s3, pathOf(bucket, 'missing'), 'versionId=x', 400],
      [s3, pathOf(bucket, 'missing'), 'versionId=null', 404],
      [stranger, `/${bucket}`, '', 403],
      [new S3Client(cloud.data, { ...s3.pair, secret_access_key: 'w' }), `/${bucket}`, '', 403],
    ] as const) {
      const put = client.prepare('HEAD', path, { query });
      const socket = await openSocket(cloud.data);
      socket.write(headOf(put, { connection: 'close' }));
      const text = await readToEnd(socket, 10_000);
      assert.match(text, new RegExp(`^HTTP/1\\.1 ${wanted} [^]*x-amz-request-id: req-[^]*\r\n\r\n$`), path);
    }
  });

  test('fifty at once, good and bad, are each answered for themselves', async () => {
    const answers = await Promise.all(
      Array.from({ length: 50 }, async (_, at) => {
        const path = pathOf(bucket, `many/${at}`);
        const body = Buffer.alloc(100_000 + at, `${at}`);
        if (at % 5 === 0) {
          const bad = { ...s3.prepare('PUT', path, { body }), body: Buffer.alloc(body.length) };
          return (await transmit(s3.base, bad)).status;
        }
        await s3.ok('PUT', path, { body });
        return (await s3.ok('GET', path)).bytes.equals(body) ? 200 : 500;
      }),
    );
    assert.deepEqual(
      answers,
      Array.from({ length: 50 }, (_, at) => (at % 5 === 0 ? 400 : 200)),
    );
    assert.equal((await keys()).length, 40);
  });

  test('in nonsense are refused as such, never with a fault', async () => {
    for (const [method, path, request] of [
      ['PUT', pathOf(bucket, 'o'), { headers: { 'content-md5': 'nonsense' } }],
      ['PUT', pathOf(bucket, 'o'), { headers: { 'x-amz-checksum-crc32': 'nonsense' } }],
      ['PUT', pathOf(bucket, 'o'), { headers: { 'x-amz-checksum-algorithm': 'MD17' } }],
      ['PUT', pathOf(bucket, 'o'), { headers: { 'x-amz-tagging': '%zz' } }],
      ['PUT', pathOf(bucket, 'o'), { headers: { 'content-type': `a/${'b'.repeat(300)}` } }],
      ['PUT', pathOf(bucket, 'o'), { query: 'partNumber=1&uploadId=' }],
      ['PUT', pathOf(bucket, 'o'), { query: 'partNumber=1&uploadId=..%2F..%2Fx' }],
      ['PUT', pathOf(bucket, 'o'), { headers: { 'x-amz-copy-source': '/' } }],
      ['GET', pathOf(bucket, 'many/1'), { query: 'partNumber=x' }],
      ['GET', pathOf(bucket, 'many/1'), { query: `versionId=${'v'.repeat(5000)}` }],
      ['GET', '/UPPER_case!/x', {}],
      ['GET', `/${'b'.repeat(500)}`, {}],
      ['PATCH', `/${bucket}`, {}],
      ['PUT', `/${bucket}`, { query: 'website', body: '<x/>' }],
      ['POST', '/', {}],
      ['DELETE', '/', {}],
      ['GET', `/${bucket}`, { query: 'list-type=2&continuation-token=%FF' }],
      ['GET', `/${bucket}`, { query: 'prefix=%00' }],
      ['DELETE', pathOf(bucket, 'o'), { headers: { 'x-amz-if-match-size': 'x' } }],
      [
        'GET',
        pathOf(bucket, 'many/1'),
        { headers: { 'if-modified-since': 'x', range: `bytes=${'9'.repeat(400)}-` } },
      ],
    ] as const) {
      // Text that Node's own client cannot percent-decode is signed unchanged.
      const reply = await s3
        .call(method, path, request)
        .catch((error) => ({ status: 400, text: String(error) }));
      assert.ok(
        reply.status < 500 || reply.status === 501,
        `${method} ${path}: ${reply.status} ${reply.text}`,
      );
    }
    assert.doesNotMatch(cloud.output, /internal_error|"level":50/);
  });
});

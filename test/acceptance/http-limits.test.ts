/** reliability H5–H12: the limits of one caller's effect on others. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import type { Socket } from 'node:net';
import { after, describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { CheckedClient } from '../harness/checked-client.ts';
import { CloudProcess } from '../harness/cloud-process.ts';
import { openSocket, parseResponse, readToEnd } from '../harness/raw-http.ts';
import { eventually } from '../harness/waiting.ts';
import { newS3 } from './s3-kit.ts';

const cloud = await CloudProcess.start({ env: { CLOUDLET_SLOW_BODY_SECONDS: '2' } });
const tight = await CloudProcess.start({
  env: { CLOUDLET_RATE_REQUESTS: '20', CLOUDLET_RATE_REGISTRATIONS: '6', CLOUDLET_MAX_CONNECTIONS: '60' },
});
after(async () => {
  await cloud.stop();
  await tight.stop();
});
const client = await CheckedClient.open(cloud.api);
const caller = await CheckedClient.open(tight.api);
/** Accounts of the tight cloud, created before its registrations are used up. */
const [victim, attacker] = [await caller.register(), await caller.register()];

describe('rate limits', () => {
  test('are told in both families of headers', async () => {
    const user = client.as((await client.register()).api_key);
    const { headers } = await user.call('/api/account');
    assert.equal(headers.get('ratelimit-policy'), '"requests";q=2000;w=10');
    assert.match(headers.get('ratelimit') ?? '', /^"requests";r=1999;t=\d+$/);
    assert.equal(headers.get('x-ratelimit-limit'), '2000');
    assert.equal(headers.get('x-ratelimit-remaining'), '1999');
    const reset = Number(headers.get('x-ratelimit-reset')) - Date.now() / 1000;
    assert.ok(reset > -2 && reset < 12, `${reset}`);
  });

  test('refuse one key with 429 and Retry-After, and no other; forwarded addresses change nothing', async () => {
    const caller = await CheckedClient.open(tight.api);
    const [busy, quiet] = [caller.as((await caller.register()).api_key), (await caller.register()).api_key];
    const answers = await Promise.all(
      Array.from({ length: 40 }, (_, i) =>
        busy.call('/api/account', { headers: { 'x-forwarded-for': `10.0.0.${i}` } }),
      ),
    );
    const refused = answers.filter(({ status }) => status === 429);
    assert.ok(refused.length >= 10 && refused.length <= 20, `${refused.length} refused`);
    for (const { body, headers } of refused) {
      assert.equal(body.code, 'rate_limited');
      assert.ok(Number(headers.get('retry-after')) >= 1);
      assert.equal(headers.get('x-ratelimit-remaining'), '0');
    }
    assert.equal((await caller.as(quiet).call('/api/account')).status, 200);
    await sleep(1500);
    assert.equal((await busy.call('/api/account')).status, 200, 'tokens come back');
  });

  test('refuse an account that uses many keys', async () => {
    const caller = await CheckedClient.open(tight.api);
    const user = caller.as((await caller.register()).api_key);
    const keys: CheckedClient[] = [];
    for (let i = 0; i < 8; i++) {
      const json = { name: `key-${i}`, scopes: ['account:read'] };
      keys.push(caller.as((await user.expect(201, '/api/account/access-keys', { json })).api_key));
    }
    // Each address may send 20 at once and 2 a second, the account 100 and 10.
    const ask = () => [...keys, ...keys, ...keys, ...keys].map((key) => key.call('/api/account'));
    const byAccount = await eventually('the account is refused', async () =>
      (await Promise.all(ask())).find(({ body }) => /limit "account"/.test(body.detail)),
    );
    assert.deepEqual([byAccount.status, byAccount.headers.get('x-ratelimit-limit')], [429, '100']);
  });

  test('of registrations are per address, whatever X-Forwarded-For says', async () => {
    const caller = await CheckedClient.open(tight.api);
    const statuses: number[] = [];
    for (let i = 0; i < 6; i++) {
      const json = { username: `flood-${i}`, email: `flood-${i}@example.org`, password: 'long enough' };
      const headers = { 'x-forwarded-for': `10.1.1.${i}` };
      statuses.push((await caller.call('/api/register', { json, headers })).status);
    }
    assert.ok(statuses.includes(429), statuses.join());
    assert.ok(statuses.indexOf(429) <= 4, statuses.join());
  });

  test('believe X-Forwarded-For from a proxy that is trusted', async () => {
    const env = { CLOUDLET_TRUSTED_PROXIES: '127.0.0.1', CLOUDLET_RATE_REGISTRATIONS: '1' };
    const behind = await CloudProcess.start({ env });
    try {
      const caller = await CheckedClient.open(behind.api);
      const register = (i: number, address: string) => {
        const json = { username: `far-${i}`, email: `far-${i}@example.org`, password: 'long enough' };
        return caller.call('/api/register', { json, headers: { 'x-forwarded-for': address } });
      };
      assert.equal((await register(1, '10.0.0.1')).status, 201);
      assert.equal((await register(2, '10.0.0.2')).status, 201);
      assert.equal((await register(3, '10.0.0.1')).status, 429);
      // An invalid address is ignored: the caller is then the proxy itself.
      assert.equal((await register(4, 'anything')).status, 201);
      for (const [i, text] of ['other', 'anything', '10.0.0.300', '10.0.0.9:80'].entries()) {
        assert.equal((await register(5 + i, text)).status, 429, text);
      }
    } finally {
      await behind.stop();
    }
  });
});

describe('connections', () => {
  test('beyond the maximum get 503 with Retry-After, and capacity comes back', async () => {
    const sockets = await Promise.all(Array.from({ length: 75 }, () => openSocket(tight.api)));
    const texts = await Promise.all(sockets.map((socket) => readToEnd(socket, 1500)));
    const refused = texts.filter((text) => text !== '').map(parseResponse);
    assert.ok(refused.length >= 10, `${refused.length} refused`);
    for (const answer of refused) {
      client.declaration.checkProblem('a connection too many', answer);
      assert.deepEqual([answer.status, answer.body.code], [503, 'overloaded']);
    }
    for (const end = performance.now() + 10_000; ; await sleep(100)) {
      const status = await fetch(`${tight.api}/healthz`).then(
        (response) => response.status,
        () => 0,
      );
      if (status === 200) break;
      assert.ok(performance.now() < end, `${status}`);
    }
  });

  test('100 that send slowly hurt nobody, and are cut', async () => {
    const user = client.as((await client.register()).api_key);
    const head = `POST /api/buckets HTTP/1.1\r\nHost: localhost\r\nX-API-Key: ${user.key}\r\n`;
    const body = 'Content-Type: application/json\r\nContent-Length: 10000\r\n\r\n{';
    const slow = await Promise.all(Array.from({ length: 100 }, () => openSocket(cloud.api)));
    const ends = slow.map((socket) => readToEnd(socket, 30_000));
    for (const [i, socket] of slow.entries()) socket.write(i % 2 === 0 ? head + body : head.slice(0, 30));
    await user.expect(201, '/api/buckets', { json: { name: 'unhurt' } });
    for (let i = 0; i < 20; i++) assert.equal((await user.upload('unhurt', `${i}`, 'x')).status, 200);
    for (const text of await Promise.all(ends)) {
      const answer = parseResponse(text);
      client.declaration.checkProblem('a slow request', answer);
      assert.deepEqual([answer.status, answer.body.code], [408, 'request_timeout']);
    }
    await user.expect(200, '/api/buckets/unhurt');
  });
});

/** More than the buffers of a connection hold. */
const LARGE_BYTES = 24 * 2 ** 20;

/** Sends a request, and reads no further than the start of the response. */
async function pausedDownload(base: string, target: string, headers = '') {
  const socket = await openSocket(base);
  socket.write(
    `GET ${target} HTTP/1.1\r\nHost: ${new URL(base).host}\r\n${headers}Connection: close\r\n\r\n`,
  );
  const [first] = await once(socket, 'data');
  socket.pause();
  return { socket, bytes: first.length, start: String(first.subarray(0, 100)) };
}

/** A user with a large object, and the path of a link to the object. */
async function linkedObject(user: CheckedClient, bucket: string) {
  await user.expect(201, '/api/buckets', { json: { name: bucket } });
  const { object_id: id } = (await user.upload(bucket, 'large', Buffer.alloc(LARGE_BYTES, 'x'))).body;
  const { cdn_url: link } = await user.expect(200, `/api/storage/${id}/cdn-url`);
  return { id, link: new URL(link) };
}

describe('downloads', () => {
  test('may pause on either port, by REST, link and S3, for longer than a body may be slow', async () => {
    const user = client.as((await client.register()).api_key);
    const { id, link } = await linkedObject(user, 'paused');
    const s3 = await newS3(cloud.data, user);
    const { target } = s3.prepare('GET', '/paused/large', { presigned: 600 });
    const paused = await Promise.all([
      pausedDownload(cloud.api, `/api/storage/${id}/download`, `X-API-Key: ${user.key}\r\n`),
      pausedDownload(link.origin, link.pathname + link.search),
      pausedDownload(cloud.data, target),
    ]);
    // Twice the time allowed for a request body, and the checks are a second apart.
    await sleep(6000);
    for (const { socket, bytes, start } of paused) {
      assert.match(start, /^HTTP\/1\.1 200 /);
      const rest = await readToEnd(socket.resume(), 60_000);
      assert.ok(bytes + rest.length > LARGE_BYTES, `${rest.length} bytes more`);
    }
  });

  test('that one account leaves unread take neither the connections nor the download of another', async () => {
    const [ours, theirs] = [
      await linkedObject(caller.as(victim.api_key), 'ours'),
      await linkedObject(caller.as(attacker.api_key), 'theirs'),
    ];
    const path = ({ link }: { link: URL }) => link.pathname + link.search;
    const own = await pausedDownload(ours.link.origin, path(ours));
    const hogs: Socket[] = [];
    for (let i = 0; i < 59; i++) {
      const hog = await openSocket(theirs.link.origin);
      hog.pause();
      hog.write(`GET ${path(theirs)} HTTP/1.1\r\nHost: ${theirs.link.host}\r\n\r\n`);
      hogs.push(hog);
    }
    try {
      const status = () =>
        fetch(ours.link, { method: 'HEAD', headers: { connection: 'close' } }).then(
          (response) => response.status,
          () => 0,
        );
      await eventually('the victim is served, call after call', async () => {
        for (let i = 0; i < 20; i++) if ((await status()) !== 200) return false;
        return true;
      });
      const rest = await readToEnd(own.socket.resume(), 60_000);
      assert.ok(own.bytes + rest.length > LARGE_BYTES, `${rest.length} bytes more`);
    } finally {
      for (const hog of hogs) hog.destroy();
    }
  });
});

describe('Idempotency-Key', () => {
  test('that is empty, too long or not visible ASCII is refused', async () => {
    const user = client.as((await client.register()).api_key);
    for (const key of ['', 'a b', 'k'.repeat(256), 'é']) {
      const call = { json: { name: 'never' }, headers: { 'idempotency-key': key } };
      await user.refused(400, 'invalid_request', ['/api/buckets', call]);
    }
    assert.deepEqual(await user.expect(200, '/api/buckets'), []);
  });

  test('replays the first answer, to its account only', async () => {
    const user = client.as((await client.register()).api_key);
    const other = client.as((await client.register()).api_key);
    const call = { json: { name: 'once' }, headers: { 'idempotency-key': 'k'.repeat(255) } };
    const first = await user.call('/api/buckets', call);
    const again = await user.call('/api/buckets', call);
    assert.deepEqual([again.status, again.body], [201, first.body]);
    assert.equal(again.headers.get('idempotent-replayed'), 'true');
    assert.equal((await other.call('/api/buckets', call)).headers.get('idempotent-replayed'), null);
    const changed = { ...call, json: { name: 'twice' } };
    await user.refused(422, 'idempotency_mismatch', ['/api/buckets', changed]);
    assert.equal((await user.expect(200, '/api/buckets')).length, 1);
  });

  test('is not used up by a refusal', async () => {
    const user = client.as((await client.register()).api_key);
    const headers = { 'idempotency-key': 'correct-me' };
    await user.refused(400, 'invalid_bucket_name', ['/api/buckets', { json: { name: 'No' }, headers }]);
    await user.expect(201, '/api/buckets', { json: { name: 'yes' }, headers });
  });
});

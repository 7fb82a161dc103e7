/** Shared links: listing and revoking by their owners, and access for visitors without an account. */
import assert from 'node:assert/strict';
import { before, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Answer, Client } from '../harness/client.ts';
import { CloudProcess } from '../harness/cloud-process.ts';
import { sharedCloud } from '../harness/shared-cloud.ts';
import { assertProblem, bodyOf, newBucket, TIME } from './storage-kit.ts';

let cloud: CloudProcess;
let user: Client;
let bucket: string;
before(async () => {
  cloud = await sharedCloud();
  user = await new Client(cloud.api).newUser();
  bucket = await newBucket(user);
  await user.upload(bucket, 'album/a & b.txt', 'first');
  await user.upload(bucket, 'album/deep/<b>.txt', 'second');
  await user.upload(bucket, 'beside.txt', 'not shared');
  await user.upload(bucket, 'page.html', '<script>alert(1)</script>');
});

interface Share {
  readonly share_id: string;
  readonly url: string;
  readonly [member: string]: unknown;
}
const madeOf = ({ status, body }: Answer) => {
  assert.equal(status, 201, JSON.stringify(body));
  return body;
};
const share = async (name: string, more: object = {}, who = user): Promise<Share> =>
  madeOf(await who.call('/api/shares', { json: { bucket, name, ...more } }));
const list = async (who = user): Promise<Share[]> => bodyOf(await who.call('/api/shares'));

/** A call by someone who has only the address. */
function visit(
  url: string,
  init: { method?: string; headers?: Record<string, string> } = {},
): Promise<Answer> {
  const { origin, href } = new URL(url);
  return new Client(origin).call(href.slice(origin.length), init);
}

const basic = (password: string) => ({
  authorization: `Basic ${Buffer.from(`:${password}`).toString('base64')}`,
});

test('a link to a file gives its current bytes, shows in the list, and ends at once', async () => {
  const made = await share('album/a & b.txt');
  assert.equal(new URL(made.url).origin, cloud.data);
  assert.match(String(made.created_at), TIME);
  const first = await visit(made.url);
  assert.deepEqual([first.status, first.body], [200, 'first']);
  assert.equal(first.headers.get('cache-control'), 'private, no-store');
  await user.upload(bucket, 'album/a & b.txt', 'newer');
  assert.equal((await visit(made.url)).body, 'newer');
  await visit(made.url, { method: 'HEAD' });
  const [shown] = await list();
  assert.deepEqual(
    [shown?.share_id, shown?.downloads, shown?.state, shown?.has_password, shown?.expires_at, shown?.url],
    [made.share_id, 2, 'active', false, null, made.url],
  );
  await user.upload(bucket, 'album/a & b.txt', 'first');
  bodyOf(await user.call(`/api/shares/${made.share_id}`, { method: 'DELETE' }));
  assertProblem(await visit(made.url), 403, 'invalid_link');
  const page = await visit(made.url, { headers: { accept: 'text/html' } });
  assert.equal(page.status, 403);
  assert.match(String(page.body), /This link does not work/);
  assertProblem(
    await user.call(`/api/shares/${made.share_id}`, { method: 'DELETE' }),
    404,
    'share_not_found',
  );
});

test('a folder is a page without scripts, whose names are text, and one zip', async () => {
  const { url } = await share('album/');
  const page = await visit(url);
  assert.equal(page.headers.get('content-type'), 'text/html; charset=utf-8');
  assert.match(page.headers.get('content-security-policy') ?? '', /default-src 'none'.*script-src 'none'/);
  assert.match(String(page.body), /href="\?path=a\+%26\+b\.txt">a &amp; b\.txt</);
  assert.match(String(page.body), /href="\?path=deep%2F">deep\//);
  const deep = await visit(`${url}?path=deep%2F`);
  assert.match(String(deep.body), /&lt;b&gt;\.txt/);
  assert.doesNotMatch(String(deep.body), /<b>/);
  assert.equal((await visit(`${url}?path=deep%2F%3Cb%3E.txt`)).body, 'second');
  const zip = await visit(`${url}?path=&zip=1`);
  assert.equal(zip.headers.get('content-type'), 'application/zip');
  for (const path of ['../beside.txt', '/../beside.txt', 'beside.txt', '%2e%2e/beside.txt'])
    assertProblem(await visit(`${url}?path=${encodeURIComponent(path)}`), 404, 'object_not_found');
});

test('what a visitor opens never runs as a page of ours', async () => {
  const { headers } = await visit((await share('page.html')).url);
  assert.match(headers.get('content-disposition') ?? '', /^attachment/);
  assert.match(headers.get('content-security-policy') ?? '', /sandbox/);
});

test('a password is asked for, guesses are slowed, and it is stored nowhere in plain', async () => {
  const { url, share_id, ...shown } = await share('album/', { password: 'open sesame' });
  assert.doesNotMatch(JSON.stringify([shown, await list()]), /sesame/);
  const asked = await visit(url);
  assertProblem(asked, 401, 'share_password_required');
  assert.match(asked.headers.get('www-authenticate') ?? '', /^Basic realm="shr-/);
  assert.equal((await visit(url, { headers: basic('open sesame') })).status, 200);
  assert.equal((await visit(`${url}?path=a+%26+b.txt`, { headers: basic('open sesame') })).body, 'first');
  const statuses = new Set<number>();
  let last = asked;
  for (let guess = 0; guess < 40 && !statuses.has(429); guess++) {
    last = await visit(url, { headers: basic(`guess ${guess}`) });
    statuses.add(last.status);
  }
  assert.deepEqual([...statuses].sort(), [401, 429]);
  assert.match(last.body.detail, /Too many wrong passwords for this link/);
  assert.doesNotMatch(JSON.stringify(last.body), /login|account/);
});

test('downloads are counted and used up exactly, also by 20 at once and by ranges', async () => {
  const { url, share_id } = await share('album/a & b.txt', { max_downloads: 3 });
  const ranged = await visit(url, { headers: { range: 'bytes=1-2' } });
  assert.deepEqual([ranged.status, ranged.body], [200, 'first']);
  const statuses = await Promise.all(Array.from({ length: 20 }, async () => (await visit(url)).status));
  assert.deepEqual(statuses.filter((status) => status === 200).length, 2);
  const shown = (await list()).find((each) => each.share_id === share_id);
  assert.deepEqual([shown?.state, shown?.downloads], ['used_up', 3]);
});

test('a link ends at its time', async () => {
  const { url, share_id } = await share('beside.txt', { expires_in: 1 });
  assert.equal((await visit(url)).status, 200);
  await sleep(1100);
  assertProblem(await visit(url), 403, 'invalid_link');
  assert.equal((await list()).find((each) => each.share_id === share_id)?.state, 'expired');
});

test('a link of an access key shows no more than the key, and ends with it', async () => {
  const limits = { buckets: [{ name: bucket, prefix: 'album/' }] };
  const scopes = ['storage:read', 'storage:write'];
  const key = madeOf(
    await user.call('/api/account/access-keys', { json: { name: 'sharer', scopes, ...limits } }),
  );
  const limited = user.as(String(key.api_key));
  assertProblem(
    await limited.call('/api/shares', { json: { bucket, name: 'beside.txt' } }),
    403,
    'scope_required',
  );
  assertProblem(await limited.call('/api/shares', { json: { bucket, name: '' } }), 403, 'scope_required');
  const { url, share_id } = await share('album/', {}, limited);
  assert.deepEqual((await list(limited)).map((each) => each.share_id).includes(share_id), true);
  assert.ok((await list(limited)).every(({ name }) => String(name).startsWith('album/')));
  assert.equal((await visit(url)).status, 200);
  bodyOf(await user.call(`/api/account/access-keys/${key.id}`, { method: 'DELETE' }));
  assertProblem(await visit(url), 403, 'invalid_link');
});

test('a key that may only write makes no link, by which it would read', async () => {
  const json = { name: 'writer', scopes: ['storage:write'] };
  const writer = user.as(String(madeOf(await user.call('/api/account/access-keys', { json })).api_key));
  for (const name of ['beside.txt', 'album/', ''])
    assertProblem(await writer.call('/api/shares', { json: { bucket, name } }), 403, 'scope_required');
});

test('a folder is named as objects are', async () => {
  const asked = (name: string) => user.call('/api/shares', { json: { bucket, name } });
  for (const name of [`${'x'.repeat(1024)}/`, '\r\nx/'])
    assertProblem(await asked(name), 400, 'invalid_object_name');
  assertProblem(await asked('\ud800/'), 400, 'invalid_request');
});

test('a link of the owner goes on when the key is replaced, and goes with its bucket', async () => {
  const owner = await new Client(cloud.api).newUser();
  const own = await newBucket(owner);
  await owner.upload(own, 'x', 'there');
  const { url } = madeOf(await owner.call('/api/shares', { json: { bucket: own, name: 'x' } })) as Share;
  const { api_key } = bodyOf(await owner.call('/api/account/api-key', { method: 'POST', json: {} }));
  const after = owner.as(String(api_key));
  assert.equal((await visit(url)).body, 'there');
  bodyOf(await after.call(`/api/buckets/${own}?force=true`, { method: 'DELETE' }));
  assertProblem(await visit(url), 403, 'invalid_link');
  assert.deepEqual(await list(after), []);
});

test('a wrong signature, another id and bad wishes are refused', async () => {
  const { url, share_id } = await share('beside.txt');
  const signature = url.split('/').at(-2) ?? '';
  assertProblem(await visit(url.replace(signature, 'A'.repeat(22))), 403, 'invalid_link');
  assertProblem(await visit(url.replace(share_id, `shr-${'0'.repeat(26)}`)), 403, 'invalid_link');
  assertProblem(
    await user.call('/api/shares', { json: { bucket, name: 'gone.txt' } }),
    404,
    'object_not_found',
  );
  assertProblem(
    await user.call('/api/shares', { json: { bucket: 'no-such-bucket', name: '' } }),
    404,
    'bucket_not_found',
  );
  for (const bad of [{ max_downloads: 0 }, { expires_in: 0 }, { password: 'abc' }, { name: 7 }])
    assertProblem(
      await user.call('/api/shares', { json: { bucket, name: 'beside.txt', ...bad } }),
      400,
      'invalid_request',
    );
  const stranger = await new Client(cloud.api).newUser();
  assertProblem(await stranger.call(`/api/shares/${share_id}`, { method: 'DELETE' }), 404, 'share_not_found');
  assert.deepEqual(await list(stranger), []);
});

test('downloads of a link without a limit are stored when the cloud ends, at the latest', async () => {
  const own = await CloudProcess.start();
  try {
    const owner = await new Client(own.api).newUser();
    const name = await newBucket(owner);
    await owner.upload(name, 'x', 'there');
    const { url } = madeOf(await owner.call('/api/shares', { json: { bucket: name, name: 'x' } })) as Share;
    await visit(url);
    await visit(url);
    assert.equal((await list(owner))[0]?.downloads, 2);
    assert.equal(await own.end(), 0);
    await own.start();
    const [after] = await list(new Client(own.api, owner.key));
    assert.deepEqual([after?.downloads, after?.state], [2, 'active']);
    assert.match(String(after?.last_download_at), TIME);
  } finally {
    await own.stop();
  }
});

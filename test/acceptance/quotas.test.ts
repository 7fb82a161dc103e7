/** Plans and quotas: the limits and grants of accounts, and who sets them. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { statfsSync } from 'node:fs';
import { type IncomingMessage, request } from 'node:http';
import { after, describe, test } from 'node:test';
import { CheckedClient } from '../harness/checked-client.ts';
import type { Account, Answer } from '../harness/client.ts';
import { ADMIN_KEY, CloudProcess } from '../harness/cloud-process.ts';
import { newS3, textOf } from './s3-kit.ts';
import { BOUNDARY, fieldPart, filePart, rawForm } from './storage-kit.ts';

const cloud = await CloudProcess.start();
after(() => cloud.stop());
const client = await CheckedClient.open(cloud.api);
const admin = client.as(ADMIN_KEY);
const PLANS = '/api/admin/plans';

interface Member {
  readonly account: Account;
  readonly user: CheckedClient;
}

/** A new account with these terms. */
async function member(json: object): Promise<Member> {
  const account = await client.register();
  await admin.expect(200, `/api/admin/accounts/${account.id}`, { method: 'PATCH', json });
  return { account, user: client.as(account.api_key) };
}

const setTerms = ({ account }: Member, json: object) =>
  admin.expect(200, `/api/admin/accounts/${account.id}`, { method: 'PATCH', json });
const bucket = (name: string) => ({ json: { name } });
const quotasOf = async ({ user }: Member) => (await user.expect(200, '/api/billing/quotas')).quotas;

function count(answers: readonly Answer[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const { status, body } of answers) {
    const name = body.code ?? String(status);
    counts[name] = (counts[name] ?? 0) + 1;
  }
  return counts;
}

const MIB = 2 ** 20;

/** An upload whose bytes are sent one by one, and which ends on request. */
function openUpload({ base, key = '' }: CheckedClient, name: string) {
  const headers = { 'x-api-key': key, 'content-type': `multipart/form-data; boundary=${BOUNDARY}` };
  const upload = request(`${base}/api/buckets/slow/upload`, { method: 'POST', headers });
  // A refusal may close the connection while bytes are in transit.
  upload.on('error', () => {});
  upload.write(rawForm(fieldPart('name', name), filePart('')).replace(/\r\n--[^\n]*--\r\n$/, ''));
  const answer = once(upload, 'response').then(async ([response]: IncomingMessage[]) => {
    assert.ok(response);
    const text = Buffer.concat(await response.toArray()).toString();
    return { status: response.statusCode, body: JSON.parse(text) };
  });
  return {
    answer,
    async send(bytes: number) {
      for (let sent = 0; sent < bytes && !upload.destroyed && upload.writable; sent += MIB)
        if (!upload.write(Buffer.alloc(MIB)))
          await Promise.race([once(upload, 'drain'), once(upload, 'close'), answer]);
    },
    end: () => upload.end(`\r\n--${BOUNDARY}--\r\n`),
  };
}

describe('quotas', () => {
  test('who registers has limits, generous for a person, and an administrator may lift them', async () => {
    const one = await member({});
    const quotas: Record<string, { limit: number }> = await quotasOf(one);
    const limits = Object.fromEntries(Object.entries(quotas).map(([quota, { limit }]) => [quota, limit]));
    const [free] = await admin.expect(200, PLANS);
    assert.deepEqual([free.name, free.follows_host, free.quotas], ['free', true, limits]);
    const disk = statfsSync(cloud.dataDir);
    const { vms = 0, vcpus = 0, memory_mb = 0, disk_gb = 0, storage_bytes = 0 } = limits;
    assert.ok(
      storage_bytes >= 2 ** 30 &&
        storage_bytes <= Math.max(2 ** 30, ((disk.blocks - disk.bfree + disk.bavail) * disk.bsize) / 2),
    );
    assert.ok(vms >= 25 && vcpus >= 128 && memory_mb > 0 && disk_gb >= 3072, JSON.stringify(limits));
    assert.deepEqual([limits.buckets, limits.databases], [1000, 50]);
    const types: { startable: boolean; memory_mb: number }[] = await client.expect(
      200,
      '/api/instance-types',
    );
    const startable = types.filter((type) => type.startable);
    assert.ok(
      startable.every((type) => type.memory_mb <= memory_mb),
      'whatever this host can start, its first user can',
    );
    await setTerms(one, { quotas: { vms: 50 } });
    const create = { json: { name: 'm', instance_type: 't2.micro' } };
    const answers = await Promise.all(Array.from({ length: 60 }, () => one.user.call('/api/vms', create)));
    assert.deepEqual(count(answers), { 201: 50, quota_exceeded: 10 });
    await setTerms(one, { quotas: { vms: null } });
    await one.user.expect(201, '/api/vms', create);
  });

  test('50 buckets at once at a limit of 5 make exactly 5', async () => {
    const one = await member({ quotas: { buckets: 5 } });
    const names = Array.from({ length: 50 }, (_, i) => `bucket-${i}`);
    const answers = await Promise.all(names.map((name) => one.user.call('/api/buckets', bucket(name))));
    assert.deepEqual(count(answers), { 201: 5, quota_exceeded: 45 });
    assert.equal((await one.user.expect(200, '/api/buckets')).length, 5);
    assert.deepEqual((await quotasOf(one)).buckets, { limit: 5, used: 5 });
    const problem = await one.user.refused(403, 'quota_exceeded', ['/api/buckets', bucket('one-more')]);
    const { quota, limit, used, requested } = problem;
    assert.deepEqual([quota, limit, used, requested], ['buckets', 5, 5, 1]);
    const [{ name }] = await one.user.expect(200, '/api/buckets');
    await one.user.expect(200, `/api/buckets/${name}`, { method: 'DELETE' });
    await one.user.expect(201, '/api/buckets', bucket('one-more'));
  });

  test('50 machines at once at a limit of 5 make exactly 5; virtual CPUs count too', async () => {
    const one = await member({ quotas: { vms: 5 } });
    const vm = (name: string, instance_type = 't2.micro') => ({ json: { name, instance_type } });
    const names = Array.from({ length: 50 }, (_, i) => `m-${i}`);
    const answers = await Promise.all(names.map((name) => one.user.call('/api/vms', vm(name))));
    assert.deepEqual(count(answers), { 201: 5, quota_exceeded: 45 });
    assert.deepEqual((await quotasOf(one)).vms, { limit: 5, used: 5 });
    await setTerms(one, { quotas: { vcpus: 6 } });
    const problem = await one.user.refused(403, 'quota_exceeded', ['/api/vms', vm('two', 't2.medium')]);
    assert.deepEqual([problem.quota, problem.used, problem.requested], ['vcpus', 5, 2]);
    await one.user.expect(201, '/api/vms', vm('one'));
    assert.deepEqual((await quotasOf(one)).vcpus, { limit: 6, used: 6 });
  });

  test('disks of machines count at their full size, snapshots by what they hold, many at once too', async () => {
    const one = await member({ quotas: { disk_gb: 100 } });
    const make = (name: string) => one.user.call('/api/vms', { json: { name, instance_type: 't2.micro' } });
    const made = await Promise.all(['a', 'b', 'c', 'd', 'e', 'f'].map(make));
    assert.deepEqual(count(made), { 201: 3, quota_exceeded: 3 });
    assert.deepEqual((await quotasOf(one)).disk_gb, { limit: 100, used: 90 });
    const vms = (await one.user.expect(200, '/api/vms')).map(({ vm_id }: { vm_id: string }) => vm_id);
    const grow = (vm: string, disk_gb: number) =>
      one.user.call(`/api/vms/${vm}`, { method: 'PATCH', json: { disk_gb } });
    const grown = await Promise.all(vms.map((vm: string) => grow(vm, 39)));
    assert.deepEqual(count(grown), { 200: 1, quota_exceeded: 2 });
    const [{ body: refused }] = grown.filter(({ status }) => status === 403) as [Answer];
    assert.deepEqual(
      [refused.quota, refused.limit, refused.used, refused.requested],
      ['disk_gb', 100, 99, 9],
    );
    const snap = () => one.user.call(`/api/vms/${vms[0]}/snapshots`, { json: { name: 's' } });
    await setTerms(one, { quotas: { disk_gb: 99 } });
    assert.equal((await snap()).body.quota, 'disk_gb');
    await setTerms(one, { quotas: { disk_gb: 100 } });
    // A disk that never ran is still empty.
    assert.equal((await snap()).body.size, 0);
    assert.deepEqual((await quotasOf(one)).disk_gb, { limit: 100, used: 99 });
    // Existing resources continue to work above a lowered limit.
    await setTerms(one, { quotas: { disk_gb: 1 } });
    const [{ snapshot_id: id }] = await one.user.expect(200, `/api/vms/${vms[0]}/snapshots`);
    await one.user.expect(200, `/api/vms/${vms[0]}/snapshots/${id}/restore`, { method: 'POST' });
    const small = { method: 'PATCH', json: { instance_type: 't2.small', name: 'kept' } };
    assert.equal((await one.user.expect(200, `/api/vms/${vms[1]}`, small)).name, 'kept');
    await one.user.expect(200, `/api/vms/${vms[0]}/snapshots/${id}`, { method: 'DELETE' });
    await one.user.expect(200, `/api/vms/${vms[2]}/stop`, { method: 'POST' });
    await one.user.expect(200, `/api/vms/${vms[2]}`, { method: 'DELETE' });
    const { used } = (await quotasOf(one)).disk_gb;
    assert.ok(used === 60 || used === 69, `${used}`);
    assert.equal((await client.call('/api/billing/quotas')).status, 401);
  });

  test('bytes are refused beyond the limit, and nothing of them is kept', async () => {
    const one = await member({ quotas: { storage_bytes: 100_000 } });
    await one.user.expect(201, '/api/buckets', bucket('files'));
    const bytes = Buffer.alloc(30_000, 7);
    const names = Array.from({ length: 10 }, (_, i) => `f${i}`);
    const answers = await Promise.all(names.map((name) => one.user.upload('files', name, bytes)));
    assert.deepEqual(count(answers), { 200: 3, quota_exceeded: 7 });
    const { metadata_size } = await one.user.expect(200, '/api/buckets/files');
    assert.ok(metadata_size > 3 * 256 && metadata_size < 3 * 256 + 200, 'three names, types and rows');
    const used = 90_000 + metadata_size;
    assert.deepEqual((await quotasOf(one)).storage_bytes, { limit: 100_000, used });
    const kept = await one.user.expect(200, '/api/buckets/files/files');
    assert.equal(kept.length, 3);
    assert.deepEqual(await one.user.download(kept[0].id), bytes);
    await one.user.expect(200, `/api/storage/${kept[0].id}`, { method: 'DELETE' });
    assert.equal((await one.user.upload('files', 'again', bytes)).status, 200);
  });

  test('uploads that do not end have no more than the quota together, and hold up no others', async () => {
    const [one, victim] = [await member({ quotas: { storage_bytes: 40 * MIB } }), await member({})];
    for (const { user } of [one, victim]) await user.expect(201, '/api/buckets', bucket('slow'));
    const first = openUpload(one.user, 'first');
    await first.send(30 * MIB);
    const second = openUpload(one.user, 'second');
    const [answer] = await Promise.all([second.answer, second.send(30 * MIB)]);
    assert.deepEqual(
      [answer.status, answer.body.code, answer.body.quota],
      [403, 'quota_exceeded', 'storage_bytes'],
    );
    assert.equal((await victim.user.upload('slow', 'a', Buffer.alloc(20 * MIB))).status, 200);
    first.end();
    assert.equal((await first.answer).status, 200);
    // A complete quota replaces the stored one.
    const again = openUpload(one.user, 'first');
    await again.send(38 * MIB);
    again.end();
    assert.equal((await again.answer).status, 200);
    assert.equal((await one.user.upload('slow', 'more', Buffer.alloc(5 * MIB))).body.code, 'quota_exceeded');
  });

  test('empty objects with names and metadata are bytes too, on both doors, and leave nothing', async () => {
    const one = await member({ quotas: { storage_bytes: 50_000 } });
    const s3 = await newS3(cloud.data, one.user);
    await one.user.expect(201, '/api/buckets', { json: { name: 'facts', versioning: true } });
    const note = 'm'.repeat(1900);
    const byRest = Array.from({ length: 20 }, (_, i) =>
      one.user.upload('facts', `rest-${i}`, '', { metadata: JSON.stringify({ note }) }),
    );
    assert.ok((await Promise.all(byRest)).every(({ status }) => status === 200));
    const refusals = [];
    for (let i = 0; i < 10; i++) {
      const put = await s3.call('PUT', `/facts/s3-${i}`, { headers: { 'x-amz-meta-note': note } });
      if (put.status !== 200) refusals.push(`${put.status} ${textOf(put.text, 'Code')}`);
    }
    assert.ok(
      refusals.length >= 4 && refusals.every((refusal) => refusal === '403 QuotaExceeded'),
      `${refusals}`,
    );
    const refused = await one.user.upload('facts', 'more', '', { metadata: JSON.stringify({ note }) });
    assert.deepEqual(
      [refused.status, refused.body.code, refused.body.quota],
      [403, 'quota_exceeded', 'storage_bytes'],
    );
    const tag = (_: unknown, i: number) => `<Tag><Key>${i}</Key><Value>${'v'.repeat(250)}</Value></Tag>`;
    const tags = `<Tagging><TagSet>${Array.from({ length: 10 }, tag).join('')}</TagSet></Tagging>`;
    const tagged = await s3.call('PUT', '/facts/rest-0', { query: 'tagging', body: tags });
    assert.equal(tagged.status, 403);
    const { total_size, metadata_size } = await one.user.expect(200, '/api/buckets/facts');
    const { used } = (await quotasOf(one)).storage_bytes;
    assert.deepEqual([total_size, metadata_size], [0, used]);
    // Deletions are not refused, although their markers are stored.
    assert.equal((await s3.call('DELETE', '/facts/rest-0')).status, 204);
    await one.user.expect(200, '/api/buckets/facts?force=true', { method: 'DELETE' });
    assert.equal((await quotasOf(one)).storage_bytes.used, 0);
  });

  test('a lowered limit takes nothing away, and none can be had with another account', async () => {
    const [one, other] = [await member({}), await member({ quotas: { buckets: 0 } })];
    await one.user.expect(201, '/api/buckets', bucket('kept'));
    await setTerms(one, { quotas: { buckets: 0 } });
    await one.user.refused(403, 'quota_exceeded', ['/api/buckets', bucket('more')]);
    assert.equal((await one.user.upload('kept', 'a.txt', 'x')).status, 200);
    await other.user.refused(403, 'quota_exceeded', ['/api/buckets', bucket('theirs')]);
    await setTerms(one, { quotas: {} });
    await one.user.expect(201, '/api/buckets', bucket('more'));
  });
});

describe('plans', () => {
  test('limit and give credits once a month, also when Cloudlet is killed', async () => {
    const json = { name: 'pro', monthly_credits: 2.5, quotas: { buckets: 1 } };
    const plan = await admin.expect(201, PLANS, { json });
    assert.deepEqual([plan.name, plan.monthly_credits, plan.quotas], ['pro', 2.5, { buckets: 1 }]);
    const one = await member({ plan: 'pro' });
    const shown = await one.user.expect(200, '/api/account');
    assert.deepEqual([shown.plan, shown.credits], ['pro', 12.5]);
    await setTerms(one, { plan: 'pro' });
    await one.user.expect(201, '/api/buckets', bucket('first'));
    await one.user.refused(403, 'quota_exceeded', ['/api/buckets', bucket('second')]);
    await admin.expect(200, `${PLANS}/pro`, { method: 'PATCH', json: { quotas: { buckets: 2 } } });
    await one.user.expect(201, '/api/buckets', bucket('second'));
    await cloud.crash();
    await cloud.start();
    const back = await CheckedClient.open(cloud.api, one.account.api_key);
    await back.as(ADMIN_KEY).expect(200, `/api/admin/accounts/${one.account.id}`, {
      method: 'PATCH',
      json: { plan: 'pro' },
    });
    assert.equal((await back.expect(200, '/api/account')).credits, 12.5);
  });

  test('must be there, and stay while somebody has them', async () => {
    const boss = (await CheckedClient.open(cloud.api)).as(ADMIN_KEY);
    const fresh = await (await CheckedClient.open(cloud.api)).register();
    const terms = `/api/admin/accounts/${fresh.id}`;
    await boss.refused(404, 'plan_not_found', [terms, { method: 'PATCH', json: { plan: 'none' } }]);
    await boss.expect(201, PLANS, { json: { name: 'max' } });
    await boss.refused(409, 'plan_exists', [PLANS, { json: { name: 'max' } }]);
    for (const name of ['', 'Max', '1', 'a b', 'x'.repeat(33)])
      await boss.refused(400, 'invalid_request', [PLANS, { json: { name } }]);
    for (const quotas of [{ vms: -1 }, { vms: 1.5 }, { vms: '5' }, 5])
      await boss.refused(400, 'invalid_request', [PLANS, { json: { name: 'bad', quotas } }]);
    await boss.expect(200, terms, { method: 'PATCH', json: { plan: 'max' } });
    await boss.refused(409, 'plan_in_use', [`${PLANS}/max`, { method: 'DELETE' }]);
    await boss.refused(409, 'plan_in_use', [`${PLANS}/free`, { method: 'DELETE' }]);
    await boss.expect(200, terms, { method: 'PATCH', json: { plan: 'free' } });
    await boss.expect(200, `${PLANS}/max`, { method: 'DELETE' });
    await boss.refused(404, 'plan_not_found', [`${PLANS}/max`, { method: 'DELETE' }]);
    await boss.refused(404, 'account_not_found', ['/api/admin/accounts/0', { method: 'PATCH', json: {} }]);
    assert.ok(!(await boss.expect(200, PLANS)).some(({ name }: { name: string }) => name === 'max'));
  });
});

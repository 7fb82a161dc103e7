/**
 * The usage of databases: how it is measured, charged and limited, and what happens when their account is
 * blocked.
 */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import Database from 'better-sqlite3';
import { CheckedClient } from '../harness/checked-client.ts';
import type { Account } from '../harness/client.ts';
import { ADMIN_KEY, CloudProcess } from '../harness/cloud-process.ts';
import { eventually } from '../harness/waiting.ts';

const MIB = 2 ** 20;

let cloud: CloudProcess;
let anyone: CheckedClient;
before(async () => {
  cloud = await CloudProcess.start({ env: { CLOUDLET_CLOSED_ACCOUNT_DAYS: '0' } });
  anyone = await CheckedClient.open(cloud.api);
});
after(() => cloud.stop());

interface Owner {
  readonly account: Account;
  readonly user: CheckedClient;
}

async function newOwner(): Promise<Owner> {
  const account = await anyone.register();
  return { account, user: anyone.as(account.api_key) };
}

const ofAdmin = (account: Account, verb: string, json: object = {}) =>
  anyone.as(ADMIN_KEY).expect(200, `/api/admin/accounts/${account.id}/${verb}`, { json });

async function newDatabase({ user }: Owner, json: object = {}): Promise<string> {
  const { database_id } = await user.expect(201, '/api/databases', { json: { name: 'shop', ...json } });
  return `/api/databases/${database_id}`;
}

const write = (path: string, statement: string) =>
  [`${path}/query`, { json: { statement, read_only: false } }] as const;

/** Writes this many MiB of incompressible text. */
async function fill({ user }: Owner, path: string, mib: number): Promise<void> {
  await user.expect(200, ...write(path, 'CREATE TABLE IF NOT EXISTS t (x)'));
  for (let i = 0; i < mib; i++) {
    await user.expect(200, ...write(path, `INSERT INTO t VALUES (hex(randomblob(${MIB / 2})))`));
  }
}

interface Seen {
  readonly state: string;
  readonly size_bytes: number;
  readonly state_reason: { readonly code: string } | null;
}

const seenAs = ({ user }: Owner, path: string, is: (seen: Seen) => boolean): Promise<Seen> =>
  eventually('what was wanted of a database', async () => {
    const seen: Seen = await user.expect(200, path);
    return is(seen) ? seen : undefined;
  });

/** As stored on disk: nobody can read those of a blocked account over the API. */
function statesOf({ account }: Owner): string[] {
  const metadata = new Database(join(cloud.dataDir, 'metadata.db'), { readonly: true });
  try {
    return metadata
      .prepare('SELECT state FROM databases WHERE account_id = ?')
      .pluck()
      .all(account.id) as string[];
  } finally {
    metadata.close();
  }
}

test('what a database takes is measured, shown, and charged by the GB-hour', async () => {
  const owner = await newOwner();
  const path = await newDatabase(owner);
  await fill(owner, path, 3);
  const { size_bytes } = await seenAs(owner, path, (seen) => seen.size_bytes > 3 * MIB);
  const { items } = await owner.user.expect(200, '/api/billing/estimate');
  const [item] = items;
  assert.equal(items.length, 1);
  assert.deepEqual(
    [item.resource_type, item.meter, item.unit, item.name],
    ['database', 'database.storage', 'GB-hour', 'shop'],
  );
  assert.equal(`/api/databases/${item.resource_id}`, path);
  assert.ok(item.quantity > 3 / 1024 && item.quantity < 4 / 1024, `${item.quantity}, of ${size_bytes} bytes`);
  await owner.user.expect(200, path, { method: 'PATCH', json: { name: 'store' } });
  const used = await eventually('its use', async () => {
    const report = await owner.user.expect(200, '/api/billing/usage');
    // Usage counted before the renaming is shown with the new name as soon as more is counted.
    return report.items.find(
      (one: { name: string; quantity: number }) => one.quantity > 0 && one.name === 'store',
    );
  });
  assert.equal(used.meter, 'database.storage');
  await owner.user.expect(200, path, { method: 'DELETE' });
  assert.deepEqual((await owner.user.expect(200, '/api/billing/estimate')).items, []);
});

test('its metrics tell what it takes and does, with a history', async () => {
  const owner = await newOwner();
  const path = await newDatabase(owner);
  await fill(owner, path, 1);
  await seenAs(owner, path, (seen) => seen.size_bytes > MIB);
  const now = await owner.user.expect(200, `${path}/metrics`);
  assert.ok(now.size_bytes > MIB);
  assert.ok(now.statements >= 2, `${now.statements} statements`);
  assert.equal(now.state, 'ready');
  assert.equal(now.history, undefined);
  const { history } = await eventually('a history', async () => {
    const metrics = await owner.user.expect(200, `${path}/metrics?step=5`);
    return metrics.history.length > 0 && metrics;
  });
  assert.ok(history.at(-1).size_bytes > MIB);
  const invalid = `${path}/metrics?from=2026-01-02&to=2026-01-01`;
  await owner.user.refused(400, 'invalid_request', [invalid, {}]);
  const stranger = await newOwner();
  await stranger.user.refused(404, 'database_not_found', [`${path}/metrics`, {}]);
});

test('one over its size limit is read-only until its limit is raised', async () => {
  const owner = await newOwner();
  const path = await newDatabase(owner, { size_limit_mb: 16 });
  await fill(owner, path, 3);
  await seenAs(owner, path, (seen) => seen.size_bytes > 3 * MIB);
  await owner.user.expect(200, path, { method: 'PATCH', json: { size_limit_mb: 2 } });
  const { state_reason } = await seenAs(owner, path, (seen) => seen.state === 'read_only');
  assert.equal(state_reason?.code, 'size_limit_reached');
  const answer = await owner.user.call(...write(path, `INSERT INTO t VALUES (hex(randomblob(${MIB})))`));
  assert.ok(answer.status >= 400, 'it grew');
  const count = { json: { statement: 'SELECT count(*) FROM t' } };
  assert.deepEqual((await owner.user.expect(200, `${path}/query`, count)).rows, [[3]]);
  await owner.user.expect(200, path, { method: 'PATCH', json: { size_limit_mb: 16 } });
  const { state_reason: none } = await seenAs(owner, path, (seen) => seen.state === 'ready');
  assert.equal(none, null);
  await fill(owner, path, 1);
});

describe('with their account', () => {
  test('databases are suspended, and come back as they were', async () => {
    const owner = await newOwner();
    const path = await newDatabase(owner);
    await fill(owner, path, 1);
    await ofAdmin(owner.account, 'suspend', { reason: 'a test' });
    await eventually('a suspended database', () => statesOf(owner).join() === 'suspended');
    await ofAdmin(owner.account, 'resume');
    await seenAs(owner, path, (seen) => seen.state === 'ready' && seen.state_reason === null);
    await fill(owner, path, 1);
  });

  test('databases of a closed account are deleted, the kept ones too', async () => {
    const owner = await newOwner();
    const path = await newDatabase(owner);
    await newDatabase(owner, { name: 'other' });
    await owner.user.expect(200, path, { method: 'DELETE' });
    await owner.user.expect(200, '/api/account', { method: 'DELETE', json: { password: 'correct horse' } });
    await eventually('nothing of it', () => statesOf(owner).length === 0);
  });

  test('none is made without a credit left', async () => {
    const owner = await newOwner();
    await ofAdmin(owner.account, 'credits', { amount: -10, reason: 'a test' });
    const wanted = { json: { name: 'shop' } };
    await owner.user.refused(402, 'insufficient_credits', ['/api/databases', wanted]);
  });
});

test('50 creations at once at a limit of 5 make exactly 5', async () => {
  const owner = await newOwner();
  const terms = { method: 'PATCH', json: { quotas: { databases: 5 } } };
  await anyone.as(ADMIN_KEY).expect(200, `/api/admin/accounts/${owner.account.id}`, terms);
  const names = Array.from({ length: 50 }, (_, i) => ({ json: { name: `n${i}` } }));
  const answers = await Promise.all(names.map((wanted) => owner.user.call('/api/databases', wanted)));
  const made = answers.filter(({ status }) => status === 201);
  assert.equal(made.length, 5);
  assert.ok(answers.every(({ status, body }) => status === 201 || body.code === 'quota_exceeded'));
  assert.equal((await owner.user.expect(200, '/api/databases')).length, 5);
  assert.deepEqual((await owner.user.expect(200, '/api/billing/quotas')).quotas.databases, {
    limit: 5,
    used: 5,
  });
});

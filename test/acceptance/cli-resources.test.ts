/** Machines, databases, buckets, keys and arbitrary operations, with the client. */
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { CheckedClient } from '../harness/checked-client.ts';
import { CloudProcess } from '../harness/cloud-process.ts';
import { eventually } from '../harness/waiting.ts';
import { CliUser } from './cli-kit.ts';
import { cannotRunGuests, newVm } from './vms-kit.ts';

const cloud = await CloudProcess.start();
const user = await CliUser.signedIn(cloud.api);
const api = (await CheckedClient.open(cloud.api)).as(user.key);
after(async () => {
  user.remove();
  await cloud.stop();
});
const json = async (args: readonly string[]) => JSON.parse(await user.ok([...args, '--json']));

test('databases are made, listed, shown and deleted, and their password is shown on request', async () => {
  const uri = await user.ok(['db', 'create', 'shop', '--engine', 'sqlite', '--size-limit', '50']);
  assert.match(uri, /^http:.*authToken=\S+\n$/);
  assert.equal((await json(['db', 'show', 'shop'])).size_limit_mb, 50);
  await user.fails(1, ['db', 'create', 'other', '--engine', 'oracle']);
  await user.fails(5, ['db', 'create', 'other', '--from', 'none']);
  assert.match(await user.ok(['db', 'ls']), /^NAME +ENGINE +STATE +SIZE +ID\nshop +sqlite /);
  const { database_id: id } = await json(['db', 'show', 'shop']);
  assert.equal((await json(['db', 'show', id])).name, 'shop');
  assert.match(await user.ok(['db', 'url', 'shop']), /\*\*\*/);
  assert.doesNotMatch(await user.ok(['db', 'url', 'shop', '--show']), /\*\*\*/);
  await user.fails(2, ['db', 'rm', 'shop']);
  await user.ok(['db', 'rm', 'shop', '--yes']);
  assert.match(await user.ok(['db', 'points', 'shop']), /^POINT +CREATED|^$/);
  const nowhere = { CLOUDLET_URL: 'http://127.0.0.1:9' };
  await user.fails(8, ['db', 'points', 'shop'], { env: { ...nowhere, CLOUDLET_API_KEY: user.key } });
  assert.match(await user.fails(5, ['db', 'show', 'shop']), /no database shop/);
  assert.match(await user.ok(['db', 'undelete', 'shop']), /^shop is /);
  assert.equal(await user.ok(['db', 'url', 'shop', '--show']), uri);
  assert.notEqual(await user.ok(['db', 'rotate', 'shop']), uri);
  const copied = await user.ok(['db', 'create', 'copy', '--from', 'shop']);
  assert.notEqual(copied, uri);
  assert.equal((await json(['db', 'show', 'copy'])).name, 'copy');
});

test('what is spent, the spend cap, and prices before something is created', async () => {
  assert.match(
    await user.ok(['billing']),
    /^\d.* credits to spend\n.*\n0 credits spent in \d{4}-\d\d, 0 expected by its end\nno spend cap\n$/,
  );
  const cap = /^spend cap 5 credits per month: 0 %\n0 credits spent in .*\nwarned at 30, 60 %\n$/;
  assert.match(await user.ok(['billing', 'cap', '5', '--warn', '60,30']), cap);
  assert.match(await user.ok(['billing', 'cap']), cap);
  assert.equal((await json(['billing', 'cap', '--warn', 'none'])).warn_percent.length, 0);
  assert.match(await user.ok(['billing', 'cap', 'none']), /^no spend cap\n/);
  await user.fails(2, ['billing', 'cap', 'much']);
  assert.match(
    await user.ok(['billing', 'price', 'vm', 't2.micro']),
    /^8\.468 credits per month \(0\.0116 per hour\)\nyour 10 credits last 35 days with this resource\n$/,
  );
  assert.match(await user.ok(['billing', 'price', 'bucket', '--size', '10']), /^0 credits per month/);
  await user.fails(1, ['billing', 'price', 'vm', 'huge']);
  await user.fails(2, ['billing', 'price', 'boat']);
  assert.match(await user.ok(['billing', 'resources']), /^TYPE +NAME +COST +ID\n$|^$/);
});

test('plans of statements are shown as a tree', async () => {
  await user.ok(['db', 'create', 'planned']);
  const plan = await user.ok(['db', 'explain', 'planned', 'SELECT 1 UNION SELECT 2']);
  assert.match(plan, /^MERGE \(UNION\)\n {2}LEFT\n {4}SCAN CONSTANT ROW\n/);
  const { measured } = await json(['db', 'explain', 'planned', 'SELECT 1', '--measure']);
  assert.equal(measured, false);
  await user.fails(1, ['db', 'explain', 'planned', 'SELECT FROM']);
});

test('queries that run are listed and cancelled', async () => {
  await user.ok(['db', 'create', 'busy']);
  const { database_id: id } = await json(['db', 'show', 'busy']);
  const statement = `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1e12)
    SELECT count(*) FROM n`;
  const call = { json: { statement, query_id: 'long' } };
  const answer = api.refused(409, 'operation_cancelled', [`/api/databases/${id}/query`, call]);
  await eventually('it is listed', async () =>
    /^long +\S+ \S+ +WITH RECURSIVE /m.test(await user.ok(['db', 'queries', 'busy'])),
  );
  assert.equal(await user.ok(['db', 'cancel', 'busy', 'long']), 'long is cancelled\n');
  await answer;
  await user.fails(5, ['db', 'cancel', 'busy', 'long']);
});

test('machines are started, stopped and deleted', { skip: cannotRunGuests() }, async () => {
  const { vm_id: id, name } = await api.expect(200, await newVm(api));
  assert.match(await user.ok(['vm', 'ls']), new RegExp(`^${name} .*${id}$`, 'm'));
  await user.ok(['vm', 'stop', name, '--force']);
  assert.equal(await user.ok(['vm', 'start', name]), `${name} is running\n`);
  await user.fails(6, ['vm', 'rm', name, '--yes']);
  await user.ok(['vm', 'stop', id, '--force']);
  const size = ['--type', 't2.small', '--disk', '60'];
  const changed = await user.ok(['vm', 'change', id, '--name', 'shop', '--tags', 'a,b', ...size]);
  assert.equal(changed, 'shop is stopped: t2.small, disk 60 GB\n');
  await user.fails(2, ['vm', 'change', id]);
  await user.fails(2, ['vm', 'change', id, '--disk', '60GB']);
  await user.fails(1, ['vm', 'change', id, '--disk', '59']);
  assert.match(await user.ok(['vm', 'snapshot', 'shop', 'a b']), /^snapshot a b of shop created \(/);
  assert.match(await user.ok(['vm', 'snapshots', 'shop']), /^NAME +SIZE +CREATED +ID\na b .* snp-/);
  await user.fails(2, ['vm', 'revert', 'shop', 'a b']);
  assert.equal(
    await user.ok(['vm', 'revert', 'shop', 'a b', '--yes']),
    'the disk of shop was restored from a b\n',
  );
  assert.match(await user.fails(5, ['vm', 'revert', 'shop', 'b', '--yes']), /no snapshot b/);
  assert.equal(await user.ok(['vm', 'snapshot-rm', 'shop', 'a b', '--yes']), 'a b is deleted\n');
  assert.equal(await user.ok(['vm', 'rm', id, '--yes']), 'shop is deleted\n');
});

test('SSH keys of the account are kept by name, and go into a new machine', async () => {
  const line = `ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI${'A'.repeat(43)} ada@laptop`;
  writeFileSync(join(user.home, 'laptop.pub'), `${line}\n`);
  assert.match(await user.ok(['ssh-key', 'add', 'laptop', 'laptop.pub']), /^laptop is stored: SHA256:/);
  await user.fails(6, ['ssh-key', 'add', 'laptop', 'laptop.pub']);
  assert.match(await user.ok(['ssh-key', 'ls']), /^NAME +FINGERPRINT +CREATED\nlaptop +SHA256:/);
  const { vm_id } = await json(['vm', 'create', 'keyed', '--ssh-key', 'laptop']);
  await user.fails(1, ['vm', 'create', 'other', '--ssh-key', 'none']);
  await user.fails(2, ['ssh-key', 'rm', 'laptop']);
  assert.equal(await user.ok(['ssh-key', 'rm', 'laptop', '--yes']), 'laptop is deleted\n');
  await user.fails(5, ['ssh-key', 'rm', 'laptop', '--yes']);
  await user.ok(['vm', 'stop', vm_id]);
  await user.ok(['vm', 'rm', vm_id, '--yes']);
});

test('buckets, keys and usage', async () => {
  await user.ok(['mb', 'things']);
  await user.ok(['bucket', 'versioning', 'things', 'on']);
  assert.equal((await json(['bucket', 'show', 's3://things'])).versioning, true);
  const settings = ['bucket', 'settings', 'things'];
  assert.equal(await user.ok(settings), '');
  assert.equal(await user.ok([...settings, 'tags', '{"team":"photos"}']), 'tags  {"team":"photos"}\n');
  assert.equal((await json([...settings, 'ownership', 'ObjectWriter'])).ownership, 'ObjectWriter');
  assert.equal((await json([...settings, 'tags', 'null'])).tags, null);
  const rules = join(user.home, 'rules.json');
  const statement = {
    Effect: 'Deny',
    Principal: '*',
    Action: 's3:PutObject',
    Resource: 'arn:aws:s3:::things/x',
  };
  const policy = { Version: '2012-10-17', Statement: [statement] };
  writeFileSync(rules, `\ufeff${JSON.stringify(policy, null, 2).replaceAll('\n', '\r\n')}`);
  assert.deepEqual((await json([...settings, 'policy', `@${rules}`])).policy, policy);
  writeFileSync(rules, Buffer.from(`\ufeff${JSON.stringify(policy)}`, 'utf16le'));
  assert.match(await user.fails(2, [...settings, 'policy', `@${rules}`]), /UTF-16.*save it as UTF-8/s);
  assert.match(await user.fails(2, [...settings, 'policy', '@/nowhere']), /not readable/);
  assert.equal((await json([...settings, 'policy', 'null'])).policy, null);
  assert.match(await user.fails(2, [...settings, 'colour', 'red']), /must be one of acl, cors, /);
  await user.ok(['cp', '-', 's3://things/a'], { input: 'a' });
  await user.ok(['bucket', 'rm', 'things', '--yes']);
  await user.fails(2, ['key', 'create', 'ci']);
  // The client's own key expires.
  assert.match(await user.fails(4, ['key', 'create', 'ci', '--scope', '*']), /expire later/);
  const day = new Date(Date.now() + 2 * 86_400_000).toISOString().slice(0, 10);
  const limits = ['--scope', 'storage:read', '--bucket', 's3://logs/2027/', '--expires', day];
  const { id, api_key, secret_access_key, ...key } = await json(['key', 'create', 'ci', ...limits]);
  assert.deepEqual(key.buckets, [{ name: 'logs', prefix: '2027/' }]);
  for (const [place, prefix] of [
    ['logs/2027', '2027/'],
    ['s3://logs/2027-**', '2027-'],
    ['logs', ''],
  ] as const) {
    const made = await json([
      'key',
      'create',
      'of',
      '--scope',
      'storage:read',
      '--expires',
      day,
      '--bucket',
      place,
    ]);
    assert.deepEqual(made.buckets, [{ name: 'logs', prefix }]);
    await user.ok(['key', 'rm', made.id, '-y']);
  }
  assert.equal(key.expires_at.slice(0, 10), day);
  assert.ok(secret_access_key.length > 20);
  await user.fails(4, ['usage'], { env: { CLOUDLET_URL: cloud.api, CLOUDLET_API_KEY: api_key } });
  assert.match(
    await user.ok(['key', 'create', 'all', '--scope', 'storage:*', '--expires', day]),
    /^api key +\S+\naccess key id /,
  );
  assert.match(await user.ok(['key', 'ls']), new RegExp(`^ci .*${id}$`, 'm'));
  assert.equal(await user.ok(['key', 'rm', 'ci', '-y']), 'ci is revoked\n');
  assert.match(await user.ok(['usage']), /total \S+ credits; balance /);
  await user.fails(5, ['ops', 'op-none']);
});

test('any operation is called by its path or its name', async () => {
  const made = await user.ok(['api', 'POST', '/api/buckets', '-d', '{"name":"made"}']);
  assert.equal(JSON.parse(made).name, 'made');
  assert.equal(JSON.parse(await user.ok(['api', 'getBucket', 'made'])).name, 'made');
  const changed = await user.ok(['api', 'changeBucket', 'made', '-d', '-'], { input: '{"versioning":true}' });
  assert.equal(JSON.parse(changed).versioning, true);
  for (const [name, text] of [
    ['marked.json', '\ufeff{"versioning":false}\r\n'],
    ['plain.json', '{"versioning":true}'],
  ] as const) {
    writeFileSync(join(user.home, name), text);
    const from = await user.ok(['api', 'changeBucket', 'made', '-d', `@${join(user.home, name)}`]);
    assert.equal(JSON.parse(from).versioning, name === 'plain.json');
  }
  await user.fails(2, ['api', 'getBucket']);
  await user.fails(2, ['api', 'GET', '//elsewhere.example/api']);
  await user.fails(2, ['api', 'fly']);
  // A body given as a plain word would not be sent.
  assert.match(
    await user.fails(2, ['api', 'PATCH', '/api/buckets/made', '{"versioning":false}']),
    /-d \(--data\)/,
  );
});

test('each kind of refusal has its exit code', async () => {
  const json = { name: 'reader', scopes: ['storage:read'] };
  const { api_key: key } = await api.expect(201, '/api/account/access-keys', { json });
  const env = { CLOUDLET_URL: cloud.api, CLOUDLET_API_KEY: key };
  await user.fails(4, ['api', 'GET', '/api/account'], { env });
  await user.fails(3, ['api', 'GET', '/api/account'], { env: { ...env, CLOUDLET_API_KEY: 'clk_none' } });
  await user.fails(5, ['api', 'GET', '/api/vms/vm-none']);
  await user.fails(8, ['usage'], { env: { ...env, CLOUDLET_URL: 'http://127.0.0.1:9' } });
  const slow = ['cat', 's3://made/none', '--timeout', '1'];
  const nowhere = { CLOUDLET_S3_URL: 'http://127.0.0.1:9', CLOUDLET_ACCESS_KEY_ID: 'a' };
  await user.fails(124, slow, { env: { ...env, ...nowhere, CLOUDLET_SECRET_ACCESS_KEY: 'b' } });
});

test('no secret is in what is said', async () => {
  const { stdout, stderr } = await user.run(['cat', 's3://made/none']);
  const said = [stdout, stderr, cloud.output, await user.ok(['profile', 'ls', '--json'])].join('\n');
  assert.doesNotMatch(said, /clk_\w{20}/);
});

/** Machines, databases, buckets, keys and any operation, through the client. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { CheckedClient } from '../harness/checked-client.ts';
import { CloudProcess } from '../harness/cloud-process.ts';
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

test('databases are listed, shown and deleted, and their password is shown on request', async () => {
  await api.expect(201, '/api/databases', { json: { name: 'shop', engine: 'sqlite' } });
  assert.match(await user.ok(['db', 'ls']), /^NAME +ENGINE +STATE +SIZE +ID\nshop +sqlite /);
  const { database_id: id } = await json(['db', 'show', 'shop']);
  assert.equal((await json(['db', 'show', id])).name, 'shop');
  assert.match(await user.ok(['db', 'url', 'shop']), /\*\*\*/);
  assert.doesNotMatch(await user.ok(['db', 'url', 'shop', '--show']), /\*\*\*/);
  await user.fails(2, ['db', 'rm', 'shop']);
  await user.ok(['db', 'rm', 'shop', '--yes']);
  assert.match(await user.fails(5, ['db', 'show', 'shop']), /there is no shop/);
});

test('machines are started, stopped and deleted', { skip: cannotRunGuests() }, async () => {
  const { vm_id: id, name } = await api.expect(200, await newVm(api));
  assert.match(await user.ok(['vm', 'ls']), new RegExp(`^${name} .*${id}$`, 'm'));
  await user.ok(['vm', 'stop', name, '--force']);
  assert.equal(await user.ok(['vm', 'start', name]), `${name} is running\n`);
  await user.fails(6, ['vm', 'rm', name, '--yes']);
  await user.ok(['vm', 'stop', id, '--force']);
  assert.equal(await user.ok(['vm', 'rm', id, '--yes']), `${name} is deleted\n`);
});

test('buckets, keys and usage', async () => {
  await user.ok(['mb', 'things']);
  await user.ok(['bucket', 'versioning', 'things', 'on']);
  assert.equal((await json(['bucket', 'show', 's3://things'])).versioning, true);
  await user.ok(['cp', '-', 's3://things/a'], { input: 'a' });
  await user.ok(['bucket', 'rm', 'things', '--yes']);
  const fields = { name: 'ci', scopes: ['*'], expires_in: 3600 };
  const { id } = await api.expect(201, '/api/account/access-keys', { json: fields });
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
  await user.fails(2, ['api', 'getBucket']);
  await user.fails(2, ['api', 'GET', '//elsewhere.example/api']);
  await user.fails(2, ['api', 'fly']);
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

/** Changes are reported immediately, to the owner of the resource only. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { WebSocket } from 'ws';
import { CheckedClient } from '../harness/checked-client.ts';
import { sessionOf } from '../harness/client.ts';
import { ADMIN_KEY, CloudProcess } from '../harness/cloud-process.ts';
import { eventually } from '../harness/waiting.ts';

const MOST = 4;
let cloud: CloudProcess;
let anyone: CheckedClient;
let admin: CheckedClient;
before(async () => {
  cloud = await CloudProcess.start({ env: { CLOUDLET_MAX_UPDATE_STREAMS: String(MOST) } });
  anyone = await CheckedClient.open(cloud.api);
  admin = anyone.as(ADMIN_KEY);
});
after(() => cloud?.stop());

const ADDRESS = '/api/updates';
const POST = { method: 'POST' };

interface Heard {
  readonly socket: WebSocket;
  /** `vm vm-…`, in the order of arrival. */
  readonly things: string[];
  readonly closed: Promise<number>;
}

/** An open connection, after its first message. */
async function listen(headers: Readonly<Record<string, string>>, path = ADDRESS): Promise<Heard> {
  const socket = new WebSocket(cloud.api.replace('http', 'ws') + path, { headers });
  const things: string[] = [];
  const closed = new Promise<number>((resolve) => socket.on('close', resolve));
  await new Promise((resolve, reject) => {
    socket.on('error', reject);
    socket.on('unexpected-response', (_, { statusCode }) => reject(new Error(String(statusCode))));
    socket.on('message', (data, isBinary) => {
      assert.equal(isBinary, false);
      const message = JSON.parse(String(data));
      if (message.type === 'sync') resolve(undefined);
      for (const { kind, id } of message.things ?? []) things.push(`${kind} ${id}`);
    });
  });
  return { socket, things, closed };
}

const byKey = (key: string | undefined) => listen({ 'x-api-key': key ?? '' });
const newUser = async () => anyone.as((await anyone.register()).api_key);
const hears = (heard: Heard, thing: string) =>
  eventually(thing, async () => heard.things.includes(thing) || null);
const newDatabase = async (user: CheckedClient): Promise<string> =>
  (await user.expect(201, '/api/databases', { json: { name: 'd' } })).database_id;

test('machines, databases, operations and the balance are reported to their owner alone', async () => {
  const [owner, stranger] = [await newUser(), await newUser()];
  const [own, others] = [await byKey(owner.key), await byKey(stranger.key)];
  const json = { name: 'm', instance_type: 't2.micro' };
  const { vm_id } = await owner.expect(201, '/api/vms', { json });
  await hears(own, `vm ${vm_id}`);
  const database = await newDatabase(owner);
  await hears(own, `database ${database}`);
  const later = { json: { name: 'later' }, headers: { prefer: 'respond-async' } };
  const { operation_id } = await owner.expect(202, '/api/buckets', later);
  await hears(own, `operation ${operation_id}`);
  const { id } = await owner.expect(200, '/api/account');
  await admin.expect(200, `/api/admin/accounts/${id}/credits`, { json: { amount: 1, reason: 'test' } });
  await hears(own, `balance ${id}`);

  // Events for the other account would have arrived before this one.
  const foreign = await newDatabase(stranger);
  await hears(others, `database ${foreign}`);
  assert.deepEqual([...new Set(others.things)], [`database ${foreign}`]);
  assert.ok(!own.things.includes(`database ${foreign}`));

  own.things.length = 0;
  await owner.expect(200, `/api/databases/${database}`, { method: 'DELETE' });
  await hears(own, `database ${database}`);
});

test('a key is told only of what it may read, and recovery points are for administrators', async () => {
  const owner = await newUser();
  const scoped = async (scopes: string[]) => {
    const json = { name: 'k', scopes };
    return byKey((await owner.expect(201, '/api/account/access-keys', { json })).api_key);
  };
  const [all, databases, files] = [
    await byKey(owner.key),
    await scoped(['databases:read']),
    await scoped(['storage:*']),
  ];
  const chief = await byKey(ADMIN_KEY);
  const { point_id } = await admin.expect(201, '/api/disaster-recovery/points?wait=60', POST);
  await hears(chief, `recovery_point ${point_id}`);
  const { id } = await owner.expect(200, '/api/account');
  await admin.expect(200, `/api/admin/accounts/${id}/credits`, { json: { amount: 1, reason: 'test' } });
  await hears(all, `balance ${id}`);
  const database = await newDatabase(owner);
  for (const heard of [all, databases]) await hears(heard, `database ${database}`);
  assert.deepEqual([...new Set(databases.things)], [`database ${database}`]);
  assert.deepEqual(files.things, []);
  assert.ok(!all.things.some((thing) => thing.startsWith('recovery_point')));
});

test('it ends with the key or session that opened it', async () => {
  const account = await anyone.register();
  const owner = anyone.as(account.api_key);
  const json = { username: account.username, password: 'correct horse battery' };
  const headers = sessionOf(await anyone.call('/api/login', { json }));
  const { url } = await anyone.expect(201, '/api/account/tickets', { json: { path: ADDRESS }, headers });
  const byTicket = { origin: cloud.api };
  const [session, key] = [await listen(byTicket, url), await byKey(owner.key)];
  await assert.rejects(listen(byTicket, url), /401/, 'a ticket opens one');
  await owner.expect(200, '/api/account/sessions', { method: 'DELETE' });
  assert.equal(await session.closed, 1008);
  assert.equal(key.socket.readyState, WebSocket.OPEN);
  await owner.expect(200, '/api/account/api-key', { json: { overlap_seconds: 0 } });
  assert.equal(await key.closed, 1008);
});

test('no other site listens, nobody without a key, and an account not without end', async () => {
  const account = await anyone.register();
  const json = { username: account.username, password: 'correct horse battery' };
  const headers = sessionOf(await anyone.call('/api/login', { json }));
  await assert.rejects(listen({}), /401/);
  await assert.rejects(listen({ cookie: headers.cookie, origin: cloud.api }), /401/);
  await assert.rejects(listen(headers), /403/);
  await assert.rejects(listen({ ...headers, origin: 'https://evil.example' }), /403/);
  await anyone.as(account.api_key).refused(426, 'upgrade_required', [ADDRESS]);
  const open: Heard[] = [];
  for (let count = 0; count < MOST; count++) open.push(await byKey(account.api_key));
  await assert.rejects(byKey(account.api_key), /503/);
  await byKey((await newUser()).key);
  open[0]?.socket.close();
  await eventually('a free slot', () => byKey(account.api_key).catch(() => null));
});

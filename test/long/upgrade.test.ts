/**
 * Directories of every earlier version open with this one: each is created and filled by the code of its
 * commit, then all of its data is read and written. As root, where databases and machines have separate
 * users, and as an ordinary user.
 */
import assert from 'node:assert/strict';
import { chmodSync, chownSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { CheckedClient } from '../harness/checked-client.ts';
import { type Account, type Call, Client, type SessionHeaders, sessionOf } from '../harness/client.ts';
import { ADMIN_KEY, CloudProcess, NO_OTHER_READERS } from '../harness/cloud-process.ts';
import { eventually } from '../harness/waiting.ts';
import { earlierCode, LANDINGS, notInHistory, withoutUnknownSettings } from './earlier-code.ts';
import { keepMetadata } from './kept-metadata.ts';

const PASSWORD = 'correct horse battery';
const NOBODY = 65_534;
const AS_NOBODY = ['setpriv', `--reuid=${NOBODY}`, `--regid=${NOBODY}`, '--clear-groups', '--inh-caps=-all'];
const ENGINES = ['sqlite', 'postgresql', 'mysql', 'mongodb'] as const;
/** A small object is kept in the metadata, a large one in its own file. */
const TEXTS = ['the first note\n', `${'the second note\n'.repeat(4000)}`];
const POINTS = '/api/disaster-recovery/points';
const POST = { method: 'POST' };
/** If set, stores the metadata of each version, for the tests of migrations; once for a new one. */
const KEEPS = process.env.KEEP_METADATA === '1';

/** Resources created with the earlier version. */
interface Made {
  readonly account: Account;
  readonly accessKey: string;
  /** null: sessions of that version had one secret, and end (decision 0039). */
  readonly session: SessionHeaders | null;
  readonly databases: ReadonlyMap<string, string>;
  readonly vm: string;
  readonly webhook: string;
  readonly point: string;
}

// biome-ignore lint/suspicious/noExplicitAny: answers of every shape
async function expect(client: Client, status: number, [path, call]: [string, Call?]): Promise<any> {
  const answer = await client.call(path, call);
  assert.equal(answer.status, status, `${path}: ${JSON.stringify(answer.body)}`);
  return answer.body;
}

/** With statements, or with a command if the engine has none. */
function written(engine: string, x: number): readonly object[] {
  if (engine === 'mongodb') return [{ command: { insert: 't', documents: [{ x }] }, read_only: false }];
  const first = x === 1 ? [{ statement: 'CREATE TABLE t (x int)', read_only: false }] : [];
  return [...first, { statement: `INSERT INTO t VALUES (${x})`, read_only: false }];
}

async function rowsOf(client: Client, engine: string, path: string): Promise<unknown[]> {
  const json =
    engine === 'mongodb'
      ? { command: { find: 't', projection: { _id: 0 }, sort: { x: 1 } } }
      : { statement: 'SELECT x FROM t ORDER BY x' };
  const { rows } = await expect(client, 200, [`${path}/query`, { json }]);
  return rows.flat();
}

async function fill(cloud: CloudProcess): Promise<Made> {
  const anyone = new Client(cloud.api);
  const account = await anyone.register();
  const user = anyone.as(account.api_key);
  const entrance = { username: account.username, password: PASSWORD };
  const login = await anyone.call('/api/login', { json: entrance });
  assert.equal(login.status, 200);
  const session = login.body.session_token === undefined ? null : sessionOf(login);
  const reader = { name: 'reader', scopes: ['storage:read'] };
  const { api_key: accessKey } = await expect(user, 201, ['/api/account/access-keys', { json: reader }]);
  for (const [name, encryption] of Object.entries({ plain: false, sealed: true })) {
    await expect(user, 201, ['/api/buckets', { json: { name, versioning: true, encryption } }]);
    for (const text of TEXTS) {
      const { status, body } = await user.upload(name, 'note.txt', text);
      assert.equal(status, 200, JSON.stringify(body));
    }
  }
  const databases = new Map<string, string>();
  for (const engine of ENGINES) {
    const json = { name: `of-${engine}`, engine };
    const { database_id: id } = await expect(user, 201, ['/api/databases', { json }]);
    databases.set(engine, `/api/databases/${id}`);
    for (const each of written(engine, 1))
      await expect(user, 200, [`/api/databases/${id}/query`, { json: each }]);
  }
  const json = { name: 'web', instance_type: 't2.micro' };
  const { vm_id } = await expect(user, 201, ['/api/vms', { json }]);
  await expect(user, 200, [`/api/vms/${vm_id}/start`, POST]);
  await expect(user, 200, [`/api/vms/${vm_id}/stop?force=true`, POST]);
  const hook = { url: 'https://example.org/hook', events: ['*'] };
  const { id: webhook } = await expect(user, 201, ['/api/webhooks', { json: hook }]);
  const admin = anyone.as(ADMIN_KEY);
  const { point_id, state, state_reason } = await expect(admin, 201, [`${POINTS}?wait=120`, POST]);
  assert.equal(state, 'complete', state_reason);
  const vm = `/api/vms/${vm_id}`;
  return { account, accessKey, session, databases, vm, webhook, point: `${POINTS}/${point_id}` };
}

async function readObjects(user: CheckedClient, round: number): Promise<void> {
  const before = [...TEXTS, ...Array.from({ length: round - 1 }, (_, at) => `note of round ${at + 1}\n`)];
  for (const bucket of ['plain', 'sealed']) {
    const files = await user.expect(200, `/api/buckets/${bucket}/files?include_versions=true`);
    const texts = await Promise.all(
      files.map(({ id, version_id: version }: { id: string; version_id: string }) =>
        user.download(id, `?version_id=${version}`),
      ),
    );
    assert.deepEqual(texts.map(String).sort(), before.sort());
    const text = `note of round ${round}\n`;
    const { status, body } = await user.upload(bucket, 'note.txt', text);
    assert.equal(status, 200, JSON.stringify(body));
    assert.equal(String(await user.download(body.object_id)), text);
  }
}

/** Each engine may first have to move data that an earlier version had elsewhere. */
async function readDatabases(user: CheckedClient, { databases }: Made, round: number): Promise<void> {
  const numbers = Array.from({ length: round + 1 }, (_, at) => at + 1);
  for (const [engine, path] of databases) {
    await eventually(`the ${engine} database answers`, async () => {
      const json = engine === 'mongodb' ? { command: { ping: 1 } } : { statement: 'SELECT 1' };
      return (await user.call(`${path}/query`, { json })).status === 200;
    });
    for (const each of written(engine, round + 1)) await user.expect(200, `${path}/query`, { json: each });
    const rows = await rowsOf(user, engine, path);
    assert.deepEqual(rows, numbers, engine);
    assert.equal((await user.expect(200, path)).state, 'ready');
  }
}

async function readAll(cloud: CloudProcess, made: Made, round: number): Promise<void> {
  const { account, accessKey, session, vm, webhook, point } = made;
  const user = await CheckedClient.open(cloud.api, account.api_key);
  const anyone = user.as(undefined);
  const admin = user.as(ADMIN_KEY);
  for (const username of [account.username, `${account.username}@example.org`]) {
    const login = await anyone.call('/api/login', { json: { username, password: PASSWORD } });
    assert.equal(login.status, 200, username);
  }
  const asBefore = session && (await anyone.expect(200, '/api/account', { headers: session }));
  assert.equal((asBefore ?? account).username, account.username);
  assert.equal((await user.as(accessKey).expect(200, '/api/buckets')).length, 2);
  await readObjects(user, round);
  await readDatabases(user, made, round);
  assert.equal((await user.expect(200, `${vm}/start`, POST)).state, 'running');
  assert.equal((await user.expect(200, `${vm}/stop?force=true`, POST)).state, 'stopped');
  const [hook] = await user.expect(200, '/api/webhooks');
  assert.deepEqual([hook.id, hook.url], [webhook, 'https://example.org/hook']);
  assert.equal((await admin.expect(200, `${point}/verify?wait=120`, POST)).state, 'verified');
  assert.equal((await admin.expect(201, `${POINTS}?wait=120`, POST)).state, 'complete');
  const { components, alarms } = await admin.expect(200, '/api/system/status');
  assert.deepEqual(alarms, []);
  assert.equal(components.databases.status, 'ok');
}

async function opens(t: TestContext, commit: string, wrapper: readonly string[]): Promise<void> {
  const code = earlierCode(commit);
  const dataDir = mkdtempSync(join(tmpdir(), 'cloudlet-upgrade-'));
  if (wrapper.length > 0) chownSync(dataDir, NOBODY, NOBODY);
  chmodSync(dataDir, 0o700);
  t.after(() => {
    code.remove();
    rmSync(dataDir, { recursive: true, force: true });
  });
  const earlier = await CloudProcess.start({
    dataDir,
    wrapper,
    env: withoutUnknownSettings(commit),
    command: [join(code.folder, 'bin/cloudlet'), 'start'],
  });
  t.after(() => earlier.end());
  const made = await fill(earlier);
  await earlier.end();
  if (KEEPS && wrapper.length === 0) keepMetadata(dataDir, commit);
  // Twice: the data left by this version must open, too.
  for (const round of [1, 2]) {
    const cloud = await CloudProcess.start({ dataDir, wrapper });
    t.after(() => cloud.end());
    await readAll(cloud, made, round);
    await cloud.end();
  }
}

for (const commit of LANDINGS) {
  test(`a directory of ${commit} opens`, { skip: notInHistory(commit) }, (t) => opens(t, commit, []));
  test(
    `a directory of ${commit} of an ordinary user opens`,
    {
      skip: notInHistory(commit) || NO_OTHER_READERS,
    },
    (t) => opens(t, commit, AS_NOBODY),
  );
}

/** `cloudlet dev`: a cloud for one run of a program, which leaves nothing behind. */
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import {
  existsSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { after, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { CreateBucketCommand, ListBucketsCommand, S3Client } from '@aws-sdk/client-s3';
import { createClient } from '@libsql/client';
import { MongoClient } from 'mongodb';
import { ADMIN_KEY, CloudProcess } from '../harness/cloud-process.ts';
import { type Ended, runCloudlet } from '../harness/command.ts';
import { eventually } from '../harness/waiting.ts';

const LAUNCHER = fileURLToPath(new URL('../../bin/cloudlet', import.meta.url));
const CHILDREN = ['--with', 'sqlite,mongodb'];
const HAS_POSTGRESQL = globSync('build/programs/postgresql-*/usr').length > 0;
/** A program written by the reader. */
const READ_KEPT = `import pg from 'pg';
  const client = new pg.Client(process.env.DATABASE_URL);
  await client.connect();
  console.log((await client.query('SELECT word FROM kept')).rows[0].word);
  await client.end();`;
const PRINT = [process.execPath, '-p', 'JSON.stringify(process.env)'];
const root = mkdtempSync(join(tmpdir(), 'cloudlet-test-dev-'));
after(() => rmSync(root, { recursive: true, force: true }));

type Variables = Readonly<Record<string, string>>;

/** Each has its own folder for temporary files, in which nothing may remain. */
function folder(): { readonly path: string; readonly env: Variables } {
  const path = mkdtempSync(join(root, 'tmp-'));
  return { path, env: { TMPDIR: path, CLOUDLET_VM_ACCEL: 'tcg' } };
}

/** Empty for users who may not see them: their clouds create none. */
const rulesOfHost = () => spawnSync('nft', ['list', 'ruleset'], { encoding: 'utf8' }).stdout ?? '';

function dev(args: readonly string[], env: Variables): Promise<Ended> {
  return runCloudlet(['dev', ...args], { env, timeoutMs: 300_000 });
}

/** A process without a command, once it has printed its variables. */
async function opened(env: Variables, ...args: readonly string[]) {
  const child = spawn(LAUNCHER, ['dev', ...args], { env: { PATH: process.env.PATH, ...env }, stdio: 'pipe' });
  let [stdout, stderr] = ['', ''];
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    stdout += text;
  });
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    stderr += text;
  });
  await eventually('its variables', () => {
    assert.equal(child.exitCode, null, stderr);
    return stderr.includes('Press Ctrl+C') ? stdout : undefined;
  });
  const variables: Variables = Object.fromEntries(
    [...stdout.matchAll(/^export (\w+)='?(.*?)'?$/gm)].map(([, name = '', value = '']) => [name, value]),
  );
  return {
    variables,
    end: async () => {
      child.kill('SIGINT');
      return (await once(child, 'exit'))[0];
    },
  };
}

test('every address that it prints works, and Ctrl+C leaves nothing behind', async () => {
  const { path, env } = folder();
  const [one, other] = await Promise.all([opened(env, ...CHILDREN), opened(env, ...CHILDREN)]);
  const { variables } = one;
  assert.notEqual(variables.CLOUDLET_URL, other.variables.CLOUDLET_URL);
  const headers = { 'X-API-Key': variables.CLOUDLET_API_KEY ?? '' };
  const account = await fetch(`${variables.CLOUDLET_URL}/api/account`, { headers });
  assert.equal(((await account.json()) as { is_admin: boolean }).is_admin, true);

  const s3 = new S3Client({
    endpoint: variables.AWS_ENDPOINT_URL_S3 ?? '',
    region: variables.AWS_REGION ?? '',
    forcePathStyle: true,
    credentials: {
      accessKeyId: variables.AWS_ACCESS_KEY_ID ?? '',
      secretAccessKey: variables.AWS_SECRET_ACCESS_KEY ?? '',
    },
  });
  await s3.send(new CreateBucketCommand({ Bucket: 'mine' }));
  assert.deepEqual(
    (await s3.send(new ListBucketsCommand({}))).Buckets?.map(({ Name }) => Name),
    ['mine'],
  );
  s3.destroy();

  assert.doesNotMatch(variables.LIBSQL_URL ?? '', /\?/);
  const libsql = createClient({
    url: variables.LIBSQL_URL ?? '',
    authToken: variables.LIBSQL_AUTH_TOKEN ?? '',
  });
  assert.equal((await libsql.execute('SELECT 6 * 7 AS n')).rows[0]?.n, 42);
  libsql.close();
  const mongo = new MongoClient(variables.MONGODB_URL ?? '');
  const found = mongo.db().collection<{ _id: number }>('c');
  await found.insertOne({ _id: 1 });
  assert.equal(await found.countDocuments(), 1);
  await mongo.close();

  assert.deepEqual(await Promise.all([one.end(), other.end()]), [0, 0]);
  assert.deepEqual(readdirSync(path), []);
  assert.ok(!rulesOfHost().includes(path), 'rules of nftables name the directory of their cloud');
});

test('a command gets the variables, and its exit code is ours; settings of another cloud do not hold', async () => {
  const { path, env } = folder();
  const elsewhere = join(root, 'elsewhere');
  const settings = { ...env, CLOUDLET_DATA_DIR: elsewhere, CLOUDLET_PORT: '1' };
  const ended = await dev(
    ['--with', 'none', '--', 'sh', '-c', 'echo "$AWS_REGION at $CLOUDLET_URL"; exit 7'],
    settings,
  );
  assert.equal(ended.code, 7, ended.stderr);
  assert.match(
    ended.stdout,
    /^us-east-1 at http:\/\/127\.0\.0\.1:\d+\n$/,
    'nothing else is on standard output',
  );
  assert.ok(!existsSync(elsewhere));
  const missing = await dev(['--with', 'none', '--', 'no-such-program'], env);
  assert.deepEqual([missing.code, missing.stdout], [127, '']);
  assert.match(missing.stderr, /no-such-program could not be started/);
  assert.deepEqual(readdirSync(path), []);
  const wrong = await dev(['--with', 'oracle'], env);
  assert.equal(wrong.code, 2);
  assert.match(
    wrong.stderr,
    /"oracle" is not an engine: choose from sqlite, postgresql, mysql, mongodb, or none/,
  );
});

test('a program need not wait for its database: who connects while the server begins is served then', {
  skip: !HAS_POSTGRESQL && 'PostgreSQL is not unpacked',
}, async () => {
  const { path, env } = folder();
  const program = `import pg from 'pg';
    const client = new pg.Client(process.env.DATABASE_URL);
    await client.connect();
    console.log((await client.query('SELECT 6 * 7 AS n')).rows[0].n);
    await client.end();`;
  const words = [process.execPath, '--input-type=module', '-e', program];
  const ended = await dev(['--with', 'postgresql', '--', ...words], env);
  assert.deepEqual([ended.code, ended.stdout], [0, '42\n'], ended.stderr);
  assert.deepEqual(readdirSync(path), []);
});

test('a directory that is named stays, with its databases', async () => {
  const { env } = folder();
  const data = join(root, 'named');
  const run = async () => {
    const { code, stdout, stderr } = await dev(['--data-dir', data, '--with', 'sqlite', '--', ...PRINT], env);
    assert.equal(code, 0, stderr);
    return JSON.parse(stdout) as Variables;
  };
  const pathOf = ({ LIBSQL_URL = '' }: Variables) => new URL(LIBSQL_URL).pathname;
  assert.equal(pathOf(await run()), pathOf(await run()));
  assert.ok(existsSync(join(data, 'metadata.db')));
});

test('--keep leaves its directory, which the next one goes on with', async () => {
  const { path, env } = folder();
  const kept = await dev(['--keep', '--with', 'none', '--', 'true'], env);
  assert.equal(kept.code, 0, kept.stderr);
  const [, data = ''] = /^The data stays in (.+)$/m.exec(kept.stderr) ?? [];
  assert.deepEqual([join(path, basename(data)), readdirSync(path)], [data, [basename(data)]]);
  const again = await dev(['--data-dir', data, '--with', 'none', '--', 'true'], env);
  assert.equal(again.code, 0, again.stderr);
  assert.ok(existsSync(join(data, 'metadata.db')));
});

test('a cloud that it did not make keeps its administrator’s key', async (t) => {
  const cloud = await CloudProcess.start();
  t.after(() => cloud.stop());
  await cloud.end();
  const { env } = folder();
  const refused = await dev(['--data-dir', cloud.dataDir, '--with', 'none', '--', 'true'], env);
  assert.equal(refused.code, 1);
  assert.match(refused.stderr, /did not create the cloud in .*: choose an empty directory/);
});

test('what a killed one left goes with the next', async () => {
  const { path, env } = folder();
  const [left, young, locked] = ['abcdef', 'ghijkl', 'mnopqr'].map((end) => {
    const directory = join(path, `cloudlet-dev-4194304-${end}`);
    mkdirSync(directory);
    return directory;
  });
  // Like a cloud in another container that holds it, whose process is not visible here.
  const lock = new DatabaseSync(join(locked ?? '', 'lock'));
  lock.exec('BEGIN EXCLUSIVE');
  const old = new Date(Date.now() - 3_600_000);
  for (const directory of [left, locked]) utimesSync(directory ?? '', old, old);
  const ended = await dev(['--with', 'none', '--', 'true'], env);
  assert.equal(ended.code, 0, ended.stderr);
  assert.deepEqual(readdirSync(path), [basename(young ?? ''), basename(locked ?? '')]);
  lock.close();
});

test('it begins from a point of another cloud, whose keys stay unknown to it', async (t) => {
  const { path, env } = folder();
  const target = join(root, 'points');
  const keyFile = join(root, 'recovery-key');
  const cloud = await CloudProcess.start({ env: { CLOUDLET_RECOVERY_TARGET: target } });
  t.after(() => cloud.stop());
  const call = async (way: string, body?: unknown) => {
    const response = await fetch(`${cloud.api}${way}`, {
      method: body === undefined ? 'GET' : 'POST',
      headers: { 'X-API-Key': ADMIN_KEY, 'Content-Type': 'application/json' },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const json = (await response.json()) as Record<string, unknown>;
    assert.ok(response.ok, JSON.stringify(json));
    return json;
  };
  await call('/api/buckets', { name: 'photos' });
  if (HAS_POSTGRESQL) {
    const { database_id: id } = await call('/api/databases', { name: 'shop', engine: 'postgresql' });
    const statement = "SELECT 'before the point' AS word INTO kept";
    await call(`/api/databases/${id}/query`, { statement, read_only: false });
  }
  writeFileSync(keyFile, String((await call('/api/admin/recovery-key', {})).recovery_key));
  const made = await runCloudlet(['recovery', 'create', '--data-dir', cloud.dataDir], {
    env: { CLOUDLET_RECOVERY_TARGET: target },
  });
  assert.equal(made.code, 0, made.stderr);
  const ask =
    'curl -s -H "X-API-Key: $CLOUDLET_API_KEY" "$CLOUDLET_URL/api/buckets"; echo " $CLOUDLET_API_KEY"';
  const options = ['--from', target, '--key-file', keyFile, '--with', 'none'];
  const ended = await dev([...options, '--', 'sh', '-c', ask], env);
  assert.equal(ended.code, 0, ended.stderr);
  assert.match(ended.stdout, /"name":"photos"/);
  assert.doesNotMatch(ended.stdout, new RegExp(`${ADMIN_KEY}|cloudlet-development-key`));
  assert.deepEqual(readdirSync(path), []);
  if (!HAS_POSTGRESQL) return;
  // The command gets the address of the database from the point.
  const read = [process.execPath, '--input-type=module', '-e', READ_KEPT];
  const found = await dev([...options.slice(0, -1), 'postgresql', '--', ...read], env);
  assert.deepEqual([found.code, found.stdout], [0, 'before the point\n'], found.stderr);
  assert.deepEqual(readdirSync(path), []);
});

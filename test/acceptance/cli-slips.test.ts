/** Mistakes on the client's command line: the error names the probable intention, and nothing is changed. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { createReadStream, lstatSync, writeFileSync } from 'node:fs';
import { request } from 'node:http';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { after, before, describe, test } from 'node:test';
import { notInstalled } from '../../scripts/installed.ts';
import { Client } from '../harness/client.ts';
import { CloudProcess } from '../harness/cloud-process.ts';
import { selfSigned } from '../harness/self-signed.ts';
import { CliUser } from './cli-kit.ts';

const cloud = await CloudProcess.start();
const user = await CliUser.signedIn(cloud.api);
const api = new Client(cloud.api, user.key);
after(async () => {
  user.remove();
  await cloud.stop();
});
const here = { cwd: user.home };
const path = (name: string) => join(user.home, name);

before(async () => {
  await api.call('/api/buckets', { json: { name: 'photos' } });
  await api.upload('photos', 'a.txt', 'hello');
  writeFileSync(path('f.txt'), 'x');
});

test('a location with a slip is named as it was meant', async () => {
  for (const [words, meant] of [
    [['cp', 'f.txt', 's3:/photos/'], 's3://photos/ instead of s3:/photos/'],
    [['cp', 'f.txt', 'S3://photos/x'], 's3://photos/x instead of S3://photos/x'],
    [['cp', 'photos:a.txt', '.'], 's3://photos/a.txt instead of photos:a.txt'],
    [['sync', '.', 'photos:/x'], 's3://photos/x instead of photos:/x'],
  ] as const)
    assert.ok((await user.fails(2, [...words], here)).includes(`; did you mean ${meant}?`), words.join(' '));
  assert.match(
    await user.fails(2, ['cp', 'C:\\x', 'D:\\y']),
    /must be s3:\/\/BUCKET\/NAME\n {2}.*cloudlet ls/,
  );
  assert.match(await user.fails(2, ['cp', 'f.txt', 'https://photos.example/x']), /cloudlet presign/);
});

test('a location with a slip is named where no local path is possible too', async () => {
  for (const [typed, meant] of [
    ['s3//photos', 's3://photos'],
    ['s3/photos/a.txt', 's3://photos/a.txt'],
    ['S3://photos', 's3://photos'],
    ['photos:a.txt', 's3://photos/a.txt'],
  ] as const)
    for (const command of ['ls', 'du', 'rm'])
      assert.ok((await user.fails(2, [command, typed])).includes(`did you mean ${meant}?`), typed);
  assert.match(
    await user.fails(2, ['cp', 'f.txt', 's3//photos/x'], here),
    /; did you mean s3:\/\/photos\/x instead of s3\/\/photos\/x\?/,
  );
});

test('a value of an option with a slip is named as it was meant', async () => {
  for (const [engine, meant] of [
    ['pg', 'postgresql'],
    ['pgsql', 'postgresql'],
    ['my', 'mysql'],
  ])
    assert.match(
      await user.fails(2, ['db', 'create', 'shop', '--engine', String(engine)]),
      new RegExp(`no database engine ${engine}; did you mean ${meant}\\?`),
    );
  const scope = ['key', 'create', 'k', '--scope', 'storage:raed'];
  assert.match(await user.fails(1, scope), /must be one of \*, .*; did you mean storage:read\?\n/);
  assert.doesNotMatch(await user.fails(1, [...scope.slice(0, -1), 'root']), /did you mean/);
});

test('commands of other clients lead to those of this one, with a path after them too', async () => {
  for (const [typed, meant] of [
    ['s3 cp', 'cp'],
    ['s3 mb', 'mb'],
    ['get', 'cp'],
    ['copy', 'cp'],
    ['move', 'mv'],
    ['del', 'rm'],
  ] as const) {
    const said = await user.fails(2, [...typed.split(' '), 's3://photos/a.txt', 'x']);
    assert.ok(said.includes(`unknown command "${typed}"; did you mean "${meant}"?`), said);
  }
});

test('options of other programs are answered with those of this one', async () => {
  assert.match(await user.fails(2, ['ls', '--json=1']), /ls: --json takes no value\n {2}Write --json alone/);
  assert.match(
    await user.fails(2, ['cp', '-R', '.', 's3://photos/'], here),
    /unknown option -R; did you mean -r\?/,
  );
  assert.match(
    await user.fails(2, ['rm', '-rf', 's3://photos/x/']),
    /unknown option -f; did you mean --yes\?/,
  );
  assert.match(await user.fails(2, ['ls', '-la', 's3://photos']), /unknown option -a; it is not needed/);
});

test('a folder to sync into that is a file is named', async () => {
  const said = await user.fails(2, ['sync', 's3://photos/', 'f.txt'], here);
  assert.match(said, /f\.txt.* already exists as a file/);
});

test('an object that is not there is named', async () => {
  assert.match(await user.fails(5, ['cat', 's3://photos/none']), /no object at s3:\/\/photos\/none/);
});

test('a list of what is not there fails, and one of an empty bucket does not', async () => {
  const none = ['s3://photos/none', 's3://photos/none/', 's3://photos/*.jpg'];
  for (const path of none)
    for (const args of [['ls'], ['ls', '-r'], ['ls', '--versions'], ['tree']]) {
      const said = await user.run([...args, path]);
      assert.deepEqual([said.code, args[0] === 'tree' || said.stdout === ''], [5, true], `${args} ${path}`);
      assert.match(said.stderr, /no objects at s3:\/\/photos\//);
    }
  assert.match(await user.fails(5, ['ls', 's3://photos/a']), /such as s3:\/\/photos\/a\.txt: .* add \*\*/);
  await api.call('/api/buckets', { json: { name: 'bare' } });
  for (const args of [['ls'], ['ls', '-r'], ['ls', '--versions']])
    assert.equal(await user.ok([...args, 's3://bare']), '');
  assert.match(await user.ok(['tree', 's3://bare']), /^s3:\/\/bare\/\n/);
  assert.equal(await user.ok(['du', '--json', 's3://photos/none']), '{"objects":0,"bytes":0}\n');
});

test('a clock that is wrong by an hour harms nothing', async () => {
  for (const ms of [3_600_000, -3_600_000]) {
    const late = `const real = Date.now; Date.now = () => real() + ${ms}`;
    const env = { NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(late)}` };
    await user.ok(['stat', 's3://photos/a.txt'], { env });
    await user.ok(['cp', 'f.txt', `s3://photos/clock${ms}`], { env, ...here });
    assert.equal(await user.ok(['cat', `s3://photos/clock${ms}`], { env }), 'x');
  }
});

test('a key that has ended says how to sign in again, with the code of not signed in', async () => {
  const ended = await CliUser.signedIn(cloud.api);
  after(() => ended.remove());
  const [key] = (await ended.ok(['key', 'ls', '--json'])).trim().split('\n');
  const other = new Client(cloud.api, ended.key);
  await other.call(`/api/account/access-keys/${JSON.parse(String(key)).id}`, { method: 'DELETE' });
  for (const args of [['whoami'], ['ls', 's3://photos'], ['cat', 's3://photos/a.txt']]) {
    const said = await ended.fails(3, args);
    assert.match(said, /\n {2}Keys expire after .* cloudlet login URL/, args.join(' '));
  }
});

test('a bucket that is not empty is said with the commands that empty it', async () => {
  const said = await user.fails(6, ['rb', 's3://photos']);
  assert.match(said, /s3:\/\/photos is not empty.*\n {2}cloudlet rm -r s3:\/\/photos removes the objects/);
  assert.doesNotMatch(said, /force=true/);
});

test('a path without a bucket lists buckets, or is guessed', async () => {
  for (const path of ['s3://', 's3:']) assert.match(await user.ok(['ls', path]), / s3:\/\/photos\n/);
  assert.match(
    await user.fails(2, ['cp', 'f.txt', 's3:///photos/x'], here),
    /did you mean s3:\/\/photos\/x\?/,
  );
});

test('the beginning of an option is completed', async () => {
  const said = await user.fails(2, ['db', 'create', 'shop', '--size', '9']);
  assert.match(said, /unknown option --size; did you mean --size-limit\?/);
});

test('a home that cannot be written to is no reason to give up', async () => {
  const env = { HOME: '/dev/null' };
  const said = await user.fails(4, ['login', cloud.api, '--key', '-'], { env, input: user.key });
  assert.match(said, /the profile cannot be stored: .*\n {2}Set HOME or XDG_CONFIG_HOME .*CLOUDLET_API_KEY/);
  assert.match(
    await user.ok(['ls'], { env: { ...env, CLOUDLET_URL: cloud.api, CLOUDLET_API_KEY: user.key } }),
    /photos/,
  );
});

test('a cloud that is not reached is answered with the reason', async () => {
  const there = (url: string) =>
    user.fails(8, ['whoami'], { env: { CLOUDLET_URL: url, CLOUDLET_API_KEY: 'k' } });
  assert.match(await there(cloud.api.replace('http:', 'https:')), /speaks http, not https/);
  assert.match(await there('http://127.0.0.1:59999'), /ECONNREFUSED 127\.0\.0\.1:59999/);
});

test('a certificate of one’s own is answered with what makes it accepted', {
  skip: notInstalled('openssl'),
}, async () => {
  const { key, cert, certFile } = selfSigned(user.home);
  const onward = new URL(cloud.api);
  const front = createServer({ key, cert }, (incoming, answer) => {
    const { method, url: path, headers } = incoming;
    const asked = request({ hostname: onward.hostname, port: onward.port, method, path, headers });
    asked.on('response', (response) => {
      answer.writeHead(response.statusCode ?? 0, response.headers);
      response.pipe(answer);
    });
    incoming.pipe(asked);
  }).listen(0, '127.0.0.1');
  after(() => front.close());
  await once(front, 'listening');
  const url = `https://127.0.0.1:${(front.address() as AddressInfo).port}`;
  const env = { CLOUDLET_URL: url, CLOUDLET_API_KEY: user.key };
  const said = await user.fails(8, ['whoami'], { env });
  assert.match(said, /self-signed certificate.*\n {6}NODE_EXTRA_CA_CERTS=cloud\.pem cloudlet/);
  assert.match(said, /openssl s_client -connect HOST:443 .*\n {6}openssl x509 -noout -fingerprint/);
  const s3 = { CLOUDLET_S3_URL: url, CLOUDLET_ACCESS_KEY_ID: 'a', CLOUDLET_SECRET_ACCESS_KEY: 'b' };
  assert.match(
    await user.fails(8, ['ls', 's3://photos'], { env: { ...env, ...s3 } }),
    /does not answer.*\n.*\n {6}NODE_EXTRA_CA_CERTS=cloud\.pem/,
  );
  assert.match(await user.ok(['whoami'], { env: { ...env, NODE_EXTRA_CA_CERTS: certFile } }), /@/);
});

describe('a download into', { skip: notInstalled('mkfifo') }, () => {
  test('a pipe or a device goes into that, which stays', async () => {
    execFileSync('mkfifo', [path('pipe')]);
    const read = buffer(createReadStream(path('pipe')));
    await user.ok(['cp', 's3://photos/a.txt', path('pipe')]);
    assert.equal((await read).toString(), 'hello');
    assert.ok(lstatSync(path('pipe')).isFIFO());
  });

  test('a device that is full is a failure that says so', { skip: notInstalled('mknod') }, async () => {
    execFileSync('mknod', ['-m', '666', path('full'), 'c', '1', '7']);
    const said = await user.fails(1, ['cp', 's3://photos/a.txt', path('full')]);
    assert.match(said, /no space left on disk/);
    assert.ok(lstatSync(path('full')).isCharacterDevice());
  });
});

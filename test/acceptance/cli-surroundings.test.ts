/** The client in unusual environments: broken pipes, full disks, users without a home. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { after, before, describe, test } from 'node:test';
import { notInstalled } from '../../scripts/installed.ts';
import { Client } from '../harness/client.ts';
import { CloudProcess } from '../harness/cloud-process.ts';
import { CliUser, PROGRAM, type RunOptions } from './cli-kit.ts';

const cloud = await CloudProcess.start();
const user = await CliUser.signedIn(cloud.api);
const api = new Client(cloud.api, user.key);
after(async () => {
  user.remove();
  await cloud.stop();
});
/** With these a key pair is created for each command. */
const byKey = { CLOUDLET_URL: cloud.api, CLOUDLET_API_KEY: user.key };
const path = (name: string) => join(user.home, name);
const keys = async () => (await api.call('/api/account/access-keys')).body.length;
const isRoot = process.getuid?.() === 0;

before(async () => {
  for (const name of ['many', 'synced']) await api.call('/api/buckets', { json: { name } });
  for (let at = 0; at < 2500; at += 50)
    await Promise.all(Array.from({ length: 50 }, (_, i) => api.upload('many', `name-${at + i}`, 'x')));
});

interface Raw extends RunOptions {
  readonly uid?: number;
}

/** A program with streams as in a shell. */
async function shell(line: string, { env = {}, uid }: Raw = {}) {
  const own = { PATH: process.env.PATH, HOME: user.home, CLIENT: `${process.execPath} ${PROGRAM}`, ...env };
  const ids = uid === undefined ? {} : { uid, gid: uid };
  const cwd = uid === undefined ? user.home : '/';
  const child = spawn('bash', ['--norc', '-o', 'pipefail', '-c', line], { env: own, cwd, ...ids });
  child.stdin.end();
  const [out, err, [code]] = await Promise.all([
    text(child.stdout),
    text(child.stderr),
    once(child, 'close'),
  ]);
  return { code, out, err };
}

describe('a pipe that nobody reads', () => {
  test('ends a list quietly, and leaves no key behind', async () => {
    const before = await keys();
    for (const line of ['ls -r s3://many', 'ls -r --json s3://many', 'tree -q s3://many', 'help']) {
      const { code, out, err } = await shell(`$CLIENT ${line} | head -1`, { env: byKey });
      assert.deepEqual([code, err, out.split('\n').length], [0, '', 2], line);
    }
    assert.equal(await keys(), before);
  });

  test('of notes ends no transfer', async () => {
    mkdirSync(path('notes'));
    for (let i = 0; i < 100; i++) writeFileSync(path(`notes/${i}`), 'x');
    const { code } = await shell('{ $CLIENT sync notes s3://synced/notes 3>&1 >&2 2>&3; } | head -1 >&2');
    assert.equal(code, 0);
    assert.deepEqual(JSON.parse(await user.ok(['du', '--json', 's3://synced/notes/'])), {
      objects: 100,
      bytes: 100,
    });
  });

  test('Ctrl-C and a signal leave no key behind', async () => {
    const before = await keys();
    for (const [signal, expected] of [
      ['SIGINT', 130],
      ['SIGTERM', 143],
    ] as const) {
      const child = user.start(['cp', '-', 's3://synced/never'], { env: byKey });
      child.stdin?.write('begun');
      while ((await keys()) === before) await new Promise((resolve) => setTimeout(resolve, 20));
      child.kill(signal);
      const [code] = await once(child, 'close');
      assert.equal(code, expected);
      assert.equal(await keys(), before, signal);
    }
  });
});

describe('a full disk', { skip: isRoot ? notInstalled('unshare', 'mount') : 'needs root' }, () => {
  /** With a disk of 1 MiB at `full`, which is full except for 64 KiB. */
  const onFull = (line: string) => {
    mkdirSync(path('full'), { recursive: true });
    const fill = 'mount -t tmpfs -o size=1m none full && head -c 983040 /dev/zero >full/fill';
    return shell(`unshare --mount bash -c '${fill} && ${line}'`, { env: { ...byKey } });
  };

  test('is told, and nothing half stands under the name', async () => {
    await api.upload('synced', 'large', randomBytes(300_000));
    const { code, out, err } = await onFull('$CLIENT cp s3://synced/large full/large; echo $?; ls full');
    assert.equal(code, 0, err);
    assert.equal(out, '1\nfill\n');
    assert.match(err, /large: no space left on disk$/m);
  });

  test('keeps no key that it could not store', async () => {
    const before = await keys();
    const line = 'head -c 1m /dev/zero >full/rest; XDG_CONFIG_HOME=$PWD/full $CLIENT login; echo $?';
    const { out, err } = await onFull(line);
    assert.match(out, /^1$/m, err);
    assert.match(err, /no space left on disk$/m);
    assert.equal(await keys(), before);
  });
});

describe('a user', () => {
  const nowhere = { ...byKey, HOME: '/dev/null' };
  test('whose home cannot be written uploads in parts', async () => {
    writeFileSync(path('parts'), randomBytes(17 * 2 ** 20));
    const { code, err } = await shell('$CLIENT cp parts s3://synced/parts', { env: nowhere });
    assert.equal(code, 0, err);
    assert.match(err, /\/dev\/null\/.cache\/cloudlet is not writable .*will start over/);
    rmSync(path('parts'));
  });

  test('whose home cannot be written is told so before a key is made', async () => {
    const before = await keys();
    const { code, err } = await shell('$CLIENT login', { env: nowhere });
    assert.notEqual(code, 0);
    assert.match(err, /\/dev\/null\/.config\/cloudlet.*: is not a folder/);
    assert.equal(await keys(), before);
  });

  test('without a name or a home needs neither', { skip: !isRoot && 'needs root' }, async () => {
    const env = { ...byKey, HOME: '' };
    const listed = await shell('unset HOME; $CLIENT ls s3://synced', { env, uid: 54_321 });
    assert.equal(listed.code, 0, listed.err);
    for (const home of ['unset HOME', 'HOME=']) {
      const line = `${home}; unset CLOUDLET_API_KEY; $CLIENT vm ls`;
      const { code, err } = await shell(line, { env, uid: 54_321 });
      assert.equal(code, 1, err);
      assert.match(err, /cannot find your home folder\n {2}Set HOME/);
    }
  });
});

describe('sync --delete', () => {
  test('deletes nothing where a folder here could not be read', async () => {
    mkdirSync(path('deep'));
    writeFileSync(path('deep/kept'), 'x');
    // Longer than any path: it can be created step by step, but not be opened as a whole.
    const step = 'd'.repeat(250);
    const { err } = await shell(`cd deep; for i in $(seq 20); do mkdir ${step}; cd ${step}; done`);
    assert.equal(err, '');
    await api.upload('synced', 'deep/elsewhere', 'x');
    const said = await user.fails(7, ['sync', '--delete', 'deep', 's3://synced/deep']);
    assert.match(said, /name is too long/);
    assert.match(said, /nothing was deleted/);
    assert.equal(await user.ok(['cat', 's3://synced/deep/elsewhere']), 'x');
    await shell('rm -rf deep');
  });
});

describe('the words', () => {
  test('options of every command may come first', async () => {
    const listed = await user.ok(['--json', '--profile', new URL(cloud.api).host, 'ls']);
    assert.deepEqual(
      listed
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line).name),
      ['many', 'synced'],
    );
    assert.match(await user.ok(['-h', 'vm', 'ls']), /^Usage: cloudlet vm ls/);
    assert.match(await user.fails(2, ['--jsn', 'ls']), /unknown option --jsn/);
    await user.fails(5, ['--profile=none', 'ls']);
  });

  test('what is nearly a command is guessed', async () => {
    for (const [typed, meant] of [
      ['sycn', 'sync'],
      ['ssh', 'vm ssh'],
      ['vm creat', 'vm create'],
      ['vm list', 'vm ls'],
      ['db delete', 'db rm'],
      ['s3 ls', 'ls'],
      ['bucket ls', 'ls'],
      ['bucket create', 'mb'],
      ['db query', 'db connect'],
      ['db password', 'db url'],
      ['vm rename', 'vm change'],
      ['vm resize', 'vm change'],
      ['vm ip', 'vm show'],
      ['sql', 'db connect'],
      ['logs', 'vm logs'],
    ] as const) {
      const said = await user.fails(2, [...typed.split(' '), 'more']);
      assert.match(said, new RegExp(`unknown command "${typed}"; did you mean "${meant}"\\?`));
    }
    for (const [typed, meant] of [
      ['buckets', 'ls'],
      ['machines', 'vm ls'],
      ['config', 'profile ls'],
    ] as const)
      assert.ok(
        (await user.fails(2, [typed])).includes(`unknown command "${typed}"; did you mean "${meant}"?`),
      );
    assert.match(await user.fails(2, ['image']), /image fetch NAME/);
    assert.match(
      await user.fails(2, ['cp', '--recursiv', 'a', 's3://b/']),
      /unknown option --recursiv; did you mean --recursive\?/,
    );
    assert.match(await user.fails(2, ['--jsno', 'ls']), /unknown option --jsno; did you mean --json\?/);
    assert.match(await user.fails(2, ['mb', 'Photos']), /"Photos" cannot be the name of a bucket/);
    assert.equal(await user.ok(['mb', 'photos-2026']), 's3://photos-2026 is created\n');
    assert.equal(await user.ok(['mb', 'photos-2026']), 's3://photos-2026 exists already\n');
    assert.match(
      await user.fails(5, ['ls', 's3://phtoos-2026']),
      /no bucket phtoos-2026; did you mean photos-2026\?\n$/,
    );
    const refused = await user.fails(1, ['db', 'create', 'shop', '--engine', 'oracle']);
    assert.equal(refused.match(/must be one of/g)?.length, 1, refused);
    assert.match(
      await user.fails(2, ['db', 'create', 'shop', '--engine', 'postgress']),
      /no database engine postgress; did you mean postgresql\?/,
    );
    for (const [engine, name] of [
      ['SQLite', 'sqlite'],
      ['mongo', 'mongodb'],
    ] as const) {
      await user.ok(['db', 'create', name, '--engine', engine]);
      assert.match(await user.ok(['db', 'show', name]), new RegExp(`engine +${name}`));
    }
    assert.match(await user.fails(5, ['db', 'show', 'sqltie']), /no database sqltie; did you mean sqlite\?/);
    await user.ok(['vm', 'create', 'web']);
    assert.match(await user.fails(6, ['vm', 'proxy', 'web', '22']), /Start it with cloudlet vm start VM/);
    assert.match(await user.fails(5, ['vm', 'ssh', 'none']), /no machine none\n {2}See: cloudlet vm ls/);
    assert.match(await user.fails(2, ['login', 'ftp://x']), /ftp is not supported; use http or https/);
    assert.doesNotMatch(await user.fails(2, ['vm', 'frobnicate']), /did you mean/);
    assert.doesNotMatch(await user.fails(2, ['tag', 'photos']), /did you mean/);
    assert.match(await user.fails(2, ['vm']), /^Usage:\n {2}vm ls /);
  });

  test('every list is JSON with --json, and nothing has colours', async () => {
    await api.call('/api/databases', { json: { name: 'shop' } });
    for (const line of [
      ...['ls', 'ls s3://many', 'ls --versions s3://many', 'tree s3://synced', 'vm ls', 'db ls', 'key ls'],
      ...['usage', 'ops', 'webhook ls', 'profile ls', 'du s3://many', 'whoami', 'version', 'db show shop'],
    ]) {
      const said = await user.ok([...line.split(' '), '--json']);
      for (const each of said.split('\n').filter(Boolean)) JSON.parse(each);
      const plain = await user.run(line.split(' '));
      assert.ok(!`${plain.stdout}${plain.stderr}`.includes('\u001b'), line);
    }
  });
});

/** Files through the client: downloads equal uploads, even when clients are killed and names are hostile. */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { Client } from '../harness/client.ts';
import { CloudProcess } from '../harness/cloud-process.ts';
import { eventually } from '../harness/waiting.ts';
import { CliUser, NODE_20 } from './cli-kit.ts';
import { digests, syncBothWays } from './cli-sync-kit.ts';

const cloud = await CloudProcess.start();
const user = await CliUser.signedIn(cloud.api);
const api = new Client(cloud.api, user.key);
after(async () => {
  user.remove();
  await cloud.stop();
});
const path = (name: string) => join(user.home, name);
const options = NODE_20 === undefined ? {} : { node: NODE_20 };

before(async () => {
  for (const name of ['photos', 'synced']) {
    const { status } = await api.call('/api/buckets', { json: { name, versioning: true } });
    assert.equal(status, 201);
  }
});

describe('cp', () => {
  test('keeps bytes and time both ways, in one piece and in parts, on the oldest Node', async () => {
    for (const [name, size] of Object.entries({ empty: 0, small: 5, large: 40 * 2 ** 20 + 7 })) {
      writeFileSync(path(name), randomBytes(size));
      await user.ok(['cp', name, `s3://photos/in/${name}`], options);
      await user.ok(['cp', `s3://photos/in/${name}`, `${name}.back`], options);
      assert.ok(readFileSync(path(name)).equals(readFileSync(path(`${name}.back`))), name);
      const [there, back] = [statSync(path(name)), statSync(path(`${name}.back`))];
      assert.ok(Math.abs(there.mtimeMs - back.mtimeMs) < 2);
    }
  });

  test('streams standard input and output', async () => {
    const bytes = randomBytes(20 * 2 ** 20).toString('base64');
    await user.ok(['cp', '-', 's3://photos/piped'], { input: bytes });
    assert.equal(await user.ok(['cat', 's3://photos/piped']), bytes);
    assert.equal(await user.ok(['head', '-c', '10', 's3://photos/piped']), bytes.slice(0, 10));
  });

  test('takes patterns, and refuses what there is not', async () => {
    await user.ok(['cp', 's3://photos/in/*', 'out/']);
    assert.deepEqual(readdirSync(path('out')).sort(), ['empty', 'large', 'small']);
    await user.fails(5, ['cp', 's3://photos/in/none', 'x']);
    await user.fails(5, ['cp', 's3://photos/in/*.none', 'x']);
    await user.fails(5, ['cp', 'none', 's3://photos/']);
    await user.fails(5, ['ls', 's3://no-such-bucket']);
    await user.fails(2, ['cp', 'small', 'other']);
  });

  test('an upload and a download that are killed go on where they were', async () => {
    writeFileSync(path('huge'), randomBytes(120 * 2 ** 20));
    const killed = async (args: string[], isFarEnough: () => unknown) => {
      const child = user.start([...args, '--jobs', '1']);
      await eventually('some of it', isFarEnough);
      child.kill('SIGKILL');
      await once(child, 'close');
    };
    const uploads = async () => (await api.call('/api/buckets/photos/uploads')).body;
    await killed(['cp', 'huge', 's3://photos/huge'], async () => (await uploads())[0]?.size > 20 * 2 ** 20);
    const [{ upload_id: first }] = await uploads();
    await user.ok(['cp', 'huge', 's3://photos/huge', '--quiet']);
    assert.deepEqual(await uploads(), [], `${first} was not continued`);
    const parts = () => readdirSync(user.home).filter((name) => name.endsWith('.part'));
    const partSize = () => parts().some((name) => statSync(path(name)).size > 2 ** 20);
    await killed(['cp', 's3://photos/huge', 'huge.back'], partSize).catch(() => {});
    await user.ok(['cp', 's3://photos/huge', 'huge.back']);
    assert.ok(readFileSync(path('huge')).equals(readFileSync(path('huge.back'))));
    assert.deepEqual(parts(), []);
  });

  test('a disk that takes no more is named at once, and what it took is not fetched again', async () => {
    writeFileSync(path('whole'), randomBytes(12 * 2 ** 20));
    await user.ok(['cp', 'whole', 's3://photos/whole']);
    const limited = ['#!/bin/sh', "trap '' XFSZ", 'ulimit -f 8192', `exec '${process.execPath}' "$@"`];
    writeFileSync(path('limited'), limited.join('\n'), { mode: 0o700 });
    const said = await user.fails(1, ['cp', 's3://photos/whole', 'cut'], { node: path('limited') });
    assert.match(said, /cut: the file is larger than/);
    const [part] = readdirSync(user.home).filter((name) => name.endsWith('.part'));
    assert.ok(part !== undefined && statSync(path(part)).size >= 4 * 2 ** 20, String(part));
    assert.ok(!readdirSync(user.home).includes('cut'));
    await user.ok(['cp', 's3://photos/whole', 'cut']);
    assert.ok(readFileSync(path('whole')).equals(readFileSync(path('cut'))));
  });
});

describe('sync', () => {
  test('2,000 files arrive once and whole, though each client is killed three times', async () => {
    await syncBothWays(user, { files: 2000, kills: 3 });
  });

  test('deletes only when it is told to, at most so many, and says before what it would do', async () => {
    mkdirSync(path('small-tree/sub'), { recursive: true });
    for (const name of ['a', 'b', 'sub/c']) writeFileSync(path(`small-tree/${name}`), name);
    symlinkSync('a', path('small-tree/link'));
    const { stderr } = await user.run(['sync', 'small-tree', 's3://photos/tree']);
    assert.match(stderr, /skipped: link \(a symbolic link\)/);
    await api.upload('photos', 'tree/extra', 'x');
    await api.upload('photos', 'tree/more', 'x');
    const dry = await user.ok(['sync', 'small-tree', 's3://photos/tree', '--delete', '--dry-run']);
    assert.equal(dry, 'delete: s3://photos/tree/extra\ndelete: s3://photos/tree/more\n');
    await user.fails(6, ['sync', 'small-tree', 's3://photos/tree', '--delete', '--max-delete', '1']);
    await user.ok(['sync', 'small-tree', 's3://photos/tree', '--delete', '--exclude', 'more']);
    const left = await user.ok(['ls', '-r', '--json', 's3://photos/tree/']);
    const names = left
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line).key);
    assert.deepEqual(names, ['tree/a', 'tree/b', 'tree/more', 'tree/sub/c']);
  });

  test('a folder of a bucket that is not there deletes nothing', async () => {
    await user.ok(['sync', 'small-tree', 's3://photos/there']);
    const said = await user.fails(5, ['sync', 's3://photos/their', 's3://photos/there', '--delete']);
    assert.match(said, /nothing was deleted/);
    assert.notEqual(await user.ok(['ls', 's3://photos/there/']), '');
  });

  test('names that would leave the folder are refused, and all others arrive', async () => {
    const before = readdirSync(user.home);
    for (const name of ['../escaped', 'a/../../escaped', '/tmp/cloudlet-escaped', 'fine/name', 'a//b'])
      await api.upload('photos', `hostile/${name}`, 'x');
    const said = await user.fails(7, ['sync', 's3://photos/hostile', 'caught']);
    assert.match(said, /leaves the folder/);
    assert.match(
      await user.fails(7, ['cp', '-r', 's3://photos/hostile/', 'caught-too']),
      /leaves the folder/,
    );
    for (const folder of ['caught', 'caught-too'])
      assert.deepEqual([...digests(path(folder)).keys()], ['fine/name']);
    assert.ok(!existsSync('/tmp/cloudlet-escaped'));
    assert.deepEqual(readdirSync(user.home).sort(), [...before, 'caught', 'caught-too'].sort());
  });
});

describe('versions', () => {
  test('are restored, undeleted and removed', async () => {
    for (const text of ['first', 'second']) await user.ok(['cp', '-', 's3://photos/v.txt'], { input: text });
    const listed = (await user.ok(['ls', '--versions', '--json', 's3://photos/v.txt'])).trim().split('\n');
    const [, first] = listed.map((line) => JSON.parse(line).version);
    await user.ok(['restore', 's3://photos/v.txt', '--version', first]);
    assert.equal(await user.ok(['cat', 's3://photos/v.txt']), 'first');
    await user.ok(['rm', 's3://photos/v.txt']);
    await user.fails(5, ['cat', 's3://photos/v.txt']);
    await user.ok(['undelete', 's3://photos/v.txt']);
    assert.equal(await user.ok(['cat', 's3://photos/v.txt']), 'first');
    await user.fails(2, ['rm', '--versions', 's3://photos/v.txt']);
    await user.ok(['rm', '--versions', '--yes', 's3://photos/v.txt']);
    assert.match(await user.fails(5, ['ls', '--versions', 's3://photos/v.txt']), /no objects at s3:/);
  });

  test('links need no key', async () => {
    await user.ok(['cp', '-', 's3://photos/l.txt'], { input: 'linked' });
    for (const words of [
      ['presign', 's3://photos/l.txt'],
      ['share', 's3://photos/l.txt', '--expires', '5m'],
    ])
      assert.equal(await (await fetch((await user.ok(words)).trim())).text(), 'linked');
    const url = (await user.ok(['presign', '--put', 's3://photos/p.txt'])).trim();
    assert.equal((await fetch(url, { method: 'PUT', body: 'put' })).status, 200);
    assert.equal(await user.ok(['cat', 's3://photos/p.txt']), 'put');
  });

  test('shared links are made, listed and ended', async () => {
    await user.ok(['cp', '-', 's3://photos/trip/day.txt'], { input: 'sunny' });
    const words = ['share', 's3://photos/trip/', '--expires', 'never', '--password-file', '-'];
    const url = (await user.ok(words, { input: 'open sesame\n' })).trim();
    assert.equal((await fetch(url)).status, 401);
    const authorization = `Basic ${btoa('anybody:open sesame')}`;
    assert.match(await (await fetch(url, { headers: { authorization } })).text(), /day\.txt/);
    assert.match(await user.ok(['shares']), /s3:\/\/photos\/trip\/ +active +never +0 +http/);
    assert.equal(await user.ok(['unshare', url]), 'ended: s3://photos/trip/\n');
    assert.equal((await fetch(url, { headers: { authorization } })).status, 403);
    await user.fails(5, ['unshare', url]);
    await user.fails(5, ['share', 's3://photos/trip']);
    await user.fails(2, ['share', 's3://photos/trip/', '--max-downloads', 'many']);
  });

  test('mv, tree, du, stat and rb', async () => {
    writeFileSync(path('moved'), 'moved');
    await user.ok(['mb', 'moving']);
    await user.ok(['mv', 'moved', 's3://moving/a/moved']);
    assert.ok(!existsSync(path('moved')));
    await user.ok(['mv', 's3://moving/a/moved', 's3://moving/b']);
    assert.equal(await user.ok(['tree', 's3://moving']), 's3://moving/\n  b  5 B\n');
    assert.deepEqual(JSON.parse(await user.ok(['du', '--json', 's3://moving'])), { objects: 1, bytes: 5 });
    assert.equal(JSON.parse(await user.ok(['stat', '--json', 's3://moving/b']))['content-length'], '5');
    await user.fails(6, ['rb', 'moving']);
    await user.ok(['rm', '-r', '-y', 's3://moving']);
    await user.ok(['rb', 'moving']);
  });

  test('mv within the cloud removes the source and stores the target at once, or neither', async () => {
    await user.ok(['mb', 'one']);
    await user.ok(['mb', 'other']);
    for (const name of ['a', 'a.more', 'b']) await api.upload('one', name, name);
    await api.upload('other', 'a', 'replaced');
    await user.ok(['mv', 's3://one/a', 's3://other/']);
    assert.equal(await user.ok(['cat', 's3://other/a']), 'a');
    const json = { name: 'appends', scopes: ['storage:append', 'storage:read'] };
    const { body: pair } = await api.call('/api/account/access-keys', { json });
    const env = {
      CLOUDLET_URL: cloud.api,
      CLOUDLET_API_KEY: pair.api_key,
      CLOUDLET_S3_URL: pair.s3_endpoint,
      CLOUDLET_ACCESS_KEY_ID: pair.access_key_id,
      CLOUDLET_SECRET_ACCESS_KEY: pair.secret_access_key,
    };
    await user.fails(4, ['mv', 's3://one/b', 's3://other/b'], { env });
    assert.equal(await user.ok(['ls', 's3://other']), await user.ok(['ls', 's3://other/a']));
    await user.fails(5, ['mv', 's3://one/b', 's3://othr/b']);
    assert.deepEqual(JSON.parse(await user.ok(['du', '--json', 's3://one'])).objects, 2);
  });

  test('mv of a folder within the cloud is one call per object, and a list for all', async () => {
    await user.ok(['mb', 'calls']);
    const names = Array.from({ length: 12 }, (_, index) => `from/${index}.txt`);
    for (const name of names) await api.upload('calls', name, name);
    const counted = async (route: string) => {
      const metrics = await (await fetch(`${cloud.api}/metrics`)).text();
      const lines = metrics.split('\n').filter((line) => line.includes(`requests_total{route="${route}"`));
      return lines.reduce((sum, line) => sum + Number(line.split(' ').at(-1)), 0);
    };
    const [lists, moves] = [await counted('listObjects'), await counted('moveObject')];
    await user.ok(['mv', '-r', 's3://calls/from', 's3://calls/to']);
    await user.ok(['mv', 's3://calls/to/1*', 's3://calls/']);
    assert.deepEqual(JSON.parse(await user.ok(['du', '--json', 's3://calls/to'])).objects, 12 - 3);
    assert.equal(await user.ok(['cat', 's3://calls/11.txt']), 'from/11.txt');
    assert.equal((await counted('moveObject')) - moves, 12 + 3);
    assert.equal((await counted('listObjects')) - lists, 2);
  });

  test('mv takes from a bucket of another account what its policy allows', async () => {
    const { canonical_id } = (await api.call('/api/account')).body;
    const owner = new Client(cloud.api, (await new Client(cloud.api).register()).api_key);
    await owner.call('/api/buckets', { json: { name: 'lent' } });
    await owner.upload('lent', 'in/file', 'theirs');
    const statement = { Effect: 'Allow', Principal: { AWS: canonical_id }, Action: 's3:*' };
    const Resource = ['arn:aws:s3:::lent', 'arn:aws:s3:::lent/*'];
    const policy = { Version: '2012-10-17', Statement: [{ ...statement, Resource }] };
    const set = await owner.call('/api/buckets/lent/settings', { method: 'PATCH', json: { policy } });
    assert.equal(set.status, 200, JSON.stringify(set.body));
    await user.ok(['mv', 's3://lent/in/file', 's3://photos/theirs']);
    assert.equal(await user.ok(['cat', 's3://photos/theirs']), 'theirs');
    assert.deepEqual((await owner.call('/api/buckets/lent/files')).body, []);
  });

  test('the environment alone serves files, and leaves no key behind', async () => {
    const env = { CLOUDLET_URL: cloud.api, CLOUDLET_API_KEY: user.key };
    const keys = async () => (await api.call('/api/account/access-keys')).body.length;
    const before = await keys();
    assert.match(await user.ok(['ls', 's3://photos'], { env }), /l\.txt/);
    assert.equal(await keys(), before);
  });
});

describe('a place', () => {
  const BESIDE = ['my-model-backup/x', 'my-model.txt', 'my-models/y'];
  const WITHIN = ['my-model/a', 'my-model/b/c'];

  /** A bucket with a folder, and with names that only begin like it. */
  async function modelled(bucket: string, further: readonly string[] = []) {
    assert.equal((await api.call('/api/buckets', { json: { name: bucket, versioning: true } })).status, 201);
    for (const name of [...WITHIN, ...BESIDE, ...further]) await api.upload(bucket, name, 'xyz');
  }

  async function namesIn(bucket: string) {
    const { body } = await api.call(`/api/buckets/${bucket}/files`);
    return body.map(({ name }: { name: string }) => name);
  }

  const keysOf = (printed: string) =>
    printed.split('\n').flatMap((line) => (line === '' ? [] : [JSON.parse(line).key]));

  test('is the folder for every command, and what only begins so takes a wildcard', async () => {
    await modelled('below');
    const place = 's3://below/my-model';
    assert.deepEqual(JSON.parse(await user.ok(['du', '--json', place])), { objects: 2, bytes: 6 });
    for (const args of [['tree'], ['ls', '-r'], ['ls', '--versions']])
      assert.deepEqual(keysOf(await user.ok([...args, '--json', place])), WITHIN, args.join(' '));
    assert.equal(await user.ok(['tree', place]), 's3://below/my-model\n  a  3 B\n  b/\n    c  3 B\n');
    await user.ok(['cp', '-r', place, 's3://below/copied']);
    await user.ok(['mv', '-r', 's3://below/copied', 's3://below/moved']);
    assert.deepEqual(await namesIn('below'), ['moved/a', 'moved/b/c', ...BESIDE, ...WITHIN].sort());
    assert.deepEqual(JSON.parse(await user.ok(['du', '--json', `${place}**`])), { objects: 5, bytes: 15 });
    await user.ok(['rm', '-r', '-y', 's3://below/moved']);
    await user.ok(['rm', '-r', '-y', place]);
    assert.deepEqual(await namesIn('below'), BESIDE);
    await user.ok(['rm', '-y', `${place}**`]);
    await user.ok(['undelete', '-r', place]);
    assert.deepEqual(await namesIn('below'), WITHIN);
    await user.ok(['rm', '-r', '--versions', '-y', place]);
    const left = new Set(keysOf(await user.ok(['ls', '--versions', '--json', 's3://below'])));
    assert.deepEqual(
      [...left].filter((key) => key.startsWith('my')),
      BESIDE,
    );
  });

  test('that is nowhere is told with what may have been meant', async () => {
    await modelled('nowhere');
    assert.match(await user.fails(5, ['rm', '-r', '-y', 's3://nowhere/my-mo']), /such as .*add \*\*/);
    assert.match(await user.fails(5, ['rm', '-r', 's3://nowhere/my-model.txt']), /leave out -r/);
    assert.match(await user.fails(5, ['rm', 's3://nowhere/my-model']), /use -r/);
    assert.match(await user.fails(5, ['cp', '-r', 's3://nowhere/my-mo', 'none']), /add \*\*/);
    assert.equal((await namesIn('nowhere')).length, 5);
    for (const args of [['rb'], ['mb'], ['bucket', 'points'], ['bucket', 'show'], ['bucket', 'rm', '-y']])
      assert.match(await user.fails(2, [...args, 's3://nowhere/my-model']), /names an object/);
  });

  test('can be a folder and an object: each is removed alone', async () => {
    await modelled('twice', ['my-model']);
    const place = 's3://twice/my-model';
    const du = await user.run(['du', place]);
    assert.match(du.stdout, /2 objects/);
    assert.match(du.stderr, /skipping the object s3:..twice.my-model: a folder has the same name/);
    assert.deepEqual(JSON.parse(await user.ok(['du', '--json', 's3://twice/my-model.txt'])).objects, 1);
    const { code, stderr } = await user.run(['rm', '-r', '-y', place]);
    assert.equal(code, 0, stderr);
    assert.match(stderr, /is also an object and is kept/);
    assert.deepEqual(await namesIn('twice'), ['my-model', ...BESIDE].sort());
    await user.ok(['rm', place]);
    assert.deepEqual(await namesIn('twice'), BESIDE);
  });

  test('with wildcards in its name is taken as it is with --literal', async () => {
    const odd = ['a*c', 'a?c', 'a[b]c', 'f*/in'];
    await modelled('literal', [...odd, 'abc', 'fg/in']);
    await user.ok(['rm', '--literal', 's3://literal/a*c']);
    await user.ok(['rm', '--literal', '-r', '-y', 's3://literal/f*']);
    await user.ok(['rm', 's3://literal/a[b]c']);
    assert.equal(
      await user.ok(['du', '--json', '--literal', 's3://literal/a?c']),
      '{"objects":1,"bytes":3}\n',
    );
    await user.ok(['mv', '--literal', 's3://literal/a?c', 's3://literal/moved?']);
    await user.ok(['cp', '--literal', 's3://literal/moved?', 'a*here']);
    await user.ok(['cp', 'a*here', 's3://literal/uploaded']);
    assert.deepEqual(
      await namesIn('literal'),
      ['abc', 'fg/in', 'moved?', ...BESIDE, ...WITHIN, 'uploaded'].sort(),
    );
    await user.ok(['undelete', '--literal', 's3://literal/a*c']);
    assert.ok((await namesIn('literal')).includes('a*c'));
    // All versions, but only of names that the pattern matches.
    await user.ok(['rm', '--versions', '-y', 's3://literal/*.txt']);
    const left = keysOf(await user.ok(['ls', '--versions', '--json', 's3://literal/my-model**']));
    assert.deepEqual(left, ['my-model-backup/x', ...WITHIN, 'my-models/y']);
  });

  test('that is a folder here and an object there is told each time, and leaves nothing', async () => {
    await api.call('/api/buckets', { json: { name: 'both' } });
    for (const name of ['a', 'a/b', 'c']) await api.upload('both', name, name);
    for (const [args, folder] of [
      [['sync', 's3://both', 'synced'], 'synced'],
      [['cp', '-r', '--jobs', '1', 's3://both', 'copied'], 'copied'],
    ] as const) {
      mkdirSync(path(`${folder}/a`), { recursive: true });
      for (let run = 0; run < 2; run++)
        assert.match(await user.fails(7, args), /a is a local folder/, `${folder} ${run}`);
      assert.deepEqual(readdirSync(path(folder)).sort(), ['a', 'c']);
      assert.deepEqual(readdirSync(path(`${folder}/a`)), ['b']);
    }
    assert.match(await user.fails(7, ['cp', 's3://both/a', 'synced/']), /a is a local folder/);
    // The file comes first here.
    for (let run = 0; run < 2; run++)
      assert.match(await user.fails(7, ['cp', '-r', '--jobs', '1', 's3://both', 'fresh']), /is a local file/);
    assert.deepEqual(readdirSync(path('fresh')).sort(), ['a', 'c']);
  });
});

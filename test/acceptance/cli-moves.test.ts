/** Several sources of one name, links, pipes: `mv` removes only sources that are stored. */
import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { notInstalled } from '../../scripts/installed.ts';
import { Client } from '../harness/client.ts';
import { CloudProcess } from '../harness/cloud-process.ts';
import { CliUser } from './cli-kit.ts';

const cloud = await CloudProcess.start();
const user = await CliUser.signedIn(cloud.api);
const api = new Client(cloud.api, user.key);
after(async () => {
  user.remove();
  await cloud.stop();
});
const path = (name: string) => join(user.home, name);

before(async () => {
  assert.equal((await api.call('/api/buckets', { json: { name: 'moving' } })).status, 201);
});

test('of two files with one name the second stays here', async () => {
  for (const folder of ['one', 'two']) {
    mkdirSync(path(folder));
    writeFileSync(path(`${folder}/a.txt`), folder);
    writeFileSync(path(`${folder}/${folder}.txt`), folder);
  }
  const said = await user.fails(7, ['mv', 'one/a.txt', 'two/a.txt', 's3://moving/in/']);
  assert.match(said, /two\/a\.txt → s3:\/\/moving\/in\/a\.txt: one\/a\.txt was just copied to this target/);
  assert.deepEqual([existsSync(path('one/a.txt')), readFileSync(path('two/a.txt'), 'utf8')], [false, 'two']);
  assert.equal(await user.ok(['cat', 's3://moving/in/a.txt']), 'one');
  writeFileSync(path('one/a.txt'), 'one');
  await user.fails(7, ['mv', '-r', 'one', 'two', 's3://moving/all']);
  assert.deepEqual([existsSync(path('one/one.txt')), existsSync(path('two/two.txt'))], [false, false]);
  assert.equal(readFileSync(path('two/a.txt'), 'utf8'), 'two');
});

test('of two objects with one name the second stays in the cloud', async () => {
  for (const folder of ['x', 'y']) await api.upload('moving', `${folder}/b.txt`, folder);
  await user.fails(7, ['mv', 's3://moving/x/b.txt', 's3://moving/y/b.txt', 'here/']);
  assert.equal(readFileSync(path('here/b.txt'), 'utf8'), 'x');
  assert.equal(await user.ok(['cat', 's3://moving/y/b.txt']), 'y');
  await api.upload('moving', 'x/b.txt', 'x');
  await user.fails(7, ['mv', 's3://moving/x/b.txt', 's3://moving/y/b.txt', 's3://moving/z/']);
  const both = ['s3://moving/z/b.txt', 's3://moving/y/b.txt'];
  assert.deepEqual(await Promise.all(both.map((object) => user.ok(['cat', object]))), ['x', 'y']);
  await user.fails(7, ['cp', 's3://moving/y/b.txt', 's3://moving/z/b.txt', 'copied/']);
  assert.equal(readFileSync(path('copied/b.txt'), 'utf8'), 'y');
});

test('a link that is named is the file it leads to', async () => {
  writeFileSync(path('real'), 'a real file');
  symlinkSync('real', path('link'));
  await user.ok(['cp', 'link', 's3://moving/linked']);
  assert.equal(await user.ok(['cat', 's3://moving/linked']), 'a real file');
});

test('a pipe is read to its end', { skip: notInstalled('mkfifo', 'sh') }, async () => {
  execFileSync('mkfifo', [path('pipe')]);
  spawn('sh', ['-c', `echo piped >'${path('pipe')}'`], { stdio: 'ignore' });
  await user.ok(['cp', path('pipe'), 's3://moving/piped']);
  assert.equal(await user.ok(['cat', 's3://moving/piped']), 'piped\n');
  await user.fails(2, ['mv', path('pipe'), 's3://moving/piped']);
});

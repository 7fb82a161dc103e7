/** Templates whose data is a single word, for two clouds of a host; the engine suites use real servers. */
import assert from 'node:assert/strict';
import * as fs from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import type { ServerFolders } from '../managed-server.ts';
import { DataTemplate, templateName } from './data-template.ts';

const NAME = templateName('15.1', ['--locale=C']);

function hostOf(t: TestContext) {
  const root = fs.mkdtempSync(join(tmpdir(), 'cloudlet-template-'));
  t.after(() => fs.rmSync(root, { recursive: true }));
  const shared = join(root, 'shared');
  let servers = 0;
  let made = 0;
  const make = async ({ home }: ServerFolders) => {
    made++;
    fs.mkdirSync(join(home, 'data'));
    fs.writeFileSync(join(home, 'data/word'), 'first');
  };
  /** A cloud's template; the result copies it to a new server, and returns the word there. */
  const cloud = (name: string) => {
    const folder = join(root, name);
    fs.mkdirSync(folder);
    const processes = { pathOf: async (path: string) => path };
    const template = new DataTemplate({ folder, shared, processes, uid: null, data: 'data' });
    return async (of = NAME, how = make, closing?: AbortSignal): Promise<string> => {
      const at = join(root, `server-${servers++}`);
      const to = { keeper: join(at, 'keeper'), home: join(at, 'home'), seen: at };
      for (const path of [to.keeper, to.home]) fs.mkdirSync(path, { recursive: true });
      await template.copy(of, { to, uid: null, make: how, ...(closing === undefined ? {} : { closing }) });
      assert.equal(fs.readFileSync(join(to.keeper, 'first-secret')).length, 32);
      return fs.readFileSync(join(to.home, 'data/word'), 'utf8');
    };
  };
  return { root, shared, cloud, made: () => made };
}

test('it is made once for all clouds, and again for another version or recipe', async (t) => {
  const { cloud, made } = hostOf(t);
  const [one, other] = [cloud('one'), cloud('other')];
  assert.deepEqual([await one(), await one(), await other()], ['first', 'first', 'first']);
  assert.equal(made(), 1);
  await one(templateName('15.2', ['--locale=C']));
  await other(templateName('15.1', ['--locale=C.UTF-8']));
  assert.equal(made(), 3);
});

test('two clouds may make it at once, and leave nothing else', async (t) => {
  const { shared, cloud } = hostOf(t);
  const [one, other] = [cloud('one'), cloud('other')];
  assert.deepEqual(await Promise.all([one(), other()]), ['first', 'first']);
  assert.deepEqual(fs.readdirSync(shared), [NAME]);
});

test('where the folder of the host cannot be written it is made in the cloud’s own', async (t) => {
  const { root, shared, cloud, made } = hostOf(t);
  fs.writeFileSync(shared, 'a file of that name');
  const one = cloud('one');
  assert.deepEqual([await one(), await one()], ['first', 'first']);
  assert.equal(made(), 1);
  assert.deepEqual(fs.readdirSync(join(root, 'one')), [NAME]);
});

test('one that could not be made, or was removed, is made by the next server', async (t) => {
  const { shared, cloud, made } = hostOf(t);
  const one = cloud('one');
  const fails = async () => Promise.reject(new Error('the disk is full'));
  await assert.rejects(one(NAME, fails), /the disk is full/);
  assert.deepEqual(fs.readdirSync(shared), []);
  assert.equal(await one(), 'first');
  fs.rmSync(join(shared, NAME), { recursive: true });
  assert.equal(await one(), 'first');
  assert.equal(made(), 2);
});

test('what a killed maker left is nobody’s first data, and goes after an hour', async (t) => {
  const { shared, cloud } = hostOf(t);
  const left = join(shared, '.making-killed');
  fs.mkdirSync(join(left, 'home/data'), { recursive: true });
  const one = cloud('one');
  assert.equal(await one(), 'first');
  assert.equal(fs.existsSync(left), true, 'its maker may live');
  const long = new Date(Date.now() - 2 * 3_600_000);
  fs.utimesSync(left, long, long);
  await one(templateName('15.2', []));
  assert.equal(fs.existsSync(left), false);
});

test('a cloud that stops ends its copy, and the next one has the data whole', async (t) => {
  const { shared, cloud, made, root } = hostOf(t);
  const one = cloud('one');
  const closing = new AbortController();
  const stopping = async (folders: ServerFolders) => {
    fs.mkdirSync(join(folders.home, 'data'));
    fs.writeFileSync(join(folders.home, 'data/word'), 'late');
    closing.abort(new Error('stopping'));
  };
  await assert.rejects(one(NAME, stopping, closing.signal), /stopping/);
  assert.deepEqual(fs.readdirSync(join(root, 'server-0/home')), []);
  assert.deepEqual(fs.readdirSync(shared), [NAME]);
  assert.equal(await one(), 'late');
  assert.equal(made(), 0);
});

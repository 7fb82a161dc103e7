import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';

const BUILD = join(import.meta.dirname, '../build/server/current');
const FILES = readdirSync(BUILD).filter((name) => name.endsWith('.js'));

test('the built server is plain ASCII: one other letter doubles the memory that the text of its file takes', () => {
  assert.ok(FILES.includes('main.js'));
  const others = FILES.filter((name) => /[^\0-\x7f]/.test(readFileSync(join(BUILD, name), 'latin1')));
  assert.deepEqual(others, []);
});

test('node:http is not imported: that would load all of its exports, with a client of HTTP', () => {
  const importing = FILES.filter((name) =>
    /\b(?:from|import)"(?:node:)?http"/.test(readFileSync(join(BUILD, name), 'latin1')),
  );
  assert.deepEqual(importing, []);
});

test('a process that has loaded the whole cloud has not loaded a client of HTTP', () => {
  // A hash in a name is base64url: it may contain a hyphen.
  const [cloud] = FILES.filter((name) => /^cloud-[\w-]{8}\.js$/.test(name));
  assert.ok(cloud);
  const words = `await import('${join(BUILD, cloud)}'); console.log(process.moduleLoadList.join(' '))`;
  const loaded = execFileSync(process.execPath, ['--input-type=module', '-e', words], { encoding: 'utf8' });
  assert.match(loaded, /NativeModule _http_server/);
  assert.doesNotMatch(loaded, /undici/);
});

test('a cloud loads the drivers of databases and bson only when it uses them', () => {
  const imported = new Set([
    'main.js',
    ...FILES.filter((name) => /^(?:start|cloud)-[\w-]{8}\.js$/.test(name)),
  ]);
  for (const name of imported) {
    const text = readFileSync(join(BUILD, name), 'latin1');
    for (const [, other = ''] of text.matchAll(/\b(?:from|import)"\.\/([^"]+)"/g)) imported.add(other);
  }
  assert.ok(imported.size > 10);
  // A class of each: pg's, the driver's and bson's.
  const costly = ['class BoundPool', 'MongoServerSelectionError', 'BSONVersionError'];
  const loaded = FILES.filter((name) => imported.has(name)).filter((name) => {
    const text = readFileSync(join(BUILD, name), 'latin1');
    return costly.some((what) => text.includes(what));
  });
  assert.deepEqual(loaded, []);
  const all = FILES.map((name) => readFileSync(join(BUILD, name), 'latin1')).join('');
  assert.deepEqual(
    costly.filter((what) => !all.includes(what)),
    [],
  );
});

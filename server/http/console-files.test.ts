import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import Fastify from 'fastify';
import { ConsoleFiles } from './console-files.ts';

const folder = mkdtempSync(join(tmpdir(), 'cloudlet-console-'));
after(() => rmSync(folder, { recursive: true }));
mkdirSync(join(folder, 'assets'));
writeFileSync(join(folder, 'index.html'), '<script nonce="CSP_NONCE" src="/assets/a-1.js"></script>');
writeFileSync(join(folder, 'assets/a-1.js'), 'plain');
writeFileSync(join(folder, 'assets/a-1.js.br'), 'brotli');
writeFileSync(join(folder, 'icon.svg'), '<svg/>');

function serve(from: string) {
  const files = new ConsoleFiles({ folder: from, dataUrl: () => 'http://data:9000' });
  const app = Fastify();
  app.decorateRequest('responseHeaders', null as never);
  app.addHook('onRequest', async (request) => {
    request.responseHeaders = {};
  });
  app.setNotFoundHandler((request, reply) => {
    if (!files.answer(request, reply)) reply.code(404).send();
  });
  const get = (url: string, headers: Record<string, string> = {}) => app.inject({ url, headers });
  return { files, get };
}

const HTML = { accept: 'text/html,*/*' };

test('every address of a browser gets the page, each time with another nonce', async () => {
  const { get } = serve(folder);
  const answers = [await get('/', HTML), await get('/storage/photos?prefix=a/', HTML)];
  const nonces = answers.map(({ body, headers }) => {
    const [, nonce = ''] = /nonce="([^"]+)"/.exec(body) ?? [];
    const policy = String(headers['content-security-policy']);
    assert.ok(policy.includes(`style-src 'self' 'nonce-${nonce}'`), policy);
    assert.ok(policy.includes("script-src 'self';"), policy);
    assert.match(policy, /img-src [^;]*http:\/\/data:9000/);
    return nonce;
  });
  assert.notEqual(nonces[0], nonces[1]);
  assert.doesNotMatch(nonces.join(), /CSP_NONCE/);
});

test('programs and missing files do not get the page', async () => {
  const { get } = serve(folder);
  assert.equal((await get('/storage')).statusCode, 404);
  assert.equal((await get('/assets/b-2.js', HTML)).statusCode, 404);
  assert.equal((await get('/assets/..%2findex.html', HTML)).statusCode, 404);
});

test('files come compressed to those who take it, and are kept for ever', async () => {
  const { get } = serve(folder);
  const packed = await get('/assets/a-1.js', { 'accept-encoding': 'gzip, br' });
  assert.deepEqual([packed.body, packed.headers['content-encoding']], ['brotli', 'br']);
  assert.equal(packed.headers['cache-control'], 'public, max-age=31536000, immutable');
  assert.equal(packed.headers['content-type'], 'text/javascript');
  const plain = await get('/assets/a-1.js');
  assert.deepEqual([plain.body, plain.headers['content-encoding']], ['plain', undefined]);
  assert.equal((await get('/icon.svg')).headers['cache-control'], 'no-cache');
});

test('without a build there is nothing to show', async () => {
  const { files, get } = serve(join(folder, 'none'));
  assert.equal(files.isBuilt, false);
  assert.equal((await get('/', HTML)).statusCode, 404);
});

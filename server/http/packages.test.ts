import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import Fastify from 'fastify';
import { isAppError } from '../platform/errors.ts';
import { Packages } from './packages.ts';

const folder = mkdtempSync(join(tmpdir(), 'cloudlet-client-'));
after(() => rmSync(folder, { recursive: true }));
const file = join(folder, 'cloudlet.tgz');
writeFileSync(file, 'a package');
const FILES = {
  '/cli/cloudlet.tgz': file,
  '/sdk/cloudlet-sdk.tgz': file,
  '/cli/unbuilt.tgz': join(folder, 'none'),
};
const sha256 = createHash('sha256').update('a package').digest();

function serve(publicUrl: string) {
  const packages = new Packages({ files: FILES, publicUrl });
  const app = Fastify();
  app.decorateRequest('responseHeaders', null as never);
  app.addHook('onRequest', async (request) => {
    request.responseHeaders = {};
  });
  app.setNotFoundHandler((request, reply) => {
    if (!packages.answer(request, reply)) reply.code(404).send();
  });
  app.setErrorHandler((error, _request, reply) => {
    reply.code(403).send(isAppError(error, 'https_required') ? error.hint : 'another error');
  });
  return (url: string, remoteAddress: string) => app.inject({ url, remoteAddress });
}

test('the package is served with its SHA-256, as a header and as a file beside it', async () => {
  const get = serve('');
  const answer = await get('/cli/cloudlet.tgz', '127.0.0.1');
  assert.equal(answer.body, 'a package');
  assert.equal(answer.headers['repr-digest'], `sha-256=:${sha256.toString('base64')}:`);
  const beside = await get('/cli/cloudlet.tgz.sha256', '::1');
  assert.equal(beside.body, `${sha256.toString('hex')}  cloudlet.tgz\n`);
  const sdk = await get('/sdk/cloudlet-sdk.tgz.sha256', '127.0.0.1');
  assert.equal(sdk.body, `${sha256.toString('hex')}  cloudlet-sdk.tgz\n`);
  const others = [
    '/cli/other',
    '/cli/unbuilt.tgz',
    '/cli/unbuilt.tgz.sha256',
    '/constructor',
    '/cli/cloudlet.tgz/',
  ];
  for (const other of others) assert.equal((await get(other, '127.0.0.1')).statusCode, 404, other);
});

test('beyond this host it is served by https alone', async () => {
  const cases = [
    { publicUrl: '', from: '127.0.0.1', status: 200 },
    { publicUrl: '', from: '192.0.2.7', status: 403 },
    { publicUrl: 'http://cloud.test', from: '127.0.0.1', status: 403 },
    { publicUrl: 'http://127.0.0.1:8080', from: '172.17.0.1', status: 200 },
    { publicUrl: 'http://[::1]:8080', from: '172.17.0.1', status: 200 },
    { publicUrl: 'https://cloud.test', from: '127.0.0.1', status: 200 },
    { publicUrl: 'https://cloud.test', from: '192.0.2.7', status: 200 },
  ];
  for (const { publicUrl, from, status } of cases) {
    for (const url of ['/cli/cloudlet.tgz', '/cli/cloudlet.tgz.sha256', '/sdk/cloudlet-sdk.tgz']) {
      const answer = await serve(publicUrl)(url, from);
      assert.equal(answer.statusCode, status, `${publicUrl} ${from}`);
      if (status === 403) assert.match(answer.body, /https/);
    }
  }
});

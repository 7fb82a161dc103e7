import assert from 'node:assert/strict';
import { test } from 'node:test';
import { declaredRoutes } from '../cloud/edges.ts';
import { unknownPath } from './route.ts';

const routes = declaredRoutes();
const said = (path: string, method = 'GET') => unknownPath(routes, method, path);

test('a mistyped path is told what it was probably meant to be', () => {
  const meant: Readonly<Record<string, string>> = {
    '/api/bukets': '/api/buckets',
    '/api/bucket': '/api/buckets',
    '/buckets': '/api/buckets',
    '/api/v1/buckets': '/api/buckets',
    '/api/buckets/': '/api/buckets',
    '/api//buckets?limit=1': '/api/buckets',
    '/api/buckets/my-photos/file': '/api/buckets/my-photos/files',
    '/api/vm/vm-1/start': '/api/vms/vm-1/start',
    '/api/healthz': '/healthz',
    '/Healthz': '/healthz',
  };
  for (const [path, hint] of Object.entries(meant)) {
    const error = said(path);
    assert.equal(error.code, 'not_found', path);
    assert.equal(error.hint, `Did you mean ${hint}?`, path);
  }
});

test('a path like none is told where all are', () => {
  for (const path of ['/wp-admin/setup.php', '/api/qqqqqqqqqq', '/api/buckets/a/b/c/d', '/%00']) {
    assert.equal(said(path).code, 'not_found', path);
    assert.equal(said(path).hint, 'See all calls at /api/docs', path);
  }
});

test('a path that has other methods names them', () => {
  const error = said('/api/buckets/photos?x=1', 'PUT');
  assert.equal(error.code, 'method_not_allowed');
  assert.equal(error.headers?.allow, 'GET, HEAD, PATCH, DELETE');
});

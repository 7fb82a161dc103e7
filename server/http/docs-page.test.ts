import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Type } from 'typebox';
import { ERRORS } from '../errors.ts';
import { docsPage } from './docs-page.ts';
import { openApi } from './openapi.ts';
import { defineRoute } from './route.ts';

const routes = [
  defineRoute({
    method: 'POST',
    path: '/api/things/{id}',
    name: 'makeThing',
    tag: 'storage',
    summary: 'Make <b>a</b> thing',
    description: 'At "once" & for all',
    permission: 'storage:write',
    params: Type.Object({ id: Type.String() }),
    body: Type.Object({
      title: Type.String({ description: '<script>alert(1)</script>' }),
      count: Type.Optional(Type.Integer({ default: 3 })),
    }),
    responses: { 201: Type.Object({}) },
    handler: () => ({}),
  }),
  defineRoute({
    method: 'POST',
    path: '/api/files',
    name: 'sendFile',
    tag: 'system',
    summary: 'Send',
    permission: 'public',
    consumes: 'multipart',
    body: Type.Object({ file: Type.String() }),
    responses: { 200: Type.Object({}) },
    handler: () => ({}),
  }),
];
const html = docsPage(openApi(routes, '1.2.3<'));

test('every call is there with its permission, parameters and a curl line', () => {
  assert.ok(html.includes('<details id="makeThing">'));
  assert.ok(html.includes('Permission: <code>storage:write</code>'));
  assert.ok(html.includes('<code>count</code> <span class="soft">optional</span>'));
  assert.ok(html.includes('integer, default 3'));
  assert.ok(html.includes('curl -X POST -H &quot;X-API-Key: $KEY&quot;'));
  assert.ok(html.includes('{&quot;title&quot;:&quot;&lt;title&gt;&quot;}'));
  assert.ok(html.includes('$CLOUD/api/things/&lt;id&gt;'));
});

test('a public call shows no key, an upload shows its file', () => {
  assert.ok(html.includes('curl -X POST -F file=@photo.jpg &quot;$CLOUD/api/files&quot;'));
});

test('every error code has the anchor that problem types point at', () => {
  for (const code of Object.keys(ERRORS)) assert.ok(html.includes(`<tr id="error-${code}">`), code);
});

test('nothing is loaded from elsewhere, and no text of a route becomes markup', () => {
  assert.doesNotMatch(html, /<(?:script|link|img|iframe)\b|\bsrc=|url\(|@import/);
  assert.doesNotMatch(html, /href="(?!#|\/api\/)/);
  assert.ok(html.includes('Make &lt;b&gt;a&lt;/b&gt; thing'));
  assert.ok(html.includes('At &quot;once&quot; &amp; for all'));
  assert.ok(html.includes('Version 1.2.3&lt;'));
});

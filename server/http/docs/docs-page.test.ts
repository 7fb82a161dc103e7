import assert from 'node:assert/strict';
import { test } from 'node:test';
import { declaredRoutes } from '../../cloud/edges.ts';
import { ERRORS } from '../../platform/errors.ts';
import { Type } from '../../platform/json/json-schema.ts';
import { defineRoute } from '../route.ts';
import { docsPage } from './docs-page.ts';
import { inlineOpenApi } from './openapi.ts';

const etag = Type.String({ description: 'Of the bytes' });
const routes = [
  defineRoute({
    method: 'POST',
    path: '/api/things/{id}',
    name: 'makeThing',
    tag: 'storage',
    summary: 'Make <b>a</b> thing',
    description: 'At "once" & for all, when its `state` is `ready`',
    permission: 'storage:write',
    params: Type.Object({ id: Type.String() }),
    body: Type.Object({
      title: Type.String({ description: '<script>alert(1)</script>' }),
      count: Type.Optional(Type.Integer({ default: 3, description: 'How many' })),
    }),
    responses: { 201: Type.Object({ parts: Type.Array(Type.Object({ etag })) }) },
    errors: ['bucket_exists'],
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
const html = docsPage(inlineOpenApi(routes, { version: '1.2.3<', hasAsync: true }));

test('every call is there with its permission, parameters, example, answer and failures', () => {
  assert.ok(html.includes('<details class="call" id="makeThing">'));
  assert.ok(html.includes('Needs a key with the scope <code>storage:write</code>'));
  assert.ok(html.includes('<code>count</code> <i>in the body, optional</i></td><td>integer</td>'));
  assert.ok(html.includes('<td>How many. Default: 3</td>'));
  assert.ok(html.includes('curl -X POST &quot;<span class="cloud">$CLOUD</span>/api/things/$THING_ID&quot;'));
  assert.ok(html.includes('-H &quot;X-API-Key: <span class="key">$KEY</span>&quot;'));
  assert.ok(html.includes('<h4>Response 201</h4>'));
  assert.ok(html.includes('<code>parts[].etag</code></td><td>string</td><td>Of the bytes</td>'));
  assert.ok(html.includes('<a href="#error-bucket_exists">bucket_exists</a> 409'));
});

test('a public call shows no key', () => {
  const send = html.slice(html.indexOf('id="sendFile"'));
  assert.ok(!send.slice(0, send.indexOf('</details>')).includes('X-API-Key'));
});

test('what stands between backticks is code', () => {
  assert.ok(html.includes('its <code>state</code> is <code>ready</code>'));
});

test('every error code has the anchor that problem types point at', () => {
  for (const code of Object.keys(ERRORS)) assert.ok(html.includes(`<tr id="error-${code}">`), code);
});

test('nothing is loaded from elsewhere, and no text of a route becomes markup', () => {
  const [before = '', script = '', after = ''] = html.split(/<\/?script>/);
  assert.equal(html.split('<script>').length, 2, 'its own script alone');
  assert.doesNotMatch(
    before + after,
    /<(?:script|img|iframe)\b|<link (?!rel="icon")|\bsrc=|url\(|@import|\son\w+=/,
  );
  assert.doesNotMatch(before + after, /href="(?!#|\/api\/|\/icon\.svg")/);
  assert.doesNotMatch(script, /https?:|import|eval|innerHTML|Storage/);
  assert.ok(html.includes('Make &lt;b&gt;a&lt;/b&gt; thing'));
  assert.ok(html.includes('At &quot;once&quot; &amp; for all'));
  assert.ok(html.includes('Version 1.2.3&lt;'));
});

test('the page of the whole API stays small', () => {
  const routes = declaredRoutes();
  const characters = docsPage(inlineOpenApi(routes, { version: '1', hasAsync: true })).length / routes.length;
  assert.ok(characters < 2500, `${characters} a route`);
});

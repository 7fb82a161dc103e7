import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ERRORS } from '../../platform/errors.ts';
import { referenceHeaders, referencePage } from './reference-page.ts';

test('every error code has the anchor that problem types point at', () => {
  const html = referencePage(undefined);
  for (const code of Object.keys(ERRORS)) assert.ok(html.includes(`<tr id="error-${code}">`), code);
});

test('no script runs but those of this origin and the one of the page, by its hash', () => {
  const policy = referenceHeaders(referencePage('/assets/scalar-1.js'))['content-security-policy'] ?? '';
  assert.match(policy, /script-src 'self' 'sha256-[\w+/]+=*';/);
  assert.doesNotMatch(policy, /script-src[^;]*unsafe|https?:|connect-src (?!'self';)/);
  assert.match(policy, /frame-ancestors 'self'/);
});

test('without the console, the page says how to build it', () => {
  assert.match(referencePage(undefined), /npm start/);
  assert.doesNotMatch(referencePage('/assets/scalar-1.js'), /npm start/);
});

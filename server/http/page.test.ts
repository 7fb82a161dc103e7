import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { test } from 'node:test';
import fc from 'fast-check';
import { SETUP_PAGE } from '../accounts/links/setup-page.ts';
import { escapeHtml, PAGE_ICON, PAGE_STYLE, pageHeaders } from './page.ts';

const sha256 = (text: string) => `'sha256-${createHash('sha256').update(text).digest('base64')}'`;
const policyOf = (html: string) => String(pageHeaders(html)['content-security-policy']);

test('exactly the style and script of the page are allowed', () => {
  const html = '<style>a{}</style><p>x</p><script>one()</script><script>two()</script>';
  const policy = policyOf(html);
  assert.ok(policy.includes(`style-src ${sha256('a{}')};`));
  assert.ok(policy.includes(`script-src ${sha256('one()')} ${sha256('two()')};`));
  assert.ok(!policy.includes('unsafe'));
});

test('a page without script allows none', () => {
  assert.match(policyOf('<p>x</p>'), /style-src 'none'; script-src 'none'/);
});

test('the set-up page has no style or script that its policy would block', () => {
  assert.doesNotMatch(SETUP_PAGE, /<(?:style|script)\s|\son\w+=|\sstyle=|javascript:/);
  assert.ok(SETUP_PAGE.includes(PAGE_STYLE));
  assert.ok(SETUP_PAGE.includes(PAGE_ICON));
  assert.match(policyOf(SETUP_PAGE), /img-src 'self'/);
});

test('escaped text has no markup left and reads the same', () => {
  const back: Readonly<Record<string, string>> = { amp: '&', lt: '<', gt: '>', quot: '"', '#39': "'" };
  fc.assert(
    fc.property(fc.string({ unit: fc.constantFrom('&', '<', '>', '"', "'", 'a', ';', 'l', 't') }), (text) => {
      const escaped = escapeHtml(text);
      assert.doesNotMatch(escaped, /[<>"']|&(?!(?:amp|lt|gt|quot|#39);)/);
      assert.equal(
        escaped.replace(/&(amp|lt|gt|quot|#39);/g, (_, name: string) => back[name] as string),
        text,
      );
    }),
  );
});

/** A second language is one object: with a missing or wrong text it does not compile. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { en } from './en/en.ts';
import { overview } from './en/pages/overview.ts';
import type { Texts } from './text.ts';

const forms = new Intl.PluralRules('pl');
const files = { one: 'plik', few: 'pliki', many: 'plików', other: 'pliku', zero: 'plików', two: 'pliki' };

const whole: Texts = {
  ...en,
  locale: 'pl',
  storage: { ...en.storage, files: (count) => `${count} ${files[forms.select(count)]}` },
  uploads: { ...en.uploads, summary: (done, all) => `z ${all}: ${done}` },
};

const { close: _, ...shell } = en.shell;
// @ts-expect-error: a text is missing.
const partial: Texts = { ...en, shell };
// @ts-expect-error: a text with a count in it cannot be one without.
const wrong: Texts = { ...en, uploads: { ...en.uploads, failed: true } };
// @ts-expect-error: a count comes as a number.
const formatted: Texts = { ...en, storage: { ...en.storage, files: (count: string) => count } };

test('another language has its own plurals and order of words', () => {
  assert.deepEqual([1, 3, 5].map(whole.storage.files), ['1 plik', '3 pliki', '5 plików']);
  assert.equal(whole.uploads.summary(2, 9), 'z 9: 2');
  assert.equal([partial, wrong, formatted].length, 3);
});

test('English counts one thing in the singular, and groups thousands as the reader does', () => {
  const grouped = new Intl.NumberFormat(navigator.languages).format(1200);
  assert.deepEqual([0, 1, 1200].map(en.storage.files), ['0 files', '1 file', `${grouped} files`]);
  assert.equal(overview.glance.inBuckets(1), 'in 1 bucket');
  assert.equal(en.administration.damaged(1), '1 is damaged:');
});

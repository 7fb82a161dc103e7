import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { AppError } from '../platform/errors.ts';
import { assertAccountFields, foldEmail, foldUsername } from './account-fields.ts';

function refused(fields: Parameters<typeof assertAccountFields>[0]): string[] {
  try {
    assertAccountFields(fields);
    return [];
  } catch (error) {
    assert.ok(error instanceof AppError);
    assert.equal(error.code, 'invalid_request');
    return (error.fields ?? []).map((problem) => problem.field);
  }
}

test('user names: 3 to 64 of the allowed characters', () => {
  for (const username of ['abc', 'A.b_c-9', '...', '-a-', 'x'.repeat(64)]) {
    assert.deepEqual(refused({ username }), [], username);
  }
  const bad = [
    '',
    'ab',
    'x'.repeat(65),
    'a b',
    'abc\n',
    '\nabc',
    'äbc',
    'ab@c',
    'a/b/c',
    'abc\0',
    'ａｂｃ',
    '😀😀😀',
  ];
  for (const username of bad) assert.deepEqual(refused({ username }), ['username'], JSON.stringify(username));
});

test('e-mail addresses', () => {
  for (const email of [
    'a@b',
    'user+tag@example.co.uk',
    'jörg@müller.de',
    'x.y@[1]'.replace('[1]', '1.2.3.4'),
  ]) {
    assert.deepEqual(refused({ email }), [], email);
  }
  const bad = [
    '',
    'plain',
    '@b',
    'a@',
    'a@b..c',
    'a@.b',
    'a@b.',
    'a b@c',
    'a@b c',
    'a@b@c',
    'a@b\n',
    'a\0@b',
    'a＠b@c',
  ];
  for (const email of [...bad, `${'x'.repeat(253)}@b`, 'a@b\ud800', 'a,b@c', '<a@b>']) {
    assert.deepEqual(refused({ email }), ['email'], JSON.stringify(email));
  }
  assert.deepEqual(refused({ email: `${'x'.repeat(252)}@b` }), []);
});

test('an e-mail address cannot fold to one that is none', () => {
  fc.assert(
    fc.property(
      fc.string({ unit: 'binary', maxLength: 20 }),
      fc.string({ unit: 'binary', maxLength: 20 }),
      (a, b) => {
        const email = `${a}@${b}`;
        if (refused({ email }).length > 0) return;
        assert.equal(foldEmail(email).split('@').length, 2);
        assert.equal(foldEmail(foldEmail(email)).length > 2, true);
      },
    ),
  );
});

test('passwords: 8 to 256 characters of any kind, counted as code points', () => {
  const good = [
    '12345678',
    '        ',
    '😀'.repeat(8),
    '😀'.repeat(256),
    'a\0\n\t\u202e\uffff12',
    'x'.repeat(256),
  ];
  for (const password of good) assert.deepEqual(refused({ password }), [], JSON.stringify(password));
  for (const password of ['', '1234567', '😀'.repeat(7), 'x'.repeat(257), '1234567\ud800']) {
    assert.deepEqual(refused({ password }), ['password'], JSON.stringify(password));
  }
});

test('all problems are named at once', () => {
  assert.deepEqual(refused({ username: '', email: '', password: '' }), ['username', 'email', 'password']);
});

test('case is folded', () => {
  assert.equal(foldUsername('ADA'), foldUsername('ada'));
  assert.equal(foldEmail('Ada@EXAMPLE.com'), foldEmail('ada@example.COM'));
  assert.equal(foldEmail('ＡＤＡ@example.com'), 'ada@example.com');
});

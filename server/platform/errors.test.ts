import assert from 'node:assert/strict';
import { STATUS_CODES } from 'node:http';
import { test } from 'node:test';
import { AppError, ERRORS, invalidField, isAppError } from './errors.ts';

test('every code is snake_case, with a real status of failure and a title', () => {
  for (const [code, { http, title }] of Object.entries(ERRORS)) {
    assert.match(code, /^[a-z]+(?:_[a-z]+)*$/);
    assert.ok(http >= 400 && http < 600 && STATUS_CODES[http] !== undefined, code);
    assert.match(title, /^[A-Z]/, code);
  }
});

test('an error carries what it was given and nothing else', () => {
  const cause = new Error('private');
  const fields = [{ field: 'a', message: 'b' }];
  const error = new AppError('not_found', 'why', { hint: 'h', fields, retryAfterSeconds: 3, cause });
  assert.deepEqual(
    [error.code, error.message, error.hint, error.fields, error.retryAfterSeconds, error.cause],
    ['not_found', 'why', 'h', fields, 3, cause],
  );
  assert.ok(!('cause' in new AppError('not_found', 'why')));
});

test('isAppError tells the code, and other errors apart', () => {
  const error: unknown = new AppError('not_found', '');
  assert.ok(isAppError(error) && isAppError(error, 'not_found') && !isAppError(error, 'rate_limited'));
  for (const other of [new Error('x'), { code: 'not_found' }, null, undefined, 'not_found']) {
    assert.ok(!isAppError(other));
  }
});

test('a wrong field is named in the sentence and in the list', () => {
  const { code, message, fields } = invalidField('size', 'is too big');
  assert.deepEqual([code, message], ['invalid_request', 'size: is too big']);
  assert.deepEqual(fields, [{ field: 'size', message: 'is too big' }]);
});

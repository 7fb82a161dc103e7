import assert from 'node:assert/strict';
import { test } from 'node:test';
import { AppError, ERRORS, type ErrorCode } from '../platform/errors.ts';
import { problemHeaders, toAppError, toProblem } from './response.ts';

const CODES = Object.keys(ERRORS) as ErrorCode[];

test('every code becomes a problem with all members, and never shows its cause', () => {
  for (const code of CODES) {
    const error = new AppError(code, 'the rule', { cause: new Error('a secret path') });
    const problem = toProblem(error, 'req-1');
    const { http, title } = ERRORS[code];
    const said = { title, status: http, detail: 'the rule', code, request_id: 'req-1', error: 'the rule' };
    assert.deepEqual(problem, { type: `/api/docs#error-${code}`, ...said });
    assert.ok(!JSON.stringify(problem).includes('secret'));
  }
});

test('hint and field problems are shown when there are any', () => {
  const fields = [{ field: 'name', message: 'is required' }];
  const problem = toProblem(new AppError('invalid_request', 'd', { hint: 'h', fields }), 'r');
  assert.equal(problem.hint, 'h');
  assert.deepEqual(problem.errors, fields);
});

test('further members are shown, and never in place of the standard ones', () => {
  const extra = { state: 'running', allowed: ['stop'], code: 'forged', status: 200 };
  const problem = toProblem(new AppError('vm_invalid_state', 'd', { extra }), 'r');
  const { http } = ERRORS.vm_invalid_state;
  assert.deepEqual(
    { ...problem, title: '', type: '' },
    {
      state: 'running',
      allowed: ['stop'],
      code: 'vm_invalid_state',
      status: http,
      detail: 'd',
      error: 'd',
      request_id: 'r',
      title: '',
      type: '',
    },
  );
});

test('429 and 503 always say when to come back, in whole seconds of at least one', () => {
  for (const code of CODES) {
    const mustWait = [429, 503].includes(ERRORS[code].http);
    assert.equal(problemHeaders(new AppError(code, ''))['retry-after'], mustWait ? '5' : undefined, code);
  }
  const waits = [
    [0, '1'],
    [0.2, '1'],
    [1.01, '2'],
    [30, '30'],
  ] as const;
  for (const [retryAfterSeconds, shown] of waits) {
    assert.equal(problemHeaders(new AppError('overloaded', '', { retryAfterSeconds }))['retry-after'], shown);
  }
});

test('401, and only 401, names the scheme; an error brings its own headers along', () => {
  for (const code of CODES) {
    const named = problemHeaders(new AppError(code, ''))['www-authenticate'] !== undefined;
    assert.equal(named, ERRORS[code].http === 401, code);
  }
  const headers = { allow: 'GET, POST' };
  assert.deepEqual(problemHeaders(new AppError('method_not_allowed', '', { headers })), headers);
});

test('an AppError passes as it is; what is unknown becomes an internal error that keeps its secret', () => {
  const own = new AppError('not_found', 'x');
  assert.equal(toAppError(own), own);
  for (const thrown of [new Error('SELECT password'), 'text', null, undefined, { code: 'E' }]) {
    const error = toAppError(thrown);
    assert.equal(error.code, 'internal_error');
    assert.equal(error.cause, thrown);
    assert.ok(!error.message.includes('password'));
  }
});

test('what the framework and a full disk throw is known', () => {
  const known: readonly [string, ErrorCode][] = [
    ['FST_ERR_CTP_INVALID_MEDIA_TYPE', 'unsupported_media_type'],
    ['FST_ERR_CTP_INVALID_CONTENT_LENGTH', 'bad_http'],
    ['FST_ERR_BAD_URL', 'bad_http'],
    ['ENOSPC', 'out_of_space'],
    ['EMFILE', 'insufficient_capacity'],
    ['EDQUOT', 'out_of_space'],
  ];
  for (const [code, expected] of known) {
    assert.equal(toAppError(Object.assign(new Error('x'), { code })).code, expected, code);
  }
});

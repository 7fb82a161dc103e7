import assert from 'node:assert/strict';
import { test } from 'node:test';
import { CloudError } from '../../../../sdk/problem.ts';
import { besideFields, fieldError } from './refusal.ts';

const refused = (...errors: { field: string; message: string }[]) =>
  new CloudError({ code: 'invalid_request', status: 400, detail: 'name: is required (and 1 more)', errors });
const NAME = { field: 'name', message: 'is required' };
const REGION = { field: 'region', message: 'is not known' };

test('of two refusals of which one is at its field, the other is said beside them', () => {
  const error = refused(NAME, REGION);
  assert.equal(fieldError(error, 'name'), 'is required');
  assert.deepEqual(besideFields(error, new Set(['name'])), {
    title: 'region is not known',
    detail: '',
    requestId: undefined,
  });
});

test('what is all at fields is not said again, and what is at none is said as it is', () => {
  assert.equal(
    besideFields(refused(NAME, { ...REGION, field: 'ports.0' }), new Set(['name', 'ports'])),
    null,
  );
  assert.equal(besideFields(refused(REGION), new Set(['name']))?.title, 'name: is required (and 1 more)');
  assert.equal(besideFields(refused(), new Set(['name']))?.title, 'name: is required (and 1 more)');
});

test('several entries of one list are all said at its field, the same words once', () => {
  const [one, other] = ['is no port', 'is taken'];
  const error = refused(...[one, other, one].map((message = '', at) => ({ field: `ports.${at}`, message })));
  assert.equal(fieldError(error, 'ports'), 'is no port. is taken');
});

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { S3Error } from '../../../libs/s3-wire/index.ts';
import type { CorsRule } from '../../storage/buckets/bucket-settings.ts';
import { corsHeaders, headerNames } from './cors.ts';

const rule = (more: Partial<CorsRule>): CorsRule => ({
  origins: ['https://a.test'],
  methods: ['PUT'],
  headers: ['x-*', 'Content-Type'],
  exposed: [],
  ...more,
});

test('patterns name origins and headers', () => {
  const allowed = (rules: readonly CorsRule[], origin: string, headers: readonly string[]) =>
    corsHeaders(rules, { origin, method: 'PUT', headers })?.['access-control-allow-origin'] ?? null;
  const one = [rule({})];
  assert.equal(allowed(one, 'https://a.test', ['x-amz-meta-a', 'content-type']), 'https://a.test');
  assert.equal(allowed(one, 'https://a.test', ['authorization']), null);
  assert.equal(allowed(one, 'https://b.test', []), null);
  const wild = [rule({ origins: ['https://*.test', '*'] })];
  assert.equal(allowed(wild, 'https://b.test', []), 'https://b.test');
  assert.equal(allowed(wild, 'http://b.example', []), '*');
  assert.equal(allowed([rule({ origins: ['https://a*a.test'] })], 'https://a.test', []), null);
});

test('a preflight asks for each header once, and for 100 at most', () => {
  assert.deepEqual(headerNames(' X-A, x-a,,X-B '), ['x-a', 'x-b']);
  const many = (count: number) => Array.from({ length: count }, (_, index) => `x${index}`).join(',');
  assert.equal(headerNames(many(100)).length, 100);
  assert.throws(
    () => headerNames(many(101)),
    (error) => error instanceof S3Error && error.code === 'BadRequest',
  );
});

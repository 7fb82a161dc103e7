import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { S3Error } from '../../libs/s3-wire/index.ts';
import { randomFrom } from '../testing/random.ts';
import { readTarget } from './target.ts';

const DOMAINS = ['s3.example.com', 'localhost'];
const read = (rawUrl: string, host = '127.0.0.1:8080') => readTarget(rawUrl, host, DOMAINS);
const named = (rawUrl: string, host?: string) => {
  const { bucket, key } = read(rawUrl, host);
  return [bucket, key];
};
const isCode = (code: string) => (error: unknown) => error instanceof S3Error && error.code === code;

describe('path style', () => {
  const cases: readonly [rawUrl: string, bucket: string | null, key: string | null][] = [
    ['/', null, null],
    ['//', null, null],
    ['/?list-type=2', null, null],
    ['/b', 'b', null],
    ['/b/', 'b', null],
    ['/b/?acl', 'b', null],
    ['/b/k', 'b', 'k'],
    ['/b/a//b', 'b', 'a//b'],
    ['/b//a', 'b', '/a'],
    ['/b//', 'b', '/'],
    ['/b/../x', 'b', '../x'],
    ['/b/.', 'b', '.'],
    ['/b/..', 'b', '..'],
    ['/b/a/', 'b', 'a/'],
    ['/b/%2e%2E/x', 'b', '../x'],
    ['/b/a%2Fb', 'b', 'a/b'],
    ['/b/%252F', 'b', '%2F'],
    ['/b/a+b%2Bc%20d', 'b', 'a+b+c d'],
    ['/b/%3Fx?y', 'b', '?x'],
    ['/b/a?b?c', 'b', 'a'],
    ['/b/a#b', 'b', 'a#b'],
    ['/b/%E2%82%AC', 'b', '€'],
    ['/b/\xe2\x82\xac', 'b', '€'],
    ['/b/%EF%BB%BFa', 'b', '\uFEFFa'],
    ['/b/%01%0D', 'b', '\u0001\r'],
    ['/acct%3Ab/k', 'acct:b', 'k'],
    ['/b%2Fc/k', 'b/c', 'k'],
    ['http://127.0.0.1:8080/b/k?acl', 'b', 'k'],
    ['http://127.0.0.1', null, null],
  ];
  for (const [rawUrl, bucket, key] of cases) {
    test(rawUrl, () => assert.deepEqual(named(rawUrl), [bucket, key]));
  }
});

describe('virtual-host style', () => {
  const cases: readonly [host: string, rawUrl: string, bucket: string | null, key: string | null][] = [
    ['b.s3.example.com', '/', 'b', null],
    ['b.s3.example.com:8080', '/k/l', 'b', 'k/l'],
    ['B.S3.Example.com.', '//a', 'b', '/a'],
    ['a.b.s3.example.com', '/k', 'a.b', 'k'],
    ['b.localhost:80', '/b/k', 'b', 'b/k'],
    ['s3.example.com', '/b/k', 'b', 'k'],
    ['.s3.example.com', '/b/k', 'b', 'k'],
    ['xs3.example.com', '/b/k', 'b', 'k'],
    ['b.s3.example.com.evil.org', '/b/k', 'b', 'k'],
    ['[::1]:8080', '/b/k', 'b', 'k'],
    ['', '/b/k', 'b', 'k'],
  ];
  for (const [host, rawUrl, bucket, key] of cases) {
    test(`${host} ${rawUrl}`, () => assert.deepEqual(named(rawUrl, host), [bucket, key]));
  }
});

describe('refused', () => {
  const cases: readonly [rawUrl: string, code: string][] = [
    ['/b/%', 'InvalidURI'],
    ['/b/%4', 'InvalidURI'],
    ['/b/%zz', 'InvalidURI'],
    ['/b/%00', 'InvalidURI'],
    ['/b/%FF', 'InvalidURI'],
    ['/b/%ED%A0%80', 'InvalidURI'],
    ['/b/%C0%80', 'InvalidURI'],
    ['/b/\xe9', 'InvalidURI'],
    ['/b/k?prefix=%F', 'InvalidURI'],
    ['/b/k?%FF', 'InvalidURI'],
    ['*', 'InvalidURI'],
    ['', 'InvalidURI'],
    ['b/k', 'InvalidURI'],
    ['//k', 'InvalidBucketName'],
    [`/b/${'k'.repeat(1025)}`, 'KeyTooLongError'],
    [`/b/${'%E2%82%AC'.repeat(342)}`, 'KeyTooLongError'],
  ];
  for (const [rawUrl, code] of cases) {
    test(rawUrl.slice(0, 30) || 'nothing', () => assert.throws(() => read(rawUrl), isCode(code)));
  }
});

test('keys of 1,024 bytes come through, whatever their characters', () => {
  assert.equal(read(`/b/${'k'.repeat(1024)}`).key?.length, 1024);
  const below = randomFrom(3);
  for (let round = 0; round < 500; round += 1) {
    const codes = Array.from({ length: 1 + below(256) }, () => 1 + below(below(2) === 0 ? 0x10ffff : 0x7f));
    const key = String.fromCodePoint(...codes.filter((code) => code < 0xd800 || code > 0xdfff));
    const raw = [...Buffer.from(key)].map((byte) => `%${byte.toString(16).padStart(2, '0')}`).join('');
    assert.equal(read(`/b/${raw}`).key, key === '' ? null : key);
  }
});

test('the query: the first of a name wins, plus is a space, the raw text stays', () => {
  const { query, rawQuery, rawPath } = read('/b/a%2f?acl&prefix=a+b%2B%26&prefix=c&=x&max-keys=&a%3Db=c=d&&');
  assert.deepEqual(
    [...query],
    [
      ['acl', ''],
      ['prefix', 'a b+&'],
      ['', 'x'],
      ['max-keys', ''],
      ['a=b', 'c=d'],
    ],
  );
  assert.equal(rawPath, '/b/a%2f');
  assert.equal(rawQuery, 'acl&prefix=a+b%2B%26&prefix=c&=x&max-keys=&a%3Db=c=d&&');
});

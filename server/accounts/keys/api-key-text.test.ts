import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { apiKeyTextProblem, hashSecret, newApiKey } from './api-key-text.ts';

const isApiKeyText = (text: string) => apiKeyTextProblem(text) === undefined;

test('a new key has the contract’s form and a right checksum', () => {
  const seen = new Set<string>();
  for (let i = 0; i < 1000; i++) {
    const key = newApiKey();
    assert.match(key, /^clk_[0-9A-Za-z]{32}[0-9A-Za-z]{6}$/);
    assert.ok(isApiKeyText(key));
    seen.add(key);
  }
  assert.equal(seen.size, 1000);
});

test('the checksum is CRC-32 in base62, padded to 6', () => {
  // Computed with Python's binascii.crc32.
  assert.ok(isApiKeyText('clk_000000000000000000000000000000000HTqEy'));
  assert.ok(isApiKeyText('clk_abcdefghijklmnopqrstuvwxyz0123453ljCdw'));
  assert.ok(!isApiKeyText('clk_00000000000000000000000000000000HTqEy0'));
});

test('every change of one character is noticed', () => {
  const characters = [...'0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'];
  fc.assert(
    fc.property(fc.nat(37), fc.constantFrom(...characters), (position, character) => {
      const key = newApiKey();
      const at = position + 4;
      fc.pre(key.charAt(at) !== character);
      assert.equal(isApiKeyText(key.slice(0, at) + character + key.slice(at + 1)), false);
    }),
  );
});

test('no other text passes', () => {
  const key = newApiKey();
  const others = [
    '',
    'clk_',
    key.slice(1),
    ` ${key}`,
    `${key}\n`,
    `${key}0`,
    key.toUpperCase(),
    `CLK${key.slice(3)}`,
  ];
  for (const text of others) assert.equal(isApiKeyText(text), false, JSON.stringify(text));
  fc.assert(fc.property(fc.string({ unit: 'binary' }), (text) => assert.equal(isApiKeyText(text), false)));
});

test('secrets are stored as SHA-256', () => {
  // FIPS 180-4 example: SHA-256("abc").
  assert.equal(hashSecret('abc'), 'ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad');
});

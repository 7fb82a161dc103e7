import assert from 'node:assert/strict';
import { test } from 'node:test';
import { randomSecret } from '../../platform/ids.ts';
import { CustomerKey } from './customer-key.ts';

test('a key fits its own records only, no two of which are alike', () => {
  const bytes = randomSecret(32);
  const [key, same, other] = [bytes, bytes, randomSecret(32)].map((each) => new CustomerKey(each));
  const [one, two] = [key?.record(), key?.record()];
  assert.ok(key && same && other && one && two);
  assert.notDeepEqual(one, two);
  for (const record of [one, two]) {
    assert.deepEqual([key.fits(record), same.fits(record), other.fits(record)], [true, true, false]);
  }
  assert.ok(!one.includes(bytes) && !one.includes(bytes.subarray(0, 8)));
  assert.ok(!key.fits(new Uint8Array()) && !key.fits(one.subarray(0, 40)));
});

test('bytes are decrypted from any offset, and differently for each record', () => {
  const key = new CustomerKey(randomSecret(32));
  const [record, other] = [key.record(), key.record()];
  const plain = randomSecret(1000);
  const seal = key.cipher(record);
  const sealed = Buffer.concat([seal(plain.subarray(0, 333)), seal(plain.subarray(333))]);
  assert.notDeepEqual(sealed, plain);
  assert.notDeepEqual(key.cipher(other)(plain), sealed);
  for (const offset of [0, 1, 15, 16, 17, 31, 32, 333, 999, 1000]) {
    assert.deepEqual(key.cipher(record, offset)(sealed.subarray(offset)), plain.subarray(offset));
  }
});

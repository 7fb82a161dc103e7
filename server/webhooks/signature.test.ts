import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { isGenuine } from '../../test/harness/webhook-receiver.ts';
import { cases } from '../testing/cases.ts';
import { newWebhookSecret, signedHeaders } from './signature.ts';

interface Signed {
  readonly id: string;
  readonly timestamp: string;
  readonly signature: string;
  readonly body: string;
}

function sign(message: { id: string; timestamp: number; body: string }, secrets: readonly string[]): Signed {
  const headers = signedHeaders(message, secrets);
  return {
    id: headers['webhook-id'] ?? '',
    timestamp: headers['webhook-timestamp'] ?? '',
    signature: headers['webhook-signature'] ?? '',
    body: message.body,
  };
}

test('the signature of the reference libraries', () => {
  const message = {
    id: 'msg_p5jXN8AQM9LWM0D4loKWxJek',
    timestamp: 1614265330,
    body: '{"test": 2432232314}',
  };
  const { signature } = sign(message, ['whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw']);
  assert.equal(signature, 'v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=');
});

test('a secret is whsec_ and the base64 of 24 to 64 bytes, another one each time', () => {
  const secrets = Array.from({ length: 50 }, () => newWebhookSecret());
  assert.equal(new Set(secrets).size, 50);
  for (const secret of secrets) {
    assert.match(secret, /^whsec_[A-Za-z0-9+/]+=*$/);
    const { length } = Buffer.from(secret.slice(6), 'base64');
    assert.ok(length >= 24 && length <= 64, String(length));
  }
});

test('what is signed verifies, with each of its secrets and no other; one changed character does not', async () => {
  const message = fc.record({
    id: fc.stringMatching(/^evt-[0-9a-z]{26}$/),
    timestamp: fc.integer({ min: 0, max: 2 ** 33 }),
    body: fc.json(),
  });
  const count = fc.integer({ min: 1, max: 2 });
  await fc.assert(
    fc.asyncProperty(message, count, fc.nat(), async (wanted, secretCount, index) => {
      const secrets = Array.from({ length: secretCount }, () => newWebhookSecret());
      const signed = sign(wanted, secrets);
      assert.equal(signed.signature.split(' ').length, secretCount);
      for (const secret of secrets) assert.ok(await isGenuine(secret, signed));
      assert.ok(!(await isGenuine(newWebhookSecret(), signed)));
      const fields = ['id', 'timestamp', 'body'] as const;
      const field = fields[index % fields.length] ?? 'body';
      const at = index % signed[field].length;
      const other = String.fromCharCode(signed[field].charCodeAt(at) ^ 1);
      const changed = {
        ...signed,
        [field]: signed[field].slice(0, at) + other + signed[field].slice(at + 1),
      };
      for (const secret of secrets) assert.ok(!(await isGenuine(secret, changed)), `${field} at ${at}`);
    }),
    { numRuns: cases(200) },
  );
});

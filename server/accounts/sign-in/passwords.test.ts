import assert from 'node:assert/strict';
import { argon2Sync } from 'node:crypto';
import { test } from 'node:test';
import { isAppError } from '../../platform/errors.ts';
import { Passwords } from './passwords.ts';

const cheap = { memoryKib: 64, passes: 1 };

test('the stored form is a PHC string of the contract’s cost, and node:crypto agrees with it', async () => {
  const passwords = new Passwords();
  const stored = await passwords.hash('correct horse');
  const match = /^\$argon2id\$v=19\$m=47104,t=1,p=1\$([A-Za-z0-9+/]{22})\$([A-Za-z0-9+/]{43})$/.exec(stored);
  assert.ok(match);
  const tag = argon2Sync('argon2id', {
    message: 'correct horse',
    nonce: Buffer.from(match[1] ?? '', 'base64'),
    memory: 47104,
    passes: 1,
    parallelism: 1,
    tagLength: 32,
  });
  assert.equal(tag.toString('base64').replace('=', ''), match[2]);
  assert.equal(await passwords.verify('correct horse', stored), true);
  assert.equal(await passwords.verify('correct horsf', stored), false);
});

test('salts differ, and hashes of another cost still verify', async () => {
  const passwords = new Passwords({ cost: cheap });
  const [one, two] = [await passwords.hash('same same'), await passwords.hash('same same')];
  assert.notEqual(one, two);
  assert.equal(await new Passwords({ cost: { memoryKib: 128, passes: 2 } }).verify('same same', one), true);
});

test('long, odd and differently composed passwords', async () => {
  const passwords = new Passwords({ cost: cheap });
  const long = '😀'.repeat(256);
  const stored = await passwords.hash(long);
  assert.equal(await passwords.verify(long, stored), true);
  assert.equal(await passwords.verify(long.slice(0, -2), stored), false);
  assert.equal(await passwords.verify('\0'.repeat(8), await passwords.hash('\0'.repeat(9))), false);
  assert.equal(await passwords.verify('cafe\u0301 noir', await passwords.hash('caf\u00e9 noir')), true);
});

test('an unknown account costs one hash like a known one, and is never right', async () => {
  const passwords = new Passwords({ cost: cheap });
  const stored = await passwords.hash('some password');
  for (const target of [stored, null, '', 'not a hash', '$argon2id$v=19$m=64,t=1,p=1$$']) {
    const before = passwords.computed;
    assert.equal(await passwords.verify('other password', target), false);
    assert.equal(passwords.computed - before, 1, String(target));
  }
});

test('at most 2 run and 100 wait; the next is refused and the rest finish', async () => {
  const passwords = new Passwords({ cost: cheap });
  let running = 0;
  let most = 0;
  const admit = () => {
    running++;
    most = Math.max(most, running);
  };
  const attempts = Array.from({ length: 110 }, () =>
    passwords.verify('password', null, { admit }).finally(() => running--),
  );
  const results = await Promise.allSettled(attempts);
  const refused = results.filter((result) => result.status === 'rejected');
  assert.equal(refused.length, 8);
  assert.ok(refused.every((result) => isAppError(result.reason, 'overloaded')));
  assert.ok(refused.every((result) => (result.reason.retryAfterSeconds ?? 0) > 0));
  assert.equal(passwords.computed, 102);
  assert.equal(most, 2);
  assert.equal(await passwords.verify('password', await passwords.hash('password')), true);
});

test('a flood from one address takes no slot from another; a whole /64 is one', async () => {
  const passwords = new Passwords({ cost: cheap });
  const stored = await passwords.hash('password');
  const flood = ['10.0.0.1', '2001:db8::'].flatMap((address) =>
    Array.from({ length: 300 }, (_, i) =>
      passwords.verify('guess', stored, { address: address.endsWith(':') ? `${address}${i}` : address }),
    ),
  );
  const settled = Promise.allSettled(flood);
  const others = ['10.0.0.2', '2001:db8:0:1::1', ''].map((address) =>
    passwords.verify('password', stored, { address }),
  );
  assert.deepEqual(await Promise.all(others), [true, true, true]);
  const refused = (await settled).filter(({ status }) => status === 'rejected');
  assert.equal(refused.length, 600 - 2 - 100 + others.length);
});

test('who is not admitted costs no hash and blocks nobody', async () => {
  const passwords = new Passwords({ cost: cheap });
  const refuse = () => {
    throw new Error('no');
  };
  for (let i = 0; i < 5; i++)
    await assert.rejects(passwords.verify('password', null, { admit: refuse }), /no/);
  assert.equal(passwords.computed, 0);
  assert.equal(await passwords.verify('password', null), false);
});

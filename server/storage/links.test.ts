import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { FakeClock } from '../clock.ts';
import { isAppError } from '../errors.ts';
import { newId, randomSecret } from '../ids.ts';
import { type LinkQuery, Links, type LinkTarget } from './links.ts';

const clock = new FakeClock();
const secret = randomSecret(32);
const links = new Links(secret, clock);
const objectId = newId('obj', clock);
const versionId = newId('ver', clock);
const isRefused = (error: unknown) => isAppError(error, 'invalid_link');

/** 43 characters hold two bits more than the 32 bytes have. */
function withOtherBitsAtItsEnd(signature: string): string {
  const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';
  return signature.slice(0, -1) + alphabet[alphabet.indexOf(signature.slice(-1)) ^ 1];
}

/** As the edge reads it. */
function read(query: string): LinkQuery {
  const params = new URLSearchParams(query);
  const version = params.get('version_id');
  return {
    ...(version === null ? {} : { version_id: version }),
    expires: Number(params.get('expires')),
    signature: params.get('signature') ?? '',
  };
}

test('a link works for its object until its last second', () => {
  const own = new FakeClock();
  const signer = new Links(secret, own);
  for (const target of [{ objectId }, { objectId, versionId }] satisfies LinkTarget[]) {
    const { query, expiresAt } = signer.sign(target, 60);
    assert.equal(expiresAt, own.now() + 60_000);
    assert.equal(signer.check(objectId, read(query)), 60);
    own.advance(59_999);
    assert.equal(signer.check(objectId, read(query)), 1);
    own.advance(1);
    assert.throws(() => signer.check(objectId, read(query)), /expired/);
  }
});

test('a link of another object, version, expiry or cloud is refused', () => {
  const given = read(links.sign({ objectId, versionId }, 60).query);
  const { version_id: _, ...withoutVersion } = given;
  const changed: LinkQuery[] = [
    withoutVersion,
    { ...given, version_id: newId('ver', clock) },
    { ...given, expires: (given.expires ?? 0) + 1 },
    { ...given, expires: undefined },
    { ...given, signature: undefined },
    { ...given, signature: '' },
    { ...given, signature: `${given.signature}AAAA` },
    // The same bytes to a decoder that passes over what does not belong.
    { ...given, signature: `${given.signature}=` },
    { ...given, signature: ` ${given.signature}` },
    { ...given, signature: `${given.signature?.slice(0, 5)}!${given.signature?.slice(5)}` },
    { ...given, signature: given.signature?.replaceAll('-', '+').replaceAll('_', '/').padEnd(44, '=') },
    { ...given, signature: withOtherBitsAtItsEnd(given.signature ?? '') },
    { ...given, signature: 'é'.repeat(43) },
  ];
  for (const query of changed)
    assert.throws(() => links.check(objectId, query), isRefused, JSON.stringify(query));
  assert.throws(() => links.check(newId('obj', clock), given), isRefused);
  assert.throws(() => new Links(randomSecret(32), clock).check(objectId, given), isRefused);
  const whole = read(links.sign({ objectId }, 60).query);
  assert.throws(() => links.check(objectId, { ...whole, version_id: versionId }), isRefused);
});

test('no part of what is signed can be moved into another', () => {
  const part = fc.string({ unit: fc.constantFrom('a', '\n', '1'), maxLength: 6 });
  const target = fc.record({ objectId: part, versionId: fc.option(part, { nil: undefined }) });
  fc.assert(
    fc.property(target, target, (signed, asked) => {
      // An empty version is no version.
      const same = signed.objectId === asked.objectId && (signed.versionId ?? '') === (asked.versionId ?? '');
      // Ids have no line ends; one with a line end is never signed.
      fc.pre(!same && !`${signed.objectId}${signed.versionId}`.includes('\n'));
      const { expiresAt, query } = links.sign(signed, 60);
      const { signature } = read(query);
      const given = { version_id: asked.versionId, expires: expiresAt / 1000, signature };
      assert.throws(() => links.check(asked.objectId, given), isRefused);
    }),
  );
});

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import fc from 'fast-check';
import type { Principal } from '../../calls/principal.ts';
import { BACKGROUND } from '../../metadata/change.ts';
import { isAppError } from '../../platform/errors.ts';
import { newId, randomSecret } from '../../platform/ids.ts';
import { type AccountFixture, by, openAccountFixture, shown } from '../../testing/account-fixture.ts';
import { type LinkQuery, Links, type LinkTarget } from './links.ts';

let fixture: AccountFixture;
let links: Links;
/** The account's own key, and one of its sessions. */
let owner: Principal;
let session: Principal;
let objectId: string;
let versionId: string;
const password = 'correct horse';

before(async () => {
  fixture = await openAccountFixture();
  links = newLinks();
  const fields = { username: 'ada', email: 'ada@example.org', password };
  const { api_key } = await fixture.accounts.register(BACKGROUND, fields);
  owner = await fixture.authenticator.authenticate({ apiKey: api_key ?? '' });
  const login = await fixture.sessions.login(BACKGROUND, { name: 'ada', password, address: '::1' });
  session = await fixture.authenticator.authenticate(shown(login));
  objectId = newId('obj', fixture.clock);
  versionId = newId('ver', fixture.clock);
});
after(() => fixture.close());

function newLinks(): Links {
  const { apiKeys, authenticator, clock } = fixture;
  const keys = {
    currentId: (accountId: number) => apiKeys.currentId(accountId),
    holderOf: (keyId: string) => authenticator.holderOf(keyId),
  };
  return new Links({ secret: randomSecret(32), clock, keys });
}

/** An additional key of the account, as the caller. */
async function newKey(expiresIn?: number): Promise<Principal> {
  const ends = expiresIn === undefined ? {} : { expires_in: expiresIn };
  const body = { name: 'k', scopes: ['storage:read' as const], ...ends };
  const { api_key } = await fixture.accessKeys.create(by(owner), body);
  return await fixture.authenticator.authenticate({ apiKey: api_key });
}

const isRefused = (error: unknown) => isAppError(error, 'invalid_link');
const refuses = (id: string, query: LinkQuery, by = links) =>
  assert.rejects(by.check(id, query), isRefused, JSON.stringify(query));

/** 43 characters hold two bits more than 32 bytes. */
function withOtherBitsAtItsEnd(signature: string): string {
  const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';
  return signature.slice(0, -1) + alphabet[alphabet.indexOf(signature.slice(-1)) ^ 1];
}

/** As parsed by the edge. */
function read(query: string): LinkQuery {
  const params = new URLSearchParams(query);
  const version = params.get('version_id');
  return {
    ...(version === null ? {} : { version_id: version }),
    key_id: params.get('key_id') ?? '',
    expires: Number(params.get('expires')),
    signature: params.get('signature') ?? '',
  };
}

test('a link works for its object until its last second', async () => {
  for (const target of [{ objectId }, { objectId, versionId }] satisfies LinkTarget[]) {
    const { query, expiresAt } = await links.sign(owner, target, 60);
    assert.equal(expiresAt, fixture.clock.now() + 60_000);
    const { holder, secondsLeft } = await links.check(objectId, read(query));
    assert.deepEqual([holder.accountId, secondsLeft], [owner.accountId, 60]);
    fixture.clock.advance(59_999);
    assert.equal((await links.check(objectId, read(query))).secondsLeft, 1);
    fixture.clock.advance(1);
    await assert.rejects(links.check(objectId, read(query)), /expired/);
  }
});

test('a link of another object, version, key, expiry or cloud is refused', async () => {
  const given = read((await links.sign(owner, { objectId, versionId }, 60)).query);
  const { version_id: _, ...withoutVersion } = given;
  const changed: LinkQuery[] = [
    withoutVersion,
    { ...given, version_id: newId('ver', fixture.clock) },
    { ...given, key_id: (await newKey()).credentialId },
    { ...given, key_id: undefined },
    { ...given, expires: (given.expires ?? 0) + 1 },
    { ...given, expires: undefined },
    { ...given, signature: undefined },
    { ...given, signature: '' },
    { ...given, signature: `${given.signature}AAAA` },
    // The same bytes for a decoder that ignores invalid characters.
    { ...given, signature: `${given.signature}=` },
    { ...given, signature: ` ${given.signature}` },
    { ...given, signature: `${given.signature?.slice(0, 5)}!${given.signature?.slice(5)}` },
    { ...given, signature: given.signature?.replaceAll('-', '+').replaceAll('_', '/').padEnd(44, '=') },
    { ...given, signature: withOtherBitsAtItsEnd(given.signature ?? '') },
    { ...given, signature: 'é'.repeat(43) },
  ];
  for (const query of changed) await refuses(objectId, query);
  await refuses(newId('obj', fixture.clock), given);
  await refuses(objectId, given, newLinks());
  const whole = read((await links.sign(owner, { objectId }, 60)).query);
  await refuses(objectId, { ...whole, version_id: versionId });
});

test('no part of what is signed can be moved into another', async () => {
  const part = fc.string({ unit: fc.constantFrom('a', '\n', '1'), maxLength: 6 });
  const target = fc.record({ objectId: part, versionId: fc.option(part, { nil: undefined }) });
  await fc.assert(
    fc.asyncProperty(target, target, async (signed, asked) => {
      // An empty version ID is not a version.
      const same = signed.objectId === asked.objectId && (signed.versionId ?? '') === (asked.versionId ?? '');
      // Ids have no line ends; one with a line end is never signed.
      fc.pre(!same && !`${signed.objectId}${signed.versionId}`.includes('\n'));
      const given = read((await links.sign(owner, signed, 60)).query);
      await refuses(asked.objectId, { ...given, version_id: asked.versionId });
    }),
  );
});

test('a link ends with the key it was made with', async () => {
  const brief = await newKey(100);
  const { query, expiresAt } = await links.sign(brief, { objectId }, 3600);
  assert.equal(expiresAt, brief.keyExpiresAt);
  const sooner = await links.sign(brief, { objectId }, 60);
  assert.equal(sooner.expiresAt, fixture.clock.now() + 60_000);
  fixture.clock.advance(99_000);
  assert.equal((await links.check(objectId, read(query))).secondsLeft, 1);
  fixture.clock.advance(1000);
  await refuses(objectId, read(query));
});

test('revoking a key ends its links at once, and no others', async () => {
  const [one, two] = [await newKey(), await newKey()];
  const sign = async (by: Principal) => read((await links.sign(by, { objectId }, 3600)).query);
  const [first, second] = [await sign(one), await sign(two)];
  for (const query of [first, second]) await links.check(objectId, query);
  await fixture.accessKeys.revoke(by(owner), one.credentialId);
  await assert.rejects(links.check(objectId, first), /key .* is no longer valid/);
  await links.check(objectId, second);
});

test('who replaces the own key ends its links and those of sessions; an overlap keeps them as long', async () => {
  const sign = async (by: Principal) => read((await links.sign(by, { objectId }, 3600)).query);
  const byKey = await sign(owner);
  const bySession = await sign(session);
  const other = await sign(await newKey());
  await fixture.apiKeys.rotate(by(session), 600);
  const later = await sign(session);
  fixture.clock.advance(599_000);
  for (const query of [byKey, bySession]) await links.check(objectId, query);
  fixture.clock.advance(1000);
  for (const query of [byKey, bySession]) await refuses(objectId, query);
  await links.check(objectId, later);
  await fixture.apiKeys.rotate(by(session), 0);
  await refuses(objectId, later);
  await links.check(objectId, other);
});

test('a link is looked up in memory the second time, and counts as use of its key', async () => {
  const key = await newKey();
  const query = read((await links.sign(key, { objectId }, 3600)).query);
  const { holder } = await links.check(objectId, query);
  assert.equal(fixture.authenticator.holderOf(key.credentialId), holder, 'no promise: nothing was read');
  fixture.clock.advance(1000);
  await links.check(objectId, query);
  await fixture.authenticator.flush();
  const row = await fixture.store.keyById(key.credentialId);
  assert.equal(row?.last_used_at, fixture.clock.now());
});

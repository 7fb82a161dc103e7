import assert from 'node:assert/strict';
import { test } from 'node:test';
import { permits } from '../../calls/principal.ts';
import { BACKGROUND } from '../../metadata/change.ts';
import { isAppError } from '../../platform/errors.ts';
import { openAccountFixture } from '../../testing/account-fixture.ts';

const code = (expected: string) => (error: unknown) => isAppError(error) && error.code === expected;
const fields = { username: 'chief', email: 'chief@example.com', password: 'a good password' };

test('one use makes the administrator; a refused attempt leaves the link good', async (t) => {
  const fixture = await openAccountFixture();
  t.after(() => fixture.close());
  const { setupLinks, accounts } = fixture;
  assert.equal(await setupLinks.needsSetup(), true);
  const token = await setupLinks.createSetupLink(BACKGROUND, (made) => made);
  await accounts.register(BACKGROUND, { ...fields, email: 'other@example.com' });
  assert.equal(await setupLinks.needsSetup(), true);
  await assert.rejects(setupLinks.setUp(BACKGROUND, 'wrong', fields), code('invalid_link'));
  await assert.rejects(setupLinks.setUp(BACKGROUND, token, fields), code('username_taken'));
  await assert.rejects(
    setupLinks.setUp(BACKGROUND, token, { ...fields, password: 'x' }),
    code('invalid_request'),
  );
  const admin = await setupLinks.setUp(BACKGROUND, token, { ...fields, username: 'boss' });
  assert.equal(admin.is_admin, true);
  const principal = await fixture.authenticator.authenticate({ apiKey: admin.api_key ?? '' });
  assert.equal(permits(principal, 'admin'), true);
  assert.equal(await setupLinks.needsSetup(), false);
  await assert.rejects(
    setupLinks.createSetupLink(BACKGROUND, (made) => made),
    code('administrator_exists'),
  );
  const again = { ...fields, username: 'boss2', email: 'boss2@example.com' };
  await assert.rejects(setupLinks.setUp(BACKGROUND, token, again), code('invalid_link'));
});

test('20 parallel uses make one administrator', async (t) => {
  const fixture = await openAccountFixture();
  t.after(() => fixture.close());
  const token = await fixture.setupLinks.createSetupLink(BACKGROUND, (made) => made);
  const results = await Promise.allSettled(
    Array.from({ length: 20 }, (_, i) =>
      fixture.setupLinks.setUp(BACKGROUND, token, {
        ...fields,
        username: `boss${i}`,
        email: `boss${i}@example.com`,
      }),
    ),
  );
  assert.equal(results.filter((result) => result.status === 'fulfilled').length, 1);
  const refusals = results.flatMap((result) => (result.status === 'rejected' ? [result.reason] : []));
  assert.ok(refusals.every((error) => isAppError(error, 'invalid_link')));
});

test('30 minutes, and a newer link, end it', async (t) => {
  const fixture = await openAccountFixture();
  t.after(() => fixture.close());
  const first = await fixture.setupLinks.createSetupLink(BACKGROUND, (made) => made);
  const second = await fixture.setupLinks.createSetupLink(BACKGROUND, (made) => made);
  await assert.rejects(fixture.setupLinks.setUp(BACKGROUND, first, fields), code('invalid_link'));
  fixture.clock.advance(30 * 60_000);
  await assert.rejects(fixture.setupLinks.setUp(BACKGROUND, second, fields), code('invalid_link'));
  const stored = await fixture.metadata.all('SELECT 1 FROM setup_links WHERE token_hash = ?', second);
  assert.equal(stored.length, 0);
});

test('an administrator who was made otherwise ends it', async (t) => {
  const fixture = await openAccountFixture();
  t.after(() => fixture.close());
  const token = await fixture.setupLinks.createSetupLink(BACKGROUND, (made) => made);
  assert.equal(await fixture.setupLinks.isGood(token), true);
  const chief = { username: 'chief', email: 'chief@example.com', isAdmin: true };
  await fixture.administration.create(BACKGROUND, chief);
  assert.equal(await fixture.setupLinks.isGood(token), false);
  await assert.rejects(fixture.setupLinks.setUp(BACKGROUND, token, fields), code('invalid_link'));
});

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { type AccountFixture, openAccountFixture } from '../testing/account-fixture.ts';
import { ShortTokens } from './short-tokens.ts';

let fixture: AccountFixture;
before(async () => {
  fixture = await openAccountFixture();
});
after(() => fixture.close());

test('an owner with few tokens loses none to those with many', async () => {
  const tokens = new ShortTokens(fixture);
  const named = (hash: string) => ({ kind: 'selection', hash }) as const;
  const add = (owner: string, hash: string) =>
    tokens.add({ ...named(hash), owner, content: 'null', lifeMs: 60_000 }, { maxAll: 6, maxPerOwner: 3 });
  await add('few', 'first');
  for (const hash of ['a1', 'a2', 'a3']) await add('many', hash);
  for (const hash of ['b1', 'b2']) await add('some', hash);
  await add('new', 'c1');
  assert.ok(await tokens.find(named('first')));
  assert.equal(await tokens.find(named('a1')), undefined);
  for (const hash of ['a2', 'a3', 'b1', 'b2', 'c1']) assert.ok(await tokens.find(named(hash)), hash);
});

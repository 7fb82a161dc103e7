import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { NOBODY, type Principal } from '../../calls/principal.ts';
import { AGELESS, Ages, MAX_AGE_MS } from '../../metadata/ages.ts';
import { BACKGROUND, Changes } from '../../metadata/change.ts';
import { isAppError } from '../../platform/errors.ts';
import { type AccountFixture, by, openAccountFixture, shown } from '../../testing/account-fixture.ts';
import { hashSecret, newApiKey } from '../keys/api-key-text.ts';
import { AccountStore } from '../store.ts';
import { Authenticator } from './authenticator.ts';

let fixture: AccountFixture;
before(async () => {
  fixture = await openAccountFixture();
});
after(() => fixture.close());

let made = 0;
const code = (expected: string) => (error: unknown) => isAppError(error) && error.code === expected;

async function register() {
  const username = `user-${++made}`;
  const fields = { username, email: `${username}@example.com`, password: 'a good password' };
  const account = await fixture.accounts.register(BACKGROUND, fields);
  return { id: account.id, username, key: account.api_key ?? '' };
}

/** An authenticator that counts its database reads. */
function counted(generationSize?: number, ages = AGELESS) {
  let reads = 0;
  const store = new AccountStore({
    reads: {
      get: (sql, ...params) => {
        reads++;
        return fixture.metadata.get(sql, ...params);
      },
      all: (sql, ...params) => fixture.metadata.all(sql, ...params),
    },
  });
  const { changes, bus, clock, sealer } = fixture;
  const size = generationSize === undefined ? {} : { generationSize };
  return {
    authenticator: new Authenticator({ store, changes, bus, ages, clock, sealer, ...size }),
    reads: () => reads,
  };
}

test('no credential is nobody', () => {
  assert.equal(fixture.authenticator.authenticate({}), NOBODY);
});

test('a key names its holder; the second time without a read or a promise', async () => {
  const { id, username, key } = await register();
  const { authenticator, reads } = counted();
  const principal = await authenticator.authenticate({ apiKey: key });
  assert.deepEqual(
    { ...principal, credentialId: '', canonicalId: '' },
    {
      accountId: id,
      username,
      canonicalId: '',
      isAdmin: false,
      isAuditor: false,
      scopes: ['*'],
      bucketLimits: null,
      via: 'key',
      keyExpiresAt: null,
      credentialId: '',
    },
  );
  assert.match(principal.credentialId, /^key-/);
  assert.equal(reads(), 1);
  assert.equal(authenticator.authenticate({ apiKey: key }), principal);
  assert.equal(reads(), 1);
});

test('bad form or checksum is refused without a read; a well-formed unknown key takes one', async () => {
  const { authenticator, reads } = counted();
  const key = newApiKey();
  const flipped = `${key.slice(0, -1)}${key.endsWith('A') ? 'B' : 'A'}`;
  for (const apiKey of [
    '',
    'x',
    flipped,
    key.toLowerCase(),
    `${key} `,
    'k'.repeat(1e6),
    '\0',
    "' OR 1=1 --",
  ]) {
    await assert.rejects(async () => authenticator.authenticate({ apiKey }), code('invalid_api_key'));
  }
  assert.equal(reads(), 0);
  await assert.rejects(async () => authenticator.authenticate({ apiKey: key }), code('invalid_api_key'));
  assert.equal(reads(), 1);
});

test('suspended at once, with the reason, on keys and sessions; resumed at once', async () => {
  const { id, username, key } = await register();
  const login = { name: username, password: 'a good password', address: '::1' };
  const session = shown(await fixture.sessions.login(BACKGROUND, login));
  await fixture.authenticator.authenticate({ apiKey: key });
  await fixture.authenticator.authenticate(session);
  const operator: Principal = { ...NOBODY, isAdmin: true };
  await fixture.administration.suspend(by(operator), { accountId: id, reason: 'unpaid' });
  for (const credentials of [{ apiKey: key }, session]) {
    await assert.rejects(
      async () => fixture.authenticator.authenticate(credentials),
      (error) => {
        return code('account_suspended')(error) && /unpaid/.test(String(error));
      },
    );
  }
  await assert.rejects(fixture.sessions.login(BACKGROUND, login), code('account_suspended'));
  const guess = { ...login, password: 'wrong password' };
  await assert.rejects(fixture.sessions.login(BACKGROUND, guess), code('invalid_credentials'));
  await fixture.administration.resume(BACKGROUND, id);
  await fixture.authenticator.authenticate({ apiKey: key });
  await fixture.authenticator.authenticate(session);
});

test('what was read before a revocation is not remembered after it', async () => {
  const { id, key } = await register();
  let release = () => {};
  const gate = new Promise<void>((resolve) => {
    release = resolve;
  });
  const store = new AccountStore({
    reads: {
      // As on an engine behind a socket: the row is read now, but the answer arrives later.
      get: async <T>(sql: string, ...params: (string | number)[]) => {
        const row = await fixture.metadata.get<T>(sql, ...params);
        await gate;
        return row;
      },
      all: (sql, ...params) => fixture.metadata.all(sql, ...params),
    },
  });
  const authenticator = new Authenticator({ ...fixture, ages: AGELESS, store });
  const pending = Promise.resolve(authenticator.authenticate({ apiKey: key }));
  await fixture.metadata.commit([fixture.store.deleteMainKeys(id)]);
  fixture.bus.forgets({ kind: 'account', id });
  release();
  await pending;
  await assert.rejects(async () => authenticator.authenticate({ apiKey: key }), code('invalid_api_key'));
});

/** As on a node of a cluster; `beat.isCurrent` false: its heartbeats are not accepted. */
function shared() {
  const beat = { isCurrent: true };
  const membership = { isShared: true, isCurrent: () => beat.isCurrent };
  return { beat, ages: new Ages({ membership, clock: fixture.clock }) };
}

test('in a cluster a credential is read again once it is 2 s old, once for a burst', async () => {
  const { id, key } = await register();
  const { authenticator, reads } = counted(undefined, shared().ages);
  const use = async () => authenticator.authenticate({ apiKey: key });
  await use();
  fixture.clock.advance(MAX_AGE_MS - 1);
  await use();
  assert.equal(reads(), 1);
  fixture.clock.advance(1);
  await Promise.all(Array.from({ length: 20 }, use));
  assert.equal(reads(), 2);
  // Another node ends the key, without a notification.
  await fixture.metadata.commit([fixture.store.deleteMainKeys(id)]);
  await use();
  fixture.clock.advance(MAX_AGE_MS);
  await assert.rejects(use, code('invalid_api_key'));
});

test('so are sessions, S3 pairs, holders of links, and whether the account is suspended', async () => {
  const { id, username, key } = await register();
  const { authenticator } = counted(undefined, shared().ages);
  const login = { name: username, password: 'a good password', address: '::1' };
  const session = shown(await fixture.sessions.login(BACKGROUND, login));
  const owner = await authenticator.authenticate({ apiKey: key });
  const pair = await fixture.accessKeys.create(by(owner), { name: 'a', scopes: ['*'] });
  const uses = [
    async () => authenticator.authenticate({ apiKey: key }),
    async () => authenticator.authenticate(session),
    async () => authenticator.holderOf(pair.id),
    async () => (await authenticator.s3KeyOf(pair.access_key_id)).principal,
  ];
  for (const use of uses) assert.equal((await use()).accountId, id);
  assert.equal((await authenticator.s3KeyOf(pair.access_key_id)).secret, pair.secret_access_key);
  await fixture.metadata.commit([fixture.store.setSuspended(id, 'unpaid')]);
  for (const use of uses) await use();
  fixture.clock.advance(MAX_AGE_MS);
  for (const use of uses) await assert.rejects(use, code('account_suspended'));
  await fixture.metadata.commit([fixture.store.setSuspended(id, null)]);
  const secrets = await Promise.all([1, 2].map(() => authenticator.s3KeyOf(pair.access_key_id)));
  assert.deepEqual(
    secrets.map(({ secret }) => secret),
    [pair.secret_access_key, pair.secret_access_key],
    'also for who joins a read',
  );
});

test('while the beats of the node are not taken, every use is read', async () => {
  const { id, key } = await register();
  const { beat, ages } = shared();
  const { authenticator } = counted(undefined, ages);
  const use = async () => authenticator.authenticate({ apiKey: key });
  await use();
  await fixture.metadata.commit([fixture.store.deleteMainKeys(id)]);
  await use();
  beat.isCurrent = false;
  await assert.rejects(use, code('invalid_api_key'));
});

test('memory is bounded, and what is in use stays', async () => {
  const { authenticator, reads } = counted(3);
  const holders = [];
  for (let i = 0; i < 12; i++) holders.push(await register());
  const [hot, ...others] = holders;
  const use = async (key = '') => authenticator.authenticate({ apiKey: key });
  await use(hot?.key);
  for (const { key } of others) {
    await use(key);
    await use(hot?.key);
  }
  assert.equal(reads(), 12);
  await use(others[0]?.key);
  assert.equal(reads(), 13);
});

test('last use is stored by flush, once per use or not at all', async () => {
  const { key } = await register();
  const usedAt = async () => {
    const sql = 'SELECT last_used_at AS at FROM api_keys WHERE key_hash = ?';
    return (await fixture.metadata.get<{ at: number | null }>(sql, hashSecret(key)))?.at;
  };
  const { authenticator } = counted();
  await authenticator.authenticate({ apiKey: key });
  assert.equal(await usedAt(), null);
  fixture.clock.advance(1000);
  await authenticator.authenticate({ apiKey: key });
  await authenticator.flush();
  assert.equal(await usedAt(), fixture.clock.now());
  fixture.clock.advance(1000);
  await authenticator.flush();
  assert.equal(await usedAt(), fixture.clock.now() - 1000);
  await authenticator.authenticate({ apiKey: key });
  await authenticator.flush();
  assert.equal(await usedAt(), fixture.clock.now());
});

test('a failed flush loses nothing', async () => {
  const { key } = await register();
  let broken = true;
  const metadata = {
    get: fixture.metadata.get.bind(fixture.metadata),
    all: fixture.metadata.all.bind(fixture.metadata),
    snapshot: fixture.metadata.snapshot.bind(fixture.metadata),
    close: async () => {},
    commit: async (statements: Parameters<typeof fixture.metadata.commit>[0]) => {
      if (broken) throw new Error('disk');
      return await fixture.metadata.commit(statements);
    },
  };
  const changes = new Changes({ metadata });
  const authenticator = new Authenticator({ ...fixture, ages: AGELESS, changes });
  await authenticator.authenticate({ apiKey: key });
  await assert.rejects(authenticator.flush(), /disk/);
  broken = false;
  await authenticator.flush();
  const row = await fixture.store.keyHolder(hashSecret(key));
  const stored = await fixture.store.keyById(row?.credential_id ?? '');
  assert.equal(stored?.last_used_at, fixture.clock.now());
});

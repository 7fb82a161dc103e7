import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import type { SqliteMetadata } from '../../drivers/metadata-sqlite/sqlite-metadata.ts';
import { Alarms } from '../../platform/alarms.ts';
import { systemClock } from '../../platform/clock.ts';
import { MasterKeys } from '../../platform/master-key.ts';
import type { NodeView } from '../../platform/membership.ts';
import { openTestMetadata } from '../../testing/new-metadata.ts';
import { AGELESS } from '../ages.ts';
import type { Metadata, Statement } from '../metadata.ts';
import { rotateMasterKey, rotateWhileAlone } from './key-rotation.ts';
import { SEALED_COLUMNS, SealedColumnsStore, type SealedRow } from './sealed-columns-store.ts';
import { Secrets } from './secrets-store.ts';

const ROWS = 150;

function openMetadata(directory: string): Promise<SqliteMetadata> {
  return openTestMetadata({ directory, clock: systemClock, alarms: new Alarms(systemClock) });
}

async function makeFixture(t: TestContext) {
  const dataDir = mkdtempSync(join(tmpdir(), 'cloudlet-rotation-'));
  const keys = MasterKeys.open({ dataDir, mayCreate: true, cloudId: 'cld-test' });
  const metadata = await openMetadata(dataDir);
  t.after(async () => {
    await metadata.close();
    rmSync(dataDir, { recursive: true });
  });
  return { dataDir, keys, metadata };
}

/** Rows in every sealed column; the plaintext is the context, so that a value in the wrong row is noticed. */
function rowsOf(keys: MasterKeys): Statement[] {
  const seal = (context: string) => keys.seal(Buffer.from(context), context);
  const account = {
    sql: "INSERT INTO accounts (id, username, email, password_hash, created_at) VALUES (1, 'a', 'e', '', 0)",
    params: [],
  };
  const rows = Array.from({ length: ROWS }, (_, i): Statement[] => [
    { sql: 'INSERT INTO secrets (name, sealed) VALUES (?, ?)', params: [`s${i}`, seal(`secret:s${i}`)] },
    {
      sql: `INSERT INTO api_keys
              (key_hash, account_id, key_id, kind, sealed_key, s3_sealed_secret, created_at)
            VALUES (?, 1, ?, 'main', ?, ?, 0)`,
      params: [
        `h${i}`,
        `k${i}`,
        i % 3 === 0 ? null : seal(`api-key:k${i}`),
        i % 2 === 0 ? null : seal(`s3-secret:k${i}`),
      ],
    },
    {
      sql: `INSERT INTO idempotency (scope, key, status, sealed_body, created_at)
            VALUES (?, ?, 200, ?, 0)`,
      params: [`scope${i % 5}`, `key${i}`, seal(`idempotency:scope${i % 5}:key${i}`)],
    },
    {
      sql: `INSERT INTO webhooks
              (webhook_id, account_id, url, description, events, sealed_secret, sealed_old_secret, created_at)
            VALUES (?, 1, '', '', '[]', ?, ?, 0)`,
      params: [...[`w${i}`, seal(`webhook-secret:w${i}`), i % 2 === 0 ? null : seal(`webhook-secret:w${i}`)]],
    },
    {
      sql: 'INSERT INTO blobs (size_bytes, wrapped_key) VALUES (0, ?)',
      params: [i % 4 === 0 ? null : seal('blob-key')],
    },
  ]);
  return [account, ...rows.flat()];
}

/** Asserts that every sealed value opens to its context; returns the ids of the keys in use. */
async function keysInUse(metadata: Metadata, keys: MasterKeys): Promise<Set<string>> {
  const store = new SealedColumnsStore({ metadata });
  const used = new Set<string>();
  for (const column of SEALED_COLUMNS) {
    let after: SealedRow | null = null;
    for (;;) {
      const rows: SealedRow[] = await store.page(column, after, 40);
      for (const row of rows) {
        const context = column.context(row);
        assert.equal(keys.unseal(row.sealed, context).toString(), context);
        used.add(keys.keyIdOf(row.sealed));
      }
      const last = rows.at(-1);
      if (last === undefined) break;
      after = last;
    }
  }
  return used;
}

test('every sealed column is sealed anew and the old key is gone', async (t) => {
  const { dataDir, keys, metadata } = await makeFixture(t);
  const store = new SealedColumnsStore({ metadata });
  assert.equal(await store.holdsSealedValues(), false);
  await metadata.commit(rowsOf(keys));
  assert.equal(await store.holdsSealedValues(), true);
  const old = keys.currentId;
  const rotation = await rotateMasterKey({ metadata, keys, waitMs: 0 });
  assert.notEqual(rotation.keyId, old);
  assert.deepEqual(rotation.retiredIds, [old]);
  assert.equal(rotation.resealed, ROWS + 100 + 75 + ROWS + ROWS + 75 + 112);
  const reopened = MasterKeys.open({ dataDir, mayCreate: false, cloudId: 'cld-test' });
  assert.deepEqual(reopened.ids(), [rotation.keyId]);
  assert.deepEqual([...(await keysInUse(metadata, reopened))], [rotation.keyId]);
});

test('rows added, changed and removed during a rotation end right', async (t) => {
  const { keys, metadata } = await makeFixture(t);
  await metadata.commit(rowsOf(keys));
  // Sealed before the rotation begins, stored after its first pass.
  const late = keys.seal(Buffer.from('secret:late'), 'secret:late');
  let step = 0;
  const busy: Promise<unknown>[] = [];
  const rotation = rotateMasterKey({
    metadata,
    keys,
    waitMs: 200,
    onProgress: () => {
      const i = step++;
      const context = `secret:s${i}`;
      const resealed = keys.seal(Buffer.from(context), context);
      busy.push(
        metadata.commit([
          { sql: 'UPDATE secrets SET sealed = ? WHERE name = ?', params: [resealed, `s${i}`] },
          { sql: 'DELETE FROM idempotency WHERE key = ?', params: [`key${i}`] },
        ]),
      );
    },
  });
  await new Promise((resolve) => setTimeout(resolve, 100));
  await metadata.commit([{ sql: "INSERT INTO secrets (name, sealed) VALUES ('late', ?)", params: [late] }]);
  const { keyId } = await rotation;
  await Promise.all(busy);
  assert.ok(step > 3);
  assert.deepEqual([...(await keysInUse(metadata, keys))], [keyId]);
});

test('a value changed between reading and storing keeps what was written last', async (t) => {
  const { keys, metadata } = await makeFixture(t);
  await metadata.commit(rowsOf(keys));
  const racing: Metadata = {
    get: (sql, ...params) => metadata.get(sql, ...params),
    all: (sql, ...params) => metadata.all(sql, ...params),
    snapshot: metadata.snapshot.bind(metadata),
    close: () => metadata.close(),
    // Another writer is faster, each time.
    commit: async (statements) => {
      const mine = keys.seal(Buffer.from('mine'), 'secret:s0');
      await metadata.commit([{ sql: "UPDATE secrets SET sealed = ? WHERE name = 's0'", params: [mine] }]);
      return metadata.commit(statements);
    },
  };
  await rotateMasterKey({ metadata: racing, keys, waitMs: 0 });
  const row = metadata.get<{ sealed: Uint8Array }>("SELECT sealed FROM secrets WHERE name = 's0'");
  assert.equal(keys.unseal(row?.sealed ?? new Uint8Array(), 'secret:s0').toString(), 'mine');
});

test('a kill after any batch, or before the old key goes, is resumed', async (t) => {
  const { dataDir, keys, metadata } = await makeFixture(t);
  await metadata.commit(rowsOf(keys));
  await metadata.close();
  const url = (path: string) => JSON.stringify(new URL(path, import.meta.url).href);
  let first = '';
  for (let killAfter = 0; killAfter < 8; killAfter++) {
    const script = `
      import { systemClock } from ${url('../../platform/clock.ts')};
      import { SqliteMetadata } from ${url('../../drivers/metadata-sqlite/sqlite-metadata.ts')};
      import { Alarms } from ${url('../../platform/alarms.ts')};
      import { MasterKeys } from ${url('../../platform/master-key.ts')};
      import { rotateMasterKey, rotateWhileAlone } from ${url('./key-rotation.ts')};
      const directory = ${JSON.stringify(dataDir)};
      const keys = MasterKeys.open({ dataDir: directory, mayCreate: false, cloudId: 'cld-test' });
      const alarms = new Alarms(systemClock);
      const metadata = await SqliteMetadata.open({ directory, clock: systemClock, alarms });
      let batches = 0;
      const die = () => process.kill(process.pid, 'SIGKILL');
      if (${killAfter} === 7) keys.retire = die;
      await rotateMasterKey({ metadata, keys, waitMs: 0, onProgress: () => {
        if (batches++ === ${killAfter === 7 ? -1 : 0}) die();
      } });
      die();`;
    const child = spawnSync(process.execPath, ['--input-type=module', '-e', script]);
    assert.equal(child.signal, 'SIGKILL', String(child.stderr));
    const now = MasterKeys.open({ dataDir, mayCreate: false, cloudId: 'cld-test' });
    first ||= now.currentId;
    assert.equal(now.currentId, first, 'a resumed rotation makes no further key');
    assert.ok(now.ids().length === 2);
    const check = await openMetadata(dataDir);
    await keysInUse(check, now);
    await check.close();
  }
  const last = MasterKeys.open({ dataDir, mayCreate: false, cloudId: 'cld-test' });
  const again = await openMetadata(dataDir);
  const { retiredIds } = await rotateMasterKey({ metadata: again, keys: last, waitMs: 0 });
  assert.deepEqual(retiredIds, [keys.currentId]);
  assert.deepEqual([...(await keysInUse(again, last))], [first]);
  await again.close();
});

test('a secret is made once, whoever asks, and kept', async (t) => {
  const { dataDir, keys, metadata } = await makeFixture(t);
  const one = new Secrets({ metadata, keys, ages: AGELESS });
  const two = new Secrets({ metadata, keys, ages: AGELESS });
  const all = await Promise.all([one.get('cdn'), two.get('cdn'), one.get('cdn'), one.get('cursor')]);
  assert.equal(all[0].length, 32);
  assert.deepEqual(all[1], all[0]);
  assert.deepEqual(all[2], all[0]);
  assert.notDeepEqual(all[3], all[0]);
  await rotateMasterKey({ metadata, keys, waitMs: 0 });
  const later = new Secrets({
    metadata,
    ages: AGELESS,
    keys: MasterKeys.open({ dataDir, mayCreate: false, cloudId: 'cld-test' }),
  });
  assert.deepEqual(await later.get('cdn'), all[0]);
});

test('a node rotates the key only while no other runs', async (t) => {
  const { keys, metadata } = await makeFixture(t);
  const gone = new Set<string>();
  const nodes = () => ['one', 'two'].map((runId) => ({ runId }) as NodeView);
  const membership = { nodes, isGone: (runId: string) => gone.has(runId) };
  const before = keys.currentId;
  const rotate = () => rotateWhileAlone({ metadata, keys, waitMs: 0, membership });
  await assert.rejects(rotate, { code: 'other_nodes_run' });
  assert.equal(keys.currentId, before);
  gone.add('two');
  const { key_id: after } = await rotate();
  assert.notEqual(after, before);
  assert.equal(keys.currentId, after);
});

test('a node that started meanwhile keeps the old key until a rotation without it', async (t) => {
  const { keys, metadata } = await makeFixture(t);
  const running = ['one'];
  const membership = {
    nodes: () => running.map((runId) => ({ runId }) as NodeView),
    isGone: () => false,
  };
  const rotate = () => rotateWhileAlone({ metadata, keys, waitMs: 200, membership });
  const before = keys.currentId;
  const rotating = assert.rejects(rotate(), { code: 'other_nodes_run' });
  running.push('two');
  await rotating;
  assert.ok(keys.ids().includes(before));
  running.pop();
  await rotate();
  assert.ok(!keys.ids().includes(before));
});

import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { CommitOutcomeUnknown, CommitRejected } from '../../metadata/metadata.ts';
import { Alarms } from '../../platform/alarms.ts';
import { systemClock } from '../../platform/clock.ts';
import { eventually } from '../../testing/eventually.ts';
import { testMetadata } from '../../testing/metadata.conformance.ts';
import { operatorPostgresql } from '../../testing/operator-postgresql.ts';
import type { OperatorServer } from '../../testing/operator-server.ts';
import { TcpProxy } from '../../testing/tcp-proxy.ts';
import { PostgresqlMetadata } from './postgresql-metadata.ts';

testMetadata('PostgreSQL', async () => {
  const server = await operatorPostgresql();
  await server.run('CREATE DATABASE cloudlet');
  const url = server.url('postgres', 'of-the-operator').replace(/postgres$/, 'cloudlet');
  return {
    open: () =>
      PostgresqlMetadata.open({
        url,
        clock: systemClock,
        alarms: new Alarms(systemClock),
        onTakenOver: assert.fail,
      }),
    end: () => server.close(),
  };
});

test('a server that does not answer is named without the password, with the way out', async () => {
  const url = 'postgresql://cloudlet:hidden@127.0.0.1:1/none';
  const opening = PostgresqlMetadata.open({
    url,
    clock: systemClock,
    alarms: new Alarms(systemClock),
    onTakenOver: assert.fail,
  });
  await assert.rejects(opening, (error: Error) => {
    assert.match(
      error.message,
      /^PostgreSQL at 127\.0\.0\.1:1\/none cannot be used .*: start it, or correct /,
    );
    return !error.message.includes('hidden');
  });
});

test('an alarm of a connection that failed ends with the next answer on those that are there', async (t) => {
  const server = await operatorPostgresql();
  t.after(() => server.close());
  await server.run(`CREATE ROLE cloud LOGIN PASSWORD 'of-the-cloud'`);
  await server.run('CREATE DATABASE cloudlet OWNER cloud');
  const alarms = new Alarms(systemClock);
  const url = server.url('cloud', 'of-the-cloud').replace(/postgres$/, 'cloudlet');
  const metadata = await PostgresqlMetadata.open({
    url,
    clock: systemClock,
    alarms,
    onTakenOver: assert.fail,
  });
  t.after(() => metadata.close());
  const codes = () => alarms.list().map(({ code }) => code);
  const insert = { sql: 'INSERT INTO settings (name, value) VALUES (?, ?)', params: ['limit', '1'] };
  const remove = { sql: 'DELETE FROM settings WHERE name = ?', params: ['limit'] };
  await metadata.commit([insert]);
  for (let reader = 0; reader < 4; reader++) await metadata.all('SELECT 1');
  await server.run('ALTER ROLE cloud CONNECTION LIMIT 1');
  const answers = [() => metadata.all('SELECT 1'), () => metadata.commit([remove])];
  for (const answer of answers) {
    await assert.rejects(
      metadata.snapshot(async () => {}),
      /cannot be reached/,
    );
    assert.deepEqual(codes(), ['metadata_unreachable']);
    await answer();
    assert.deepEqual(codes(), []);
  }
});

/** Its settings make it refuse or accept writes. */
async function setReadOnly(server: OperatorServer, isOn: boolean): Promise<void> {
  await server.run(`ALTER SYSTEM SET default_transaction_read_only = ${isOn ? 'on' : 'off'}`);
  await server.run('SELECT pg_reload_conf()');
}

/** Restarted as a standby, like an old primary after a failover. */
async function demote(server: OperatorServer): Promise<void> {
  await server.run(`DO $$ BEGIN EXECUTE format('COPY (SELECT 1) TO %L',
    current_setting('data_directory') || '/standby.signal'); END $$`);
  await server.stop();
  await server.start();
}

test('while the server takes no writes reads go on, the reason is told, and it goes on by itself', async (t) => {
  const server = await operatorPostgresql();
  t.after(() => server.close());
  const alarms = new Alarms(systemClock);
  const url = server.url('postgres', 'of-the-operator');
  const metadata = await PostgresqlMetadata.open({
    url,
    clock: systemClock,
    alarms,
    onTakenOver: assert.fail,
  });
  t.after(() => metadata.close());
  await metadata.commit([insert('before')]);
  const codes = () => alarms.list().map(({ code }) => code);
  const isStored = (name: string) => metadata.get('SELECT 1 FROM settings WHERE name = ?', name);
  const isBack = (name: string) =>
    eventually(() =>
      metadata.commit([insert(name)]).then(
        () => true,
        () => false,
      ),
    );

  await setReadOnly(server, true);
  await eventually(async () => {
    const refusal = await metadata
      .commit([insert(`during ${systemClock.monotonic()}`)])
      .catch((error) => error);
    if (Array.isArray(refusal)) return false;
    assert.deepEqual([refusal.code, refusal.retryAfterSeconds], ['read_only', 5], String(refusal));
    assert.match(refusal.message, /takes no writes now; nothing was stored/);
    return true;
  });
  assert.ok(await isStored('before'));
  await eventually(() => codes().includes('metadata_read_only'));
  await setReadOnly(server, false);
  await isBack('after');
  await eventually(() => codes().length === 0);

  await demote(server);
  await eventually(() => /is a standby/.test(alarms.list()[0]?.detail ?? ''));
  // A standby may lag behind.
  await assert.rejects(async () => isStored('before'), { code: 'overloaded' });
  await assert.rejects(metadata.commit([insert('at the standby')]), { code: 'overloaded' });
  await assert.rejects(
    PostgresqlMetadata.open({ url, clock: systemClock, alarms, onTakenOver: assert.fail }),
    /is a standby, which is read-only/,
  );
  await server.run('SELECT pg_promote()');
  await isBack('at the new primary');
  assert.ok(await isStored('after'));
  await eventually(() => codes().length === 0);
});

/** A cloud whose COMMITs can lose their responses together with the connection. */
async function lossyMetadata(t: TestContext) {
  const server = await operatorPostgresql();
  t.after(() => server.close());
  let onCommit: (() => void) | null = null;
  const way: TcpProxy = await TcpProxy.to(server.port, '127.0.0.1', () => (bytes) => {
    if (onCommit === null || !bytes.includes('COMMIT\0')) return bytes;
    onCommit();
    onCommit = null;
    setImmediate(() => way.cut());
    return Buffer.alloc(0);
  });
  t.after(() => way.close());
  const url = new URL(server.url('postgres', 'of-the-operator'));
  const metadata = await PostgresqlMetadata.open({
    url: Object.assign(url, { port: String(way.port) }).href,
    clock: systemClock,
    alarms: new Alarms(systemClock),
    onTakenOver: () => {},
  });
  t.after(() => metadata.close());
  /** For the next commit. Resolves once the server has stored it. */
  const loseAnswer = () => new Promise<void>((resolve) => (onCommit = resolve));
  return { server, way, metadata, loseAnswer };
}

const insert = (name: string) => ({
  sql: 'INSERT INTO settings (name, value) VALUES (?, ?)',
  params: [name, '1'],
  expectChanges: 1,
});

test('of a batch whose COMMIT was stored and not answered, each commit has its own outcome', async (t) => {
  const { metadata, loseAnswer } = await lossyMetadata(t);
  await metadata.commit([insert('known')]);
  for (const names of [
    ['one', 'known'],
    ['two', 'three'],
  ]) {
    const lost = loseAnswer();
    const [first, second] = await Promise.allSettled(names.map((name) => metadata.commit([insert(name)])));
    await lost;
    assert.deepEqual(first, { status: 'fulfilled', value: [{ changes: 1, lastRowId: 0 }] });
    if (second?.status === 'fulfilled')
      assert.equal(names[1], 'three', 'what was refused is not acknowledged');
    else assert.ok(second?.reason instanceof CommitRejected && second.reason.reason === 'unique');
  }
  const rows = await metadata.all<{ name: string }>(
    "SELECT name FROM settings WHERE value = '1' ORDER BY name",
  );
  assert.deepEqual(
    rows.map(({ name }) => name),
    ['known', 'one', 'three', 'two'],
  );
});

test('the outcome is unknown once the row that tells it is gone, as after two nodes were ended', async (t) => {
  const { server, way, metadata, loseAnswer } = await lossyMetadata(t);
  await metadata.commit([insert('known')]);
  const lost = loseAnswer().then(() => way.block());
  const refused = assert.rejects(metadata.commit([insert('stored')]), CommitOutcomeUnknown);
  await lost;
  await server.run('DELETE FROM store_batches');
  way.unblock();
  await refused;
});

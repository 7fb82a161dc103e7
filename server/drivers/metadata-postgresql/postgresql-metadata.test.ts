import assert from 'node:assert/strict';
import { test } from 'node:test';
import { CommitRejected } from '../../metadata/metadata.ts';
import { Alarms } from '../../platform/alarms.ts';
import { systemClock } from '../../platform/clock.ts';
import { testMetadata } from '../../testing/metadata.conformance.ts';
import { operatorPostgresql } from '../../testing/operator-postgresql.ts';
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

test('of a batch whose COMMIT was stored and not answered, each commit has its own outcome', async (t) => {
  const server = await operatorPostgresql();
  t.after(() => server.close());
  let isLost = false;
  const way: TcpProxy = await TcpProxy.to(server.port, '127.0.0.1', () => (bytes) => {
    if (!isLost || !bytes.includes('COMMIT\0')) return bytes;
    isLost = false;
    setImmediate(() => way.cut());
    return Buffer.alloc(0);
  });
  t.after(() => way.close());
  const url = Object.assign(new URL(server.url('postgres', 'of-the-operator')), {
    port: String(way.port),
  }).href;
  const alarms = new Alarms(systemClock);
  const metadata = await PostgresqlMetadata.open({
    url,
    clock: systemClock,
    alarms,
    onTakenOver: assert.fail,
  });
  t.after(() => metadata.close());
  const insert = (name: string) => ({
    sql: 'INSERT INTO settings (name, value) VALUES (?, ?)',
    params: [name, '1'],
    expectChanges: 1,
  });
  await metadata.commit([insert('known')]);
  for (const names of [
    ['one', 'known'],
    ['two', 'three'],
  ]) {
    isLost = true;
    const [first, second] = await Promise.allSettled(names.map((name) => metadata.commit([insert(name)])));
    assert.equal(isLost, false);
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

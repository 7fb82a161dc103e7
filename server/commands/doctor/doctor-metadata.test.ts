import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { Client, type ClientConfig } from 'pg';
import { systemClock } from '../../platform/clock.ts';
import { eventually } from '../../testing/eventually.ts';
import { operatorPostgresql } from '../../testing/operator-postgresql.ts';
import type { OperatorServer } from '../../testing/operator-server.ts';
import { noPostgresql } from '../../testing/postgresql-fixture.ts';
import { checkMetadata } from './doctor-metadata.ts';

test('metadata in a file are no concern of it', async () => {
  assert.deepEqual(await checkMetadata({ metadataUrl: '' }), []);
});

test('a server that does not answer is named without the password', async () => {
  const [finding] = await checkMetadata({ metadataUrl: 'postgresql://me:hidden@127.0.0.1:1/none' });
  assert.equal(finding?.level, 'fail');
  assert.match(finding.detail, /^PostgreSQL at 127\.0\.0\.1:1\/none is not usable: /);
  assert.doesNotMatch(JSON.stringify(finding), /hidden/);
});

describe('a server', { skip: noPostgresql }, () => {
  let server: OperatorServer;
  before(async () => {
    server = await operatorPostgresql();
    await server.run("CREATE ROLE cloudlet LOGIN PASSWORD 'secret'");
  });
  after(() => server?.close());
  const url = (database: string, user = 'postgres', password = 'of-the-operator') =>
    server.url(user, password).replace(/postgres$/, database);
  const check = (database = 'postgres') => checkMetadata({ metadataUrl: url(database) });

  async function changed(setting: string, pattern: RegExp): Promise<void> {
    await server.run(`ALTER SYSTEM SET ${setting}`);
    await server.run('SELECT pg_reload_conf()');
    await eventually(async () => pattern.test(JSON.stringify(await check())));
    await server.run('ALTER SYSTEM RESET ALL');
    await server.run('SELECT pg_reload_conf()');
    await eventually(async () => (await check())[0]?.level === 'ok');
  }

  test('that is right is one line', async () => {
    const findings = await check();
    assert.equal(findings.length, 1, JSON.stringify(findings));
    assert.match(
      findings[0]?.detail ?? '',
      /^PostgreSQL at 127\.0\.0\.1:\d+\/postgres, version \d+\S*.*, no standby$/,
    );
  });

  test('that may lose or damage what it acknowledged is a warning', async () => {
    await changed('fsync = off', /"warn".*fsync is off.*set fsync = on/);
    await changed('full_page_writes = off', /"warn".*full_page_writes is off/);
    await changed(
      'synchronous_commit = off',
      /"warn".*synchronous_commit is off: acknowledged writes can be lost/,
    );
  });

  test('with a role that cannot create tables, or has too few connections', async () => {
    await server.run('CREATE DATABASE narrow CONNECTION LIMIT 5');
    const findings = await checkMetadata({ metadataUrl: url('narrow', 'cloudlet', 'secret') });
    assert.deepEqual(
      findings.map(({ level }) => level),
      ['fail', 'warn'],
      JSON.stringify(findings),
    );
    assert.match(findings[0]?.detail ?? '', /cannot create tables/);
    assert.match(findings[1]?.detail ?? '', /^4 connections are free; Cloudlet needs 8/);
    const metadataUrl = url('narrow', 'cloudlet', 'secret');
    const [, ofNode] = await checkMetadata({ metadataUrl, nodeUrl: 'http://node:8080' });
    assert.match(ofNode?.detail ?? '', /Cloudlet needs 9/);
  });

  test('with another encoding, or another time', async () => {
    await server.run(
      "CREATE DATABASE latin ENCODING 'LATIN1' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0",
    );
    assert.match(JSON.stringify(await check('latin')), /"fail".*has the encoding LATIN1/);
    const clock = { ...systemClock, now: () => systemClock.now() - 5000 };
    const findings = await checkMetadata({ metadataUrl: url('postgres') }, clock);
    assert.match(findings[0]?.detail ?? '', /differs from this host's by 5\.\d s/);
  });

  test('with a standby that a failover would lose writes to', async () => {
    // The server only knows a standby by a connection of this kind.
    const standby = new Client({
      connectionString: url('postgres'),
      replication: 'database',
    } as ClientConfig);
    standby.on('error', () => {});
    await standby.connect();
    try {
      const [finding, ...more] = await check();
      assert.deepEqual([finding?.level, more], ['warn', []]);
      assert.match(finding?.detail ?? '', /standbys are asynchronous, so a failover loses/);
      assert.equal(finding?.fix, 'set synchronous_standby_names');
      await server.run("ALTER SYSTEM SET synchronous_standby_names = 'second'");
      await server.run('SELECT pg_reload_conf()');
      await eventually(async () => /"ok".*standbys: second/.test(JSON.stringify(await check())));
      await server.run("ALTER SYSTEM SET synchronous_commit = 'local'");
      await server.run('SELECT pg_reload_conf()');
      await eventually(async () =>
        /"warn".*synchronous_commit is local: acknowledged writes can be lost/.test(
          JSON.stringify(await check()),
        ),
      );
    } finally {
      await server.run('ALTER SYSTEM RESET ALL');
      await server.run('SELECT pg_reload_conf()');
      await standby.end();
    }
  });

  test('that is a standby itself takes no writes', async () => {
    await server.run(`DO $$ BEGIN
      EXECUTE format('COPY (SELECT 1) TO %L', current_setting('data_directory') || '/standby.signal');
    END $$`);
    await server.crash();
    const findings = await check();
    assert.match(
      JSON.stringify(findings),
      /"fail".*is a standby, which is read-only.*use the address of the primary/,
    );
  });
});

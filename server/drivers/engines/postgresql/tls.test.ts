/** PostgreSQL with TLS: required for users on other hosts, optional on this host. */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { Client, type ClientConfig } from 'pg';
import type { Engine, EngineDatabase } from '../../../databases/engine.ts';
import { systemClock } from '../../../platform/clock.ts';
import { isAppError } from '../../../platform/errors.ts';
import { newDatabase } from '../../../testing/new-database.ts';
import { noPostgresql, postgresqlFixture } from '../../../testing/postgresql-fixture.ts';
import { makeAuthority, makeServerCertificate } from '../../managed-server/links/certificates.ts';
import { ServerTls } from '../../managed-server/links/server-tls.ts';
import { freePort } from '../../server-port.ts';

const SECRET = 'aaaaaaaaaaaaaaaaaaaaaaaa';
/** An address of this host, other than the one at which it listens anyway. */
const HOST = '127.0.0.2';

function openTo(t: { after(work: () => Promise<void>): void }, files = { certFile: '', keyFile: '' }) {
  const folder = mkdtempSync(join(tmpdir(), 'cloudlet-tls-'));
  const clock = systemClock;
  const tls = new ServerTls({ host: HOST, ...files, folder: join(folder, 'tls'), clock });
  const fixture = postgresqlFixture({ tls });
  t.after(async () => {
    await fixture.close();
    rmSync(folder, { recursive: true });
  });
  return { ...fixture, folder };
}

async function ask(engine: Engine, database: EngineDatabase, ssl: ClientConfig['ssl']) {
  const { host, port } = await engine.endpoint(database);
  const { database: name, username: user } = database;
  const client = new Client({ host, port, database: name, user, password: SECRET, ssl });
  client.on('error', () => {});
  try {
    await client.connect();
    return (await client.query('SELECT 1 AS one')).rows;
  } finally {
    await client.end();
  }
}

describe('PostgreSQL beyond loopback', { skip: noPostgresql }, () => {
  test('a verified connection is served, a plain one and a wrong authority are not', async (t) => {
    const { engine, reopen, folder } = openTo(t);
    const database = newDatabase();
    await engine.provision(database, SECRET);
    const { host, tls, ca, uri } = await engine.endpoint(database);
    assert.deepEqual([host, tls], [HOST, true]);
    assert.match(uri('x'), /@127\.0\.0\.2:\d+\/d_\w+\?sslmode=verify-full&sslrootcert=ca\.pem$/);
    assert.deepEqual(await ask(engine, database, { ca: String(ca) }), [{ one: 1 }]);
    await assert.rejects(ask(engine, database, false), { code: '28000' });
    const span = { from: systemClock.now(), until: systemClock.now() + 1e6 };
    const { cert } = makeAuthority('Cloudlet databases', span);
    await assert.rejects(ask(engine, database, { ca: cert }), /certificate|signature/);
    // The users' driver parses the address in this way.
    const caFile = join(folder, 'ca.pem');
    writeFileSync(caFile, String(ca));
    const client = new Client(uri(SECRET).replace('ca.pem', caFile));
    await client.connect();
    await client.end();
    // The authority stays the same, because users have its certificate.
    await engine.close();
    const next = reopen();
    await next.wake();
    assert.equal((await next.endpoint(database)).ca, ca);
    assert.deepEqual(await ask(next, database, { ca: String(ca) }), [{ one: 1 }]);
  });

  test('it takes the certificate of the operator; one that cannot be read is said', async (t) => {
    const folder = mkdtempSync(join(tmpdir(), 'cloudlet-cert-'));
    t.after(() => rmSync(folder, { recursive: true }));
    const span = { from: systemClock.now() - 1e6, until: systemClock.now() + 1e7 };
    const authority = makeAuthority('Of the operator', span);
    const { cert, key } = makeServerCertificate(
      { name: 'Of the operator', key: authority.key },
      [HOST],
      span,
    );
    const files = { certFile: join(folder, 'cert.pem'), keyFile: join(folder, 'key.pem') };
    const { engine } = openTo(t, files);
    const early = engine.provision(newDatabase(), SECRET);
    await assert.rejects(early, (error) => {
      assert.match(`${isAppError(error, 'engine_unavailable') && error.hint}`, /CLOUDLET_TLS_CERT/);
      return true;
    });
    // It is retried a little later.
    await sleep(1100);
    writeFileSync(files.certFile, cert);
    writeFileSync(files.keyFile, key);
    const database = newDatabase();
    await engine.provision(database, SECRET);
    const { ca, uri } = await engine.endpoint(database);
    assert.deepEqual([ca, uri('x').split('?')[1]], [null, 'sslmode=require']);
    assert.deepEqual(await ask(engine, database, { ca: authority.cert }), [{ one: 1 }]);
  });
});

test('on this host TLS is for those who ask for it, and verified by the CA, whether they come straight or by the proxy', {
  skip: noPostgresql,
}, async (t) => {
  const { engine, folder, options, close, reopen } = postgresqlFixture();
  const host = '127.0.0.2';
  t.after(close);
  const database = newDatabase();
  await engine.provision(database, SECRET);
  const { tls, ca, uri, verified } = await engine.endpoint(database);
  assert.deepEqual([tls, ca], [false, null]);
  assert.doesNotMatch(uri('x'), /ssl/);
  const { proxy } = options().servers;
  const port = await freePort(20_000 + (process.pid % 10_000));
  await proxy.open({ name: 'other', addresses: [host], port, protocol: 'postgresql' });
  await proxy.lead('other', engine.serverOf(database.accountId)?.engine.server.port ?? null);
  const isEncrypted = 'SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()';
  const whole = "SELECT length(repeat('x', 3000000)) AS length, repeat('x', 3000000) AS x";
  for (const target of [uri(SECRET), uri(SECRET).replace(/@[^/]+/, `@${host}:${port}`)]) {
    for (const ssl of [{ rejectUnauthorized: false }, false]) {
      const client = new Client({ connectionString: target, ssl });
      await client.connect();
      assert.deepEqual((await client.query(isEncrypted)).rows, [{ ssl: ssl !== false }]);
      const { rows } = await client.query(whole);
      assert.equal(rows[0].x.length, rows[0].length);
      await client.end();
    }
    // psql and other programs with libpq report it in this way.
    const client = new Client({ connectionString: `${target}?sslmode=no-verify` });
    await client.connect();
    await client.end();
  }
  assert.match(String(verified?.uri('x')), /\?sslmode=verify-full&sslrootcert=ca\.pem$/);
  const authority = String(verified?.ca);
  assert.deepEqual(await ask(engine, database, { ca: authority }), [{ one: 1 }]);
  const span = { from: systemClock.now(), until: systemClock.now() + 1e6 };
  const { cert } = makeAuthority('Cloudlet databases', span);
  await assert.rejects(ask(engine, database, { ca: cert }), /certificate|signature/);
  // Users have a copy, so it stays the same.
  assert.equal(statSync(join(folder, 'authority.pem')).mode & 0o77, 0);
  await engine.close();
  const next = reopen();
  await next.wake();
  assert.equal((await next.endpoint(database)).verified?.ca, authority);
  assert.deepEqual(await ask(next, database, { ca: authority }), [{ one: 1 }]);
});

/** MariaDB with TLS: required for users on other hosts, optional on this host. */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { createConnection, type RowDataPacket } from 'mysql2/promise';
import { systemClock } from '../../../platform/clock.ts';
import { mysqlFixture, noMysql } from '../../../testing/mysql-fixture.ts';
import { newDatabase } from '../../../testing/new-database.ts';
import { makeAuthority } from '../../managed-server/links/certificates.ts';
import { ServerTls } from '../../managed-server/links/server-tls.ts';
import { freePort } from '../../server-port.ts';

const SECRET = 'aaaaaaaaaaaaaaaaaaaaaaaa';
const HOST = '127.0.0.2';

test('MariaDB beyond loopback serves verified connections, and no plain one', {
  skip: noMysql,
}, async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'cloudlet-tls-'));
  const tls = new ServerTls({ host: HOST, certFile: '', keyFile: '', folder, clock: systemClock });
  const fixture = mysqlFixture({ tls });
  t.after(async () => {
    await fixture.close();
    rmSync(folder, { recursive: true });
  });
  const { engine } = fixture;
  const database = newDatabase();
  await engine.provision(database, SECRET);
  const { host, ca, uri, ...rest } = await engine.endpoint(database);
  assert.deepEqual([host, rest.tls], [HOST, true]);
  const ask = async (ssl: { ca: string } | undefined) => {
    const connection = await createConnection({
      uri: uri(SECRET),
      ...(ssl === undefined ? {} : { ssl: { ...ssl, verifyIdentity: true } }),
    });
    try {
      const [rows] = await connection.query<RowDataPacket[]>("SHOW STATUS LIKE 'Ssl_version'");
      return String(rows[0]?.Value);
    } finally {
      await connection.end();
    }
  };
  assert.match(await ask({ ca: String(ca) }), /^TLSv1\.[23]$/);
  // The password is right.
  await assert.rejects(ask(undefined), /insecure transport|Access denied/);
  const span = { from: systemClock.now(), until: systemClock.now() + 1e6 };
  await assert.rejects(ask({ ca: makeAuthority('Cloudlet databases', span).cert }));
});

test('on this host MariaDB offers TLS, whether drivers come straight or by the proxy', {
  skip: noMysql,
}, async (t) => {
  const { engine, options, close } = mysqlFixture();
  t.after(close);
  const database = newDatabase();
  await engine.provision(database, SECRET);
  const { tls, ca, uri, verified } = await engine.endpoint(database);
  assert.deepEqual([tls, ca], [false, null]);
  const authority = { ca: String(verified?.ca), verifyIdentity: true };
  const { proxy } = options().servers;
  const port = await freePort(20_000 + (process.pid % 10_000));
  await proxy.open({ name: 'other', addresses: [HOST], port, protocol: 'mysql' });
  await proxy.lead('other', engine.serverOf(database.accountId)?.engine.server.port ?? null);
  for (const target of [uri(SECRET), uri(SECRET).replace(/@[^/]+/, `@${HOST}:${port}`)]) {
    for (const ssl of [
      { rejectUnauthorized: false },
      ...(target === uri(SECRET) ? [authority] : []),
      undefined,
    ]) {
      const connection = await createConnection({ uri: target, ...(ssl === undefined ? {} : { ssl }) });
      const [rows] = await connection.query<RowDataPacket[]>("SHOW STATUS LIKE 'Ssl_version'");
      assert.match(String(rows[0]?.Value), ssl === undefined ? /^$/ : /^TLSv1\.[23]$/);
      const [long] = await connection.query<RowDataPacket[]>("SELECT repeat('x', 3000000) AS x");
      assert.equal(long[0]?.x.length, 3_000_000);
      await connection.end();
    }
  }
});

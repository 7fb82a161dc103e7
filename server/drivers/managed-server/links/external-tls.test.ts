/** The operator's own servers over TLS: verified with the certificate in the URL, or not used. */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { createConnection } from 'mysql2/promise';
import { Client } from 'pg';
import type { Endpoint, Engine } from '../../../databases/engine.ts';
import { systemClock } from '../../../platform/clock.ts';
import { externalMysqlFixture, noMysql } from '../../../testing/mysql-fixture.ts';
import { newDatabase } from '../../../testing/new-database.ts';
import { grantsOf, operatorMysql } from '../../../testing/operator-mysql.ts';
import { operatorPostgresql } from '../../../testing/operator-postgresql.ts';
import type { OperatorServer } from '../../../testing/operator-server.ts';
import { externalPostgresqlFixture, noPostgresql } from '../../../testing/postgresql-fixture.ts';
import { makeAuthority } from './certificates.ts';
import { ServerTls } from './server-tls.ts';
import { type ServerAddress, serverAddress } from './server-url.ts';

const SECRET = 'aaaaaaaaaaaaaaaaaaaaaaaa';
const PASSWORD = 'maker-of-databases';
const NOBODY_LEAVES = new AbortController().signal;

interface Fixture {
  readonly engine: Engine;
  close(): Promise<void>;
}

interface Kind {
  readonly name: string;
  readonly skip: string | false;
  readonly server: (tls: ServerTls) => Promise<OperatorServer>;
  readonly users: readonly string[];
  readonly fixture: (external: ServerAddress) => Fixture;
  /** With the users' driver, which gets this certificate. */
  readonly ask: (endpoint: Endpoint, ca: string, sql: string) => Promise<void>;
}

const KINDS: readonly Kind[] = [
  {
    name: 'PostgreSQL',
    skip: noPostgresql,
    server: (tls) => operatorPostgresql({ tls }),
    users: [`CREATE ROLE maker LOGIN CREATEDB CREATEROLE PASSWORD '${PASSWORD}'`],
    fixture: (external) => externalPostgresqlFixture(external),
    ask: async ({ uri }, ca, sql) => {
      const connectionString = uri(SECRET).replace(/\?.*/, '');
      const client = new Client({ connectionString, ssl: { ca } });
      await client.connect();
      await client.query(sql);
      await client.end();
    },
  },
  {
    name: 'MariaDB',
    skip: noMysql,
    server: (tls) => operatorMysql({ tls }),
    users: [`CREATE USER maker@'%' IDENTIFIED BY '${PASSWORD}'`, ...grantsOf("maker@'%'")],
    fixture: (external) => externalMysqlFixture(external),
    ask: async ({ uri }, ca, sql) => {
      const connection = await createConnection({ uri: uri(SECRET), ssl: { ca, verifyIdentity: true } });
      await connection.query(sql);
      await connection.end();
    },
  },
];

for (const { name, skip, server: start, users, fixture, ask } of KINDS)
  describe(`${name} of the operator's, with TLS`, { skip }, () => {
    let folder: string;
    let tls: ServerTls;
    let server: OperatorServer;
    before(async () => {
      folder = mkdtempSync(join(tmpdir(), 'cloudlet-tls-'));
      const host = 'localhost';
      tls = new ServerTls({ host, certFile: '', keyFile: '', folder, clock: systemClock });
      server = await start(tls);
      for (const sql of users) await server.run(sql);
    });
    after(async () => {
      await server?.close();
      rmSync(folder, { recursive: true });
    });

    function open(t: { after(work: () => Promise<void>): void }, words: string): Engine {
      const url = server.url('maker', PASSWORD).replace('127.0.0.1', 'localhost');
      const opened = fixture(serverAddress('CLOUDLET_X_URL', `${url}?${words}`, 0));
      t.after(() => opened.close());
      return opened.engine;
    }
    function certificate(text: string): string {
      const path = join(folder, 'ca.pem');
      writeFileSync(path, text);
      return `sslrootcert=${encodeURIComponent(path)}`;
    }

    test('it is verified by its certificate, by us, by clients that dump, and by drivers', async (t) => {
      const engine = open(t, `sslmode=verify-full&${certificate(String(tls.ca))}`);
      const [from, to] = [newDatabase(), newDatabase()];
      for (const database of [from, to]) await engine.provision(database, SECRET);
      const endpoint = await engine.endpoint(from);
      assert.deepEqual([endpoint.tls, endpoint.host, endpoint.ca], [true, 'localhost', tls.ca]);
      await ask(endpoint, String(endpoint.ca), 'CREATE TABLE t AS SELECT 1 AS a');
      await engine.fork(from, to, NOBODY_LEAVES);
      await ask(await engine.endpoint(to), String(endpoint.ca), 'INSERT INTO t VALUES (2)');
    });

    test('with the certificate of another authority, a public one or none it is not used', async (t) => {
      const now = systemClock.now();
      const other = makeAuthority('Cloudlet databases', { from: now - 1e6, until: now + 1e9 }).cert;
      for (const words of [
        `sslmode=require&${certificate(other)}`,
        'sslmode=verify-full',
        'sslmode=disable',
      ]) {
        const { available, reason, fix } = await open(t, words).readiness();
        assert.equal(available, false, words);
        assert.match(`${reason}`, /cannot be reached|refuses the user/, words);
        assert.match(`${fix}`, /correct/);
      }
    });
  });

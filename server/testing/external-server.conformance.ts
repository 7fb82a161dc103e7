/**
 * Requirements for any external database server: required permissions, untouched data, error messages. The
 * test of each engine calls this with a function that creates one.
 */
import assert from 'node:assert/strict';
import * as fs from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import type { Engine, EngineDatabase } from '../databases/engine.ts';
import { type ServerAddress, serverAddress } from '../drivers/managed-server/links/server-url.ts';
import { isAppError } from '../platform/errors.ts';
import { eventually } from './eventually.ts';
import { newDatabase } from './new-database.ts';
import type { OperatorServer } from './operator-server.ts';

export const SECRET = 'aaaaaaaaaaaaaaaaaaaaaaaa';
const PASSWORD = 'maker-of-databases';
const NOBODY_LEAVES = new AbortController().signal;
const BOUNDS = { params: [], maxRows: 10, maxBytes: 1000, timeoutMs: 5000, signal: NOBODY_LEAVES };
const unavailable = (error: unknown) => isAppError(error, 'engine_unavailable');

export interface ExternalFixture {
  readonly engine: Engine & { readonly pid: number | null };
  readonly folder: string;
  readonly alarms: Map<string, string>;
  close(): Promise<void>;
}

/** A session with the users' driver. */
export interface ExternalSession {
  ask(sql: string): Promise<unknown>;
  end(): Promise<void>;
}

export interface ExternalKind {
  readonly name: string;
  readonly setting: string;
  readonly defaultPort: number;
  readonly server: () => Promise<OperatorServer>;
  /** Creates users with that password: `maker` has the required permissions, `chief` all, `weak` none. */
  readonly users: (password: string) => readonly string[];
  readonly fixture: (address: ServerAddress) => ExternalFixture;
  readonly connect: (
    engine: ExternalFixture['engine'],
    database: EngineDatabase,
    password: string,
  ) => Promise<ExternalSession>;
  readonly version: RegExp;
  readonly limits: RegExp;
  readonly uri: RegExp;
  readonly tableInDump: RegExp;
  /** The permission that the user `weak` lacks, and the fix. */
  readonly lacks: readonly [RegExp, RegExp];
  /** Statements that lift the statement limit, and a slow one. */
  readonly lift: readonly string[];
  readonly sleep: string;
  /** The user that runs the statements, and a statement that sets its password to `taken`. */
  readonly ours: (database: EngineDatabase) => { readonly user: string; readonly take: string };
}

/** Registers the tests; `more`: tests of this engine only. */
export function testExternalServer(
  kind: ExternalKind,
  more: (given: { readonly cloud: Cloud; readonly server: () => OperatorServer }) => void,
): void {
  describe(`${kind.name} of the operator's`, () => {
    let server: OperatorServer;
    before(async () => {
      server = await kind.server();
      for (const sql of kind.users(PASSWORD)) await server.run(sql);
    });
    after(() => server?.close());
    const cloud: Cloud = (t, user = 'maker', password = PASSWORD) => {
      const external = serverAddress(kind.setting, server.url(user, password), kind.defaultPort);
      const fixture = kind.fixture(external);
      t.after(() => fixture.close());
      return fixture;
    };
    testNeeds(kind, cloud, () => server);
    testWords(kind, cloud, () => server);
    more({ cloud, server: () => server });
  });
}

/** A cloud that uses it with that user. */
type Cloud = (
  t: { after(work: () => Promise<void>): void },
  user?: string,
  password?: string,
) => ExternalFixture;

function testNeeds(kind: ExternalKind, cloud: Cloud, server: () => OperatorServer): void {
  test('it is said whose it is and what cannot be had; drivers connect to it itself', async (t) => {
    const { engine, folder } = cloud(t);
    const { available, source, version, reason } = await engine.readiness();
    assert.deepEqual([available, source], [true, 'external'], `${reason}`);
    assert.match(`${version}`, kind.version);
    assert.match(`${reason}`, kind.limits);
    const { host, port, tls, uri } = await engine.endpoint(newDatabase());
    assert.deepEqual([host, port, tls], ['127.0.0.1', server().port, false]);
    assert.match(uri('x'), kind.uri);
    assert.deepEqual([engine.pid, fs.existsSync(join(folder, 'server'))], [null, false]);
  });

  test('who may do everything there will do, too', async (t) => {
    const { engine } = cloud(t, 'chief');
    const database = newDatabase();
    await engine.provision(database, SECRET);
    const client = await kind.connect(engine, database, SECRET);
    await client.ask('CREATE TABLE t AS SELECT 1 AS a');
    await client.end();
    const { stream } = await engine.dump(database, 'sql', { signal: NOBODY_LEAVES });
    assert.match((await stream.toArray()).join(''), kind.tableInDump);
    await engine.drop(database.database);
    assert.deepEqual(await engine.list(), []);
  });

  test('databases of another cloud on it are not touched', async (t) => {
    const [one, other] = [cloud(t), cloud(t)];
    const database = newDatabase();
    await one.engine.provision(database, SECRET);
    await other.engine.prepare();
    assert.deepEqual(await other.engine.list(), []);
    assert.deepEqual(await one.engine.list(), [database.database]);
    await assert.rejects(other.engine.provision(database, 'theirs'), unavailable);
    await (await kind.connect(one.engine, database, SECRET)).end();
  });

  test('the user by which we run statements is ours again after each', async (t) => {
    const { engine } = cloud(t);
    const database = newDatabase();
    await engine.provision(database, SECRET);
    const { user, take } = kind.ours(database);
    await engine.query(database, { statement: take, readOnly: false, ...BOUNDS });
    await assert.rejects(kind.connect(engine, { ...database, username: user }, 'taken'));
  });

  test('who lifts the limit of a statement loses the session, and is told in the log', async (t) => {
    const { engine } = cloud(t);
    const database = newDatabase({ limits: { connections: 5, statementMs: 1000 } });
    await engine.provision(database, SECRET);
    const client = await kind.connect(engine, database, SECRET);
    for (const sql of kind.lift) await client.ask(sql);
    await assert.rejects(client.ask(kind.sleep));
    await eventually(async () => /ran for too long/.test((await engine.log?.(database, 10_000)) ?? ''));
    await client.end();
  });
}

function testWords(kind: ExternalKind, cloud: Cloud, server: () => OperatorServer): void {
  test('a wrong URL, password or missing right is said with the fix, and never the password', async (t) => {
    const wrong = cloud(t, 'maker', 'not-the-right-one');
    const weak = cloud(t, 'weak');
    const url = `${kind.name.toLowerCase()}://u:${PASSWORD}@127.0.0.1:1/x`;
    const closed = kind.fixture(serverAddress(kind.setting, url, kind.defaultPort));
    t.after(() => closed.close());
    const expected = [
      [wrong, /refuses the user/, new RegExp(`correct user and password in ${kind.setting}`)],
      [weak, ...kind.lacks],
      [closed, /127\.0\.0\.1:1 cannot be reached: connect ECONNREFUSED/, /start it, or correct/],
    ] as const;
    for (const [fixture, why, fix] of expected) {
      const readiness = await fixture.engine.readiness();
      assert.deepEqual([readiness.available, readiness.source], [false, 'external']);
      assert.match(`${readiness.reason}`, why);
      assert.match(`${readiness.fix}`, fix);
      await assert.rejects(fixture.engine.provision(newDatabase(), SECRET), unavailable);
      const said = JSON.stringify([readiness, [...fixture.alarms]]);
      assert.ok(!said.includes(PASSWORD) && !said.includes('not-the-right-one'), said);
    }
  });

  test('one that goes is said to be gone, and is used again when it is back', async (t) => {
    const { engine, alarms } = cloud(t);
    await engine.prepare();
    await server().stop();
    await eventually(async () => !(await engine.readiness()).available);
    assert.equal(alarms.size, 1);
    await assert.rejects(engine.list(), unavailable);
    await server().start();
    await eventually(async () => (await engine.readiness()).available);
    assert.deepEqual([...alarms], []);
    assert.deepEqual(await engine.list(), []);
  });

  test('a session goes on while Cloudlet is stopped', async (t) => {
    const { engine } = cloud(t);
    const database = newDatabase();
    await engine.provision(database, SECRET);
    const client = await kind.connect(engine, database, SECRET);
    await engine.close();
    await client.ask('SELECT 1 AS a');
    await client.end();
  });
}

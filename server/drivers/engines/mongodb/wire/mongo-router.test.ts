/** The way to the built-in MongoDB: who is admitted, and which messages a client may send. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { crc32c } from '@node-rs/crc32';
import { Binary, type Document, serialize, UUID } from 'bson';
import type { EngineDatabase } from '../../../../databases/engine.ts';
import { systemClock } from '../../../../platform/clock.ts';
import { eventually } from '../../../../testing/eventually.ts';
import { type MongodbFixture, openMongodb } from '../../../../testing/mongodb-fixture.ts';
import { randomFrom } from '../../../../testing/random.ts';
import { bodyOf, messageOf, RawMongo } from '../../../../testing/raw-mongo.ts';
import { ServerTls } from '../../../managed-server/links/server-tls.ts';

let fixture: MongodbFixture;
let database: EngineDatabase;
let port: number;
let uri: string;

before(async () => {
  fixture = openMongodb();
  ({ database, uri } = await fixture.make({ limits: { connections: 5, statementMs: 5000 } }));
  ({ port } = await fixture.engine.endpoint(database));
});
after(() => fixture.close());

/** One that has just ended may keep its slot a little longer. */
function loggedIn(as: EngineDatabase = database): Promise<RawMongo> {
  return eventually(async () => {
    const raw = await RawMongo.open(port);
    const { ok } = await raw.logIn(as.database, as.username, 'secret');
    if (ok === 1) return raw;
    raw.socket.destroy();
    return null;
  });
}

describe('who gets in', () => {
  test('whoever has the password, and sees its own database alone', async () => {
    const client = await fixture.connect(uri);
    const { databases } = await client.db('admin').admin().listDatabases();
    assert.deepEqual(
      databases.map(({ name }) => name),
      [database.database],
    );
    const { authInfo } = await client.db().command({ connectionStatus: 1 });
    assert.deepEqual(authInfo.authenticatedUsers, [{ user: database.username, db: database.database }]);
    assert.equal((await client.db().admin().buildInfo()).versionArray[0], 7);
    await client.close();
  });

  test('what mongosh and Compass ask at log-in is answered, of the own database', async () => {
    const client = await fixture.connect(uri);
    const admin = client.db('admin');
    const before = await admin.command({ serverStatus: 1 });
    assert.equal(before.version, '7.0.0');
    assert.equal(before.process, 'mongod');
    assert.ok(before.uptime >= 0 && before.uptimeMillis >= before.uptime);
    assert.equal(before.connections.current + before.connections.available, database.limits.connections);
    await client.db().collection('seen').insertOne({ a: 1 });
    await client.db().collection('seen').findOne();
    const { opcounters } = await admin.command({ serverStatus: 1 });
    assert.equal(opcounters.insert, before.opcounters.insert + 1);
    assert.equal(opcounters.query, before.opcounters.query + 1);
    const { authInfo } = await admin.command({ connectionStatus: 1, showPrivileges: true });
    assert.equal(authInfo.authenticatedUserPrivileges[0].resource.db, database.database);
    assert.deepEqual((await admin.command({ getLog: 'startupWarnings' })).log, []);
    assert.deepEqual((await admin.command({ getCmdLineOpts: 1 })).argv, ['mongod']);
    assert.equal((await admin.command({ hostInfo: 1 })).system.cpuAddrSize, 64);
    const { featureCompatibilityVersion } = await admin.command({ getParameter: '*' });
    assert.deepEqual(featureCompatibilityVersion, { version: '7.0' });
    await assert.rejects(admin.command({ getParameter: 1, none: 1 }), { code: 72 });
    for (const name of ['refreshSessions', 'endSessions'])
      assert.equal((await admin.command({ [name]: [{ id: new UUID() }] })).ok, 1, name);
    const { users } = await client.db().command({ usersInfo: database.username });
    assert.equal(users[0].user, database.username);
    assert.deepEqual((await client.db().command({ usersInfo: 'root' })).users, []);
    const [stats] = await client
      .db()
      .collection('seen')
      .aggregate([{ $collStats: { storageStats: {}, count: {} } }])
      .toArray();
    assert.equal(stats?.count, 1);
    assert.equal(stats?.storageStats.nindexes, 1);
    const [index] = await client
      .db()
      .collection('seen')
      .aggregate([{ $indexStats: {} }])
      .toArray();
    assert.equal(index?.name, '_id_');
    const strict = { apiVersion: '1', apiStrict: true };
    for (const [command, code] of [
      [{ replSetGetStatus: 1 }, 76],
      [{ listShards: 1 }, 59],
      [{ ping: 1, apiVersion: '2' }, 322],
      [{ buildInfo: 1, ...strict }, 323],
      [{ aggregate: 1, pipeline: [{ $listLocalSessions: {} }], cursor: {}, ...strict }, 323],
      [{ commitTransaction: 1 }, 251],
      [{ atlasVersion: 1 }, 13],
    ] as const)
      await assert.rejects(admin.command(command), { code });
    await client.db().collection('seen').drop();
    await client.close();
  });

  test('the process of a database finds the packages for locations and texts', async () => {
    const client = await fixture.connect(uri);
    const places = client.db().collection('places');
    await places.createIndexes([
      { key: { at: '2dsphere' } },
      { key: { text: 'text' }, default_language: 'german' },
    ]);
    await places.insertOne({ at: { type: 'Point', coordinates: [7, 50] }, text: 'die Häuser' });
    const $geometry = { type: 'Point', coordinates: [7, 51] };
    assert.equal((await places.find({ at: { $near: { $geometry } } }).toArray()).length, 1);
    assert.equal(await places.countDocuments({ $text: { $search: 'haus' } }), 1);
    await places.drop();
    await client.close();
  });

  test('nobody with another password, name or mechanism', async () => {
    const [{ database: other }, raw] = [await fixture.make(), await RawMongo.open(port)];
    const wrong = await raw.logIn(database.database, database.username, 'wrong');
    const stranger = await raw.logIn(database.database, other.username, 'secret');
    const nowhere = await raw.logIn('admin', database.username, 'secret');
    for (const { code } of [wrong, stranger, nowhere]) assert.equal(code, 18);
    const old = await raw.ask({
      saslStart: 1,
      mechanism: 'SCRAM-SHA-1',
      payload: '',
      $db: database.database,
    });
    assert.equal(old.code, 334);
    raw.socket.destroy();
  });

  test('a connection that does nothing but guess is closed', async () => {
    const raw = await RawMongo.open(port);
    const guess = () => raw.logIn(database.database, database.username, 'wrong');
    for (let time = 0; time < 5; time++) assert.equal((await guess()).code, 18);
    await assert.rejects(guess());
  });

  test('a stranger may greet, and do nothing else', async () => {
    const raw = await RawMongo.open(port);
    assert.equal((await raw.ask({ hello: 1, $db: 'admin' })).isWritablePrimary, true);
    for (const command of ['find', 'listDatabases', 'dropDatabase', '__proto__', 'constructor']) {
      const { code } = await raw.ask({ [command]: 'notes', $db: database.database });
      assert.equal(code, 13, command);
    }
    raw.socket.destroy();
  });

  test('nobody reaches a database of another by its name', async () => {
    const [{ database: other }, raw] = [await fixture.make(), await loggedIn()];
    for (const $db of [other.database, 'admin', 'local', 'config', '']) {
      const { code } = await raw.ask({ find: 'notes', $db });
      assert.equal(code, 13, $db);
    }
    assert.equal((await raw.ask({ find: 'notes' })).code, 40571);
    // A command of servers since 8.0, sent to `admin`: the error must not look like missing permissions.
    assert.equal((await raw.ask({ bulkWrite: 1, $db: 'admin' })).codeName, 'CommandNotFound');
    raw.socket.destroy();
  });

  test('a greeting of old is answered in its own way, and nothing else is', async () => {
    const raw = await RawMongo.open(port);
    const query = (command: Document) => {
      const name = Buffer.from('admin.$cmd\0');
      const numbers = Buffer.from([0, 0, 0, 0, 255, 255, 255, 255]);
      return messageOf(Buffer.concat([name, numbers, serialize(command)]), { opCode: 2004 });
    };
    const greeted = await raw.send(query({ ismaster: 1, helloOk: true }));
    assert.deepEqual([greeted.ismaster, greeted.helloOk, greeted.maxWireVersion], [true, true, 21]);
    assert.equal((await raw.send(query({ find: 'notes' }))).code, 352);
    raw.socket.destroy();
  });

  test('so many connections as a database has, and again when one has ended', async () => {
    const { database: own } = await fixture.make({ limits: { connections: 2, statementMs: 5000 } });
    const [first, second] = [await loggedIn(own), await loggedIn(own)];
    const third = await RawMongo.open(port);
    const refused = await third.logIn(own.database, own.username, 'secret');
    assert.match(refused.errmsg, /accepts at most 2\./);
    first.socket.destroy();
    await eventually(async () => (await third.logIn(own.database, own.username, 'secret')).ok === 1);
    for (const { socket } of [second, third]) socket.destroy();
  });

  test('when all places are taken, the account with most of them gives one to another', async () => {
    const few = openMongodb({ firstPort: 27_600, maxSessions: 3 });
    try {
      const { database: own } = await few.make({ accountId: 1 });
      const { database: another } = await few.make({ accountId: 2 });
      const { port: at } = await few.engine.endpoint(own);
      const enter = async ({ database: name, username }: EngineDatabase) => {
        const raw = await RawMongo.open(at);
        const { ok, errmsg } = await raw.logIn(name, username, 'secret');
        return { raw, ok, errmsg };
      };
      const all = [await enter(own), await enter(own), await enter(own)];
      assert.deepEqual(
        all.map(({ ok }) => ok),
        [1, 1, 1],
      );
      assert.match((await enter(own)).errmsg, /Too many connections to all databases/);
      const ended = once((all[0] as (typeof all)[0]).raw.socket, 'close');
      assert.equal((await enter(another)).ok, 1);
      await ended;
      assert.equal((await all[1]?.raw.ask({ ping: 1, $db: 'admin' }))?.ok, 1);
    } finally {
      await few.close();
    }
  });

  test('a new password ends sessions of the old one, and is the only good one', async () => {
    const { database: own } = await fixture.make();
    const raw = await loggedIn(own);
    const closed = once(raw.socket, 'close');
    await fixture.engine.rotate(own, 'another');
    await closed;
    const again = await RawMongo.open(port);
    assert.equal((await again.logIn(own.database, own.username, 'secret')).code, 18);
    assert.equal((await again.logIn(own.database, own.username, 'another')).ok, 1);
    again.socket.destroy();
  });

  test('a log-in that was begun before the password changed does not get through', async () => {
    const { database: own } = await fixture.make();
    const raw = await RawMongo.open(port);
    const ask = raw.ask.bind(raw);
    raw.ask = async (command) => {
      if (command.saslContinue === 1) await fixture.engine.rotate(own, 'another');
      return ask(command);
    };
    assert.equal((await raw.logIn(own.database, own.username, 'secret')).code, 18);
    raw.socket.destroy();
  });
});

/** Each must end in an error or a closed connection. */
const BROKEN: Readonly<Record<string, Buffer>> = {
  'a negative length': Buffer.from('ffffffff0000000000000000dd070000', 'hex'),
  'a length of nothing': Buffer.alloc(16),
  'more than a message may be': Buffer.from('00ffff7f0000000000000000dd070000', 'hex'),
  'an unknown kind': messageOf(bodyOf({ ping: 1, $db: 'admin' }), { opCode: 1 }),
  'a compressed one': messageOf(bodyOf({ ping: 1, $db: 'admin' }), { opCode: 2012 }),
  'unknown flags': messageOf(bodyOf({ ping: 1, $db: 'admin' }), { flags: 1 << 9 }),
  'a wrong checksum': messageOf(Buffer.concat([bodyOf({ ping: 1, $db: 'admin' }), Buffer.alloc(4)]), {
    flags: 1,
  }),
  'no body': messageOf(Buffer.alloc(0)),
  'two bodies': messageOf(
    Buffer.concat([bodyOf({ ping: 1, $db: 'admin' }), bodyOf({ ping: 1, $db: 'admin' })]),
  ),
  'a section of an unknown kind': messageOf(Buffer.concat([Buffer.of(9), serialize({ ping: 1 })])),
  'a body that is cut off': messageOf(bodyOf({ ping: 1, $db: 'admin' }).subarray(0, 20)),
  'a body that is too long': messageOf(Buffer.from('00ffffff7f', 'hex')),
  'a sequence without a name': messageOf(
    Buffer.concat([bodyOf({ insert: 'a' }), Buffer.from('0106000000aaaa', 'hex')]),
  ),
  'too many fields': messageOf(
    bodyOf(Object.fromEntries(Array.from({ length: 2000 }, (_, i) => [`f${i}`, 1]))),
  ),
  'more than a stranger may send': messageOf(bodyOf({ ping: 'x'.repeat(100_000), $db: 'admin' })),
};

describe('what is no message', () => {
  for (const [what, bytes] of Object.entries(BROKEN)) {
    test(`ends the connection: ${what}`, async () => {
      const raw = await RawMongo.open(port);
      await assert.rejects(raw.send(bytes));
    });
  }

  test('any bytes end in an error or a closed connection, and others go on', async () => {
    const random = randomFrom(20_261_122);
    const good = await loggedIn();
    const commands = [
      { hello: 1, $db: 'admin', client: { a: [1, 'x', null, new Date(0)] } },
      { saslStart: 1, mechanism: 'SCRAM-SHA-256', payload: new Binary(Buffer.from('n,,n=a,r=b')), $db: 'd' },
      { insert: 'notes', documents: [{ _id: 1, a: { b: [1, 2, 3] } }], $db: database.database },
      { find: 'notes', filter: { a: { $gt: 1 } }, $db: database.database },
    ];
    for (let round = 0; round < 150; round++) {
      const raw = round % 2 === 0 ? await RawMongo.open(port) : await loggedIn();
      const bytes = messageOf(bodyOf(commands[round % commands.length] as Document));
      for (let change = 0; change <= random(4); change++) bytes[random(bytes.length)] = random(256);
      raw.socket.write(bytes.subarray(0, random(3) === 0 ? random(bytes.length) : bytes.length));
      // A client that has sent everything gets its answers, and then the end.
      raw.socket.end();
      if (!raw.socket.closed) await once(raw.socket, 'close');
      if (round % 10 === 0) assert.equal((await good.ask({ ping: 1, $db: 'admin' })).ok, 1);
    }
    assert.equal((await good.ask({ find: 'notes', $db: database.database })).ok, 1);
    good.socket.destroy();
  });
});

describe('what a message may be', () => {
  test('its checksum is checked, and a reply is sent only to who wants one', async () => {
    const raw = await RawMongo.open(port);
    const summed = messageOf(Buffer.concat([bodyOf({ ping: 1, $db: 'admin' }), Buffer.alloc(4)]), {
      flags: 1,
    });
    summed.writeUInt32LE(crc32c(summed.subarray(0, -4)), summed.length - 4);
    assert.equal((await raw.send(summed)).ok, 1);
    raw.socket.write(messageOf(bodyOf({ whatsmyuri: 1, $db: 'admin' }), { flags: 2 }));
    assert.equal((await raw.ask({ ping: 1, $db: 'admin' })).you, undefined);
    raw.socket.destroy();
  });

  test('many may come at once, in pieces of any size', async () => {
    const raw = await RawMongo.open(port);
    const bytes = Buffer.concat(
      Array.from({ length: 20 }, () => messageOf(bodyOf({ ping: 1, $db: 'admin' }))),
    );
    const replies = Array.from({ length: 20 }, () => raw.send(Buffer.alloc(0)));
    for (let at = 0; at < bytes.length; at += 7) raw.socket.write(bytes.subarray(at, at + 7));
    assert.equal((await Promise.all(replies)).length, 20);
    raw.socket.destroy();
  });
});

describe('for other hosts', () => {
  test('connections are encrypted, with a certificate that can be verified', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'cloudlet-tls-'));
    const about = { host: '127.0.0.2', certFile: '', keyFile: '', clock: systemClock };
    const tlsIn = (name: string) => new ServerTls({ ...about, folder: join(folder, name) });
    const [tls, other] = [tlsIn('own'), tlsIn('other')];
    const open = openMongodb({ firstPort: 27_800, tls });
    try {
      const { database: own, uri: address } = await open.make();
      const { host, ca } = await open.engine.endpoint(own);
      assert.equal(host, '127.0.0.2');
      const withCa = (name: string, text: string | null) => {
        writeFileSync(join(folder, name), text ?? '');
        return address.replace('ca.pem', encodeURIComponent(join(folder, name)));
      };
      const client = await open.connect(withCa('ca.pem', ca));
      assert.equal((await client.db().command({ ping: 1 })).ok, 1);
      const asLocal = withCa('ca.pem', ca).replace('127.0.0.2', '127.0.0.1');
      assert.equal((await (await open.connect(asLocal)).db().command({ ping: 1 })).ok, 1);
      const soon = '&serverSelectionTimeoutMS=1000';
      await assert.rejects(open.connect(withCa('other.pem', other.ca) + soon), /certificate/);
      await assert.rejects(open.connect(address.replace('tls=true&tlsCAFile=ca.pem', 'tls=false') + soon));
    } finally {
      await open.close();
      rmSync(folder, { recursive: true });
    }
  });
});

describe('the port', () => {
  test('is the next one when what looked free is taken all the same', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'cloudlet-tls-'));
    const taker = createServer().listen(27_900, '127.0.0.2');
    await once(taker, 'listening');
    const about = { host: '127.0.0.2', certFile: '', keyFile: '', clock: systemClock };
    const open = openMongodb({ firstPort: 27_900, tls: new ServerTls({ ...about, folder }) });
    try {
      const { database: own } = await open.make();
      assert.ok((await open.engine.endpoint(own)).port > 27_900);
    } finally {
      await open.close();
      taker.close();
      rmSync(folder, { recursive: true });
    }
  });

  test('is kept, and when another program has it, that is reported until it is free', async () => {
    const first = openMongodb({ firstPort: 27_700 });
    const { database: own } = await first.make();
    const { port: kept } = await first.engine.endpoint(own);
    const { folder } = first;
    await first.engine.close();
    const taker = createServer().listen(kept, '127.0.0.1');
    await once(taker, 'listening');
    const second = openMongodb({ folder, firstPort: 27_700 });
    await assert.rejects(second.engine.prepare(), { code: 'engine_unavailable' });
    assert.match(second.alarms.get('mongodb_unavailable') ?? '', new RegExp(`port ${kept}`));
    assert.equal((await second.engine.readiness()).available, false);
    taker.close();
    await eventually(async () => (await second.engine.readiness()).available);
    const raw = await RawMongo.open(kept);
    assert.equal((await raw.logIn(own.database, own.username, 'secret')).ok, 1);
    assert.equal(second.alarms.size, 0);
    raw.socket.destroy();
    await second.close();
    await first.close();
  });
});

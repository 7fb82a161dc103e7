/**
 * TLS on this host, for MongoDB drivers that ask for it: which clients get it, and the limits of handshakes.
 */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { connect as connectTls, type TLSSocket } from 'node:tls';
import type { EngineDatabase } from '../../../../databases/engine.ts';
import { systemClock } from '../../../../platform/clock.ts';
import { eventually } from '../../../../testing/eventually.ts';
import { type MongodbFixture, openMongodb } from '../../../../testing/mongodb-fixture.ts';
import { bodyOf, messageOf, RawMongo } from '../../../../testing/raw-mongo.ts';
import { socketPair } from '../../../dialed.ts';
import { ServerTls } from '../../../managed-server/links/server-tls.ts';
import { TlsDoor } from './tls-door.ts';

/** Handshakes in progress that are kept. */
const MOST = 256;
const folder = mkdtempSync(join(tmpdir(), 'cloudlet-tls-'));
const tlsIn = (name: string, host = '') =>
  new ServerTls({ host, certFile: '', keyFile: '', folder: join(folder, name), clock: systemClock });

let fixture: MongodbFixture;
let database: EngineDatabase;
let uri: string;
let port: number;
before(async () => {
  fixture = openMongodb({ firstPort: 27_600, tls: tlsIn('own') });
  ({ database, uri } = await fixture.make());
  ({ port } = await fixture.engine.endpoint(database));
});
after(async () => {
  await fixture.close();
  rmSync(folder, { recursive: true });
});

/** The address with TLS, with the authority's certificate in a file. */
async function verifiedUri(name: string, ca: string): Promise<string> {
  const { verified } = await fixture.engine.endpoint(database);
  writeFileSync(join(folder, name), ca);
  return String(verified?.uri('secret')).replace('ca.pem', encodeURIComponent(join(folder, name)));
}

async function ownUri(): Promise<string> {
  const { verified } = await fixture.engine.endpoint(database);
  return verifiedUri('own.pem', String(verified?.ca));
}

/** The first message of a handshake. */
async function clientHello(): Promise<Buffer> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const taken = once(server, 'connection');
  const client = connectTls({ port: (server.address() as AddressInfo).port, rejectUnauthorized: false });
  client.on('error', () => {});
  const [socket] = (await taken) as [Socket];
  const [hello] = (await once(socket, 'data')) as [Buffer];
  client.destroy();
  server.close();
  return hello;
}

describe('TLS where it is not required', () => {
  test('is there for drivers that ask for it, and verified', async () => {
    const { tls, ca, verified } = await fixture.engine.endpoint(database);
    assert.deepEqual([tls, ca, verified?.tls], [false, null, true]);
    assert.match(String(verified?.uri('secret')), /&tls=true&tlsCAFile=ca\.pem$/);
    const [plain, secure] = [await fixture.connect(uri), await fixture.connect(await ownUri())];
    const long = 'x'.repeat(3_000_000);
    await secure.db().collection('notes').insertOne({ long });
    assert.equal((await plain.db().collection('notes').findOne())?.long, long);
    assert.equal((await secure.db().collection('notes').findOne())?.long, long);
    const soon = '&serverSelectionTimeoutMS=1000';
    const other = await verifiedUri('other.pem', String(tlsIn('other', 'x').ca));
    await assert.rejects(fixture.connect(other + soon), /certificate/);
  });

  test('is not taken for a message whose length begins as a handshake does', async () => {
    const raw = await RawMongo.open(port);
    const padding = 'x'.repeat(0x116 - messageOf(bodyOf({ ping: 1, $db: 'admin', comment: '' })).length);
    const message = messageOf(bodyOf({ ping: 1, $db: 'admin', comment: padding }));
    assert.equal(message[0], 0x16);
    const answered = raw.send(Buffer.alloc(0));
    for (const byte of message) raw.socket.write(Buffer.of(byte));
    assert.equal((await answered).ok, 1);
    raw.socket.destroy();
  });

  test('what is no handshake ends the connection, and nothing else', async () => {
    const hello = await clientHello();
    for (const bytes of [hello.subarray(0, 1), hello.subarray(0, 40), Buffer.concat([hello, hello])]) {
      const socket = connect(port, '127.0.0.1').on('error', () => {});
      socket.resume().end(bytes);
      await once(socket, 'close');
    }
    const plain = await fixture.connect(uri);
    assert.equal((await plain.db().command({ ping: 1 })).ok, 1);
  });
});

test('whoever begins handshakes without end keeps few, and others log in', async () => {
  const hello = await clientHello();
  const address = await ownUri();
  const attackers = new Set<Socket>();
  const answered = new Set<Socket>();
  let isOver = false;
  // As many as it can have at once: for each one ended it opens another.
  const attack = () => {
    const socket = connect(port, '127.0.0.1');
    attackers.add(socket);
    socket.on('error', () => {}).on('data', () => answered.add(socket));
    socket.once('close', () => {
      for (const all of [attackers, answered]) all.delete(socket);
      if (!isOver) attack();
    });
    socket.write(hello);
  };
  for (let count = 0; count < MOST + 100; count++) attack();
  try {
    await eventually(() => answered.size >= MOST - 10);
    // A few whose end has not arrived yet.
    assert.ok(answered.size <= MOST + 50, `${answered.size} are under way`);
    const plain = await fixture.connect(uri);
    assert.equal((await plain.db().command({ ping: 1 })).ok, 1);
    // From the same address: the newest is closed first, and a driver retries.
    const secure = await fixture.connect(`${address}&serverSelectionTimeoutMS=20000`);
    assert.equal((await secure.db().command({ ping: 1 })).ok, 1);
    assert.ok(attackers.size >= MOST, 'the attack went on');
  } finally {
    isOver = true;
  }
  // None of their state is kept.
  await eventually(() => attackers.size === 0);
});

test('whoever ends handshakes and then only greets keeps few, and others log in', async () => {
  const address = await ownUri();
  const attackers = new Set<TLSSocket>();
  const greeting = messageOf(bodyOf({ hello: 1, $db: 'admin' }));
  let greeted = 0;
  const attack = () =>
    new Promise<void>((resolve) => {
      const socket = connectTls({ port, host: '127.0.0.1', rejectUnauthorized: false });
      attackers.add(socket);
      socket.on('error', () => {}).once('secureConnect', () => socket.write(greeting));
      socket.on('close', () => attackers.delete(socket)).on('close', resolve);
      socket.once('data', () => greeted++).once('data', () => resolve());
      socket.resume();
    });
  for (let round = 0; round < 15; round++) await Promise.all(Array.from({ length: 40 }, attack));
  assert.ok(greeted > 500, `${greeted} were greeted`);
  await eventually(() => attackers.size <= 500);
  const secure = await fixture.connect(`${address}&serverSelectionTimeoutMS=20000`);
  assert.equal((await secure.db().command({ ping: 1 })).ok, 1);
  assert.ok(attackers.size > 400, 'they are still there');
  for (const socket of attackers) socket.destroy();
  await eventually(() => attackers.size === 0);
});

test('handshakes of one account wait for each other, and those of another do not', async () => {
  const door = new TlsDoor(tlsIn('own', '127.0.0.1'), Date.now);
  const ends: Socket[] = [];
  const order: string[] = [];
  const enter = async (source: string) => {
    const [near, far] = await socketPair();
    ends.push(near, far);
    return door.enter({ socket: far, source }).then(() => order.push(source));
  };
  const waits = Array.from({ length: 60 }, () => enter('account 1'));
  await eventually(async () => order.length === 50);
  await enter('account 2');
  assert.equal(order.at(-1), 'account 2');
  await Promise.all(waits);
  assert.equal(order.length, 61);
  for (const socket of ends) socket.destroy();
});

/** Unauthenticated clients that open connections to MongoDB's port: its users notice nothing. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { after, before, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { serialize } from 'bson';
import { MongoClient } from 'mongodb';
import { Client } from '../harness/client.ts';
import { CloudProcess } from '../harness/cloud-process.ts';
import { eventually } from '../harness/waiting.ts';

const EACH = 2000;
/** Until the connection is recognized as the driver's monitor. */
const STEADY_MS = 5000;

let cloud: CloudProcess;
let url: string;
let port: number;
before(async () => {
  cloud = await CloudProcess.start();
  const user = await new Client(cloud.api).newUser();
  const { body } = await user.call('/api/databases', { json: { name: 'shop', engine: 'mongodb' } });
  url = String(body.connection.uri);
  port = Number(new URL(url).port);
});
after(() => cloud.stop());

function hello(): Buffer {
  const body = serialize({ hello: 1, $db: 'admin' });
  const head = Buffer.alloc(21);
  head.writeInt32LE(head.length + body.length, 0);
  head.writeInt32LE(2013, 12);
  return Buffer.concat([head, body]);
}

/** Opens this many connections, a few at a time, each of which sends this. */
async function flood(count: number, said: Buffer | null): Promise<Socket[]> {
  const sockets: Socket[] = [];
  while (sockets.length < count) {
    const some = Array.from({ length: 50 }, () =>
      connect(port, '127.0.0.1')
        .on('error', () => {})
        .resume(),
    );
    await Promise.all(some.map((socket) => Promise.race([once(socket, 'connect'), once(socket, 'close')])));
    if (said !== null) for (const socket of some) socket.write(said);
    sockets.push(...some);
  }
  return sockets;
}

test('thousands of connections without a log-in are evicted for who logs in', async (t) => {
  // Short waits: a client that cannot be served immediately gets an error.
  const options = { heartbeatFrequencyMS: 1000, serverSelectionTimeoutMS: 10_000 };
  const client = await new MongoClient(url, options).connect();
  const sockets: Socket[] = [];
  t.after(async () => {
    for (const socket of sockets) socket.destroy();
    await client.close();
  });
  const errors: unknown[] = [];
  let served = 0;
  let isOver = false;
  const use = async (through: MongoClient) => {
    try {
      await through.db().collection('notes').insertOne({ text: 'x' });
      await through.db().collection('notes').findOne();
      served++;
    } catch (error) {
      errors.push(error);
    }
  };
  const loop = async () => {
    for (; !isOver; await sleep(20)) await use(client);
  };
  const using = loop();
  await sleep(STEADY_MS);
  const silent = await flood(EACH, null);
  const greeting = await flood(EACH, hello());
  sockets.push(...silent, ...greeting);
  const before = served;
  // New clients are admitted, too.
  for (let i = 0; i < 5; i++) {
    const newcomer = await new MongoClient(url, options).connect();
    await use(newcomer);
    await newcomer.close();
  }
  await sleep(3000);
  isOver = true;
  await using;
  assert.deepEqual(errors, []);
  assert.ok(served > before + 10, `${served - before} calls`);
  await eventually('who says nothing is ended', () => silent.every((socket) => socket.closed));
  const left = greeting.filter((socket) => !socket.closed).length;
  assert.ok(left > EACH / 4 && left < EACH, `${left} who greeted are left`);
});

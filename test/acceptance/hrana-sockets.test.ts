/** Connections of Hrana over WebSocket: log-in, order, ends, and allowed messages. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { after, before, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import fc from 'fast-check';
import { WebSocket } from 'ws';
import { Client } from '../harness/client.ts';
import { ADMIN_KEY, CloudProcess } from '../harness/cloud-process.ts';
import { eventually } from '../harness/waiting.ts';
import { addressOf, type Database, execute, newDatabase, openStream, RawSocket } from './hrana-kit.ts';

let cloud: CloudProcess;
let user: Client;
let shop: Database;
before(async () => {
  cloud = await CloudProcess.start({ env: { CLOUDLET_DATABASE_STATEMENT_SECONDS: '2' } });
  user = await new Client(cloud.api).newUser();
  shop = await newDatabase(user, 'shop');
});
after(() => cloud.stop());

test('a connection answers requests of one stream in their order, without waiting for each', async () => {
  const socket = await RawSocket.of(shop);
  socket.ask(1, openStream(0));
  socket.ask(2, execute(0, 'CREATE TEMP TABLE o (a)'));
  for (let index = 0; index < 40; index++)
    socket.ask(3 + index, execute(0, `INSERT INTO o VALUES (${index})`));
  socket.ask(43, execute(0, 'SELECT group_concat(a) FROM o'));
  socket.ask(44, { type: 'close_stream', stream_id: 0 });
  const answers = await socket.next(44);
  assert.deepEqual(
    answers.map(({ request_id }) => request_id).sort((a, b) => a - b),
    Array.from({ length: 44 }, (_, index) => index + 1),
  );
  const read = answers.find(({ request_id }) => request_id === 43);
  assert.equal(
    read.response.result.rows[0][0].value,
    Array.from({ length: 40 }, (_, index) => index).join(','),
  );
  socket.ask(45, execute(0, 'SELECT 1'));
  const [{ error }] = await socket.next(1);
  assert.deepEqual([error.code, error.message], ['STREAM_NOT_FOUND', 'No stream is open as stream_id 0']);
  socket.webSocket.close();
});

test('a connection needs the password first, within its time', async () => {
  const wrong = new RawSocket({ ...shop, connection: { ...shop.connection, password: 'x' } });
  await once(wrong.webSocket, 'open');
  wrong.send({ type: 'hello', jwt: 'wrong' });
  const [{ type, error }] = await wrong.next(1);
  assert.deepEqual([type, error.code], ['hello_error', 'INVALID_DATABASE_PASSWORD']);
  assert.equal((await wrong.end()).code, 1008);
  for (const first of [
    '{',
    '{"type":"request","request_id":1,"request":{"type":"open_stream","stream_id":1}}',
  ]) {
    const early = new RawSocket(shop);
    await once(early.webSocket, 'open');
    early.send(first);
    assert.deepEqual(await early.end(), { code: 1002, reason: 'The first message must be a hello' });
    assert.deepEqual(early.answers, []);
  }
});

test('connections without a log-in are few, and read little', async () => {
  const strangers = Array.from({ length: 40 }, () => new RawSocket(shop));
  const isOver = ({ webSocket }: RawSocket) => webSocket.readyState !== webSocket.CONNECTING;
  await eventually('all answers', () => strangers.every(isOver));
  assert.equal(strangers.filter(({ webSocket }) => webSocket.readyState === webSocket.OPEN).length, 32);
  const [first, ...others] = strangers.filter(({ webSocket }) => webSocket.readyState === webSocket.OPEN);
  first?.webSocket.send(Buffer.alloc(1_000_000));
  assert.equal((await first?.end())?.code, 1006);
  for (const { webSocket } of others) webSocket.terminate();
  const next = await eventually('a free place', async () => {
    const socket = new RawSocket(shop);
    await eventually('an answer', () => isOver(socket));
    return socket.webSocket.readyState === socket.webSocket.OPEN ? socket : undefined;
  });
  next.webSocket.terminate();
});

test('a connection of no protocol that is known here, or elsewhere, is no connection', async () => {
  for (const protocol of ['graphql-ws', 'hrana4']) {
    const webSocket = new WebSocket(addressOf(shop, 'ws'), protocol);
    const [error] = await once(webSocket, 'error');
    assert.match(String(error), /400/);
  }
  const elsewhere = new WebSocket(`${cloud.data.replace('http', 'ws')}/cdn/x`, 'hrana3');
  assert.match(String((await once(elsewhere, 'error'))[0]), /404|400|401/);
});

test('a connection goes on under a new password once its client says hello again', async () => {
  const database = await newDatabase(user, 'greeted-twice');
  const socket = await RawSocket.of(database);
  socket.ask(1, openStream(1));
  socket.ask(2, execute(1, 'CREATE TABLE t (a)'));
  await socket.next(2);
  const path = `/api/databases/${database.database_id}/credentials/rotate`;
  const { body: rotated } = await user.call(path, { method: 'POST' });
  // Without waiting for the answer, as clients are allowed to.
  socket.send({ type: 'hello', jwt: rotated.connection.password });
  socket.ask(3, openStream(2));
  socket.ask(4, execute(2, "SELECT 'hello' AS a"));
  const answers = await socket.next(3);
  assert.deepEqual(
    answers.map(({ type }) => type),
    ['hello_ok', 'response_ok', 'response_ok'],
  );
  assert.equal(answers[2].response.result.rows[0][0].value, 'hello');
  // The password of another database, also if the address has none.
  const nowhere = {
    ...shop,
    connection: { ...shop.connection, uri: new URL('/db/', shop.connection.uri).href },
  };
  for (const [greeted, other] of [
    [socket, shop],
    [await RawSocket.of(nowhere), { ...database, connection: rotated.connection }],
  ] as const) {
    greeted.send({ type: 'hello', jwt: other.connection.password });
    greeted.ask(9, openStream(9));
    const [{ type, error }] = await greeted.next(1);
    assert.deepEqual([type, error.code], ['hello_error', 'INVALID_DATABASE_PASSWORD']);
    assert.equal((await greeted.end()).code, 1008);
    assert.deepEqual(greeted.answers, []);
  }
});

test('a connection of hrana1 is served', async () => {
  const socket = new RawSocket(shop, 'hrana1');
  await once(socket.webSocket, 'open');
  socket.send({ type: 'hello', jwt: shop.connection.password });
  socket.ask(1, openStream(1));
  socket.ask(2, { type: 'batch', stream_id: 1, batch: { steps: [{ stmt: { sql: 'SELECT 1' } }] } });
  const [, , { response }] = await socket.next(3);
  assert.deepEqual(response.result.step_results[0].rows, [[{ type: 'integer', value: '1' }]]);
  socket.webSocket.close();
});

test('a cursor ends with its stream, and one that could not be opened can be closed', async () => {
  const socket = await RawSocket.of(shop);
  const series =
    'WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 500) SELECT i FROM n';
  const openCursor = (cursor_id: number, stmt: object) => ({
    type: 'open_cursor',
    stream_id: 1,
    cursor_id,
    batch: { steps: [{ stmt }] },
  });
  const fetch = (cursor_id: number) => ({ type: 'fetch_cursor', cursor_id, max_count: 100 });
  socket.ask(1, openStream(1));
  socket.ask(2, openCursor(1, { sql: series }));
  socket.ask(3, fetch(1));
  // It waits for the first one.
  socket.ask(4, openCursor(2, { sql: series }));
  socket.ask(5, { type: 'close_stream', stream_id: 1 });
  socket.ask(6, fetch(1));
  const answers = await socket.next(6);
  const responseTo = (id: number) => answers.find(({ request_id }) => request_id === id)?.response;
  assert.equal(responseTo(3).entries.length, 100);
  assert.deepEqual(responseTo(5), { type: 'close_stream' });
  assert.equal(answers.find(({ request_id }) => request_id === 6).error.code, 'CURSOR_NOT_FOUND');
  socket.ask(7, openCursor(3, { sql: series }));
  socket.ask(8, { type: 'close_cursor', cursor_id: 3 });
  const [failed, closed] = await socket.next(2);
  assert.equal(failed.error.code, 'STREAM_NOT_FOUND');
  assert.equal(closed.type, 'response_ok');
  socket.webSocket.close();
});

test('a connection serves nothing more under a password that was changed', async () => {
  const database = await newDatabase(user, 'rotated');
  const socket = await RawSocket.of(database);
  socket.ask(1, openStream(1));
  await socket.next(1);
  const path = `/api/databases/${database.database_id}/credentials/rotate`;
  assert.equal((await user.call(path, { method: 'POST' })).status, 200);
  socket.ask(2, execute(1, 'SELECT 1'));
  const { code, reason } = await socket.end();
  assert.equal(code, 1011);
  assert.match(reason, /password/);
  assert.deepEqual(socket.answers, []);
});

test('a connection of a suspended account serves nothing more', async () => {
  const owner = await new Client(cloud.api).newUser();
  const { body: account } = await owner.call('/api/account');
  const socket = await RawSocket.of(await newDatabase(owner, 'suspended'));
  socket.ask(1, openStream(1));
  await socket.next(1);
  const admin = new Client(cloud.api, ADMIN_KEY);
  const path = `/api/admin/accounts/${account.id}/suspend`;
  assert.equal((await admin.call(path, { json: { reason: 'a test' } })).status, 200);
  await eventually('the end of the connection', () => {
    if (socket.closed === undefined) socket.ask(2, execute(1, 'SELECT 1'));
    return socket.closed;
  });
  assert.equal(socket.closed?.code, 1011);
});

test('a connection that is left loses its transaction', async () => {
  const socket = await RawSocket.of(shop);
  socket.ask(1, openStream(1));
  socket.ask(2, execute(1, 'BEGIN IMMEDIATE'));
  socket.ask(3, execute(1, 'CREATE TABLE left_over (a)'));
  await socket.next(3);
  socket.webSocket.terminate();
  const next = await RawSocket.of(shop);
  next.ask(1, openStream(1));
  next.ask(2, execute(1, 'CREATE TABLE left_over (a)'));
  next.ask(3, execute(1, 'DROP TABLE left_over'));
  const answers = await next.next(3);
  assert.deepEqual(
    answers.map(({ type }) => type),
    ['response_ok', 'response_ok', 'response_ok'],
  );
  next.webSocket.close();
});

test('a connection that is left in the middle of its messages is no error of the cloud', async () => {
  const waiting = await RawSocket.of(shop);
  waiting.ask(1, openStream(1));
  waiting.ask(2, execute(1, 'BEGIN IMMEDIATE'));
  await waiting.next(2);
  const leaving = await RawSocket.of(shop);
  leaving.ask(1, openStream(1));
  // It waits for the other writer.
  leaving.ask(2, execute(1, 'CREATE TABLE never (a)'));
  await leaving.next(1);
  leaving.webSocket.terminate();
  waiting.ask(3, execute(1, 'COMMIT'));
  await waiting.next(1);
  await sleep(200);
  assert.ok(!cloud.output.includes('a Hrana message failed'), cloud.output);
  waiting.webSocket.close();
});

test('a connection whose statement runs for ever is ended, and the neighbour goes on', async () => {
  const other = await newDatabase(await new Client(cloud.api).newUser(), 'neighbour');
  const victim = await RawSocket.of(other);
  victim.ask(1, openStream(1));
  await victim.next(1);
  const socket = await RawSocket.of(shop);
  socket.ask(1, openStream(1));
  socket.ask(
    2,
    execute(1, 'WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT max(i) FROM n'),
  );
  for (let id = 2; id < 50; id++) victim.ask(id, execute(1, 'SELECT 1'));
  assert.equal((await victim.next(48)).length, 48);
  const { code, reason } = await socket.end();
  assert.equal(code, 1011);
  assert.match(reason, /timed out/);
  const again = await RawSocket.of(shop);
  again.ask(1, openStream(1));
  assert.equal((await again.next(1))[0].type, 'response_ok');
});

test('a connection with a damaged message ends alone', async () => {
  const other = await RawSocket.of(shop);
  const request = fc.record({
    type: fc.constantFrom('execute', 'batch', 'open_cursor', 'fetch_cursor', 'x'),
    stream_id: fc.jsonValue(),
    cursor_id: fc.jsonValue(),
    stmt: fc.jsonValue(),
    batch: fc.jsonValue(),
    max_count: fc.jsonValue(),
  });
  const message = fc.oneof(
    fc.string(),
    fc.uint8Array({ maxLength: 200 }),
    fc.json(),
    fc
      .record({ type: fc.constant('request'), request_id: fc.integer(), request })
      .map((value) => JSON.stringify(value)),
  );
  await fc.assert(
    fc.asyncProperty(
      fc.constantFrom('hrana2', 'hrana3', 'hrana3-protobuf'),
      message,
      async (protocol, sent) => {
        const webSocket = new WebSocket(addressOf(shop, 'ws'), protocol);
        webSocket.on('error', () => {});
        await once(webSocket, 'open');
        const { password } = shop.connection;
        const inProtobuf = Buffer.concat([
          Buffer.from([0x0a, password.length + 2, 0x0a, password.length]),
          Buffer.from(password),
        ]);
        webSocket.send(
          protocol === 'hrana3-protobuf' ? inProtobuf : JSON.stringify({ type: 'hello', jwt: password }),
        );
        await once(webSocket, 'message');
        const over = Promise.race([once(webSocket, 'message'), once(webSocket, 'close')]);
        webSocket.send(sent);
        await over;
        webSocket.terminate();
      },
    ),
    { numRuns: 150 },
  );
  other.ask(1, openStream(1));
  assert.equal((await other.next(1))[0].type, 'response_ok');
});

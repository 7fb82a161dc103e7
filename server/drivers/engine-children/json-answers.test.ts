import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';
import { test } from 'node:test';
import { parsedAnswer } from './json-answers.ts';

const VALUES = [
  { rows: [['plain', 1, null, true]] },
  { rows: [['äöü € 𝄞 \u0000 \ud800']] },
  { rows: [['a'.repeat(400_000)]] },
  { rows: [[`${'a'.repeat(400_000)}ß`]] },
];

test('an answer is the value that was sent, whatever characters are in it', async () => {
  for (const value of VALUES) {
    const json = Buffer.from(JSON.stringify(value));
    assert.deepEqual(await parsedAnswer(json), value);
  }
  await assert.rejects(parsedAnswer(Buffer.from('{"rows":')), SyntaxError);
});

/** A connection, both ends. */
async function pair(server: Server): Promise<[near: Socket, far: Socket]> {
  const accepted = once(server, 'connection');
  const near = connect((server.address() as AddressInfo).port, '127.0.0.1');
  const [far] = await accepted;
  return [near, far];
}

test('what others have sent is read before the caller goes on with a large answer, not with a small one', async (t) => {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const [child, ofChild] = await pair(server);
  const [caller, ofCaller] = await pair(server);
  t.after(() => {
    for (const socket of [child, ofChild, caller, ofCaller]) socket.destroy();
    server.close();
  });
  const orderOf = async (value: unknown) => {
    const order: string[] = [];
    const json = Buffer.from(JSON.stringify(value));
    const { promise, resolve } = Promise.withResolvers<void>();
    ofCaller.once('data', () => order.push('call'));
    ofChild.once('data', async () => {
      caller.write('call');
      await parsedAnswer(json);
      order.push('answer');
      resolve();
    });
    child.write('answer');
    await promise;
    if (order.length < 2) await once(ofCaller, 'data');
    return order;
  };
  assert.deepEqual(await orderOf(VALUES[0]), ['answer', 'call']);
  assert.deepEqual(await orderOf(VALUES[2]), ['call', 'answer']);
});

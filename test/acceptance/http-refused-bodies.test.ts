/**
 * A client that sends the whole body before reading, like Python's http.client, can read why it was refused.
 */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import type { Socket } from 'node:net';
import { after, describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { ADMIN_KEY, CloudProcess } from '../harness/cloud-process.ts';
import { openSocket, parseResponse } from '../harness/raw-http.ts';

const cloud = await CloudProcess.start();
after(() => cloud.stop());

const PIECE = Buffer.alloc(256 * 1024, 'x');
const FORM = 'Content-Type: multipart/form-data; boundary=b';
const KEY = `Authorization: Bearer ${ADMIN_KEY}`;

interface Refused {
  readonly base: string;
  readonly line: string;
  readonly headers?: readonly string[];
  readonly pieces?: number;
  readonly pauseMs?: number;
}

/** The response read by a client that writes its whole body first. */
async function answerAfter({ base, line, headers = [], pieces = 40, pauseMs = 0 }: Refused) {
  const socket = await openSocket(base);
  let failure: Error | undefined;
  socket.on('error', (error) => {
    failure = error;
  });
  // The program does not read while it writes.
  socket.pause();
  const length = `Content-Length: ${pieces * PIECE.length}`;
  socket.write(`${[`${line} HTTP/1.1`, 'Host: localhost', length, ...headers].join('\r\n')}\r\n\r\n`);
  for (let i = 0; i < pieces; i++) {
    await written(socket, PIECE);
    await sleep(pauseMs);
  }
  assert.equal(failure, undefined, 'the body could be sent');
  const answer = await firstOf(socket);
  socket.destroy();
  return answer;
}

function written(socket: Socket, piece: Buffer): Promise<void> {
  return new Promise((resolve, reject) => {
    socket.write(piece, (error) => (error ? reject(error) : resolve()));
  });
}

async function firstOf(socket: Socket) {
  socket.resume();
  const [text] = await once(socket.setEncoding('utf8'), 'data');
  return parseResponse(String(text));
}

describe('a client that sends all of a refused body before it reads', () => {
  test('reads why, at each door', async () => {
    const put = { base: cloud.data, line: 'PUT /nowhere/k' };
    assert.equal((await answerAfter(put)).status, 404);
    const expecting = await answerAfter({ ...put, headers: ['Expect: 100-continue'] });
    assert.equal(expecting.status, 404);
    assert.match(String(expecting.body), /<Code>NoSuchBucket</);
    // The next request could not be distinguished from the body.
    assert.equal(expecting.headers.get('connection'), 'close');
    const upload = { base: cloud.api, line: 'POST /api/buckets/nowhere/upload', headers: [FORM] };
    assert.equal((await answerAfter(upload)).status, 401);
    assert.equal((await answerAfter({ ...upload, headers: [FORM, KEY] })).status, 404);
    const large = { base: cloud.api, line: 'POST /api/buckets' };
    assert.equal(
      (await answerAfter({ ...large, headers: ['Content-Type: application/json', KEY] })).status,
      413,
    );
  });

  test('reads why after a quarter of a minute too', async () => {
    const slow = { pieces: 30, pauseMs: 500 };
    const answers = await Promise.all([
      answerAfter({ base: cloud.data, line: 'PUT /nowhere/k', ...slow }),
      answerAfter({
        base: cloud.api,
        line: 'POST /api/buckets/nowhere/upload',
        headers: [FORM, KEY],
        ...slow,
      }),
    ]);
    for (const { status } of answers) assert.equal(status, 404);
  });

  test('is cut when it sends hardly anything', async () => {
    const socket = await openSocket(cloud.data);
    socket.write('PUT /nowhere/k HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\nx');
    socket.resume();
    await once(socket, 'close');
  });
});

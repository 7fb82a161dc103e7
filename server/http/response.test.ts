import assert from 'node:assert/strict';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { test } from 'node:test';
import type { FastifyReply } from 'fastify';
import { JsonText } from '../platform/json/json.ts';
import { sendResponse } from './response.ts';
import { JSON_TYPE } from './route.ts';

const door = { countUnread: () => {} };

/** The response to a client. */
async function sent(body: string | JsonText): Promise<{ text: string; length: string | null }> {
  const send = (raw: ServerResponse) => {
    const request = { principal: { via: 'nobody' }, responseHeaders: {} };
    const reply = { raw, request, hijack: () => {} } as unknown as FastifyReply;
    sendResponse(door, reply, { status: 200, contentType: JSON_TYPE, body });
  };
  const server = createServer((_, raw) => send(raw)).listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));
  try {
    const answer = await fetch(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
    return { text: await answer.text(), length: answer.headers.get('content-length') };
  } finally {
    server.close();
    server.closeAllConnections();
  }
}

test('JSON that was written elsewhere is sent as it is, with a line end, and its memory is freed', async () => {
  for (const length of [1, 70_000, 5_000_000]) {
    const first = Buffer.from('["ä",');
    const second = Buffer.from(new Uint8Array(length).fill(0x30).buffer);
    const expected = `["ä",${'0'.repeat(length)}\n`;
    const { text, length: announced } = await sent(new JsonText([first, second]));
    assert.ok(text === expected, `${length} bytes differ`);
    assert.equal(announced, String(Buffer.byteLength(expected)));
    if (length >= 70_000) assert.equal(second.length, 0, 'its memory is freed');
  }
});

test('a text is sent with a line end', async () => {
  assert.deepEqual(await sent('{"a":"ä"}'), { text: '{"a":"ä"}\n', length: '11' });
});

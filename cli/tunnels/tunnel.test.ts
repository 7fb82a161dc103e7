import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { PassThrough } from 'node:stream';
import { text } from 'node:stream/consumers';
import { test } from 'node:test';
import type { Session } from '../session.ts';
import { join, openSocket } from './tunnel.ts';

const GUID = '258EAFA5-E914-47DA-95CA-C5AB0DC85B11';

test('bytes that come with the answer to the upgrade are not lost', async (t) => {
  const server = createServer().on('upgrade', (request, socket) => {
    const accept = createHash('sha1')
      .update(`${request.headers['sec-websocket-key']}${GUID}`)
      .digest('base64');
    const head = ['HTTP/1.1 101 Switching Protocols', 'Upgrade: websocket', 'Connection: Upgrade'];
    const upgrade = `${head.join('\r\n')}\r\nSec-WebSocket-Accept: ${accept}\r\n\r\n`;
    // In one piece: the banner as a binary frame, an empty text frame, and a close frame of code 1000.
    const banner = Buffer.concat([Buffer.from([0x82, 6]), Buffer.from('SSH-2\n')]);
    const end = Buffer.from([0x81, 0, 0x88, 2, 0x03, 0xe8]);
    socket.end(Buffer.concat([Buffer.from(upgrade), banner, end]));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => server.close());
  const { port } = server.address() as AddressInfo;
  const socket = await openSocket({ key: 'k' } as Session, `http://127.0.0.1:${port}/`);
  // Whoever joins may have something to do first.
  await new Promise((resolve) => setTimeout(resolve, 20));
  const [input, output] = [new PassThrough(), new PassThrough()];
  const joined = join(socket, { input, output });
  assert.equal(await text(output), 'SSH-2\n');
  await joined;
});

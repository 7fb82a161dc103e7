import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type Duplex, PassThrough } from 'node:stream';
import { text } from 'node:stream/consumers';
import { type TestContext, test } from 'node:test';
import type { Session } from '../sign-in/session.ts';
import { sftpOption } from './ssh.ts';
import { carry, join, openSocket } from './tunnel.ts';

const GUID = '258EAFA5-E914-47DA-95CA-C5AB0DC85B11';

/** Opens a WebSocket to a server with this answer to the upgrade. */
async function opened(t: TestContext, more: Uint8Array, then = (socket: Duplex) => void socket.end()) {
  const server = createServer().on('upgrade', (request, socket) => {
    const accept = createHash('sha1')
      .update(`${request.headers['sec-websocket-key']}${GUID}`)
      .digest('base64');
    const head = ['HTTP/1.1 101 Switching Protocols', 'Upgrade: websocket', 'Connection: Upgrade'];
    const upgrade = `${head.join('\r\n')}\r\nSec-WebSocket-Accept: ${accept}\r\n\r\n`;
    // In one piece.
    socket.on('error', () => {}).write(Buffer.concat([Buffer.from(upgrade), more]));
    then(socket);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => server.close());
  const { port } = server.address() as AddressInfo;
  return openSocket({ key: 'k' } as Session, `http://127.0.0.1:${port}/`);
}

test('bytes that come with the answer to the upgrade are not lost', async (t) => {
  // The banner as a binary frame, an empty text frame, and a close frame of code 1000.
  const banner = Buffer.concat([Buffer.from([0x82, 6]), Buffer.from('SSH-2\n')]);
  const socket = await opened(t, Buffer.concat([banner, Buffer.from([0x81, 0, 0x88, 2, 0x03, 0xe8])]));
  // The other side may have something to do first.
  await new Promise((resolve) => setTimeout(resolve, 20));
  const [input, output] = [new PassThrough(), new PassThrough()];
  const joined = join(socket, { input, output });
  assert.equal(await text(output), 'SSH-2\n');
  await joined;
});

test('a connection that ends while its tunnel is opened leaves no tunnel', async (t) => {
  let far: Duplex | undefined;
  const near = new PassThrough();
  const open = async () => {
    const socket = await opened(t, Buffer.alloc(0), (stream) => {
      far = stream.resume();
    });
    near.destroy();
    await once(near, 'close');
    return socket;
  };
  await carry(near, open, assert.fail);
  assert.ok(far !== undefined);
  if (!far.readableEnded) await once(far, 'end');
  far.destroy();
});

test('scp speaks SFTP wherever it can', () => {
  const asked = (version: string) => sftpOption(`OpenSSH_${version} Debian, OpenSSL 3`).join();
  assert.deepEqual(['8.4p1', '8.7p1', '8.9p1', '9.2p1', '10.0p2'].map(asked), ['', '-s', '-s', '', '']);
});

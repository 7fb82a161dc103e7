/**
 * Uploads files as multipart forms over raw sockets, as cheaply as possible in Node: the bytes are created
 * once and passed to the kernel unchanged. Prints the seconds of each upload, from first byte to complete
 * answer.
 */
import { randomBytes } from 'node:crypto';
import { connect, type Socket } from 'node:net';
import { childInput } from '../child.ts';

interface Input {
  readonly port: number;
  readonly path: string;
  readonly key: string;
  readonly name: string;
  readonly bytes: number;
  readonly parallel: number;
}

const BOUNDARY = 'bench-boundary-7f3a91c2';
const PIECE = 16 * 2 ** 20;
const input = childInput<Input>();
const piece = randomBytes(Math.min(PIECE, input.bytes));

async function send(socket: Socket, bytes: Buffer | string): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    socket.write(bytes, (error) => (error ? reject(error) : resolve()));
  });
}

function answerStatus(socket: Socket): Promise<number> {
  return new Promise((resolve, reject) => {
    let text = '';
    socket.setEncoding('latin1').on('data', (part: string) => {
      text += part;
      const head = text.indexOf('\r\n\r\n');
      const length = /\r\ncontent-length: (\d+)/i.exec(text);
      if (head !== -1 && length && text.length >= head + 4 + Number(length[1])) {
        resolve(Number(text.slice(9, 12)));
      }
    });
    socket.on('error', reject);
    socket.on('close', () => reject(new Error('the server closed the connection')));
  });
}

async function upload(name: string): Promise<number> {
  const socket = connect(input.port, '127.0.0.1');
  socket.setNoDelay(true);
  const head =
    `--${BOUNDARY}\r\nContent-Disposition: form-data; name="file"; filename="${name}"\r\n` +
    'Content-Type: application/octet-stream\r\n\r\n';
  const tail = `\r\n--${BOUNDARY}--\r\n`;
  const began = performance.now();
  const status = answerStatus(socket);
  status.catch(() => {});
  await send(
    socket,
    `POST ${input.path} HTTP/1.1\r\nHost: localhost\r\nX-API-Key: ${input.key}\r\n` +
      `Content-Type: multipart/form-data; boundary=${BOUNDARY}\r\n` +
      `Content-Length: ${head.length + input.bytes + tail.length}\r\n\r\n${head}`,
  );
  for (let sent = 0; sent < input.bytes; sent += piece.length) {
    await send(socket, piece.subarray(0, Math.min(piece.length, input.bytes - sent)));
  }
  await send(socket, tail);
  const code = await status;
  const seconds = (performance.now() - began) / 1000;
  socket.destroy();
  if (code !== 200) throw new Error(`the upload was answered ${code}`);
  return seconds;
}

const names = Array.from({ length: input.parallel }, (_, index) => `${input.name}-${index}`);
console.log(JSON.stringify({ seconds: await Promise.all(names.map(upload)) }));

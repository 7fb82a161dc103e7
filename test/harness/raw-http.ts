/** HTTP by hand, for requests that no client library would send. */
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import type { Answer } from './client.ts';

/** A connection to the cloud at `base`; errors are ignored, because many tests expect to be disconnected. */
export async function openSocket(base: string): Promise<Socket> {
  const { hostname, port } = new URL(base);
  const socket = connect(Number(port), hostname);
  socket.on('error', () => {});
  await once(socket, 'connect');
  return socket;
}

/** The data received on the socket until it is closed, or `timeoutMs` have passed. */
export async function readToEnd(socket: Socket, timeoutMs = 20_000): Promise<string> {
  const chunks: Buffer[] = [];
  socket.on('data', (chunk: Buffer) => chunks.push(chunk));
  const timer = setTimeout(() => socket.destroy(), timeoutMs);
  if (!socket.closed) await once(socket, 'close');
  clearTimeout(timer);
  return Buffer.concat(chunks).toString('utf8');
}

/** Sends the text unchanged and reads until the cloud closes the connection. */
export async function sendRaw(base: string, text: string | Uint8Array): Promise<string> {
  const socket = await openSocket(base);
  socket.write(text);
  return readToEnd(socket);
}

/** The first response in `text`. */
export function parseResponse(text: string): Answer {
  const end = text.indexOf('\r\n\r\n');
  const [statusLine = '', ...lines] = text.slice(0, end).split('\r\n');
  const headers = new Headers(
    lines.map((line): [string, string] => {
      const colon = line.indexOf(':');
      return [line.slice(0, colon), line.slice(colon + 1).trim()];
    }),
  );
  const isJson = (headers.get('content-type') ?? '').includes('json');
  const rest = text.slice(end + 4);
  const length = headers.get('content-length');
  const body = length === null ? rest : Buffer.from(rest).subarray(0, Number(length)).toString('utf8');
  return { status: Number(statusLine.split(' ')[1]), headers, body: isJson ? JSON.parse(body) : body };
}

/** Connections that the host node has switched to another protocol, joined to the clients'. */
import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import { pairs } from './end-to-end.ts';
import type { Upgraded } from './forward.ts';
import { closeFrame, FrameEdges } from './frame-edges.ts';

export interface Switched {
  /** The host's answer, 101. */
  readonly answer: IncomingMessage;
  readonly host: Socket;
  /** Bytes that came right after it. */
  readonly hostHead: Buffer;
}

/** The close of a WebSocket whose host has gone (RFC 6455 §7.4). */
export interface Ending {
  readonly code: number;
  readonly reason: string;
}

/** Time for a client to read the last frame. */
const CLOSE_MS = 5000;

/** `ending` is called if the host's connection ends without a close frame of its own. */
export function join({ client, head }: Upgraded, switched: Switched, ending: () => Ending): void {
  const { answer, host, hostHead } = switched;
  const fields = pairs(answer.rawHeaders).map((pair) => pair.join(': '));
  client.write(`HTTP/1.1 101 Switching Protocols\r\n${fields.join('\r\n')}\r\n\r\n`, 'latin1');
  client.write(hostHead);
  host.setTimeout(0).setNoDelay(true);
  (client as Socket).setNoDelay?.(true);
  host.write(head);
  const frames = answer.headers.upgrade?.toLowerCase() === 'websocket' ? new FrameEdges() : undefined;
  if (frames !== undefined) {
    frames.follow(hostHead);
    host.on('data', (bytes: Buffer) => frames.follow(bytes));
  }
  host.once('error', () => host.destroy());
  host.once('close', () => {
    if (frames === undefined) return void client.destroy();
    const { code, reason } = ending();
    client.end(frames.mayAdd ? closeFrame(code, reason) : undefined);
    // Otherwise its answer would stay unread, and its end unnoticed.
    client.resume();
    const late = setTimeout(() => client.destroy(), CLOSE_MS).unref();
    client.once('close', () => clearTimeout(late));
  });
  const cut = () => host.destroy();
  client.once('error', cut).once('close', cut);
  host.pipe(client, { end: frames === undefined }).pipe(host);
}

/** One tunnel: connects a local connection to a machine or database over a WebSocket. */
import { Agent } from 'node:http';
import { Agent as TlsAgent } from 'node:https';
import type { Duplex, Readable, Writable } from 'node:stream';
import { WebSocket } from 'ws';
import { CloudError } from '../../sdk/index.ts';
import { ClientError, EXIT, exitCodeOf } from '../failures.ts';
import { isProxied, proxyEnvironment } from '../proxies.ts';
import type { Session } from '../sign-in/session.ts';

/** The cloud rejects larger frames. */
const FRAME_BYTES = 64 * 1024;
/** Above this many pending bytes, the local side is not read. */
const WINDOW_BYTES = 256 * 1024;
/** Interval of our pings, ms. The cloud pings every 30 s, but reads no pong while the far side is blocked. */
const PING_MS = 15_000;
const ENDED = 1000;
/** Maximum characters; longer refusals are not from the cloud. */
const MAX_REFUSAL = 64 * 1024;

/** The URL of an operation as a WebSocket. */
/** `ws` uses a proxy only through its agent. */
function agentFor(url: string): { agent?: Agent } {
  if (!isProxied(url)) return {};
  const options = { proxyEnv: proxyEnvironment() };
  return { agent: url.startsWith('https:') ? new TlsAgent(options) : new Agent(options) };
}

function socketUrl(httpUrl: string): string {
  return httpUrl.replace(/^http/, 'ws');
}

/**
 * Opens a WebSocket of the cloud, paused: its first messages may arrive with the upgrade's
 * response, before there is a listener. Throws ClientError, also if there is no response.
 */
export function openSocket({ key }: Session, url: string): Promise<WebSocket> {
  const headers = { 'x-api-key': key };
  const socket = new WebSocket(socketUrl(url), { headers, perMessageDeflate: false, ...agentFor(url) });
  return new Promise((resolve, reject) => {
    socket.once('open', () => {
      socket.pause();
      resolve(socket);
    });
    socket.once('error', (error) => reject(new ClientError(error.message, EXIT.unavailable)));
    socket.once('unexpected-response', (_request, response) => {
      let text = '';
      const told = () => {
        reject(refusal(response.statusCode ?? 0, text));
        response.destroy();
      };
      response.setEncoding('utf8').on('data', (piece: string) => {
        text += piece;
        if (text.length > MAX_REFUSAL) told();
      });
      response.once('end', told).once('error', told);
    });
  });
}

function refusal(status: number, text: string): Error {
  try {
    const { detail, hint } = JSON.parse(text) as { detail?: string; hint?: string };
    if (detail !== undefined) return new ClientError(detail, exitCodeOf(status), hint);
  } catch {
    // A proxy in between has its own error messages.
  }
  return new ClientError(`the cloud refused the WebSocket with status ${status}`, exitCodeOf(status));
}

export interface NearSide {
  readonly input: Readable;
  readonly output: Writable;
}

/** Connects both sides until each has ended. Rejects with ClientError if the tunnel is closed. */
export function join(socket: WebSocket, { input, output }: NearSide): Promise<void> {
  // The client may have closed while the tunnel was opened; the event comes only once.
  if (input.destroyed || output.destroyed) {
    socket.on('error', () => {}).terminate();
    return Promise.resolve();
  }
  const ping = setInterval(() => socket.ping(), PING_MS).unref();
  return new Promise<void>((resolve, reject) => {
    socket.on('message', (data: Buffer, isBinary: boolean) => {
      if (!isBinary) return void output.end();
      if (output.write(data)) return;
      socket.pause();
      output.once('drain', () => socket.resume());
    });
    socket.resume();
    const send = (bytes: Buffer) => {
      if (socket.readyState !== socket.OPEN) return;
      for (let at = 0; at < bytes.length; at += FRAME_BYTES) {
        const isLast = at + FRAME_BYTES >= bytes.length;
        const taken = isLast ? () => input.resume() : undefined;
        const isFull = socket.bufferedAmount > WINDOW_BYTES;
        if (isLast && isFull) input.pause();
        socket.send(bytes.subarray(at, at + FRAME_BYTES), isFull ? taken : undefined);
      }
    };
    input.on('data', send).once('end', () => {
      if (socket.readyState === socket.OPEN) socket.send('');
    });
    input.resume();
    // The local program has ended: the rest has no reader.
    let isGivenUp = false;
    const give = () => {
      isGivenUp = true;
      socket.terminate();
    };
    output.once('error', give).once('close', give);
    input.once('error', give);
    socket.on('error', () => {});
    socket.once('close', (code, reason) => {
      input.off('data', send);
      output.off('close', give);
      if (isGivenUp) return resolve();
      if (code === ENDED) return output.end(resolve);
      output.destroy();
      reject(new ClientError(`the tunnel was closed: ${String(reason) || `code ${code}`}`, EXIT.unavailable));
    });
  }).finally(() => clearInterval(ping));
}

/** Carries a local connection. Never rejects; errors go to `onError`. */
export async function carry(
  near: Duplex & { resetAndDestroy?: () => unknown },
  open: () => Promise<WebSocket>,
  onError: (error: Error) => void,
): Promise<void> {
  near.on('error', () => {});
  near.pause();
  try {
    await join(await open(), { input: near, output: near });
  } catch (error) {
    near.resetAndDestroy?.();
    if (error instanceof CloudError || error instanceof ClientError) onError(error);
    else throw error;
  }
}

/** Shared by the tests of tunnels: a client of the WebSocket, and its refusals. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { type ClientOptions, createWebSocketStream, WebSocket } from 'ws';

export interface Tunnel {
  readonly socket: WebSocket;
  /** Received bytes, as latin-1. */
  text: string;
  /** The other side ended its direction. */
  isEnded: boolean;
  /** 0 while it is open. */
  code: number;
}

export interface TunnelCall {
  /** Below the cloud's address: `/api/vms/…/tunnel?port=22`. */
  readonly path: string;
  readonly key: string;
  /** How to reach a cloud behind a proxy. */
  readonly by?: ClientOptions;
}

function dial(api: string, { path, key, by = {} }: TunnelCall): WebSocket {
  const headers = { ...by.headers, 'x-api-key': key };
  return new WebSocket(`${api.replace(/^http/, 'ws')}${path}`, { ...by, headers });
}

export async function openTunnel(api: string, call: TunnelCall): Promise<Tunnel> {
  const socket = dial(api, call);
  const tunnel: Tunnel = { socket, text: '', isEnded: false, code: 0 };
  socket.on('message', (data: Buffer, isBinary) => {
    if (isBinary) tunnel.text += data.toString('latin1');
    else tunnel.isEnded = data.length === 0;
  });
  socket.on('close', (code) => {
    tunnel.code = code;
  });
  await once(socket, 'open');
  return tunnel;
}

/** Status and code of the problem that refuses the tunnel. */
export async function refusedTunnel(api: string, call: TunnelCall): Promise<[number, string]> {
  const socket = dial(api, call);
  socket.on('error', () => {});
  const opened = once(socket, 'open').then(() => assert.fail(`${call.path} was opened`));
  const refused = once(socket, 'unexpected-response').then(async ([, response]) => {
    let text = '';
    for await (const chunk of response) text += chunk;
    return [response.statusCode, JSON.parse(text).code] as [number, string];
  });
  opened.catch(() => {});
  return Promise.race([refused, opened]);
}

/** A port of this host where each connection gets its own tunnel. */
export async function listenThrough(api: string, call: TunnelCall): Promise<{ port: number; close(): void }> {
  const server = createServer((client) => {
    const through = createWebSocketStream(dial(api, call));
    through.on('error', () => client.destroy());
    client
      .on('error', () => through.destroy())
      .pipe(through)
      .pipe(client);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return { port: (server.address() as AddressInfo).port, close: () => void server.close() };
}

/** Shared by the tests of Hrana. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { WebSocket } from 'ws';
import type { Client } from '../harness/client.ts';
import { eventually } from '../harness/waiting.ts';

export interface Database {
  readonly database_id: string;
  readonly connection: { readonly uri: string; readonly password: string };
}

export async function newDatabase(owner: Client, name: string): Promise<Database> {
  const { status, body } = await owner.call('/api/databases', { json: { name } });
  assert.equal(status, 201, JSON.stringify(body));
  return body;
}

/** The address for a driver. */
export function addressOf({ connection: { uri } }: Database, scheme: 'http' | 'ws'): string {
  const { host, pathname } = new URL(uri);
  return `${scheme}://${host}${pathname}`;
}

/** Raw messages of a socket, in JSON. */
export class RawSocket {
  readonly webSocket: WebSocket;
  // biome-ignore lint/suspicious/noExplicitAny: answers read from outside
  readonly answers: any[] = [];
  readonly #password: string;
  closed: { readonly code: number; readonly reason: string } | undefined;

  constructor(database: Database, protocol = 'hrana3') {
    this.#password = database.connection.password;
    this.webSocket = new WebSocket(addressOf(database, 'ws'), protocol);
    this.webSocket.on('error', () => {});
    this.webSocket.on('message', (data: Buffer) => this.answers.push(JSON.parse(data.toString())));
    this.webSocket.on('close', (code, reason) => {
      this.closed = { code, reason: reason.toString() };
    });
  }

  static async of(database: Database): Promise<RawSocket> {
    const socket = new RawSocket(database);
    await socket.logIn();
    return socket;
  }

  async logIn(): Promise<void> {
    await once(this.webSocket, 'open');
    this.send({ type: 'hello', jwt: this.#password });
    assert.deepEqual(await this.next(1), [{ type: 'hello_ok' }]);
  }

  send(message: unknown): void {
    this.webSocket.send(typeof message === 'string' ? message : JSON.stringify(message));
  }

  ask(requestId: number, request: unknown): void {
    this.send({ type: 'request', request_id: requestId, request });
  }

  /** Reads that many answers. */
  async next(count: number) {
    await eventually('the answers', () => this.answers.length >= count);
    return this.answers.splice(0, count);
  }

  async end() {
    return eventually('the end of the connection', () => this.closed);
  }
}

export const openStream = (stream_id: number) => ({ type: 'open_stream', stream_id });
export const execute = (stream_id: number, sql: string) => ({ type: 'execute', stream_id, stmt: { sql } });

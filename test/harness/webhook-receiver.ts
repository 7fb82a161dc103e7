/** A receiver of webhooks on loopback, and the verification of their signatures. */
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';

export interface Received {
  readonly path: string;
  readonly id: string;
  readonly timestamp: string;
  readonly signature: string;
  readonly contentType: string;
  readonly body: string;
}

export interface Reply {
  readonly status: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | Uint8Array;
}

export class WebhookReceiver {
  readonly #server: Server;
  readonly received: Received[] = [];
  /** `hang`: it never answers. */
  reply: (received: Received) => Reply | 'hang' = () => ({ status: 204 });

  private constructor() {
    this.#server = createServer(async (request, response) => {
      let body = '';
      for await (const piece of request.setEncoding('utf8')) body += piece;
      const header = (name: string) => String(request.headers[name] ?? '');
      const received = {
        path: request.url ?? '',
        body,
        contentType: header('content-type'),
        id: header('webhook-id'),
        timestamp: header('webhook-timestamp'),
        signature: header('webhook-signature'),
      };
      this.received.push(received);
      const reply = this.reply(received);
      if (reply !== 'hang') response.writeHead(reply.status, reply.headers).end(reply.body);
    });
  }

  /** `address`: of this host, where it listens. */
  static async open(address = '127.0.0.1'): Promise<WebhookReceiver> {
    const receiver = new WebhookReceiver();
    receiver.#server.listen(0, address);
    await once(receiver.#server, 'listening');
    return receiver;
  }

  get url(): string {
    const { address, port } = this.#server.address() as AddressInfo;
    return `http://${address}:${port}/hook`;
  }

  /** Resolves when `count` requests have arrived; fails after 20 s. */
  async reached(count: number): Promise<void> {
    for (let i = 0; this.received.length < count; i++) {
      if (i === 2000) throw new Error(`only ${this.received.length} of ${count} requests came`);
      await sleep(10);
    }
  }

  close(): void {
    this.#server.closeAllConnections();
    this.#server.close();
  }
}

/**
 * Whether one of the signatures is valid for this secret, according to Standard Webhooks 1.0; with WebCrypto.
 */
export async function isGenuine(
  secret: string,
  { id, timestamp, signature, body }: Pick<Received, 'id' | 'timestamp' | 'signature' | 'body'>,
): Promise<boolean> {
  if (!secret.startsWith('whsec_')) return false;
  const raw = Uint8Array.from(atob(secret.slice(6)), (character) => character.charCodeAt(0));
  const algorithm = { name: 'HMAC', hash: 'SHA-256' };
  const key = await crypto.subtle.importKey('raw', raw, algorithm, false, ['verify']);
  const content = new TextEncoder().encode(`${id}.${timestamp}.${body}`);
  for (const entry of signature.split(' ')) {
    const [version, value = ''] = entry.split(',');
    if (version !== 'v1') continue;
    const bytes = Uint8Array.from(atob(value), (character) => character.charCodeAt(0));
    if (await crypto.subtle.verify('HMAC', key, bytes, content)) return true;
  }
  return false;
}

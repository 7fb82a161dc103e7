/** What a client hears when no guest answers: on HTTP ports a 503 that says so, elsewhere nothing. */
import type { Socket } from 'node:net';

/** Where plain HTTP is spoken; an answer in clear text would only confuse TLS on 443. */
const HTTP_PORTS: ReadonlySet<number> = new Set([80, 8080]);

export const NOT_ANSWERING = 'This virtual machine is running, but nothing answers on this port.\n';

export interface Refusal {
  /** As the caller sees it. */
  readonly port: number;
  readonly message: string;
  /** What the client sent already. */
  readonly sent: Buffer;
  /** How long the client may take to ask, and then to hang up, ms. */
  readonly lingerMs: number;
}

/** Ends the connection. */
export function refuse(client: Socket, { port, message, sent, lingerMs }: Refusal): void {
  if (!HTTP_PORTS.has(port)) {
    client.destroy();
    return;
  }
  const cut = setTimeout(() => client.destroy(), lingerMs).unref();
  client.once('close', () => clearTimeout(cut));
  // An answer before the question is an error to some clients.
  const answer = (bytes: Buffer) => {
    client.on('data', () => undefined).resume();
    client.end(response(message, bytes.toString('latin1', 0, 5) === 'HEAD '));
    cut.refresh();
  };
  client.once('end', () => client.destroySoon());
  if (sent.length > 0) answer(sent);
  else client.once('data', answer).resume();
}

function response(message: string, isHead: boolean): string {
  const head = [
    'HTTP/1.1 503 Service Unavailable',
    'Content-Type: text/plain; charset=utf-8',
    `Content-Length: ${Buffer.byteLength(message)}`,
    'Cache-Control: no-store',
    'Retry-After: 5',
    'Connection: close',
  ];
  return `${head.join('\r\n')}\r\n\r\n${isHead ? '' : message}`;
}

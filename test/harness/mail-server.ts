/** A mail server on loopback that accepts mail, or lies, hangs, refuses or disconnects. */
import { once } from 'node:events';
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';
import { SMTPServer } from 'smtp-server';
import { eventually } from './waiting.ts';

export interface ReceivedMail {
  readonly from: string;
  readonly to: readonly string[];
  /** The whole message. */
  readonly raw: string;
  readonly subject: string;
  readonly messageId: string;
  /** Decoded. */
  readonly text: string;
}

/** From the start, or after STARTTLS; in PEM. */
export interface MailServerTls {
  readonly kind: 'smtps' | 'starttls';
  readonly key: string;
  readonly cert: string;
}

export class MailServer {
  readonly received: ReceivedMail[] = [];
  /** Called with each recipient: a message refuses it permanently. */
  refuse: (address: string) => string | undefined = () => undefined;
  /** Called with each recipient: true never answers. */
  hangs: (address: string) => boolean = () => false;
  /** Open sessions with a recipient without an answer. */
  readonly #hanging = new Set<string>();
  /** Time until it accepts a recipient. */
  delayMs = 0;
  #server: SMTPServer | undefined;
  /** `user:password` of each attempt to log in, and whether it was encrypted. */
  readonly logins: { readonly login: string; readonly isEncrypted: boolean }[] = [];
  readonly #login: string;
  readonly #tls: MailServerTls | undefined;
  port = 0;

  /** `login`: `user:password`, which is then required. `tls`: default: none. */
  constructor(login = '', tls?: MailServerTls) {
    this.#login = login;
    this.#tls = tls;
  }

  /** Number of sessions that wait for an answer to a recipient. */
  get hanging(): number {
    return this.#hanging.size;
  }

  get url(): string {
    return this.urlFor(this.#login);
  }

  /** With this `user:password`. */
  urlFor(login: string): string {
    const kind = this.#tls?.kind;
    const scheme = kind === 'smtps' ? 'smtps' : 'smtp';
    const query = kind === 'starttls' ? '?tls=starttls' : '';
    return `${scheme}://${login === '' ? '' : `${login}@`}127.0.0.1:${this.port}${query}`;
  }

  /** Listens, on the previous port if there was one. */
  async open(): Promise<this> {
    const made = this.#make();
    made.listen(this.port, '127.0.0.1');
    await once(made.server, 'listening');
    this.port = (made.server.address() as AddressInfo).port;
    this.#server = made;
    return this;
  }

  close(): Promise<void> {
    return new Promise((done) => this.#server?.close(() => done()));
  }

  #make(): SMTPServer {
    const login = this.#login;
    const tls = this.#tls;
    const server = new SMTPServer({
      authOptional: login === '',
      disabledCommands: tls?.kind === 'starttls' ? [] : ['STARTTLS'],
      ...(tls !== undefined && { key: tls.key, cert: tls.cert, secure: tls.kind === 'smtps' }),
      allowInsecureAuth: true,
      onAuth: (auth, session, done) => {
        this.logins.push({ login: `${auth.username}:${auth.password}`, isEncrypted: session.secure });
        const isRight = `${auth.username}:${auth.password}` === login;
        done(isRight ? null : new Error('no such user'), isRight ? { user: auth.username } : undefined);
      },
      onClose: ({ id }) => void this.#hanging.delete(id),
      onRcptTo: ({ address }, { id }, done) => {
        if (this.hangs(address)) return void this.#hanging.add(id);
        const said = this.refuse(address);
        if (said === undefined) return void setTimeout(done, this.delayMs);
        done(Object.assign(new Error(said), { responseCode: 550 }));
      },
      onData: (stream, { envelope }, done) => {
        let raw = '';
        stream.setEncoding('utf8').on('data', (piece: string) => {
          raw += piece;
        });
        stream.on('end', () => {
          const from = envelope.mailFrom === false ? '' : envelope.mailFrom.address;
          this.received.push(
            read(
              from,
              envelope.rcptTo.map(({ address }) => address),
              raw,
            ),
          );
          done();
        });
      },
    });
    server.on('error', () => {});
    return server;
  }

  /** The first mail to this address for which `fits` is true, once it arrives. */
  async mailTo(address: string, fits: (mail: ReceivedMail) => boolean = () => true): Promise<ReceivedMail> {
    const find = () => this.received.find((mail) => mail.to.includes(address) && fits(mail));
    return await eventually(`a mail to ${address}`, find);
  }
}

export interface RudeServer {
  readonly url: string;
  readonly port: number;
  readonly connections: () => number;
  readonly close: () => Promise<void>;
}

/** A server that only does this with each connection. `port`: default: a free one. */
export async function rudeServer(serve: (socket: Socket) => void, port = 0): Promise<RudeServer> {
  const sockets = new Set<Socket>();
  let count = 0;
  const server: Server = createServer((socket) => {
    count++;
    sockets.add(socket);
    socket.on('error', () => {}).on('close', () => sockets.delete(socket));
    serve(socket);
  });
  server.listen(port, '127.0.0.1');
  await once(server, 'listening');
  const close = async () => {
    for (const socket of sockets) socket.destroy();
    server.close();
    await once(server, 'close');
  };
  const address = server.address() as AddressInfo;
  return { url: `smtp://127.0.0.1:${address.port}`, port: address.port, connections: () => count, close };
}

function read(from: string, to: readonly string[], raw: string): ReceivedMail {
  const [head = '', ...body] = raw.split('\r\n\r\n');
  const lines = head.replaceAll(/\r\n[ \t]+/g, ' ').split('\r\n');
  const header = (name: string) =>
    lines
      .find((line) => line.toLowerCase().startsWith(`${name}:`))
      ?.slice(name.length + 1)
      .trim() ?? '';
  const coded = body.join('\r\n\r\n');
  const text =
    header('content-transfer-encoding') === 'quoted-printable'
      ? Buffer.from(
          coded
            .replaceAll('=\r\n', '')
            .replaceAll(/=([0-9A-F]{2})/g, (_, hex) => String.fromCharCode(Number.parseInt(hex, 16))),
          'latin1',
        ).toString()
      : header('content-transfer-encoding') === 'base64'
        ? Buffer.from(coded, 'base64').toString()
        : coded;
  return { from, to, raw, text, subject: header('subject'), messageId: header('message-id') };
}

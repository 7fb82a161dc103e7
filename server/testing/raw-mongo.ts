/** A connection to a MongoDB engine, message by message, for messages that no driver would send. */
import { createHash, createHmac, pbkdf2Sync } from 'node:crypto';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { Binary, type Document, deserialize, serialize } from 'bson';

const OP_MSG = 2013;
const HEADER_BYTES = 16;

/** An OP_MSG with those sections. */
export function messageOf(sections: Uint8Array, { flags = 0, opCode = OP_MSG } = {}): Buffer {
  const start = Buffer.alloc(HEADER_BYTES + 4);
  start.writeInt32LE(start.length + sections.length, 0);
  start.writeInt32LE(7, 4);
  start.writeInt32LE(opCode, 12);
  start.writeUInt32LE(flags, 16);
  return Buffer.concat([start, sections]);
}

export function bodyOf(command: Document): Buffer {
  return Buffer.concat([Buffer.of(0), serialize(command)]);
}

export class RawMongo {
  readonly socket: Socket;
  readonly #waiting: PromiseWithResolvers<Document>[] = [];
  #bytes = Buffer.alloc(0);

  private constructor(socket: Socket) {
    this.socket = socket;
    socket.on('error', () => {});
    socket.on('data', (piece: Buffer) => this.#take(piece));
    socket.on('close', () => {
      for (const { reject } of this.#waiting) reject(new Error('the connection was closed'));
    });
  }

  static async open(port: number): Promise<RawMongo> {
    const socket = connect(port, '127.0.0.1');
    await once(socket, 'connect');
    return new RawMongo(socket);
  }

  /** The reply to a command. Rejects when the connection ends first. */
  ask(command: Document): Promise<Document> {
    return this.send(messageOf(bodyOf(command)));
  }

  /** The reply to those bytes. Rejects when the connection ends first. */
  async send(bytes: Uint8Array): Promise<Document> {
    if (this.socket.closed) throw new Error('the connection was closed');
    const waiting = Promise.withResolvers<Document>();
    this.#waiting.push(waiting);
    this.socket.write(bytes);
    return waiting.promise;
  }

  async logIn(database: string, username: string, password: string): Promise<Document> {
    const bare = `n=${username},r=nonce`;
    const start = { saslStart: 1, mechanism: 'SCRAM-SHA-256', options: { skipEmptyExchange: true } };
    const first = await this.ask({ ...start, payload: binary(`n,,${bare}`), $db: database });
    if (first.ok !== 1) return first;
    const challenge = first.payload.toString('utf8') as string;
    const [, nonce = '', salt = '', count = ''] = /^r=(.+),s=(.+),i=(\d+)$/.exec(challenge) ?? [];
    const salted = pbkdf2Sync(password, Buffer.from(salt, 'base64'), Number(count), 32, 'sha256');
    const clientKey = hmac(salted, 'Client Key');
    const stored = createHash('sha256').update(clientKey).digest();
    const signature = hmac(stored, `${bare},${challenge},c=biws,r=${nonce}`);
    const proof = clientKey.map((byte, index) => byte ^ (signature[index] as number));
    const payload = binary(`c=biws,r=${nonce},p=${Buffer.from(proof).toString('base64')}`);
    return this.ask({ saslContinue: 1, conversationId: first.conversationId, payload, $db: database });
  }

  #take(piece: Buffer): void {
    this.#bytes = Buffer.concat([this.#bytes, piece]);
    while (this.#bytes.length >= 4 && this.#bytes.length >= this.#bytes.readInt32LE(0)) {
      const size = this.#bytes.readInt32LE(0);
      const isMessage = this.#bytes.readInt32LE(12) === OP_MSG;
      const reply = deserialize(this.#bytes.subarray(HEADER_BYTES + (isMessage ? 5 : 20), size));
      this.#bytes = this.#bytes.subarray(size);
      this.#waiting.shift()?.resolve(reply);
    }
  }
}

function binary(text: string): Binary {
  return new Binary(Buffer.from(text));
}

function hmac(key: Buffer, text: string): Buffer {
  return createHmac('sha256', key).update(text).digest();
}

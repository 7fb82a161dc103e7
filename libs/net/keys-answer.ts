/** Answers one HTTP request of a guest for its temporary SSH keys, then closes. */
import { Duplex } from 'node:stream';

const MAX_REQUEST_BYTES = 4096;
const ASKED = 'GET /ssh-keys ';
/** Marker of the lines for the built-in image. */
const MARK = 'cloudlet-lent';

export class KeysAnswer extends Duplex {
  readonly #read: () => Promise<readonly string[]>;
  #request = '';
  #isAnswered = false;

  /** `read` returns the lines. */
  constructor(read: () => Promise<readonly string[]>) {
    super({ allowHalfOpen: true });
    this.#read = read;
  }

  override _read(): void {}

  override _write(chunk: Buffer, _encoding: BufferEncoding, done: () => void): void {
    if (!this.#isAnswered) this.#request += chunk.toString('latin1');
    done();
    if (this.#request.length > MAX_REQUEST_BYTES) this.destroy();
    else if (!this.#isAnswered && /\r?\n\r?\n/.test(this.#request)) void this.#answer();
  }

  async #answer(): Promise<void> {
    this.#isAnswered = true;
    const isKnown = this.#request.startsWith(ASKED);
    const keys = isKnown ? await this.#read().catch(() => []) : [];
    const body = keys.map((key) => `${key} ${MARK}\n`).join('');
    const head = [
      isKnown ? 'HTTP/1.0 200 OK' : 'HTTP/1.0 404 Not Found',
      'Content-Type: text/plain',
      `Content-Length: ${body.length}`,
    ];
    this.push(`${head.join('\r\n')}\r\n\r\n${body}`);
    this.push(null);
  }
}

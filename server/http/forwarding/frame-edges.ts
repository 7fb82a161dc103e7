/** Where frames of a WebSocket begin and end in the bytes of a server (RFC 6455 §5.2). */

const CLOSE = 8;
/** Values of the 7-bit length that stand for a longer one behind it, and how many bytes that has. */
const LENGTH_16 = 126;
const LENGTH_64 = 127;

export class FrameEdges {
  /** Bytes of the current frame's header until now. */
  #header: number[] = [];
  /** Bytes of its payload that have not passed. */
  #left = 0;
  #isClosed = false;

  follow(bytes: Uint8Array): void {
    for (let at = 0; at < bytes.length; ) {
      if (this.#left > 0) {
        const passed = Math.min(this.#left, bytes.length - at);
        this.#left -= passed;
        at += passed;
        continue;
      }
      this.#header.push(bytes[at++] as number);
      this.#readHeader();
    }
  }

  /** True if a frame may be sent: none is incomplete, and none has closed the WebSocket. */
  get mayAdd(): boolean {
    return this.#left === 0 && this.#header.length === 0 && !this.#isClosed;
  }

  #readHeader(): void {
    const [first = 0, second] = this.#header;
    if (second === undefined) return;
    const short = second & 0x7f;
    const more = { [LENGTH_16]: 2, [LENGTH_64]: 8 }[short] ?? 0;
    // Servers send no mask.
    if (this.#header.length < 2 + more) return;
    const long = this.#header.slice(2).reduce((length, byte) => length * 256 + byte, 0);
    this.#left = more === 0 ? short : long;
    this.#header = [];
    if ((first & 0x0f) === CLOSE) this.#isClosed = true;
  }
}

/** The frame by which a server closes a WebSocket; `reason`: at most 123 bytes. */
export function closeFrame(code: number, reason: string): Buffer {
  const text = Buffer.from(reason);
  return Buffer.concat([Buffer.from([0x80 | CLOSE, 2 + text.length, code >> 8, code & 0xff]), text]);
}

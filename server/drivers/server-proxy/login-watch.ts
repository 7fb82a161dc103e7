/**
 * Detects in the protocols of PostgreSQL and MariaDB whether a client has logged in or requests encryption.
 * Encrypted traffic reveals nothing.
 */

/** `never`: the login cannot be observed. */
export type LoginState = 'not yet' | 'in' | 'never';

/** Protocol facts that the proxy needs. Listeners refer to it by name, which can be sent to threads. */
interface LoginProtocol {
  /** Whether the server speaks first, so that a silent client already needs a server. */
  readonly serverBegins: boolean;
  /** Bytes before a message's length is known. */
  readonly headBytes: number;
  /** Full length of the message that starts with `head`; null: not a message. */
  lengthOf(head: Buffer): number | null;
  /** Whether the server's message number `count`, from 0, says that the user is logged in. */
  isLogin(message: Buffer, count: number): boolean;
  /** The meaning of the first byte, before all messages; undefined: the byte begins a message. */
  prelude?(byte: number | undefined): 'encrypted' | 'skip' | undefined;
  /**
   * The refusal of encryption to a client that requests it before identifying itself; null: there
   * is none.
   */
  noEncryption(words: Buffer): Buffer | null;
}

/** Authentication request of kind 0: AuthenticationOk (PostgreSQL 3.0, message formats). */
const AUTHENTICATION = 'R'.charCodeAt(0);
const AUTHENTICATION_OK_LENGTH = 9;
/** Answers to a request for TLS: yes, no. */
const TLS = 'S'.charCodeAt(0);
const NO_TLS = 'N'.charCodeAt(0);
/** SSLRequest and GSSENCRequest: a length of 8, then one of these. */
const ENCRYPTION_REQUESTS: readonly number[] = [80_877_103, 80_877_104];
const REQUEST_LENGTH = 8;

const MESSAGE_HEAD_BYTES = 5;

const POSTGRESQL: LoginProtocol = {
  serverBegins: false,
  headBytes: MESSAGE_HEAD_BYTES,
  lengthOf: (head) => {
    const length = head.readInt32BE(1) + 1;
    return length < MESSAGE_HEAD_BYTES ? null : length;
  },
  isLogin: (message) =>
    message[0] === AUTHENTICATION &&
    message.length === AUTHENTICATION_OK_LENGTH &&
    message.readInt32BE(MESSAGE_HEAD_BYTES) === 0,
  // A notice starts with the same letter as NO_TLS; it never comes first or alone.
  prelude: (byte) => (byte === TLS ? 'encrypted' : byte === NO_TLS ? 'skip' : undefined),
  noEncryption: (words) => {
    const isRequest = words.length === REQUEST_LENGTH && ENCRYPTION_REQUESTS.includes(words.readInt32BE(4));
    return isRequest ? Buffer.of(NO_TLS) : null;
  },
};

/** OK_Packet (MySQL, client/server protocol). */
const OK = 0x00;
const PACKET_HEAD_BYTES = 4;

const MYSQL: LoginProtocol = {
  serverBegins: true,
  // With the first byte of the body, which identifies the packet.
  headBytes: PACKET_HEAD_BYTES + 1,
  lengthOf: (head) => head.readUIntLE(0, 3) + PACKET_HEAD_BYTES,
  // The first is the server's greeting.
  isLogin: (message, count) => count > 0 && message[PACKET_HEAD_BYTES] === OK,
  noEncryption: () => null,
};

/** A protocol without observable logins: its connections count as logged in after a while. */
const UNSEEN = { headBytes: 1, lengthOf: () => null, isLogin: () => false, noEncryption: () => null };
const MONGODB: LoginProtocol = { ...UNSEEN, serverBegins: false };
/** Published ports: a machine may use any protocol. */
const TCP: LoginProtocol = { ...UNSEEN, serverBegins: true };

/** Wire protocols, which several engines may have. */
export const PROTOCOLS = { postgresql: POSTGRESQL, mysql: MYSQL, mongodb: MONGODB, tcp: TCP } as const;
export type Protocol = keyof typeof PROTOCOLS;

/** A login needs less. */
const MAX_BYTES = 65_536;

export class LoginWatch {
  readonly #protocol: LoginProtocol;
  #rest = Buffer.alloc(0);
  #seenBytes = 0;
  /** Messages so far. */
  #count = 0;

  constructor(protocol: Protocol) {
    this.#protocol = PROTOCOLS[protocol];
  }

  /** Takes the next bytes of the server. Call until it returns `in` or `never`. */
  sees(bytes: Buffer): LoginState {
    this.#seenBytes += bytes.length;
    if (this.#seenBytes > MAX_BYTES) return 'never';
    this.#rest = Buffer.concat([this.#rest, bytes]);
    const { headBytes, prelude, lengthOf, isLogin } = this.#protocol;
    const said = this.#count === 0 ? prelude?.(this.#rest[0]) : undefined;
    if (said === 'encrypted') return 'never';
    if (said === 'skip') this.#rest = this.#rest.subarray(1);
    while (this.#rest.length >= headBytes) {
      const length = lengthOf(this.#rest);
      if (length === null) return 'never';
      if (this.#rest.length < length) return 'not yet';
      if (isLogin(this.#rest.subarray(0, length), this.#count)) return 'in';
      this.#count++;
      this.#rest = this.#rest.subarray(length);
    }
    return 'not yet';
  }
}

/** See LoginProtocol. */
export function noEncryption(protocol: Protocol, words: Buffer): Buffer | null {
  return PROTOCOLS[protocol].noEncryption(words);
}
